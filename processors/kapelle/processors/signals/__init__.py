"""Signals: announced once, numbered, and offered to everyone whom they concern. The laws are in `deciding`."""

from kapelle.processors.signals import applying, deciding, documents  # noqa: F401  register what is applied and decided
from kapelle.processors.signals.processor import signals

__all__ = ["signals"]
