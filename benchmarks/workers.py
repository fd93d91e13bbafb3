"""Workers of the SDK: the cost of a worker alone, and of workflows whose steps it executes.

    python -m benchmarks.workers [--quick] [--only dev,overhead,kafka,embedded]

    dev_ready_s            from the command `kapelle dev` until it is ready and prints its URL; `dev_ready_cpu_s`
    overhead_async_us      CPU for an empty task, in a runner without an engine; `overhead_threads_us`
    kafka_worker_…         workflows whose steps a worker process executes, directly from Kafka
    embedded_worker_…      the same on the embedded log: engine, API and worker in one process, the worker over HTTP
    worker_vs_noop         workflows of one step a second with the worker, over those without one, on Kafka

The names after the prefix are those of `benchmarks.engine`, and so are the rules: if an instance has not succeeded
exactly once, no figures are reported. Progress goes to stderr; the last line on stdout is one JSON object.
"""

import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from benchmarks.command import Figures, run
from benchmarks.engine_embedded import EmbeddedSubject
from benchmarks.engine_kafka import ENGINE, KafkaSubject
from benchmarks.engine_measures import QUICK, Measures, Sizes
from benchmarks.engine_work import NOOP, PARTITIONS, WORK
from benchmarks.figures import progress
from benchmarks.harness import Bench, Place, Refused
from benchmarks.programs import Program, cpu_s_of
from benchmarks.workers_program import SETTINGS, worker
from kapelle.api.app import create_app
from kapelle.api.server import ApiServer
from kapelle.schemas.contracts import Criticality, Task
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal.embedded import EmbeddedJournal
from kapelle.topology.page import topology
from kapelle.views import Views
from kapelle.worker import Answer, HttpTransport, TaskReport, Worker
from tests.support.broker import open_broker
from tests.support.settings import LASTING

PARTS: Final = ("dev", "overhead", "kafka", "embedded")
TASKS: Final = {True: 5_000, False: 30_000}
ENOUGH_S: Final = 120.0
DEV: Final = (sys.executable, "-m", "kapelle.cli.main", "dev", "--port", "0")
DEV_ROUNDS: Final = {True: 3, False: 5}
FULL: Final = Sizes(
    warm_up=1_000,
    workflows=3_000,
    chains=200,
    wide_rounds=3,
    alone=200,
    alone_warm_up=200,
    steady_per_s=50,
    steady_s=10.0,
    rounds=3,
    queued=0,
    queue_slice=0,
)


# At a user's desk -----------------------------------------------------------------------------------------------------


def measure_dev(*, quick: bool) -> dict[str, float]:
    """Seconds until `kapelle dev` is ready, Python's own start included: the median of a few."""
    rounds = [_ready_s() for _ in range(DEV_ROUNDS[quick])]
    ready_s, cpu_s = (statistics.median(column) for column in zip(*rounds, strict=True))
    progress(f"kapelle dev is ready after {ready_s:.2f} s, {cpu_s:.2f} of them CPU")
    return {"dev_ready_s": round(ready_s, 2), "dev_ready_cpu_s": round(cpu_s, 2)}


def _ready_s() -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="workers-dev-") as directory:
        began = time.perf_counter()
        with subprocess.Popen(
            [*DEV, "--data", str(Path(directory) / "data")],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as process:
            try:
                said = process.stdout.readline() if process.stdout is not None else ""
                seconds, cpu_s = time.perf_counter() - began, cpu_s_of(process.pid)
            finally:
                process.send_signal(signal.SIGINT)
            code = process.wait(ENOUGH_S)
    if not said.startswith("http://") or code != 0:
        raise Refused(f"Expected kapelle dev to print its URL and to end well, but found {said!r} and code {code}")
    return seconds, cpu_s


# By itself ------------------------------------------------------------------------------------------------------------


class Given:
    """A transport with so many tasks, and nobody at its other end."""

    def __init__(self, count: int) -> None:
        self._left = [_task(number) for number in range(count)]
        self._unanswered = count
        self.done = threading.Event()

    def open(self, worker: str, types: Sequence[str]) -> None: ...

    def take(self, room: int, wait_s: float) -> list[Task]:
        taken, self._left = self._left[:room], self._left[room:]
        if not taken:
            self.done.wait(min(wait_s, 0.01))
        return taken

    def report(self, words: Sequence[TaskReport]) -> list[Answer]:
        self._unanswered -= len(words)
        if self._unanswered == 0:
            self.done.set()
        return [Answer(word.task.token, accepted=True) for word in words]

    def cancellations(self) -> list[tuple[str, str]]:
        return []

    def drain(self) -> None: ...

    def close(self) -> None: ...


def _task(number: int) -> Task:
    return Task(
        token=f"token-{number}",
        workflow_id="etl",
        instance_id=number,
        run_id=1,
        step_id="load",
        attempt=1,
        iteration=1,
        type=WORK,
        params='{"rows":1}',
        idempotency_key=f"etl/{number}",
        criticality=Criticality.MEDIUM,
        lease_ms=30_000,
        deadline_at_ms=0,
        at_ms=0,
    )


def measure_overhead(*, quick: bool) -> dict[str, float]:
    """Microseconds of CPU for a task, from taking it to having answered."""

    async def by_loop(rows: int) -> dict[str, int]:
        return {"rows": rows}

    def by_thread(rows: int) -> dict[str, int]:
        return {"rows": rows}

    found: dict[str, float] = {}
    for name, function in (("async", by_loop), ("threads", by_thread)):
        busy, given = Worker(), Given(TASKS[quick])
        busy.add(WORK, function)
        before_s = time.process_time()
        runner = busy.start(given, SETTINGS)
        if not given.done.wait(ENOUGH_S):
            raise Refused(f"Expected {TASKS[quick]} tasks to be answered in {ENOUGH_S} s, but they were not")
        runner.stop()
        found[f"overhead_{name}_us"] = round((time.process_time() - before_s) / TASKS[quick] * 1_000_000, 1)
        progress(f"a task costs {found[f'overhead_{name}_us']} µs of CPU ({name})")
    return found


# With an engine -------------------------------------------------------------------------------------------------------


class KafkaWorkers(KafkaSubject):
    """The engine on Kafka, with a worker of the SDK in a process of its own."""

    def employ(self) -> None:
        self.worker = Program("sdk-worker", _program(self.bench.place("worker")))


def _program(place: Place) -> list[str]:
    return [sys.executable, "-m", "benchmarks.workers_program", *place.arguments()]


class EmbeddedWorkers(EmbeddedSubject):
    """The engine on the embedded log with the API, and a worker in the same process that calls it."""

    def __init__(self, runtime: EmbeddedRuntime) -> None:
        super().__init__(runtime)
        self._opened = ExitStack()

    def employ(self) -> None:
        journal = EmbeddedJournal(self.runtime)
        views = self._opened.enter_context(Views(journal))
        server = self._opened.enter_context(ApiServer(create_app(journal, views), "127.0.0.1", 0))
        runner = worker.start(HttpTransport(server.url), SETTINGS)
        self._opened.callback(runner.stop)

    def close(self) -> None:
        self._opened.close()
        super().close()


def measure_kafka(*, quick: bool) -> dict[str, float]:
    """On a broker of our own, or on one that is given."""
    with ExitStack() as stack:
        broker = stack.enter_context(open_broker(LASTING))
        bench = stack.enter_context(Bench(broker.bootstrap_servers, "workers", ENGINE))
        subject = KafkaWorkers(bench, getattr(broker, "pid", None))
        stack.callback(subject.close)
        return _measured(subject, "kafka", quick=quick)


def measure_embedded(*, quick: bool) -> dict[str, float]:
    """Engine, API and worker in this process."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="workers-embedded-"))
        runtime = stack.enter_context(EmbeddedRuntime(topology("engine", PARTITIONS), Path(directory) / "log"))
        runtime.start()
        subject = EmbeddedWorkers(runtime)
        stack.callback(subject.close)
        return _measured(subject, "embedded", quick=quick)


def _measured(subject: KafkaWorkers | EmbeddedWorkers, name: str, *, quick: bool) -> dict[str, float]:
    sizes = QUICK if quick else FULL
    alone = Measures(subject, sizes, NOOP)
    figures = {f"{name}_{key}": value for key, value in alone.throughput().items()}
    subject.employ()
    with_worker = Measures(subject, sizes, WORK)
    figures |= {f"{name}_worker_{key}": value for key, value in with_worker.all().items()}
    progress("reading the whole history")
    subject.verify([*alone.truths, *with_worker.truths])
    ratio = figures[f"{name}_worker_workflows_per_s"] / figures[f"{name}_workflows_per_s"]
    return figures | {f"{name}_worker_vs_noop": round(ratio, 3)}


def worker_vs_noop(figures: Figures) -> Figures:
    """What is compared with others is on Kafka."""
    ratio = figures.get("kafka_worker_vs_noop")
    return {} if ratio is None else {"worker_vs_noop": ratio}


if __name__ == "__main__":
    parts = {
        "dev": measure_dev,
        "overhead": measure_overhead,
        "kafka": measure_kafka,
        "embedded": measure_embedded,
    }
    sys.exit(run("workers", __doc__, parts, in_the_end=worker_vs_noop))
