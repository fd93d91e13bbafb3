"""Workflows: versions and properties, the run-strategy queue, and at most one instance for each request."""

from kapelle.processors.workflows import applying, deciding, documents  # noqa: F401  register what is applied and decided
from kapelle.processors.workflows.processor import workflows
from kapelle.processors.workflows.strategies import LAUNCHES_MAX
from kapelle.processors.workflows.tables import WorkflowTables

__all__ = ["LAUNCHES_MAX", "WorkflowTables", "workflows"]
