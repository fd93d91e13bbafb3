"""Errors of the embedded runtime, by who must act.

    EmbeddedError
    ├── caller
    │   ├── UnknownPlace        a stream or partition that the topology does not have
    │   ├── QueueFull           the record was not taken in time: publish more slowly, or wait longer
    │   ├── Running             a call that is only for a runtime that does not run by itself
    │   └── NotIdle             there is always something more to do, so waiting for the end of it is in vain
    ├── operator
    │   ├── DirectoryDiffers    the directory was made for another topology, or by a later release
    │   ├── DirectoryTaken      the directory was moved, deleted or replaced while this process was using it
    │   └── LogDamaged          acknowledged writes are missing: bring back a copy of the directory, or salvage the rest
    │       ├── RecordsMissing  the same, found while reading: later records are there
    │       └── LogReplaced     the log is not the one that the view was made from
    └── runtime
        └── Stopped             the runtime has stopped: what was not acknowledged may be published again

A directory in use by another process is `StoreLocked`, a damaged one `StoreCorrupt`, a full disk `StoreFailed`
(`kapelle.topology.tables`). A record beyond its limit is `RecordTooLarge` (`kapelle.schemas`), a key `KeyTooLarge`.
"""

from pathlib import Path

from kapelle.topology.errors import TopologyError
from kapelle.topology.log import Place


class EmbeddedError(TopologyError):
    """Anything wrong with the embedded runtime."""


class UnknownPlace(EmbeddedError):
    """A stream or partition that is not there."""

    def __init__(self, expected: str, found: object) -> None:
        super().__init__(f"Expected {expected}, but found {found}")
        self.expected = expected
        self.found = found


class QueueFull(EmbeddedError):
    """Nobody took from the queue in time. Of the records to publish, the first `added` are on their way."""

    def __init__(self, waiting: int, *, timeout_s: float, added: int) -> None:
        super().__init__(
            f"Expected room in the queue of records to publish within {timeout_s} s, but {waiting} are waiting; "
            f"{added} were added before"
        )
        self.waiting = waiting
        self.timeout_s = timeout_s
        self.added = added


class Running(EmbeddedError):
    """The runtime runs by itself, or cannot."""


class NotIdle(EmbeddedError):
    """The work did not come to an end."""

    def __init__(self, steps: int) -> None:
        super().__init__(f"Expected to be idle within {steps} steps, but there is still work: does it feed itself?")
        self.steps = steps


class DirectoryDiffers(EmbeddedError):
    """The directory belongs to something else. Open it with what it was made for, or use another one."""

    def __init__(self, what: str, *, expected: object, found: object) -> None:
        super().__init__(f"Expected the log to have been made with {what} {expected!r}, but it was made with {found!r}")
        self.what = what
        self.expected = expected
        self.found = found


class LogDamaged(EmbeddedError):
    """Acknowledged writes are missing. Bring back a copy of the whole directory, or salvage what is left."""


class RecordsMissing(LogDamaged):
    """Records are missing although later ones are there."""

    def __init__(self, place: Place, offset: int, end: int) -> None:
        super().__init__(f"Expected records from offset {offset} to {end} of {place}, but found none")
        self.place = place
        self.offset = offset
        self.end = end


class LogReplaced(LogDamaged):
    """The log is not the one that the view was made from. Bring that one back, or give up what it had."""


class DirectoryTaken(EmbeddedError):
    """The directory is not there any more, or it is another one. Stop, and find out who moved it."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"Expected {path} to stay in place while it is in use, but it was moved, deleted or replaced. The last "
            "write was not acknowledged; it went to the directory that was there before"
        )
        self.path = path


class Stopped(EmbeddedError):
    """The runtime takes nothing more. Its failure, if it failed, is the cause."""

    def __init__(self, failure: BaseException | None = None) -> None:
        why = "" if failure is None else f": {type(failure).__name__}: {failure}"
        super().__init__(f"Expected the runtime to be running, but it has stopped{why}")
        self.failure = self.__cause__ = failure
