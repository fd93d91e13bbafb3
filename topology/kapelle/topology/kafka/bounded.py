"""Calls into librdkafka that may never return, given a limit.

`send_offsets_to_transaction` does not keep to its time-out: while the group's coordinator cannot be reached it waits as
long as a transaction may last, or for ever (librdkafka issues 5456 and 5511). A process must be able to stop and to try
again all the same. So the call is made in a thread that can be left behind, with the producer that it is stuck in.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

Job = tuple[Callable[[], object], "Future[None]"]


class BoundedCalls:
    """One thread that makes calls, one at a time. Leave it behind after a call that was not answered."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        # A daemon: the process must end though this thread may not.
        threading.Thread(target=self._run, name="bounded-calls", daemon=True).start()

    def call(self, function: Callable[[], object], timeout_s: float) -> None:
        """What the function raises, or `TimeoutError`."""
        answer: Future[None] = Future()
        self._jobs.put((function, answer))
        try:
            answer.result(timeout_s)
        finally:
            del answer  # it holds the error, which holds this frame: a circle that would keep the producer alive

    def close(self) -> None:
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, answer = job
            try:
                function()
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                answer.set_exception(error)
            else:
                answer.set_result(None)
            del function, answer, job  # or the producer would live on until the next call
