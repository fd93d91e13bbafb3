"""From events to changes of the view: pure functions, one for each type of event."""

from kapelle.views.projection.news import news_of
from kapelle.views.projection.projecting import FOLLOWED, changes_of

__all__ = ["FOLLOWED", "changes_of", "news_of"]
