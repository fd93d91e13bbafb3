"""The engine: workflows of NoOp steps, and of steps that a worker executes, on Kafka and on the embedded log.

    python -m benchmarks.engine [--quick] [--only kafka,embedded]

    workflows_per_s        instances of one step at full speed: from the first start to the last `InstanceEnded` read
    chain_steps_per_s      instances of ten steps in sequence, at full speed
    parallel_steps_per_s   a thousand steps at once: four instances of 250
    latency_p50_ms         from publishing a start to reading its end, one at a time; `latency_steady_…`: 50 a second
    cpu_s_per_1000         CPU seconds of all processes (engine, broker, client, worker) for 1,000 instances of one step
    growth_queue           cost of a start and a launch with many queued runs, over the cost with a hundred, in turn
    growth_store           their cost with a hundred queued runs in a large store, over that in a small one

Names begin with `kafka_` or `embedded_`, and with `kafka_worker_` or `embedded_worker_` if a worker executes tasks.
On Kafka the engine is one process that hosts all processors, and this one is its client. If an instance has not
succeeded exactly once, or there is a dead letter, no figures are reported. Progress goes to stderr; the last line on
stdout is one JSON object.
"""

import sys

from benchmarks.command import Figures, run
from benchmarks.engine_embedded import measure_embedded
from benchmarks.engine_kafka import kafka_subject
from benchmarks.engine_measures import FULL, QUICK, Measures
from benchmarks.engine_queue import queue_figures
from benchmarks.engine_work import NOOP, WORK
from benchmarks.figures import progress
from tests.support.broker import open_broker
from tests.support.settings import LASTING

LOGS = ("kafka", "embedded")


def measure_kafka(*, quick: bool) -> dict[str, float]:
    """All figures, on a broker that is started here or on a given one."""
    sizes = QUICK if quick else FULL
    with open_broker(LASTING) as broker:
        broker_pid: int | None = getattr(broker, "pid", None)
        with kafka_subject(broker.bootstrap_servers, broker_pid) as subject:
            by_itself = Measures(subject, sizes, NOOP)
            figures = {f"kafka_{name}": value for name, value in (by_itself.all() | queue_figures(by_itself)).items()}
            subject.employ()
            with_worker = Measures(subject, sizes, WORK)
            figures |= {f"kafka_worker_{name}": value for name, value in with_worker.all().items()}
            progress("reading the whole history")
            subject.verify([*by_itself.truths, *with_worker.truths])
    if broker_pid is None:  # a figure without the broker's share would look like one with it
        figures = {name: value for name, value in figures.items() if not name.endswith("cpu_s_per_1000")}
    return figures


def growth(figures: Figures) -> Figures:
    """The worse of both logs."""
    kinds = ("growth_queue", "growth_store")
    by_kind = {kind: [figures[key] for log in LOGS if (key := f"{log}_{kind}") in figures] for kind in kinds}
    return {kind: max(found) for kind, found in by_kind.items() if found}


if __name__ == "__main__":
    parts = {"kafka": measure_kafka, "embedded": measure_embedded}
    sys.exit(run("engine", __doc__, parts, in_the_end=growth))
