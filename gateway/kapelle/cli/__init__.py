"""The kapelle command."""
