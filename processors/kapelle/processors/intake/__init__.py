"""Intake: whatever is published on the topic of signals, made into signals. The forms are in `forms`."""

from kapelle.processors.intake.processor import intake

__all__ = ["intake"]
