"""The processor `runs`: instances and their steps, from first to last. The laws are in `states` and `flow`."""

from kapelle.processors.runs import deciding, documents, givenup, people  # noqa: F401  each registers what it decides
from kapelle.processors.runs.processor import runs

__all__ = ["runs"]
