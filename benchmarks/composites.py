"""Composite steps: loops and subworkflows of NoOp steps, on the embedded log and on Kafka.

    python -m benchmarks.composites [--quick] [--only embedded,kafka]

    foreach_per_s                iterations a second of one loop of 10,000, each of one NoOp step
    nested_per_s                 the same of a loop of 100 in a loop of 100: inner iterations a second
    subworkflows_per_s           subworkflows a second, of a loop of 2,000 iterations that each wait for one
    ten_p50_ms, ten_p99_ms       from publishing the start of a loop of ten to reading its end, one at a time
    iteration_cpu_us_N           CPU of the engine's loop for an iteration, in loops of N
    growth_iterations            the largest of these costs, over that of loops of 100; the goal is 1.2
    history_bytes_per_iteration  on `runs.events`, if the parent has parameters of 100 kB; the goal is 1,500
    bystander_quiet_p99_ms       from publishing a start of another workflow to reading its end, twenty a second
    bystander_crowded_p99_ms     the same while a loop of 25,000 iterations runs
    bystander_crowded_vs_quiet   the second over the first; the goal is 2

Names begin with `embedded_` or `kafka_`. If an instance does not succeed, no figures are reported. Progress goes to
stderr; the last line on stdout is one JSON object.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks.command import run
from benchmarks.composites_measures import FULL, QUICK, CompositeMeasures, large_params, loop, noop
from benchmarks.engine_embedded import READ_MAX, EmbeddedSubject
from benchmarks.engine_kafka import kafka_subject
from benchmarks.engine_work import PARTITIONS, start
from benchmarks.figures import progress
from kapelle.processors.wiring import RUN_EVENTS
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology
from tests.support.broker import open_broker
from tests.support.settings import LASTING


def measure_embedded(*, quick: bool) -> dict[str, float]:
    """All figures, with the engine and its client in this process."""
    with (
        tempfile.TemporaryDirectory(prefix="composites-") as directory,
        EmbeddedRuntime(topology("composites", PARTITIONS), Path(directory) / "log") as runtime,
    ):
        runtime.start()
        subject = EmbeddedSubject(runtime)
        try:
            measures = CompositeMeasures(subject, QUICK if quick else FULL)
            figures = measures.all() | history(measures, runtime)
        finally:
            subject.close()
    return {f"embedded_{name}": value for name, value in figures.items()}


def history(measures: CompositeMeasures, runtime: EmbeddedRuntime) -> dict[str, float]:
    """Bytes of history for an iteration. They are the same on every log."""
    iterations = measures.sizes.foreach
    workflow_id = measures.pushed([loop("loop", iterations, noop("only"))], params=large_params())
    before = _events_bytes(runtime)
    measures.subject.send([start(workflow_id, 1)])
    measures.await_end(workflow_id, 1)
    found = (_events_bytes(runtime) - before) / iterations
    progress(f"{found:,.0f} bytes of history for an iteration")
    return {"history_bytes_per_iteration": round(found)}


def _events_bytes(runtime: EmbeddedRuntime) -> int:
    total = 0
    for partition in range(PARTITIONS):
        at = 0
        while records := runtime.read(RUN_EVENTS, partition, at, READ_MAX):
            total += sum(len(one.key or b"") + len(one.value or b"") for one in records)
            at = records[-1].offset + 1
    return total


def measure_kafka(*, quick: bool) -> dict[str, float]:
    """The same on a broker, with the engine in a process of its own."""
    with open_broker(LASTING) as broker:
        broker_pid: int | None = getattr(broker, "pid", None)
        with kafka_subject(broker.bootstrap_servers, broker_pid) as subject:
            figures = CompositeMeasures(subject, QUICK if quick else FULL).all()
    return {f"kafka_{name}": value for name, value in figures.items()}


if __name__ == "__main__":
    sys.exit(run("composites", __doc__, {"embedded": measure_embedded, "kafka": measure_kafka}))
