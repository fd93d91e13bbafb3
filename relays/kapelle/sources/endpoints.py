"""Webhooks and endpoints of Amazon SNS as a file says, which may change while they are used."""

import logging
from pathlib import Path

from kapelle.sources.hooks import Hooks
from kapelle.sources.sns import Sns
from kapelle.sources.source_file import WatchedFile

_log = logging.getLogger("kapelle.sources")


class Endpoints:
    """What a file says. `look` follows its changes; one that cannot be used is told of, and changes nothing."""

    def __init__(self, path: Path) -> None:
        """Raises `BadSources`."""
        self._watched = WatchedFile(path, check=Hooks.of)
        self.hooks = Hooks.of(self._watched.current)
        self.sns = Sns(self._watched.current.sns)

    def ask(self) -> None:
        """Read the file anew at the next look. May be called from a signal handler."""
        self._watched.ask()

    def look(self) -> None:
        """Use the file as it is now, if it has changed."""
        sources = self._watched.changed()
        if sources is not None:
            self.hooks.use(Hooks.of(sources))
            self.sns.use(sources.sns)
            counts = {"hooks": len(sources.hooks), "sns": len(sources.sns)}
            _log.info("the hooks have changed", extra={"fields": counts})
