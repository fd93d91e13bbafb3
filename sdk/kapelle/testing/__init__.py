"""What users test with: a virtual clock, the embedded log, crash points."""
