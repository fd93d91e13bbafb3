"""Triggers: signals joined by value, one start for each combination. The laws are in `deciding`."""

from kapelle.processors.triggers import applying, deciding, documents  # noqa: F401  register what is applied and decided
from kapelle.processors.triggers.processor import triggers

__all__ = ["triggers"]
