"""Permits: how many attempts of steps may run at the same time, for each tag, workflow and tree of instances."""

from kapelle.processors.permits import applying, deciding, documents, laws  # noqa: F401  register what they handle
from kapelle.processors.permits.processor import permits
from kapelle.processors.permits.tables import PermitTables

__all__ = ["PermitTables", "permits"]
