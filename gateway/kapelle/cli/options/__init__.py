"""The options that several commands share, each declared once."""
