"""A file of sources that may change while it is used. What cannot be used is told, and what was before goes on."""

import logging
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from kapelle.sources.errors import BadSources
from kapelle.sources.models import SourcesFile, read_sources

LOOK_S: Final = 1.0

_log = logging.getLogger("kapelle.sources")

Mark = tuple[int, int, int]
Check = Callable[[SourcesFile], object]  # raises `BadSources` for what cannot be used


class WatchedFile:
    """A file of sources. `ask` has it looked at anew, whatever its times say."""

    def __init__(
        self,
        path: Path,
        *,
        refused: Collection[str] = (),
        check: Check = bool,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._check = check
        self._refused = refused  # topics that no source may read, because it writes to them
        self._now_s = now_s
        self._asked = threading.Event()
        self._looked_s = now_s()
        self._mark = self._marked()
        self.current = self._read()

    def ask(self) -> None:
        """Read it anew at the next look. May be called from a signal handler."""
        self._asked.set()

    def changed(self) -> SourcesFile | None:
        """The sources as they are now, if that is something else than before."""
        if not self._asked.is_set() and self._now_s() - self._looked_s < LOOK_S:
            return None
        self._looked_s = self._now_s()
        is_asked, mark = self._asked.is_set(), self._marked()
        self._asked.clear()
        if mark is None or (mark == self._mark and not is_asked):
            return None  # a file that is being replaced is not there for a moment
        try:
            sources = self._read()
        except (BadSources, OSError) as error:
            self._mark = mark
            _log.error(
                "the file cannot be used; the previous one stays",
                extra={"fields": {"file": self._path, "reason": error}},
            )
            return None
        self._mark = mark
        if sources == self.current:
            return None
        self.current = sources
        return sources

    def _read(self) -> SourcesFile:
        sources = read_sources(self._path.read_bytes())
        circles = sorted({source.topic for source in sources.sources if source.topic in self._refused})
        if circles:
            raise BadSources([f"{topic}: Expected a topic that sources do not write to" for topic in circles])
        self._check(sources)
        return sources

    def _marked(self) -> Mark | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino
