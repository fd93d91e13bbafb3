"""Looking at the tables of a moment: which shards hold what was asked for, and the rows that are about it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, get_args

import msgspec

from kapelle.processors.tables import Key
from kapelle.topology.replay.comparison import Data, State, as_data, row_data
from kapelle.topology.replay.fold import Folding, ShardName, decoder
from kapelle.topology.replay.history import History
from kapelle.topology.replay.moments import Moment
from kapelle.topology.tables import Store

TIMERS: Final = "timers"
FOR_EVER_MS: Final = 1 << 62
TIMERS_MAX: Final = 1_000_000


class Subject(msgspec.Struct, frozen=True):
    """What to look at: rows of one processor, on one partition or on all, of some tables or of all, by their keys."""

    processor: str
    partition: int | None = None
    tables: Sequence[str] = ()
    prefix: Key = ()

    def shards(self, history: History) -> list[ShardName]:
        """The shards that hold it."""
        if self.partition is not None:
            return [(self.processor, self.partition)]
        return [(self.processor, n) for n in range(history.topology.processor_partitions(self.processor))]

    def holds(self, table: str, key: Sequence[object]) -> bool:
        """Whether a row is about it."""
        return (not self.tables or table in self.tables) and list(key[: len(self.prefix)]) == list(self.prefix)


class Shown(msgspec.Struct, frozen=True):
    """A row as people read it."""

    processor: str
    partition: int
    table: str
    key: list[object]
    row: Data


class Point(msgspec.Struct, frozen=True):
    """How far a shard was folded: its events, the offset that would come next, and when the last one was written."""

    processor: str
    partition: int
    events: int
    offset: int
    at_ms: int


def folded(
    history: History, shards: Iterable[ShardName], moment: Moment, store: Store
) -> Iterator[tuple[Folding, bool]]:
    """Fold shards one after the other. Each is told of now and then, and last with True: then its tables are there.

    They are gone when the next one is asked for.
    """
    decode = decoder(history)
    for shard in shards:
        fold = Folding(history.topology, shard, decode=decode, store=store)
        for _ in moment.fold(fold, history, shard):
            yield fold, False
        fold.settle()
        yield fold, True
        fold.wipe()


def point(fold: Folding) -> Point:
    return Point(fold.processor.name, fold.place.partition, fold.events, fold.position, fold.at_ms)


def rows_about(fold: Folding, subject: Subject) -> Iterator[Shown]:
    """The rows of a folded shard that are about the subject, table by table, then its timers."""
    for spec in fold.processor.tables.specs():
        if (subject.tables and spec.name not in subject.tables) or not _fits(spec.key, subject.prefix):
            continue
        for key, row in getattr(fold.state.reader, spec.attribute).prefix(subject.prefix):
            yield _shown(fold, spec.name, key, row)
    if not subject.tables or TIMERS in subject.tables:
        yield from _timers(fold, fold.state, subject)


def _timers(fold: Folding, state: State, subject: Subject) -> Iterator[Shown]:
    for key, name, due_at_ms in state.due(FOR_EVER_MS, TIMERS_MAX):
        if subject.holds(TIMERS, (key, name)):
            yield Shown(fold.processor.name, fold.place.partition, TIMERS, [key, name], {"due_at_ms": due_at_ms})


def _shown(fold: Folding, table: str, key: Key, row: msgspec.Struct) -> Shown:
    return Shown(fold.processor.name, fold.place.partition, table, [as_data(column) for column in key], row_data(row))


def _fits(key: type[Key], prefix: Key) -> bool:
    """Whether keys of this table can begin so."""
    columns = [getattr(column, "__supertype__", column) for column in get_args(key)]
    return len(columns) >= len(prefix) and all(
        isinstance(value, column) for value, column in zip(prefix, columns, strict=False)
    )
