"""Records of the history that a relay can make nothing of: it says so, with where they stand, and goes on."""

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from kapelle.topology.journal import RECORD_FAULTS, Entry

T = TypeVar("T")


def told(entry: Entry, tell: Callable[[], Iterable[T]], log: logging.Logger) -> list[T] | None:
    """What is to be told of an entry; None, with a line in the log, if that cannot be said."""
    try:
        return list(tell())
    except RECORD_FAULTS as error:
        why = f"{type(error).__name__}: {error}"
        log.warning("skipped %s-%d at %d: %s", entry.stream, entry.partition, entry.offset, why)
        return None
