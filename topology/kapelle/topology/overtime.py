"""Ends decisions that take too long: a thread that looks at what the member's thread is deciding.

The member sets one attribute before each decision and clears it afterwards. The thread here looks at it a few times
within the limit. A decision that is still the same one when the limit has passed gets `OutOfTime` raised in the
member's thread, wherever its code is. That works for Python code; a call into C code ends first.

The time that counts is the CPU time of the member's thread: other processes that keep the CPU busy must not fail an
innocent decision. A decision that waits instead of computing is given up after `WAITING_FACTOR` times the limit.

The race: a decision may end just before the exception arrives, and then it must not arrive anywhere else. Both threads
write before they read. The member clears `current` and then reads `fired`; this thread sets `fired` and then reads
`current`. So either this thread sees that the decision has ended, and raises nothing, or the member sees `fired`, and
absorbs the exception (`settle`) before it goes on.

An exception that is on its way is absorbed by letting it arrive, never by taking it back: CPython 3.11 to 3.13 keep
looking for one that was taken back. Code runs slower from then on, and a traced function never begins.
"""

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Final

LOOKS: Final = 20  # within the limit
WAITING_FACTOR: Final = 3  # a decision that waits for the CPU or the disk may take this many times the limit
SETTLE_S: Final = 0.0002

_raise_in_thread = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in_thread.argtypes = (ctypes.c_ulong, ctypes.py_object)


class OutOfTime(BaseException):
    """Raised inside a decision that has taken too long. A processor's `except Exception` does not catch it."""


class Overtime:
    """Watches the decisions of one member. Until `watch` is called it does nothing."""

    def __init__(self, limit_ms: int) -> None:
        self.limit_ms = limit_ms
        self.current: object = None  # the message that is being decided on
        self.fired = False  # an exception is about to be raised, or was raised and is not settled yet
        self._is_firing = False  # the other thread is between its look and the raise
        self._thread_id = 0
        self._cpu_s: Callable[[], float] = time.monotonic
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Start the thread that watches. `watch` does it too; a thread that must not wait for it calls this before."""
        if self.limit_ms > 0 and self._thread is None:
            self._stop.clear()
            self._thread = threading.Thread(target=self._look, name="kapelle-overtime", daemon=True)
            self._thread.start()

    def watch(self) -> None:
        """Watch the decisions of the calling thread from now on, until `close`."""
        self._thread_id = threading.get_ident()
        self._cpu_s = _cpu_clock(self._thread_id)
        self.open()

    def close(self) -> None:
        """Watch no longer. Call it from the thread that is watched."""
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None

    def settle(self) -> None:
        """After a decision: absorb what was raised too late. Afterwards no `OutOfTime` is on its way.

        One more is raised, in the place of one that may be on its way, so that there is exactly one to wait for.
        """
        while self.fired:
            try:
                while self._is_firing:
                    time.sleep(SETTLE_S)
                _raise_in_thread(self._thread_id, OutOfTime)
                while True:
                    pass  # the exception ends this
            except OutOfTime:
                self.fired = self._is_firing

    def _look(self) -> None:
        limit_s = self.limit_ms / 1000
        seen: object = None
        began_cpu_s = 0.0
        looks = 0
        while not self._stop.wait(limit_s / LOOKS):
            current = self.current
            if current is None or current is not seen:
                seen, looks, began_cpu_s = current, 0, self._cpu_s()
                continue
            # Looks are counted, not seconds: a process that was suspended has not used its time.
            looks += 1
            if self._cpu_s() - began_cpu_s >= limit_s or looks >= LOOKS * WAITING_FACTOR:
                self._fire(current)
                looks, began_cpu_s = 0, self._cpu_s()  # code that caught the exception gets it again

    def _fire(self, seen: object) -> None:
        self._is_firing = self.fired = True
        if self.current is seen:
            _raise_in_thread(self._thread_id, OutOfTime)
        self._is_firing = False


def _cpu_clock(thread_id: int) -> Callable[[], float]:
    """The CPU time of a thread, where the system can tell; else the time of day that never goes back."""
    try:
        clock_id = time.pthread_getcpuclockid(thread_id)
    except (AttributeError, OSError):
        return time.monotonic
    return lambda: time.clock_gettime(clock_id)
