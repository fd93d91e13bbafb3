"""What schedules cost, and how late they are: on the embedded log and on Kafka.

    python -m benchmarks.schedules                    everything, in some minutes
    python -m benchmarks.schedules --quick            every measurement in short, in about a minute
    python -m benchmarks.schedules --only growth      a part of it

    growth_schedules           cost of a tick among 100,000 schedules, over that among ten; the goal is 1.3
    base_cpu_percent           CPU of the engine's loop without schedules, in percent of a core
    idle_cpu_percent           the same with 100,000 schedules that tick once a day each; the goal is 2
    idle_process_cpu_percent   of the whole process, with the threads of its log and its store
    late_p50_ms, late_p99_ms   from the scheduled time of a tick to reading its start, twenty a second; the goal is 50
    decided_late_…             from the scheduled time of a tick to the decision
    herd_drain_s               from 10,000 ticks at one instant to reading the start of the last one
    herd_start_p99_ms          meanwhile from publishing a start of another workflow to reading its end, twenty a second
    herd_signal_p99_ms         meanwhile from announcing a signal to reading that it is accepted, twenty a second
    quiet_…                    the same two before

Names of all but the first begin with `embedded_` or `kafka_`. If a tick does not start one instance, no figures are
reported. Progress goes to stderr; the last line on stdout is one JSON object.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.command import run
from benchmarks.engine_embedded import EmbeddedSubject, Tail
from benchmarks.engine_kafka import READ_MAX, KafkaSubject, kafka_subject
from benchmarks.engine_work import PARTITIONS
from benchmarks.harness import watcher
from benchmarks.schedules_growth import growth
from benchmarks.schedules_measures import FULL, QUICK, Measures, Message, Read
from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology
from tests.support.broker import open_broker
from tests.support.settings import LASTING

PUBLISH_TIMEOUT_S = 120.0


def measure_growth(*, quick: bool) -> dict[str, float]:
    """The cost of a tick, without an engine around it."""
    sizes = QUICK if quick else FULL
    return growth(sizes.growth, sizes.growth_samples)


class Embedded:
    """The engine in this process, in a thread of its own."""

    def __init__(self, runtime: EmbeddedRuntime) -> None:
        self.codec = Codec(runtime.topology.catalog())
        self._runtime = runtime
        self._subject = EmbeddedSubject(runtime)

    def publish(self, messages: Sequence[Message]) -> None:
        for message in messages:
            published = self._runtime.publish_all([message], timeout_s=PUBLISH_TIMEOUT_S)
        published.result(PUBLISH_TIMEOUT_S)

    def reader(self, stream: Stream) -> Read:
        tail = Tail(self._runtime, stream)
        tail.at = {partition: self._runtime.end(stream, partition) for partition in tail.at}
        return tail.read

    def engine_cpu_s(self) -> float:
        return self._subject.engine_cpu_s()

    def process_cpu_s(self) -> float:
        return time.process_time()


class Kafka:
    """The engine in a process of its own, on a broker."""

    def __init__(self, subject: KafkaSubject) -> None:
        self._subject = subject
        self._topology = topology(subject.bench.prefix, PARTITIONS)
        self.codec = Codec(self._topology.catalog())
        self._servers = subject.bench.bootstrap_servers
        self._producer = Producer(
            {"bootstrap.servers": self._servers, "partitioner": "murmur2_random", "linger.ms": 0, "log_level": 3}
        )

    def publish(self, messages: Sequence[Message]) -> None:
        for stream, key, command in messages:
            self._producer.produce(self._topology.topic(stream), self.codec.encode(command), key)
            self._producer.poll(0)
        self._producer.flush(PUBLISH_TIMEOUT_S)

    def reader(self, stream: Stream) -> Read:
        consumer = watcher(self._servers, self._topology.topic(stream))

        def read(wait_s: float) -> list[bytes]:
            first = consumer.poll(wait_s)
            found = [] if first is None else [first, *consumer.consume(READ_MAX, 0)]
            return [message.value() or b"" for message in found if message.error() is None]

        return read

    def engine_cpu_s(self) -> float:
        return self._subject.engine_cpu_s()

    def process_cpu_s(self) -> float:
        return self._subject.member.cpu_s()


def measure_embedded(*, quick: bool) -> dict[str, float]:
    """With the engine and its client in this process."""
    with (
        tempfile.TemporaryDirectory(prefix="schedules-") as directory,
        EmbeddedRuntime(topology("schedules", PARTITIONS), Path(directory) / "log") as runtime,
    ):
        runtime.start()
        figures = Measures(Embedded(runtime), QUICK if quick else FULL).all()
    return {f"embedded_{name}": value for name, value in figures.items()}


def measure_kafka(*, quick: bool) -> dict[str, float]:
    """The same on a broker, with the engine in a process of its own."""
    with open_broker(LASTING) as broker:
        broker_pid: int | None = getattr(broker, "pid", None)
        with kafka_subject(broker.bootstrap_servers, broker_pid) as subject:
            figures = Measures(Kafka(subject), QUICK if quick else FULL).all()
    return {f"kafka_{name}": value for name, value in figures.items()}


if __name__ == "__main__":
    parts = {"growth": measure_growth, "embedded": measure_embedded, "kafka": measure_kafka}
    sys.exit(run("schedules", __doc__, parts))
