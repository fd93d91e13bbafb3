"""Moments of the past: a time, or offsets of histories.

    end                                 all that has happened
    2026-11-16T12:00:00Z                all that was written up to then, to the millisecond
    workflows-3@120,runs-0@55           before these offsets of these histories; all of the others

A history is followed up to the first event that was written after the time, so what is folded is always a beginning of
it. What one cycle wrote bears the times of its writing: a moment within a cycle may hold a part of it.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final, Self

import msgspec

from kapelle.topology.build import Topology
from kapelle.topology.replay.errors import BadMoment, HistoryUnreadable
from kapelle.topology.replay.fold import Folding, ShardName
from kapelle.topology.replay.history import History, Records

END: Final = "end"
FORMS: Final = "a time such as 2026-11-16T12:00:00Z, offsets such as workflows-3@120,runs-0@55, or end"
_OFFSET: Final = re.compile(r"(?P<processor>[a-z0-9][a-z0-9.-]*)-(?P<partition>\d{1,5})@(?P<offset>\d{1,18})")


class Moment(msgspec.Struct, frozen=True):
    """How far histories are folded. Without a time and without offsets: to their ends."""

    time_ms: int | None = None
    offsets: Mapping[ShardName, int] = {}
    passes_over: bool = False  # records with a schema that nobody knows; else they are an error

    @classmethod
    def parse(cls, text: str, topology: Topology) -> Self:
        """A moment as people write it."""
        if text == END:
            return cls()
        if "@" in text:
            return cls(offsets=dict(_offset(part, topology) for part in text.split(",")))
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise BadMoment(f"Expected {FORMS}, but found {text!r}") from None
        zoned = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
        return cls(time_ms=round(zoned.timestamp() * 1000))

    def fold(self, fold: Folding, history: History, shard: ShardName) -> Iterator[int]:
        """Fold a shard up to this moment, telling after each batch how many events that were in all."""
        end = history.ends([fold.place])[fold.place]
        asked_end = self.offsets.get(shard, end)
        if asked_end > end:
            raise BadMoment(f"Expected an offset of at most {end} for {shard[0]}-{shard[1]}, but found {asked_end}")
        for records in history.read(fold.place, fold.position, asked_end):
            late = self._late(records)
            fold.take(records if late is None else records[:late])
            yield fold.events
            if late is not None:
                break
        unknown = fold.unreadable.unknown
        if unknown is not None and not self.passes_over:
            raise HistoryUnreadable(fold.place, *unknown)

    def _late(self, records: Records) -> int | None:
        """Which of the records is the first that was written after the time; None if all came in time."""
        time_ms = self.time_ms
        if time_ms is None:
            return None
        return next((n for n, record in enumerate(records) if record.at_ms > time_ms), None)


def _offset(text: str, topology: Topology) -> tuple[ShardName, int]:
    matched = _OFFSET.fullmatch(text.strip())
    if matched is None:
        raise BadMoment(f"Expected offsets such as workflows-3@120,runs-0@55, but found {text.strip()!r}")
    processor, partition = matched["processor"], int(matched["partition"])
    if processor not in topology.processors:
        raise BadMoment(f"Expected a processor among {', '.join(topology.processors)}, but found {processor!r}")
    count = topology.processor_partitions(processor)
    if partition >= count:
        raise BadMoment(f"Expected a partition of {processor} below {count}, but found {partition}")
    return (processor, partition), int(matched["offset"])
