"""Answers that say that records were lost: each is believed when it was given twice, with a pause between."""

import logging
from collections.abc import Hashable

_log = logging.getLogger("kapelle.doubts")


class Doubts:
    """What has been answered once, and when. The pause is by the clock of the caller."""

    def __init__(self, pause_ms: int) -> None:
        self._pause_ms = pause_ms
        self._since: dict[Hashable, tuple[object, int]] = {}

    def __contains__(self, about: Hashable) -> bool:
        return about in self._since

    def is_certain(self, about: Hashable, answer: object, now_ms: int) -> bool:
        """Whether this answer was given before, and long enough ago. Another answer begins the pause again."""
        before, at_ms = self._since.get(about, (None, 0))
        if before != answer or now_ms < at_ms:  # a clock that went back tells nothing about the pause
            _log.warning("%s: %s; checking again to confirm", about, answer)
            self._since[about] = answer, now_ms
            return False
        return now_ms - at_ms >= self._pause_ms

    def clear(self, about: Hashable) -> None:
        self._since.pop(about, None)
