"""Lanes: threads that work side by side, where what has one key is done by one thread, in its order."""

import queue
import threading
import time
import zlib
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

LEAVE_S: Final = 2.0  # so long a lane may take to leave; one that waits for an answer is left behind


class Lanes(Generic[T]):
    """So many lanes, which begin at once. What a lane raises is raised by the next `put`."""

    def __init__(self, count: int, work: Callable[[T], None], *, name: str, stop: threading.Event) -> None:
        self._work = work
        self._stop = stop
        self._failure: Exception | None = None
        self._queues: list[queue.SimpleQueue[T | None]] = [queue.SimpleQueue() for _ in range(count)]
        # They are daemons, because a process must be able to end while a sink hangs.
        self._threads = [
            threading.Thread(target=self._run, args=(lane,), name=f"kapelle-sink-{name}-{number}", daemon=True)
            for number, lane in enumerate(self._queues)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, key: str, job: T) -> None:
        """Have a job done after all others of its key."""
        self.check()
        self._queues[zlib.crc32(key.encode()) % len(self._queues)].put(job)

    def check(self) -> None:
        """Raise what a lane has raised."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Have the lanes leave, once `stop` is set."""
        for lane in self._queues:
            lane.put(None)
        until = time.monotonic() + LEAVE_S
        for thread in self._threads:
            thread.join(max(until - time.monotonic(), 0.0))

    def _run(self, jobs: "queue.SimpleQueue[T | None]") -> None:
        while (job := jobs.get()) is not None and not self._stop.is_set():
            try:
                self._work(job)
            except Exception as error:  # noqa: BLE001 - a supervised loop: whoever puts jobs hears of it
                self._failure = error
                return
