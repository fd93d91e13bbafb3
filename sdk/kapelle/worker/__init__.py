"""The worker that runs steps written as Python functions."""
