"""Workflows: versions and properties, the run-strategy queue, and at most one instance for each request."""

from kapelle.processors.workflows import (  # noqa: F401  each registers what it decides or applies
    applying,
    arrivals,
    documents,
    properties,
    queue,
    restarts,
    starts,
    terminations,
    versions,
)
from kapelle.processors.workflows.processor import workflows
from kapelle.processors.workflows.strategies import LAUNCHES_MAX
from kapelle.processors.workflows.tables import WorkflowTables

__all__ = ["LAUNCHES_MAX", "WorkflowTables", "workflows"]
