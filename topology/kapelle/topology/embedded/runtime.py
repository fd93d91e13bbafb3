"""The embedded runtime: a topology in one process over one directory, with nothing else to operate.

    with EmbeddedRuntime(topology, Path("state")) as runtime:
        runtime.start()
        runtime.publish("signals", "orders", Signal(…)).result()

What is acknowledged survives a loss of power: the record, and with it what was folded from it, unless the cycle was too
full to get to it. One process has a directory at a time.

For tests there is a way without threads: publish, then `step_until_idle`, on a clock that stands still.
"""

import logging
import signal
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, Self

import msgspec

from kapelle.processors.streams import Stream
from kapelle.schemas import Codec, Contract, RecordTooLarge
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.crash import Crash, never
from kapelle.topology.embedded.acknowledged import Notes
from kapelle.topology.embedded.errors import NotIdle, Running, Stopped, UnknownPlace
from kapelle.topology.embedded.inbox import Inbox, InboxLimits, Parcel, Position, Receipt
from kapelle.topology.embedded.log import EmbeddedLog
from kapelle.topology.embedded.partitions import LogRecord
from kapelle.topology.embedded.retention import Retention
from kapelle.topology.embedded.soundness import Witness, check
from kapelle.topology.errors import KeyTooLarge
from kapelle.topology.log import KEY_BYTES_MAX, Headers, Place
from kapelle.topology.member import Member
from kapelle.topology.metrics import Counters
from kapelle.topology.partition_time import SYSTEM_CLOCK, Clock
from kapelle.topology.settings import MemberSettings
from kapelle.topology.tables import Memory, MemoryStore, RocksStore, Store, StoreError
from kapelle.topology.tables.rocks import MEMORY_BYTES_DEFAULT

PUBLISH_TIMEOUT_S: Final = 10.0
STOP_TIMEOUT_S: Final = 10.0
STEPS_MAX: Final = 100_000
NEVER_MS: Final = 1 << 62  # no tombstone is ever compacted away here, so tables of any age can be trusted

_log = logging.getLogger("kapelle.embedded")


class EmbeddedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the embedded runtime behaves. Without `sync`, a loss of power may take what was acknowledged last."""

    member: MemberSettings = MemberSettings()
    inbox: InboxLimits = InboxLimits()
    sync: bool = True
    memory_bytes: int = MEMORY_BYTES_DEFAULT  # blocks and write buffers of the store
    witness: Witness | None = None  # a reader of this log; a shorter log is refused


def _opened(path: Path, settings: EmbeddedSettings) -> RocksStore:
    """The store of a directory, unless something is missing in it that was acknowledged."""
    return RocksStore(path, Memory(settings.memory_bytes), check=lambda there: check(there, settings.witness))


class EmbeddedRuntime:
    """A topology over one directory, or over a store that is given. Close it, or use it as a context manager."""

    log_type: type[EmbeddedLog] = EmbeddedLog  # the simulation has others, to see that it notices
    member_type: type[Member] = Member

    def __init__(
        self,
        topology: Topology,
        path: Path | Store,
        settings: EmbeddedSettings | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        crash: Crash = never,
    ) -> None:
        settings = settings or EmbeddedSettings()
        self.topology = topology
        self.failure: BaseException | None = None
        self._places = {
            name: tuple([Place(topology.topic(stream), number) for number in range(topology.partitions(stream))])
            for name, stream in topology.streams.items()
        }
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._runs = self._closed = False
        self._notes: Notes | None = None
        self._store: Store = _opened(path, settings) if isinstance(path, Path) else path
        try:
            limits = msgspec.structs.replace(settings.member.limits, tombstone_ms=NEVER_MS)
            self._codec = Codec(topology.catalog(), record_bytes_max=limits.record_bytes_max)
            self._inbox = Inbox(settings.inbox)
            self.log = self.log_type(topology, self._store, inbox=self._inbox, clock=clock, sync=settings.sync)
            member = msgspec.structs.replace(settings.member, limits=limits)
            self.member = self.member_type(topology, self.log, self.log, settings=member, clock=clock, crash=crash)
            if isinstance(path, Path):
                self._notes = Notes(path, self.log.noted())
                self.log.acknowledge = self._notes.note
        except BaseException:
            self._store.close()
            raise
        self._retention = Retention(self.log)
        self.member.join()

    @property
    def counters(self) -> Counters:
        return self.member.counters

    # Publishing and reading, from any thread ------------------------------------------------------------------------

    def publish(
        self,
        stream: Stream | str,
        key: str,
        value: Contract | bytes,
        *,
        headers: Headers = (),
        timeout_s: float = PUBLISH_TIMEOUT_S,
    ) -> Future[Position]:
        """Publish a contract, or bytes as they are. The future tells where the record stands, once it is durable.

        Waits for room while the queue is full, and raises `QueueFull` in the end. What cannot be encoded is refused at
        once. A future that is cancelled before the record was taken withdraws it.
        """
        receipt = Receipt(lambda positions: positions[0])
        parcel = Parcel(receipt)
        self._pack(parcel, stream, key, (value, headers))
        self._inbox.put([parcel], timeout_s)
        return receipt.future

    def publish_at(
        self, place: Place, entry: tuple[bytes | None, bytes | None, Headers], *, timeout_s: float = PUBLISH_TIMEOUT_S
    ) -> Future[Position]:
        """Publish a key, a value and headers as they are, at a place: for records that stood there before."""
        self.log.end(place)  # raises for one that is not there
        key, value, headers = entry
        receipt = Receipt(lambda positions: positions[0])
        parcel = Parcel(receipt)
        size_bytes = len(key or b"") + len(value or b"") + sum(len(name) + len(text) for name, text in headers)
        parcel.add(place, (key, value, headers), size_bytes)
        self._inbox.put([parcel], timeout_s)
        return receipt.future

    def publish_all(
        self, messages: Iterable[tuple[Stream | str, str, Contract | bytes]], *, timeout_s: float = PUBLISH_TIMEOUT_S
    ) -> Future[list[Position]]:
        """Publish (stream, key, value) in order, with one future for all of them: cheaper than one for each."""
        receipt = Receipt(lambda positions: positions)
        parcels: list[Parcel] = []
        for stream, key, value in messages:
            if not parcels or parcels[-1].is_full:
                parcels.append(Parcel(receipt))
            self._pack(parcels[-1], stream, key, (value, ()))
        if parcels:
            self._inbox.put(parcels, timeout_s)
        else:
            receipt.future.set_result([])
        return receipt.future

    def read(self, stream: Stream | str, partition: int, offset: int = 0, limit: int = 1_000) -> list[LogRecord]:
        """Up to `limit` committed records from an offset on; fewer where records are large."""
        return self.log.read(self._place(stream, partition), offset, limit)

    def end(self, stream: Stream | str, partition: int) -> int:
        """The offset after the last committed record."""
        return self.log.end(self._place(stream, partition))

    def wait(self, stream: Stream | str, ends: dict[int, int], timeout_s: float | None = None) -> bool:
        """Wait until a partition of the stream has grown beyond the offset given for it. False: none has."""
        return self.log.wait({self._place(stream, p): end for p, end in ends.items()}, timeout_s)

    def _pack(self, parcel: Parcel, stream: Stream | str, key: str, content: tuple[Contract | bytes, Headers]) -> None:
        """Put one record into a parcel, or say why it cannot be."""
        places = self._places_of(stream)
        value, headers = content
        data = value if isinstance(value, bytes) else self._codec.encode(value)
        key_bytes = key.encode()
        if len(key_bytes) > KEY_BYTES_MAX:
            raise KeyTooLarge(len(key_bytes))
        size_bytes = len(key_bytes) + len(data)
        if headers:
            size_bytes += sum([len(name) + len(text) for name, text in headers])
        place = places[partition_of(key, len(places))]
        if size_bytes > self._codec.record_bytes_max:
            raise RecordTooLarge(f"a record for {place}", size_bytes, self._codec.record_bytes_max)
        parcel.add(place, (key_bytes, data, headers), size_bytes)

    def _places_of(self, stream: Stream | str) -> tuple[Place, ...]:
        name = stream if isinstance(stream, str) else stream.name
        places = self._places.get(name)
        if places is None:
            raise UnknownPlace(f"a stream of the topology ({', '.join(self._places)})", repr(name))
        return places

    def _place(self, stream: Stream | str, partition: int) -> Place:
        return Place(self._places_of(stream)[0].topic, partition)

    # Running --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Run in a thread of its own, until `stop`. How it ended is told by `close`."""
        if isinstance(self._store, MemoryStore):
            raise Running(
                "Expected a directory for a runtime with a thread of its own: a MemoryStore is for one thread"
            )
        self._begin()
        self._thread = threading.Thread(target=self._run_supervised, name="kapelle-embedded", daemon=True)
        self._thread.start()

    def run(self, done: Callable[[], bool] = lambda: False) -> None:
        """Run in this thread until `stop` is called or `done` says so."""
        self._begin()
        self._run(done)

    def stop(self) -> None:
        """Finish the cycle, then end. May be called from another thread or from a signal handler."""
        self._stop.set()
        self._inbox.wake()

    def stop_on_signals(self) -> None:
        """Stop on SIGTERM and SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def close(self) -> None:
        """Stop, make durable what was accepted, and leave the directory. Raises what the thread failed of."""
        if self._closed:
            return
        self.stop()
        if self._thread is not None:
            self._thread.join(STOP_TIMEOUT_S)
            if self._thread.is_alive():
                raise Running(
                    f"Expected the cycle to end within {STOP_TIMEOUT_S} s, but it did not: a decision may be stuck"
                )
        self._closed = True
        try:
            self._finish()
        finally:
            self._leave()
        if self._thread is not None and self.failure is not None:
            raise self.failure

    def _leave(self) -> None:
        """Leave the directory. A runtime that has failed tells its failure, and not what that leads to here."""
        try:
            self.log.close()
        except StoreError as error:
            if self.failure is None:
                raise
            _log.warning("the store was not closed cleanly: %s", error)
        finally:
            if self._notes is not None:
                self._notes.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except BaseException as failure:
            # Whoever waited for a record has this failure already, as the cause of `Stopped`.
            if error is None or failure is not self.failure:
                raise

    def _begin(self) -> None:
        if self._runs or self._stop.is_set():
            raise Running("Expected a runtime that has not run yet, but this one runs or has stopped")
        self._runs = True
        self.member.overtime.open()

    def _run(self, done: Callable[[], bool]) -> None:
        try:
            self.member.overtime.watch()
            self.member.rests = True
            while not self._stop.is_set() and not done():
                self._step()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._finish()

    def _run_supervised(self) -> None:
        try:
            self._run(lambda: False)
        except BaseException:  # noqa: BLE001  supervised: `failure` holds it, and `close` raises it
            _log.exception("the embedded runtime failed")

    def _step(self) -> bool:
        worked = self.member.step()
        self.log.flush()
        self._retention.tick(self._clock(), self.member.times.steady())
        return worked

    def _finish(self) -> None:
        """Take nothing more; write what was accepted; tell the others."""
        self._stop.set()
        self._inbox.close(self.failure)
        self.member.leave()
        try:
            self.log.drain()
        finally:
            self.log.give_up(Stopped(self.failure))

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        _log.info("stopping on %s", signal.Signals(number).name)
        self.stop()

    # Step by step ---------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Do one cycle in this thread, without waiting. Returns whether there was anything to do."""
        if self._runs:
            raise Running("Expected a runtime that is run step by step, but this one runs by itself")
        self.log.patient = False
        return self._step()

    def step_until_idle(self, steps_max: int = STEPS_MAX) -> int:
        """Fold everything that is there, in this thread and without waiting. Returns how many steps that took."""
        for count in range(1, steps_max + 1):
            self.step()
            if self._is_idle():
                return count
        raise NotIdle(steps_max)

    def next_due_at_ms(self) -> int | None:
        """When the next timer is due. Shards with a timer whose decision raised are left out: they wait for a start."""
        due = [shard.state.next_due_at_ms() for shard in self.member.shards.values() if not shard.parked]
        return min([each for each in due if each is not None], default=None)

    def next_due_in_ms(self) -> int | None:
        """How long it is until the next timer is due, by the times of the shards."""
        waits = [
            max(due - self.member.times.now_ms(shard), 0)
            for shard in self.member.shards.values()
            if not shard.parked and (due := shard.state.next_due_at_ms()) is not None
        ]
        return min(waits, default=None)

    def _is_idle(self) -> bool:
        """Every record is folded, and every timer that is due has fired."""
        if len(self._inbox) or not self.member.ready:
            return False
        for shard in self.member.shards.values():
            due = shard.state.next_due_at_ms()
            if due is not None and due <= self.member.times.now_ms(shard) and not shard.parked:
                return False
            if any(self.log.end(place) > offset for place, offset in shard.offsets.items()):
                return False
        return True
