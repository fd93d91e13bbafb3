"""Real step functions against the engine in memory, on its own clock.

    engine.run_worker(worker)         # every task that is there, and those that come of them, one after the other

Nothing here waits: steps run in the thread of the test, async ones on an event loop that lasts as long as they do.
`EngineTransport` is the same engine as a worker's transport, for those who want the whole runner with its threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Final, Protocol

from kapelle.processors.runs.tables import Runs
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import CANCELLATIONS, RUN_COMMANDS, RUN_EVENTS, TASKS, run_key
from kapelle.schemas import Codec, Contract
from kapelle.schemas.contracts import CancelTask, Report, ReportRefused, ReportTask, StepStatus, Task
from kapelle.topology.build import Topology
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.worker import Answer, Context, TaskReport, Worker
from kapelle.worker.execution import run_here

READ_MAX: Final = 1_000
TASKS_MAX: Final = 10_000
POLL_S: Final = 0.002
WORKER: Final = "worker-1"


class Served(Protocol):
    """The engine that tasks are taken from, as far as a worker needs it."""

    topology: Topology
    runtime: EmbeddedRuntime

    def send(self, stream: Stream, key: str, command: Contract | bytes) -> None: ...

    def state(self, processor: str, key: str) -> Runs: ...


class TooManyTasks(AssertionError):
    """A worker got more tasks than expected. The workflow may loop without an end."""

    def __init__(self, count: int) -> None:
        super().__init__(f"Expected the engine to be idle after {count:,} tasks, but there are more")


class Feed:
    """The records of a stream, each once."""

    def __init__(self, engine: Served, stream: Stream) -> None:
        self._engine = engine
        self._stream = stream
        self._codec = Codec(engine.topology.catalog())
        self._next = dict.fromkeys(range(engine.topology.partitions(stream)), 0)

    def new(self) -> list[Contract]:
        """What has come since the last time."""
        found: list[Contract] = []
        for partition in self._next:
            while records := self._engine.runtime.read(self._stream, partition, self._next[partition], READ_MAX):
                found += [self._codec.decode(record.value or b"") for record in records]
                self._next[partition] = records[-1].offset + 1
        return found


class EngineTransport:
    """The way to an engine in memory. Threads take turns: while a runner runs, `with transport.turn:` is the test's."""

    def __init__(self, engine: Served) -> None:
        self._engine = engine
        self.turn = threading.RLock()
        self._worker = WORKER
        self._types: frozenset[str] = frozenset()
        self._tasks = Feed(engine, TASKS)
        self._cancellations = Feed(engine, CANCELLATIONS)
        self._events = Feed(engine, RUN_EVENTS)
        self._waiting: list[Task] = []

    def open(self, worker: str, types: Sequence[str]) -> None:
        self._worker, self._types = worker, frozenset(types)

    def take(self, room: int, wait_s: float) -> list[Task]:
        until_s = time.monotonic() + wait_s
        while True:
            taken = self._take(room)
            if taken or time.monotonic() >= until_s:
                return taken
            time.sleep(POLL_S)

    def _take(self, room: int) -> list[Task]:
        with self.turn:
            self._waiting += [task for task in self._tasks.new() if isinstance(task, Task)]
            taken: list[Task] = []
            for task in [task for task in self._waiting if task.type in self._types]:
                if len(taken) == room:
                    break
                self._waiting.remove(task)
                if self._is_wanted(task) and self.report([TaskReport(task, Report.STARTED)])[0].accepted:
                    taken.append(task)
            return taken

    def _is_wanted(self, task: Task) -> bool:
        """Whether the task is still waiting. Reports on other tasks would add refusals to the history."""
        key = run_key(task.workflow_id, task.instance_id)
        row = self._engine.state("runs", key).steps.get((key, task.step_id))
        return row is not None and row.token == task.token and row.status is StepStatus.STARTING

    def report(self, reports: Sequence[TaskReport]) -> list[Answer]:
        with self.turn:
            return [self._say(task_report) for task_report in reports]

    def _say(self, task_report: TaskReport) -> Answer:
        task = task_report.task
        about = (task_report.report, task_report.message, task_report.outputs, task_report.signals, task_report.log)
        said = ReportTask(task.token, task.step_id, self._worker, *about)
        self._events.new()
        self._engine.send(RUN_COMMANDS, run_key(task.workflow_id, task.instance_id), said)
        for event in self._events.new():
            if isinstance(event, ReportRefused) and event.token == task.token and event.worker == self._worker:
                return Answer(task.token, accepted=False, reason=event.reason)
        return Answer(task.token, accepted=True)

    def cancellations(self) -> list[tuple[str, str]]:
        with self.turn:
            records = self._cancellations.new()
            return [(record.token, record.reason) for record in records if isinstance(record, CancelTask)]

    def drain(self) -> None:
        """Nothing: what is not taken stays."""

    def close(self) -> None:
        """Nothing: the engine is the test's."""


def run_worker(engine: Served, worker: Worker, *, name: str = WORKER, tasks_max: int = TASKS_MAX) -> int:
    """Run every task that the worker serves until none is left, without time going by. Returns how many there were."""
    transport = EngineTransport(engine)
    transport.open(name, sorted(worker.steps))
    count = 0
    while tasks := transport.take(1, 0.0):
        count += 1
        if count > tasks_max:
            raise TooManyTasks(tasks_max)
        _run(transport, worker, tasks[0])
    return count


def _run(transport: EngineTransport, worker: Worker, task: Task) -> None:
    def beat(context: Context) -> None:
        """A heartbeat is said at once; what was cancelled meanwhile is heard at once."""
        answer = transport.report([TaskReport(task, Report.HEARTBEAT, log=context.said())])[0]
        if not answer.accepted:
            context.cancel(answer.reason)

    task_report = run_here(worker.steps[task.type], task, Context(task, beat))
    if task_report is not None:
        transport.report([task_report])
