"""What others publish, on its way into the log: a bounded queue from any thread to the one that runs.

Who publishes gets a future, and it is fulfilled when the record would survive a loss of power. Who runs takes what is
there, and sleeps while there is nothing.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec

from kapelle.topology.embedded.chunks import Entry
from kapelle.topology.embedded.errors import QueueFull, Stopped
from kapelle.topology.log import Place


class Position(NamedTuple):
    """Where a record stands."""

    place: Place
    offset: int


class InboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much may wait, and how much is taken at a time."""

    records_max: int = 10_000
    bytes_max: int = 64 * 1024 * 1024
    take_bytes_max: int = 16 * 1024 * 1024


class Receipt:
    """The promise to whoever published one or several records."""

    __slots__ = ("_done", "_left", "_taken", "future", "positions")

    def __init__(self, count: int, done: Callable[[list[Position]], Any]) -> None:
        self.future: Future[Any] = Future()
        self.positions: list[Position] = []
        self._left = count
        self._done = done
        self._taken = False

    def take(self) -> bool:
        """From now on the future cannot be cancelled. Returns whether it was before."""
        if not self._taken:
            self._taken = self.future.set_running_or_notify_cancel()
        return self._taken

    def written(self, position: Position) -> None:
        self.positions.append(position)
        self._left -= 1
        if self._left == 0:
            self.future.set_result(self._done(self.positions))

    def refuse(self, error: Exception) -> None:
        """Tell that the record, or the last of several, will not be written. Once is enough."""
        if not self.future.done() and self.take():
            self.future.set_exception(error)


class Letter(NamedTuple):
    """A record that waits."""

    place: Place
    entry: Entry
    size_bytes: int
    receipt: Receipt


class Inbox:
    """The queue. `put` from any thread; all else from the one that runs, or after it ended."""

    def __init__(self, limits: InboxLimits | None = None) -> None:
        self._limits = limits or InboxLimits()
        # Re-entrant: a signal handler may call `wake` while its own thread is in here.
        self._lock = threading.RLock()
        self._filled = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._letters: deque[Letter] = deque()
        self._size_bytes = 0
        self._asleep = False
        self._woken = False
        self._closed = False
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        return len(self._letters)

    def put(self, letters: Sequence[Letter], timeout_s: float) -> None:
        """Add to the queue, in order. Waits for room, and gives up in time; what was added before that stays added."""
        until = time.monotonic() + timeout_s
        with self._lock:
            for added, letter in enumerate(letters):
                while not self._closed and self._is_full():
                    self._wake_taker()
                    if not self._room.wait(max(until - time.monotonic(), 0.0)) and self._is_full():
                        raise QueueFull(len(self._letters), timeout_s=timeout_s, added=added)
                if self._closed:
                    raise Stopped(self._failure)
                self._letters.append(letter)
                self._size_bytes += letter.size_bytes
            self._wake_taker()

    def take(self, records_max: int) -> list[Letter]:
        """What waits, up to the limits, without what was cancelled meanwhile."""
        taken: list[Letter] = []
        size_bytes = 0
        with self._lock:
            while self._letters and len(taken) < records_max and size_bytes < self._limits.take_bytes_max:
                letter = self._letters.popleft()
                self._size_bytes -= letter.size_bytes
                if letter.receipt.take():
                    taken.append(letter)
                    size_bytes += letter.size_bytes
            self._room.notify_all()
        return taken

    def wait(self, timeout_s: float) -> None:
        """Sleep until something is there, somebody calls `wake`, or the time is over."""
        with self._lock:
            self._asleep = True
            self._filled.wait_for(lambda: self._letters or self._woken, timeout_s)
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

    def _is_full(self) -> bool:
        limits = self._limits
        return len(self._letters) >= limits.records_max or self._size_bytes >= limits.bytes_max

    def _wake_taker(self) -> None:
        if self._asleep:
            self._filled.notify_all()
