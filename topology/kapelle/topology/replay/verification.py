"""Is the state the fold of the history? Shard by shard, also while members go on writing.

A changelog says what the rows are, not which events they stand for, and it goes on growing. So the moment at which both
agree is looked for:

    1. fold the history as far as it is committed                        up to event a
    2. ask where the changelog ends, open transactions included,
       and read the rows up to there                                     every row of a transaction before a is read
    3. ask where the history ends, and read the events up to there       every event that the rows stand for is read
    4. compare, and fold the events of step 3 one by one                 at one of them all rows must be equal

Rows and events of a cycle are one transaction, so the rows of step 2 are those of some event between a and the last one
of step 3. If no event makes them equal, the rows that differed all the while are wrong. They are looked at a second
time, further on: while a changelog is read, compaction may take away a row that was written anew behind the reader.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

import msgspec

from kapelle.topology.build import Topology
from kapelle.topology.embedded.partitions import LogRecord
from kapelle.topology.replay.comparison import Comparison, Difference, Differing, State, described, same
from kapelle.topology.replay.errors import Unsettled
from kapelle.topology.replay.fold import Decode, Folding, ShardName
from kapelle.topology.replay.history import Records
from kapelle.topology.tables import Batch, ShardState, Store
from kapelle.topology.tables.buckets import FLOORS

ROUNDS_MAX: Final = 6
DIFFERING_MAX: Final = 100_000  # more than any cycle writes: so many are no matter of moments
COPY_ROWS: Final = 10_000
BROKEN_MAX: Final = 10

Rows = dict[bytes, Differing]

_FLOORS: Final = FLOORS.name.encode() + b"\0"


class Tape(Protocol):
    """One partition that is read on and on."""

    def end(self) -> int:
        """Where it ends now, open transactions included."""
        ...

    def read(self, end: int) -> Iterator[Records]:
        """The committed records from where the last reading ended up to this offset."""
        ...


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one shard."""

    processor: str
    partition: int
    events: int
    rows: int
    differences: int = 0
    first: Difference | None = None
    broken: Sequence[str] = ()  # the first laws of the processor that do not hold, with the rows
    skipped: str = ""  # why it was not compared
    unreadable: int = 0  # records that are no events of ours, and were passed over
    unread: Sequence[tuple[int, str]] = ()  # the first of them: their offsets, and why

    @property
    def is_right(self) -> bool:
        return self.first is None and not self.broken


class Stores(msgspec.Struct, frozen=True):
    """Where the two sides are kept while they are compared."""

    folded: Store
    live: Store


class Live:
    """The tables of a shard as its changelog gives them."""

    def __init__(self, state: State, store: Store) -> None:
        self.state = state
        self._store = store

    def take(self, records: Iterable[LogRecord]) -> None:
        """Read on in the changelog."""
        batch = Batch()
        self.state.restore([(record.key or b"", record.value) for record in records], batch)
        self._store.write(batch)
        self.state.clear()

    def copy(self, source: Store) -> None:
        """Begin with the rows that another store has of this shard."""
        prefix = self.state.prefix
        rows = source.scan(prefix, prefix + b"\xff")
        while some := dict(islice(rows, COPY_ROWS)):
            batch = Batch()
            batch.update(some)
            self._store.write(batch)
        self.state.clear()

    def wipe(self) -> None:
        batch = Batch()
        self.state.wipe(batch)
        self._store.write(batch)


def verify_stored(fold: Folding, store: Store) -> Verdict:
    """Compare a history that was folded to its end with tables that nobody writes."""
    state = ShardState(fold.processor, fold.place.partition, store)
    compared = Comparison(fold.state, state)
    return _verdict(fold, list(islice(compared, DIFFERING_MAX)), compared.rows)


def verify_fingerprint(fold: Folding, expected: str) -> Verdict:
    """Compare a history that was folded to its end with what it once came to."""
    fingerprint = fold.state.fingerprint()
    verdict = _verdict(fold, [], sum(1 for _ in fold.state.encoded()))
    if fingerprint == expected:
        return verdict
    return msgspec.structs.replace(
        verdict, differences=1, first=Difference("fingerprint of all", [], expected, fingerprint)
    )


class Verifying:
    """One shard, whose history and changelog may go on growing."""

    def __init__(self, topology: Topology, shard: ShardName, *, decode: Decode, stores: Stores) -> None:
        self.fold = Folding(topology, shard, decode=decode, store=stores.folded)
        self.live = Live(ShardState(self.fold.processor, shard[1], stores.live), stores.live)
        self._rows = 0  # compared
        self._matched = False

    def verify(self, history: Tape, changelog: Tape, tell: Callable[[int], None] = lambda _: None) -> Verdict:
        """Fold, restore and compare, telling now and then how many events were folded."""
        for records in history.read(history.end()):
            self.fold.take(records)
            tell(self.fold.events)
        suspects: Rows = {}
        for _ in range(ROUNDS_MAX):
            self.fold.settle()
            for records in changelog.read(changelog.end()):
                self.live.take(records)
            later = [record for records in history.read(history.end()) for record in records]
            if suspects:
                suspects = self._lasting(later, suspects)
                if suspects:
                    return _verdict(self.fold, list(suspects.values()), self._rows)
            else:
                suspects = self._lasting(later)
                if self._matched:
                    return _verdict(self.fold, [], self._rows)
        raise Unsettled(f"{self.fold.processor.name}-{self.fold.place.partition}", ROUNDS_MAX)

    def _lasting(self, later: list[LogRecord], among: Rows | None = None) -> Rows:
        """The rows that differ at every event of the window: of all, or among those that are suspects already.

        Notes whether there is an event at which none does.
        """
        differing = self._compared(among)
        lasting, self._matched = dict(differing), not differing
        # So many rows are no matter of moments, and without any there is nothing to wait for.
        steps = later if 0 < len(differing) < DIFFERING_MAX else []
        for record in steps:
            changed = self.fold.step(record)
            if any(key.startswith(_FLOORS) for key, _ in changed):
                differing = self._compared(among)  # a floor takes rows away that no change tells of
            else:
                self._look_again(differing, [key for key, _ in changed if among is None or key in among])
            lasting = {key: differing[key] for key in lasting if key in differing}
            self._matched |= not differing
        self.fold.take(later[len(steps) :])
        return lasting

    def _compared(self, among: Rows | None) -> Rows:
        if among is not None:
            differing: Rows = {}
            self._look_again(differing, among)
            return differing
        compared = Comparison(self.fold.state, self.live.state)
        differing = {each.key: each for each in islice(compared, DIFFERING_MAX)}
        self._rows = compared.rows
        return differing

    def _look_again(self, differing: Rows, keys: Iterable[bytes]) -> None:
        """Put into the rows that differ what is true of these keys now."""
        for key in keys:
            expected, found = self.fold.state.encoded_row(key), self.live.state.encoded_row(key)
            if same(self.fold.state, key, expected, found):
                differing.pop(key, None)
            else:
                differing[key] = Differing(key, expected, found)


def _verdict(fold: Folding, wrong: list[Differing], rows: int) -> Verdict:
    return Verdict(
        processor=fold.processor.name,
        partition=fold.place.partition,
        events=fold.events,
        rows=rows,
        differences=len(wrong),
        first=described(fold.state, min(wrong)) if wrong else None,
        broken=tuple(islice(_broken(fold), BROKEN_MAX)),
        unreadable=fold.unreadable.count,
        unread=tuple(fold.unreadable.first),
    )


def _broken(fold: Folding) -> Iterator[str]:
    """What is wrong with the tables although they are the fold of the history."""
    return (problem for law in fold.processor.laws for problem in law(fold.state.reader))
