"""The embedded log: records, consumer offsets and tables in one store, and one atomic, synced write for each cycle.

It is the member's `Log` and its `Store` at once. The member commits the log first and writes the tables afterwards.
Here `commit` only closes the transaction, and the write of the tables takes everything along: what was published, what
the cycle sent, how far the processors have come, and the rows. So there is no moment between the two: a crash leaves
all of a cycle or nothing. Tables that stand beside their log need no changelog.

Offsets of a place are given in the order published, then sent, and only by the thread that runs, never to both at once:
what was published is taken between two transactions, and keeps its offsets when one of them is given up.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from kapelle.schemas.schema_topic import SchemaRecord
from kapelle.topology.build import Topology
from kapelle.topology.embedded.acknowledged import Noted
from kapelle.topology.embedded.errors import UnknownPlace
from kapelle.topology.embedded.inbox import Inbox, Parcel
from kapelle.topology.embedded.layout import offset_key, offset_row, open_directory, stored_offset
from kapelle.topology.embedded.partitions import LogRecord, Partition, Reader, partitions_of
from kapelle.topology.log import Listener, Loss, Out, Place, Row, Run, Taken
from kapelle.topology.tables import Batch, Store
from kapelle.topology.tables.writes import write_row, writes_in

TAKE_BYTES_MAX: Final = 16 * 1024 * 1024  # what one look at the log may bring into memory, give or take a chunk
DRAIN_RECORDS: Final = 2_000

# Called after each synced write and before anybody is told of it: its number, its time, the ends that have grown.
Acknowledge = Callable[[int, int, Mapping[Place, int]], None]


class Transaction(Enum):
    """How far the cycle is. A committed transaction must be written before anything else happens."""

    NONE = "none"
    OPEN = "open"
    COMMITTED = "committed"


class EmbeddedLog:
    """One process's log in one store, which holds the tables as well.

    Everything but `read`, `end`, `wait` and the inbox is for the one thread that runs the member.
    """

    def __init__(
        self, topology: Topology, store: Store, *, inbox: Inbox, clock: Callable[[], int], sync: bool = True
    ) -> None:
        self._about = open_directory(topology, store, clock())
        self._topology = topology
        self._store = store
        self._inbox = inbox
        self._clock = clock
        self._sync = sync
        self.patient = True  # whether `take` may wait
        self.partitions = partitions_of(topology, store)
        self._readers = {(r.processor, p.place): r for p in self.partitions.values() for r in p.readers}
        self._lagging: dict[Reader, None] = {}  # those with something to read, the longest waiting first
        self._listener: Listener | None = None
        self._transaction = Transaction.NONE
        self._grown: dict[Partition, None] = {}  # with something to write
        self._offsets: dict[bytes, int] = {}
        self._parcels: list[tuple[Parcel, dict[Place, int]]] = []  # taken, not yet written, with their first offsets
        self._writes = writes_in(store).last
        self.acknowledge: Acknowledge = lambda _writes, _at_ms, _ends: None
        self._in_doubt = False  # a write has failed, and may be there or not: only the next start can tell
        self._news = threading.Condition()
        self._ended = False
        # Bound once: tables are read for every record.
        self.get = store.get  # type: ignore[method-assign]

    # Reading, from any thread ---------------------------------------------------------------------------------------

    def read(self, place: Place, offset: int, limit: int) -> list[LogRecord]:
        """Up to `limit` committed records from an offset on."""
        return self._partition(place).read(offset, limit)

    def end(self, place: Place) -> int:
        """The offset after the last committed record."""
        return self._partition(place).end

    def wait(self, ends: Mapping[Place, int], timeout_s: float | None = None) -> bool:
        """Wait until one of these places has grown beyond the offset given for it. False: none has."""
        partitions = [(self._partition(place), end) for place, end in ends.items()]

        def grown() -> bool:
            return any(partition.end > end for partition, end in partitions)

        with self._news:
            self._news.wait_for(lambda: grown() or self._ended, timeout_s)
        return grown()

    def _partition(self, place: Place) -> Partition:
        partition = self.partitions.get(place)
        if partition is None:
            raise UnknownPlace("a partition of the topology", place)
        return partition

    # What the member takes ------------------------------------------------------------------------------------------

    def join(self, listener: Listener) -> None:
        self._listener = listener

    def take(self, records_max: int, wait_s: float) -> Taken:
        self._refuse(Transaction.OPEN, Transaction.COMMITTED)
        if self._listener is not None:
            # Alone in this directory, the member has every partition, from now on.
            listener, self._listener = self._listener, None
            for processor in self._topology.processors:
                listener.assigned(processor, range(self._topology.processor_partitions(processor)))
            return Taken([], [])
        self._accept(records_max)
        if wait_s > 0 and self.patient and not self._lagging and not self._parcels:
            self._inbox.wait(wait_s)
            self._accept(records_max)
        return self._deliver(records_max)

    def start(self, processor: str, offsets: Mapping[Place, int]) -> None:
        for place, offset in offsets.items():
            reader = self._readers[processor, place]
            reader.start(offset)
            self._note(reader)

    def committed(self, processor: str, places: Sequence[Place]) -> dict[Place, int]:
        return {place: stored_offset(self._store, processor, place) for place in places}

    def losses(self, processor: str, places: Sequence[Place]) -> Sequence[Loss]:  # noqa: ARG002
        """None: records here are deleted after they were read, and a topic can't be replaced."""
        return ()

    def uncommitted(self, processor: str, places: Sequence[Place]) -> Sequence[Place]:  # noqa: ARG002
        """None: where nothing is stored, all is there from the beginning."""
        return ()

    def free(self, processor: str, places: Sequence[Place]) -> None:
        """Nothing: nobody else can have left anything open."""

    def schemas(self) -> list[SchemaRecord]:
        """None: nobody else writes to this log."""
        return []

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The ends of places, with what is about to be written; changelogs have no records here."""
        partitions = {place: self.partitions.get(place) for place in places}
        return {p: 0 if f is None else f.end + len(f.published) + len(f.sent) for p, f in partitions.items()}

    def _accept(self, records_max: int) -> None:
        """Give offsets to what others have published."""
        for parcel in self._inbox.take(records_max):
            begins: dict[Place, int] = {}
            for place, entries in parcel.entries.items():
                partition = self.partitions[place]
                begins[place] = partition.end + len(partition.published)
                partition.published += entries
                self._grown[partition] = None
                for reader in partition.readers:
                    self._note(reader)
            self._parcels.append((parcel, begins))

    def _deliver(self, records_max: int) -> Taken:
        """The next records of those who lag, shared out evenly."""
        taken = Taken([], [])
        left_bytes, room = TAKE_BYTES_MAX, records_max
        lagging = self._order(list(self._lagging))
        for number, reader in enumerate(lagging):
            share = -(-room // (len(lagging) - number))
            while share > 0 and left_bytes > 0 and reader.lags:
                records, size_bytes = reader.read(share)
                if records:
                    taken.runs.append(Run(reader.processor, reader.partition.place, records))
                share -= len(records)
                room -= len(records)
                left_bytes -= size_bytes
            del self._lagging[reader]
            if reader.lags:
                self._lagging[reader] = None
            else:
                taken.ends.append((reader.processor, reader.partition.place, reader.position))
        return taken

    def _order(self, lagging: list[Reader]) -> list[Reader]:
        """In which order to look. The simulation has others."""
        return lagging

    def _note(self, reader: Reader) -> None:
        if reader.lags:
            self._lagging[reader] = None

    # The transaction ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._refuse(Transaction.OPEN, Transaction.COMMITTED)
        self._transaction = Transaction.OPEN

    def send(self, outs: Sequence[Out]) -> None:
        last: Place | None = None
        for place, key, value, headers in outs:
            if place is not last:  # most of what is sent goes to where the one before went
                last = place
                partition = self.partitions[place]
                self._grown[partition] = None
            partition.sent.append((key, value, headers))

    def send_rows(self, place: Place, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Nothing: the tables are written together with the log."""

    def send_offsets(self, processor: str, offsets: Mapping[Place, int]) -> None:
        for place, offset in offsets.items():
            self._offsets[offset_key(processor, place)] = offset

    def commit(self) -> None:
        self._refuse(Transaction.NONE, Transaction.COMMITTED)
        self._transaction = Transaction.COMMITTED

    def abort(self) -> None:
        """Forget what the transaction sent. What was published stays, with its offsets."""
        for partition in self._grown:
            partition.sent = []
        self._offsets = {}
        self._transaction = Transaction.NONE

    def renew(self) -> None:
        self.abort()

    def leave(self) -> None:
        self.abort()
        for reader in self._readers.values():
            reader.started = False
        self._lagging.clear()

    def _refuse(self, *states: Transaction) -> None:
        if self._transaction in states:
            raise AssertionError(f"the transaction is {self._transaction.value}")
        if self._in_doubt:
            raise AssertionError("a write has failed, so nothing more may be written")

    # The store ------------------------------------------------------------------------------------------------------

    def get(self, key: bytes, /) -> bytes | None:
        return self._store.get(key)

    def scan(self, start: bytes, end: bytes, /, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        return self._store.scan(start, end, reverse=reverse)

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:
        """Write the tables together with all that is to be written: the one moment at which anything becomes true."""
        self._refuse()
        committed = self._transaction is Transaction.COMMITTED
        if committed:
            batch.update({key: offset_row(offset) for key, offset in self._offsets.items()})
        now_ms = self._clock()
        counts = {p: p.stage(batch, now_ms, committed=committed) for p in self._grown}
        self._writes += 1
        batch.put(*write_row(self._writes))
        # What restoring writes can be done again; what is acknowledged or visible to others must stay.
        synced = self._sync and (sync or committed or bool(self._parcels))
        self._in_doubt = True
        self._store.write(batch, sync=synced)
        if synced:
            self.acknowledge(self._writes, now_ms, {p.place: p.end + count for p, count in counts.items()})
        self._in_doubt = False
        if committed:
            self._offsets = {}
            self._transaction = Transaction.NONE
        self._written(counts, committed=committed)

    def flush(self) -> None:
        """Write what was published and no cycle has taken along. While one is to be given up, that must wait."""
        self._refuse(Transaction.COMMITTED)
        if self._parcels and self._transaction is Transaction.NONE:
            self.write(Batch())

    def drain(self) -> None:
        """Write all that is left in the inbox, which must be closed. It is folded after the next start."""
        while not self._in_doubt and (self._parcels or len(self._inbox)):
            self._accept(DRAIN_RECORDS)
            self.flush()

    def give_up(self, error: Exception) -> None:
        """Nothing more will come: tell everyone whose record is not written, and everyone who waits for records."""
        parcels = [parcel for parcel, _ in self._parcels]
        self._parcels = []
        while more := self._inbox.take(DRAIN_RECORDS):
            parcels += more
        for parcel in parcels:
            parcel.receipt.refuse(error)
        with self._news:
            self._ended = True
            self._news.notify_all()

    def noted(self) -> Noted:
        """What is stored, as it is noted when a directory is opened: all of it is on the disk by then."""
        ends = {place: partition.end for place, partition in self.partitions.items()}
        return Noted(identity=self._about.identity, writes=self._writes, at_ms=self._clock(), ends=ends)

    def close(self) -> None:
        self._store.close()

    def _written(self, counts: Mapping[Partition, int], *, committed: bool) -> None:
        parcels, self._parcels = self._parcels, []
        for partition, count in counts.items():
            partition.written(count, committed=committed)
            for reader in partition.readers:
                self._note(reader)
        self._grown = {p: None for p in counts if p.sent}
        if any(counts.values()):
            with self._news:
                self._news.notify_all()
        for parcel, begins in parcels:
            parcel.written(begins)

    # Changelogs, which are not needed here --------------------------------------------------------------------------

    def identity(self, topic: str) -> str:  # noqa: ARG002  all topics were made with the directory
        return self._about.identity

    def watch(self, changelogs: Mapping[Place, int]) -> None:
        """Nothing to watch: what a changelog would bring is in the store."""

    def rows(self, rows_max: int, wait_s: float) -> tuple[dict[Place, list[Row]], dict[Place, int]]:  # noqa: ARG002
        return {}, {}

    def row_end(self, place: Place) -> int:  # noqa: ARG002
        return 0
