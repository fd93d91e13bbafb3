"""Folding history into tables without deciding: what `apply` makes of the events, and nothing else.

    fold = Folding(topology, ("workflows", 3), decode=decoder(history), store=store)
    fold.take(records)          # any number of times
    fold.settle()
    fold.state.fingerprint()

The tables are those that a member would have: the same coders, the same floors, the same timers. Changes are written to
the store now and then, so that a long history takes no more memory than a short one.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kapelle.processors.fitness import unfit
from kapelle.processors.messages import Message
from kapelle.schemas import Codec, Contract
from kapelle.schemas.errors import SchemaError, UnknownFingerprint, UnknownSchemaId
from kapelle.schemas.headers import trace_of
from kapelle.topology.build import Topology
from kapelle.topology.collector import at_rest
from kapelle.topology.embedded.partitions import LogRecord
from kapelle.topology.journal.entries import Decoder
from kapelle.topology.log import Headers
from kapelle.topology.replay.errors import ApplyFailedAgain
from kapelle.topology.replay.history import History, event_place
from kapelle.topology.replay.row_cache import Kept
from kapelle.topology.tables import Batch, ShardMeta, ShardState, Store
from kapelle.topology.tables.errors import BadKey, BadRow, RowTooLarge

KEPT_ROWS_MAX: Final = 65_536  # then those that have changed are written to the store
KEPT_BYTES_MAX: Final = 16 * 1024 * 1024  # of the events that they are made of, and of the rows that were read for them
LOOK_EVERY: Final = 1_000  # events between two looks at how much they are
UNREADABLE_SHOWN: Final = 10
SWEEP_ROWS_MAX: Final = 100_000
RECORD_BYTES_MAX: Final = 64 * 1024 * 1024  # whatever was once taken is read

ShardName = tuple[str, int]  # processor and partition
Decode = Callable[[bytes], Contract]

_NOTHING: Final = ShardMeta(changelog_offset=0, saved_at_ms=0, changelog_id="", positions={})


def decoder(history: History) -> Decode:
    """What reads the events of a history. It is kept for all shards: schemas are looked up once."""
    codec = Codec(history.topology.catalog(), history.framing, record_bytes_max=RECORD_BYTES_MAX)
    return Decoder(codec, history.schemas).decode


class Unreadable(msgspec.Struct):
    """Records of a history that cannot be read. They are passed over: no member has written or applied such records.

    Only those with a schema that we do not know may be events: of a newer release, or framed by a registry.
    """

    count: int = 0
    unknown: tuple[int, str] | None = None  # the first whose schema we do not know
    first: list[tuple[int, str]] = []  # their offsets, and why; as many as people read

    def add(self, offset: int, reason: str) -> None:
        self.count += 1
        if len(self.first) < UNREADABLE_SHOWN:
            self.first.append((offset, reason))


class Folding:
    """The tables of one shard, as far as its history was folded. The store must have nothing of it at first."""

    def __init__(self, topology: Topology, shard: ShardName, *, decode: Decode, store: Store) -> None:
        self.shard = shard
        self.processor = topology.processors[shard[0]]
        self.place = event_place(topology, *shard)
        self.state = ShardState(self.processor, shard[1], store)
        self.position = 0  # the offset that comes next
        self.events = 0
        self.at_ms = 0  # when the last event was written
        self.unreadable = Unreadable()
        self._decode = decode
        self._store = store
        self._is_stored = False
        self._kept = Kept(self.processor.tables, self.state.writer)
        self._kept_bytes = 0  # of events whose changes are not written yet

    def take(self, records: Sequence[LogRecord]) -> None:
        """Fold these records, which must follow those before them."""
        with at_rest():
            for start in range(0, len(records), LOOK_EVERY):
                self._take(records[start : start + LOOK_EVERY])

    def _take(self, records: Sequence[LogRecord]) -> None:
        """Fold some of them, and write what they have changed if that is much by now."""
        self._fold(records)
        self.position, self.at_ms = records[-1].offset + 1, records[-1].at_ms
        self.events += len(records)
        self._kept_bytes += sum([len(record.value or b"") for record in records])
        if self._kept.rows > KEPT_ROWS_MAX or self._kept_bytes + self._kept.found_bytes > KEPT_BYTES_MAX:
            self.write()

    def _fold(self, records: Sequence[LogRecord]) -> None:
        appliers, writer, decode = self.processor.appliers, self._kept.writer, self._decode
        stream = self.processor.events
        for record in records:
            try:
                value = decode(record.value or b"")
                key = (record.key or b"").decode()
                problem = unfit(stream, key, value)
            except (UnknownFingerprint, UnknownSchemaId) as error:
                self.unreadable.unknown = self.unreadable.unknown or (record.offset, str(error))
                problem = str(error)
            except (SchemaError, UnicodeDecodeError) as error:
                problem = str(error)
            if problem is not None:
                self.unreadable.add(record.offset, problem)
                continue
            try:
                appliers[type(value)](Message(key, value, *_origin(record.headers)), writer)
            except Exception as error:
                raise ApplyFailedAgain(self.place, record.offset, error) from error

    def step(self, record: LogRecord) -> list[tuple[bytes, bytes | None]]:
        """Fold one record. Returns the rows that it changed, with the keys that they have in the changelog."""
        self.write()
        self.take((record,))
        self.settle()
        changed = self.state.changes()
        self.write()
        return changed

    def settle(self) -> None:
        """Let the tables show all that was folded. Whoever looks at them calls this first."""
        try:
            self._kept.settle()
        except (BadRow, BadKey, RowTooLarge) as error:  # by one of the events since the last time
            raise ApplyFailedAgain(self.place, self.position - 1, error) from error

    def write(self) -> None:
        """Write the changes to the store, and delete what tables have dropped by the bucket."""
        self.settle()
        self.state.sweep(SWEEP_ROWS_MAX)
        if self.state.changed:
            batch = Batch()
            self.state.stage(batch, _NOTHING)
            self._store.write(batch)
            self._is_stored = True
        self._forget()

    def wipe(self) -> None:
        """Forget the tables, and delete from the store what was written of them."""
        self._forget()
        if self._is_stored:
            batch = Batch()
            self.state.wipe(batch)
            self._store.write(batch)

    def _forget(self) -> None:
        self.state.clear()
        self._kept.clear()
        self._kept_bytes = 0


def _origin(headers: Headers | None) -> tuple[str, str | None]:
    """The id and the trace that an event had when it was first applied."""
    name, trace = "", None
    for header, content in headers or ():
        if header == "ce_id":
            name = (content or b"").decode(errors="replace")
        elif header == "traceparent":
            trace = trace_of(((header, content),))
    return name, trace
