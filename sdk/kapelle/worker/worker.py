"""The worker: a set of steps by their types, and ways to serve them.

worker = Worker()

@worker.step("load")
def load(table: str, rows: int = 100) -> dict[str, int]:
    return {"loaded": rows}

worker.run(HttpTransport("http://127.0.0.1:8080"))
"""

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

from kapelle.worker.errors import BadStep
from kapelle.worker.runner import Runner, WorkerSettings
from kapelle.worker.steps import Step, StepFunction
from kapelle.worker.transport import Transport

F = TypeVar("F", bound=StepFunction)

WATCH_S: Final = 0.2  # how long a signal may wait to be acted on

_log = logging.getLogger("kapelle.worker")


class Worker:
    """A set of steps, written as Python functions."""

    def __init__(self) -> None:
        self._steps: dict[str, Step] = {}

    @property
    def steps(self) -> Mapping[str, Step]:
        """The steps by their types."""
        return self._steps

    def step(self, type: str) -> Callable[[F], F]:  # noqa: A002 - the name in definitions
        """A decorator that registers a function for tasks of a type."""

        def add(function: F) -> F:
            self.add(type, function)
            return function

        return add

    def add(self, type: str, function: StepFunction) -> None:  # noqa: A002 - the name in definitions
        """Register a function for tasks of a type."""
        if type in self._steps:
            raise BadStep(f"Expected one function for step type {type!r}, but found a second one")
        self._steps[type] = Step(type, function)

    def include(self, other: "Worker") -> None:
        """Register the steps of another worker too."""
        for kind, step in other.steps.items():
            self.add(kind, step.function)

    def start(self, transport: Transport, settings: WorkerSettings | None = None) -> Runner:
        """Serve in the background. Returns a runner: call its `stop` at the end."""
        if not self._steps:
            raise BadStep("Expected a worker with steps, but it has none: decorate a function with @worker.step(type)")
        runner = Runner(self._steps, transport, settings)
        try:
            runner.start()
        except BaseException:
            transport.close()
            raise
        return runner

    def run(
        self,
        transport: Transport,
        settings: WorkerSettings | None = None,
        *,
        started: Callable[[Runner], None] = lambda _: None,
    ) -> None:
        """Serve until SIGTERM or SIGINT, then finish the running tasks. A second signal returns them at once.

        `started` is called with the runner.
        """
        runner = self.start(transport, settings)
        started(runner)
        with _draining_on_signals(runner):
            while not runner.wait(WATCH_S):
                pass
        runner.close()


@contextmanager
def _draining_on_signals(runner: Runner) -> Iterator[None]:
    """Signals reach the main thread only; elsewhere somebody else has them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        runner.drain(0 if heard else None)
        heard.append(number)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
