"""Errors of replaying history, by who must act.

ReplayError
├── caller
│   ├── BadMoment              a moment that cannot be read, or that history has not reached
│   ├── NoHistory              nothing was ever kept there
│   └── BadExport              a file that is no export, or is cut off
├── operator
│   ├── HistoryIncomplete      the first events are gone: what they did cannot be known
│   ├── HistoryUnreadable      an event that this release cannot read
│   └── Unsettled              tables that change faster than they can be compared
└── author: whoever wrote the processor
    └── ApplyFailedAgain       `apply` raises on an event that was once accepted
"""

from pathlib import Path

from kapelle.topology.errors import TopologyError
from kapelle.topology.log import Place


class ReplayError(TopologyError):
    """Anything wrong with replaying history."""


class BadMoment(ReplayError):
    """A moment that is none, or that lies beyond what has happened."""


class NoHistory(ReplayError):
    """There is nothing to replay."""

    def __init__(self, where: object) -> None:
        super().__init__(f"Expected the directory of `kapelle dev --data`, but found no log in {where}")
        self.where = where


class BadExport(ReplayError):
    """A file that cannot be replayed."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"Expected {path} to be a file of `kapelle replay export`, but {reason}")
        self.path = path


class HistoryIncomplete(ReplayError):
    """Events were deleted, by retention or by hand. Only a copy of the topic brings them back."""

    def __init__(self, place: Place, begins: int) -> None:
        super().__init__(
            f"Expected the history {place} to begin at offset 0, but it begins at {begins}: without the events before "
            "it the tables cannot be rebuilt"
        )
        self.place = place
        self.begins = begins


class HistoryUnreadable(ReplayError):
    """An event of a schema that this topology does not know. Without it the tables may not be what they were."""

    def __init__(self, place: Place, offset: int, reason: str) -> None:
        super().__init__(
            f"Expected an event at offset {offset} of {place}, but it cannot be read: {reason}. If another release or "
            "a registry wrote it, replay with that release, or with --registry; if it is not an event, skip it with "
            "--pass-over-unknown"
        )
        self.place = place
        self.offset = offset


class Unsettled(ReplayError):
    """No moment was found at which tables and history could be compared."""

    def __init__(self, shard: str, rounds: int) -> None:
        super().__init__(
            f"Expected the tables of {shard} to stay unchanged long enough for a comparison, but they changed in "
            f"each of {rounds} rounds: try again when there is less to do"
        )


class ApplyFailedAgain(ReplayError):
    """Law 2 of processors is broken: an event that was once accepted must always apply."""

    def __init__(self, place: Place, offset: int, cause: Exception) -> None:
        super().__init__(
            f"Expected the event at offset {offset} of {place} to apply, as it once did, but apply raised "
            f"{type(cause).__name__}: {cause}"
        )
        self.place = place
        self.offset = offset
