"""Published records on their way into the log: a bounded queue from any thread to the one that runs.

Who publishes gets a future, and it is fulfilled when the record would survive a loss of power. Who runs takes what is
there, and sleeps while there is nothing.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from kapelle.topology.embedded.chunks import Entry
from kapelle.topology.embedded.errors import QueueFull, Stopped
from kapelle.topology.log import Place

T = TypeVar("T")

PARCEL_RECORDS_MAX: Final = 500
PARCEL_BYTES_MAX: Final = 1024 * 1024


class Position(NamedTuple):
    """Where a record stands."""

    place: Place
    offset: int


class InboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may wait, and how much is taken at a time, give or take a parcel."""

    records_max: int = 10_000
    bytes_max: int = 64 * 1024 * 1024
    take_bytes_max: int = 16 * 1024 * 1024


class Receipt(Generic[T]):
    """The promise to whoever published one or several parcels."""

    __slots__ = ("_done", "_positions", "_taken", "future", "parcels")

    def __init__(self, done: Callable[[list[Position]], T]) -> None:
        self.future: Future[T] = Future()
        self.parcels = 0  # those that are not written yet
        self._positions: list[Position] = []
        self._done = done
        self._taken = False

    def take(self) -> bool:
        """From now on the future cannot be cancelled. False: it has been before."""
        if not self._taken:
            self._taken = self.future.set_running_or_notify_cancel()
        return self._taken

    def written(self, positions: list[Position]) -> None:
        self._positions += positions
        self.parcels -= 1
        if self.parcels == 0:
            self.future.set_result(self._done(self._positions))

    def refuse(self, error: Exception) -> None:
        """Tell that a parcel will not be written. Once is enough."""
        if not self.future.done() and self.take():
            self.future.set_exception(error)


class Promise(Protocol):
    """What a parcel knows of its receipt: whatever the receipt's future holds in the end."""

    parcels: int

    def take(self) -> bool: ...

    def written(self, positions: list[Position], /) -> None: ...

    def refuse(self, error: Exception, /) -> None: ...


class Parcel:
    """Records that are published together: sorted by place, so that whoever runs has little to do with each."""

    __slots__ = ("entries", "places", "receipt", "size_bytes")

    def __init__(self, receipt: Promise) -> None:
        self.entries: dict[Place, list[Entry]] = {}
        self.places: list[Place] = []  # of each record, in the order of publishing
        self.size_bytes = 0
        self.receipt = receipt
        receipt.parcels += 1

    def add(self, place: Place, entry: Entry, size_bytes: int) -> None:
        there = self.entries.get(place)
        if there is None:
            self.entries[place] = [entry]
        else:
            there.append(entry)
        self.places.append(place)
        self.size_bytes += size_bytes

    @property
    def is_full(self) -> bool:
        return len(self.places) >= PARCEL_RECORDS_MAX or self.size_bytes >= PARCEL_BYTES_MAX

    def written(self, begins: Mapping[Place, int]) -> None:
        """Every record is durable; those of each place follow each other from an offset on."""
        at = {place: count(offset) for place, offset in begins.items()}
        self.receipt.written([Position(place, next(at[place])) for place in self.places])


class Inbox:
    """The queue. `put` from any thread; all else from the one that runs, or after it ended."""

    def __init__(self, limits: InboxLimits | None = None) -> None:
        self._limits = limits or InboxLimits()
        # Re-entrant: a signal handler may call `wake` while its own thread is in here.
        self._lock = threading.RLock()
        self._filled = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._parcels: deque[Parcel] = deque()
        self._records = 0
        self._size_bytes = 0
        self._asleep = False
        self._woken = False
        self._closed = False
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        """How many records wait."""
        return self._records

    def put(self, parcels: Sequence[Parcel], timeout_s: float) -> None:
        """Add to the queue, in order. Waits for room, and gives up in time; what was added before that stays added."""
        until = time.monotonic() + timeout_s
        added = 0
        with self._lock:
            for parcel in parcels:
                while not self._closed and self._is_full():
                    self._wake_taker()
                    if not self._room.wait(max(until - time.monotonic(), 0.0)) and self._is_full():
                        raise QueueFull(self._records, timeout_s=timeout_s, added=added)
                if self._closed:
                    raise Stopped(self._failure)
                self._parcels.append(parcel)
                self._count(parcel, 1)
                added += len(parcel.places)
            self._wake_taker()

    def take(self, records_max: int) -> list[Parcel]:
        """What waits, up to the limits, without what was cancelled meanwhile."""
        taken: list[Parcel] = []
        records = size_bytes = 0
        with self._lock:
            while self._parcels and records < records_max and size_bytes < self._limits.take_bytes_max:
                parcel = self._parcels.popleft()
                self._count(parcel, -1)
                if parcel.receipt.take():
                    taken.append(parcel)
                    records += len(parcel.places)
                    size_bytes += parcel.size_bytes
            self._room.notify_all()
        return taken

    def wait(self, timeout_s: float) -> None:
        """Sleep until something is there, somebody calls `wake`, or the time is over."""
        with self._lock:
            self._asleep = True
            self._filled.wait_for(lambda: self._parcels or self._woken, timeout_s)
            self._asleep = self._woken = False

    def wake(self) -> None:
        """End the present `wait`, or else the next. May be called from a signal handler."""
        with self._lock:
            self._woken = True
            self._filled.notify_all()

    def close(self, failure: BaseException | None) -> None:
        """Take nothing more. What is in the queue can still be taken out."""
        with self._lock:
            self._closed = True
            self._failure = self._failure or failure
            self._room.notify_all()

    def _count(self, parcel: Parcel, sign: int) -> None:
        self._records += sign * len(parcel.places)
        self._size_bytes += sign * parcel.size_bytes

    def _is_full(self) -> bool:
        return self._records >= self._limits.records_max or self._size_bytes >= self._limits.bytes_max

    def _wake_taker(self) -> None:
        if self._asleep:
            self._filled.notify_all()
