"""Intake: turns everything that is published on the topic of signals into signals. The forms are in `forms`."""

from kapelle.processors.intake import deciding  # noqa: F401  registers what is decided
from kapelle.processors.intake.processor import intake

__all__ = ["intake"]
