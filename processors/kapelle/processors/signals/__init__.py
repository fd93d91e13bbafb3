"""Signals: accepted once, numbered, and offered to all matching subscriptions. The laws are in `deciding`."""

from kapelle.processors.signals import applying, deciding, documents  # noqa: F401  register what is applied and decided
from kapelle.processors.signals.processor import signals

__all__ = ["signals"]
