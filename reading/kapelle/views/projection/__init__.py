"""From events to rows of the view: one function for each type of event, which says what becomes of which row."""

from kapelle.views.projection.streams import FOLLOWED, project

__all__ = ["FOLLOWED", "project"]
