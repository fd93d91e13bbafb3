"""Other ways to do the same work, each a program of its own: what Kapelle is measured against."""
