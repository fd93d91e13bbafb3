"""The read model: lists, timelines and answers to requests, folded from history into SQLite. No decision reads it."""

from kapelle.views.errors import BadCursor, ViewDamaged, ViewError, ViewFailed
from kapelle.views.views import Views

__all__ = ["BadCursor", "ViewDamaged", "ViewError", "ViewFailed", "Views"]
