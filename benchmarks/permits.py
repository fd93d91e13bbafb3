"""What permits cost: admissions among many that wait, and steps per second with limits and without.

    python -m benchmarks.permits                        everything, in some minutes
    python -m benchmarks.permits --quick                every measurement in short, in about a minute
    python -m benchmarks.permits --only admissions      a part of it

    growth_admission               cost of an admission with 100,000 that wait over that with 1,000; the goal is 1.3
    growth_admission_us            the first: an attempt ends, the next gets its permit, and another one asks
    growth_batch, growth_batch_us  the same for those that a raised limit admits, a hundred in one decision
    plain_steps_per_s              steps a second of chains of ten NoOp steps without tags
    free_tags_steps_per_s          the same with three tags that nobody limits
    one_tag_steps_per_s            the same with one limited tag; the goal is 2,000 on Kafka
    three_tags_steps_per_s         the same with three limited tags
    …_vs_plain                     each over the first: the median of the rounds

Names of the last five begin with `embedded_` or `kafka_`. What the engine lost by having permits at all, without a
limit, is measured by `benchmarks.before_after` against an earlier checkout. If an instance or a step does not succeed
exactly once, no figures are reported. Progress goes to stderr; the last line on stdout is one JSON object.
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from confluent_kafka import Producer

from benchmarks.command import run
from benchmarks.engine_embedded import EmbeddedSubject, Tail
from benchmarks.engine_kafka import KafkaSubject, kafka_subject
from benchmarks.engine_measures import READ_WAIT_S, TIMEOUT_S
from benchmarks.engine_work import AUTHOR, PARTITIONS
from benchmarks.harness import Refused, watcher
from benchmarks.permits_growth import growth
from benchmarks.permits_measures import FULL_SIZES, QUICK_SIZES, PermitMeasures
from kapelle.processors.wiring import PERMIT_COMMANDS, PERMIT_EVENTS, tag_key
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology
from tests.support.broker import open_broker
from tests.support.settings import LASTING

LIMIT_SET: Final = b"\xc3\x01" + c.LimitSet.FINGERPRINT.to_bytes(8, "little")


def measure_admissions(*, quick: bool) -> dict[str, float]:
    """The cost of an admission, without an engine around it."""
    sizes = QUICK_SIZES if quick else FULL_SIZES
    return growth(sizes.waiting, sizes.samples)


def measure_embedded(*, quick: bool) -> dict[str, float]:
    """Steps per second, with the engine and its client in this process."""
    with (
        tempfile.TemporaryDirectory(prefix="permits-") as directory,
        EmbeddedRuntime(topology("permits", PARTITIONS), Path(directory) / "log") as runtime,
    ):
        runtime.start()
        subject = EmbeddedSubject(runtime)
        tail = Tail(runtime, PERMIT_EVENTS)

        def limit(tag: str, most: int) -> None:
            runtime.publish(PERMIT_COMMANDS, tag_key(tag), c.SetLimit(f"limit-{tag}", AUTHOR, most))
            _await(lambda: any(data.startswith(LIMIT_SET) for data in tail.read(READ_WAIT_S)), tag)

        try:
            figures = PermitMeasures(subject, limit, QUICK_SIZES if quick else FULL_SIZES).all()
        finally:
            subject.close()
    return {f"embedded_{name}": value for name, value in figures.items()}


def measure_kafka(*, quick: bool) -> dict[str, float]:
    """The same on a broker, with the engine in a process of its own."""
    with open_broker(LASTING) as broker:
        broker_pid: int | None = getattr(broker, "pid", None)
        with kafka_subject(broker.bootstrap_servers, broker_pid) as subject, KafkaLimits(subject) as limits:
            figures = PermitMeasures(subject, limits.set, QUICK_SIZES if quick else FULL_SIZES).all()
    return {f"kafka_{name}": value for name, value in figures.items()}


class KafkaLimits:
    """Sets limits on the topics of an engine."""

    def __init__(self, subject: KafkaSubject) -> None:
        whole = topology(subject.bench.prefix, PARTITIONS)
        self._topic = whole.topic(PERMIT_COMMANDS)
        self._codec = Codec(whole.catalog())
        self._producer = Producer(
            {
                "bootstrap.servers": subject.bench.bootstrap_servers,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "log_level": 3,
            }
        )
        self._reader = watcher(subject.bench.bootstrap_servers, whole.topic(PERMIT_EVENTS))

    def set(self, tag: str, most: int) -> None:
        """Set the limit of a tag, and wait until it is set."""
        self._producer.produce(self._topic, self._codec.encode(c.SetLimit(f"limit-{tag}", AUTHOR, most)), tag_key(tag))
        self._producer.flush(TIMEOUT_S)
        _await(self._is_set, tag)

    def _is_set(self) -> bool:
        message = self._reader.poll(READ_WAIT_S)
        return message is not None and message.error() is None and (message.value() or b"").startswith(LIMIT_SET)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._producer.close()


def _await(is_set: Callable[[], bool], tag: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_set():
        if time.monotonic() > deadline:
            raise Refused(f"Expected the tag {tag!r} to be limited within {TIMEOUT_S} s, but it is not")


if __name__ == "__main__":
    parts = {"admissions": measure_admissions, "embedded": measure_embedded, "kafka": measure_kafka}
    sys.exit(run("permits", __doc__, parts))
