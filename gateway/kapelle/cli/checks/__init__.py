"""What `kapelle doctor` looks at: each module a subject, each finding with a verdict and what to do about it."""
