"""The proof of composite steps: trees of loops and subworkflows, with stops and restarts at every level."""
