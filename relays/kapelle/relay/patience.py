"""Waiting of relays for other systems: without a limit, but not after a relay is told to stop.

A broker, a collector or a database that hangs must not keep a process from leaving in good order. What was not answered
by then counts as not done: it is done again by whoever comes next.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

T = TypeVar("T")

GRACE_S: Final = 1.0  # an answer on its way comes within this; leaving the group has its time after it
LOOK_S: Final = 0.1


class Unanswered(Exception):
    """We were told to stop, and nobody has answered."""


class Patience:
    """Waits for answers. The grace after being told to stop is one for all of them together."""

    def __init__(self, stopped: Callable[[], bool] = lambda: False, grace_s: float = GRACE_S) -> None:
        self._stopped = stopped
        self._grace_s = grace_s
        self._until_s: float | None = None

    def wait(self, answer: "Future[T]") -> T:
        """The answer, or what it raises. Raises `Unanswered`."""
        while not answer.done():
            if self._is_over():
                raise Unanswered("Stopped while waiting for an answer")
            try:
                return answer.result(LOOK_S)
            except TimeoutError:
                continue  # either ours or its own, and then it is done
        return answer.result()

    def delivered(
        self, deliver: Callable[[], object], away: type[Exception], wait: Callable[[Exception], object]
    ) -> bool:
        """Deliver until somebody has taken it, with a wait after each `away`. False: told to stop before it was."""
        while True:
            try:
                self.wait(apart(deliver))
            except Unanswered:
                return False
            except away as error:
                if self._stopped():
                    return False
                wait(error)
            else:
                return True

    def _is_over(self) -> bool:
        if self._until_s is None and self._stopped():
            self._until_s = time.monotonic() + self._grace_s
        return self._until_s is not None and time.monotonic() >= self._until_s


def apart(work: Callable[[], T]) -> "Future[T]":
    """Have something done in a thread of its own. It is a daemon: a process can end though its work does not."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is for whoever waits
            answer.set_exception(error)

    threading.Thread(target=run, name="kapelle-apart", daemon=True).start()
    return answer
