"""The processor `runs`: instances and their steps, from start to end. The laws are in `states` and `flow`."""

from kapelle.processors.runs import applying, deciding, documents, laws  # noqa: F401  register what they have
from kapelle.processors.runs.processor import runs

__all__ = ["runs"]
