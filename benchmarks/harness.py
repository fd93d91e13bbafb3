"""The broker's side of a measurement: topics, records behind a gate, progress of a group, outputs and their truth.

Every runtime is timed alike. First records show that it is up and owns its partitions. The load is then written in one
transaction that stays open; nothing of it is visible to a `read_committed` consumer until the commit, which starts the
clock. The clock stops when the group's committed offsets reach the end of the load: that is the commit of the last
outputs, because every runtime here commits offsets and outputs together.
"""

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec  # the package does not export it to type checkers

from benchmarks.routes import COUNTING, TOPICS_TIMEOUT_S, Route
from benchmarks.workload import PARTITIONS, Given

POLL_S = 0.02
END_WAIT_MS = 10
DEADLINE_S = 300.0
ANSWER_TIMEOUT_S = 10.0
NO_COORDINATOR = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TIMED_OUT,
}


class Refused(Exception):
    """A measurement whose result is not valid."""


class Place(NamedTuple):
    """The arguments of a program: the broker, the prefix of its topics, its state directory."""

    bootstrap_servers: str
    prefix: str
    state_dir: Path

    def arguments(self) -> list[str]:
        return [
            *("--bootstrap-servers", self.bootstrap_servers),
            *("--prefix", self.prefix),
            *("--state-dir", str(self.state_dir)),
        ]


class Bench:
    """One run on topics of its own. Leaving the `with` block removes them, and the local state."""

    def __init__(self, bootstrap_servers: str, name: str, route: Route = COUNTING) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.name = name
        self.route = route
        self.prefix = f"{name.replace('_', '-')}-{uuid.uuid4().hex[:8]}"
        self.source = f"{self.prefix}.{route.source}"
        self.sink = f"{self.prefix}.{route.sink}"
        self.group = f"{self.prefix}.{route.group}"
        self.given: list[Given] = []
        self.admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        # Asks for the group's offsets and never joins it. (The admin client's own call for this has crashed the process
        # on a broker that was just started.)
        self.observer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": self.group,
                "isolation.level": "read_uncommitted",  # answer with what is committed, do not wait for what is not
                "log_level": 0,
            }
        )

    def __enter__(self) -> Self:
        self.state = Path(tempfile.mkdtemp(prefix=f"{self.prefix}-"))
        self.route.create(self.bootstrap_servers, self.prefix)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.observer.close()
        shutil.rmtree(self.state, ignore_errors=True)
        # A runtime may have made topics for itself, with the prefix somewhere in their names.
        mine = [name for name in self.admin.list_topics(timeout=TOPICS_TIMEOUT_S).topics if self.prefix in name]
        for result in self.admin.delete_topics(mine).values():
            result.result(TOPICS_TIMEOUT_S)

    def place(self, member: str = "first") -> Place:
        """The arguments of a program. Programs at the same time need different names; a name keeps its state."""
        return Place(self.bootstrap_servers, self.prefix, self.state / member)

    def give(self, records: Sequence[Given]) -> dict[int, int]:
        """Write records that are visible at once; returns the offsets at which they end."""
        with Producer({"bootstrap.servers": self.bootstrap_servers, "partitioner": "murmur2_random"}) as producer:
            self.write(producer, records)
        return self.ends()

    def write(self, producer: Producer, records: Sequence[Given]) -> None:
        """Write records with the producer of the caller."""
        for given in records:
            producer.produce(self.source, given.value, given.key, headers=given.headers())
        producer.flush()
        self.given += records

    def ends(self) -> dict[int, int]:
        """The offset after the last record of each partition of the source, open transactions included."""
        return self._ends(self.source, IsolationLevel.READ_UNCOMMITTED)

    def _ends(self, topic: str, isolation: IsolationLevel) -> dict[int, int]:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, partition): latest for partition in range(PARTITIONS)}
        found = self.admin.list_offsets(wanted, isolation_level=isolation)
        return {partition.partition: result.result(ANSWER_TIMEOUT_S).offset for partition, result in found.items()}

    def await_visible(self) -> float:
        """Wait until no open transaction hides an output that is there now; returns the moment at which it was seen.

        A killed program may leave a transaction open, which hides all that others write behind it until it times out.
        """
        wanted = self._ends(self.sink, IsolationLevel.READ_UNCOMMITTED)
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            visible = self._ends(self.sink, IsolationLevel.READ_COMMITTED)
            now = time.perf_counter()
            if all(visible[partition] >= end for partition, end in wanted.items()):
                return now
            time.sleep(POLL_S)
        raise Refused(f"Expected {self.sink} to be visible up to {wanted} in {DEADLINE_S} s, but it is up to {visible}")

    def committed(self) -> dict[int, int]:
        """The group's committed offset for each partition of the source."""
        wanted = [TopicPartition(self.source, partition) for partition in range(PARTITIONS)]
        try:
            found = self.observer.committed(wanted, timeout=ANSWER_TIMEOUT_S)
        except KafkaException as failure:
            if failure.args[0].code() not in NO_COORDINATOR:
                raise
            return {}
        return {each.partition: each.offset for each in found}

    def await_committed(self, ends: Mapping[int, int], alive: Callable[[], None]) -> float:
        """Wait until the group has committed up to these offsets; returns the moment at which it was seen."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            reached = self.committed()
            now = time.perf_counter()
            if all(reached.get(partition, 0) >= end for partition, end in ends.items() if end):
                return now
            alive()
            time.sleep(POLL_S)
        raise Refused(f"Expected {self.group} to commit up to {dict(ends)} in {DEADLINE_S} s, but it is at {reached}")

    def outputs(self) -> Iterator[Any]:
        """Every output that a `read_committed` consumer sees, to the end; in order within a partition."""
        # Without a limit to the wait, the broker tells of each end after half a second.
        settings = {"enable.partition.eof": True, "fetch.wait.max.ms": END_WAIT_MS}
        reader = watcher(self.bootstrap_servers, self.sink, **settings)
        ended = set[int | None]()
        while len(ended) < PARTITIONS:
            for message in reader.consume(10_000, POLL_S):
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise KafkaException(error)
        reader.close()

    def verify(self) -> None:
        """Refuse the run unless its outputs are exactly those of the records that it was given."""
        self.await_visible()
        wrong = self.route.faults(self.given, self.outputs())
        if wrong:
            raise Refused(f"Expected {self.sink} to hold each output once and right, but found {', '.join(wrong)}")


class Gate:
    """A load that is written but not visible until `open`."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.producer = Producer(
            {
                "bootstrap.servers": bench.bootstrap_servers,
                "transactional.id": f"{bench.prefix}.gate",
                "transaction.timeout.ms": 600_000,
                "partitioner": "murmur2_random",
                "queue.buffering.max.messages": 10_000_000,
                "linger.ms": 20,
            }
        )
        self.producer.init_transactions(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.producer.close()

    def load(self, records: Sequence[Given]) -> dict[int, int]:
        """Write the records; returns the offsets at which they end."""
        self.producer.begin_transaction()
        self.bench.write(self.producer, records)
        return self.bench.ends()

    def open(self) -> float:
        """Make the load visible; returns the moment just before."""
        now = time.perf_counter()
        self.producer.commit_transaction(60)
        return now


def watcher(bootstrap_servers: str, topic: str, **settings: Any) -> Consumer:
    """A `read_committed` consumer of all partitions of a topic, from the beginning, in no group."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"watcher-{uuid.uuid4().hex}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **settings,
        }
    )
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    return reader
