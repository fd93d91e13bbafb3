"""The engine on Kafka: `kapelle processors run` as a process of its own, and this process as its client."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from benchmarks.engine_work import PARTITIONS, Command, Held, Truth, faults
from benchmarks.engine_worker import answer
from benchmarks.harness import Bench, Place, Refused, watcher
from benchmarks.programs import CLOCK_TICKS_PER_S, Program
from benchmarks.routes import Route
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_COMMANDS, RUN_EVENTS, TASKS, WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import Codec, Contract
from kapelle.schemas import contracts as c
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology

E = TypeVar("E", bound=Contract)

READ_MAX: Final = 10_000
ANSWER_TIMEOUT_S: Final = 30.0
FLUSH_TIMEOUT_S: Final = 60.0


def _create(bootstrap_servers: str, prefix: str) -> None:
    Topics(topology(prefix, PARTITIONS), KafkaSettings(bootstrap_servers=bootstrap_servers)).apply()


ENGINE: Final = Route(
    source=WORKFLOW_COMMANDS.name,
    sink=WORKFLOW_EVENTS.name,
    group="workflows",
    create=_create,
    records=lambda _count, _series: [],  # commands are given by `Measures`, and judged by `faults` of `engine_work`
    identify=str,
    faults=lambda _given, _messages: [],
)


def member(place: Place, hosted: Sequence[str] = ()) -> list[str]:
    """`kapelle processors run` with these processors, or with all."""
    run = [sys.executable, "-c", "from kapelle.cli.main import main; main()", "processors", "run", *hosted]
    return [*run, *place.arguments(), "--partitions", str(PARTITIONS), "--log-level", "warning"]


def worker(place: Place) -> list[str]:
    """A process that answers tasks."""
    return [sys.executable, "-m", "benchmarks.engine_worker", *place.arguments()]


class KafkaSubject:
    """The engine as its client sees it."""

    def __init__(self, bench: Bench, broker_pid: int | None, *, hosted: Sequence[str] = ()) -> None:
        self.bench = bench
        self.member = Program("engine-member", member(bench.place(), hosted))
        self.worker: Program | None = None
        self._broker_pid = broker_pid
        self._topology = topology(bench.prefix, PARTITIONS)
        self._codec = Codec(self._topology.catalog())
        self._heads: dict[type[Contract], bytes] = {}
        self._reader = watcher(bench.bootstrap_servers, bench.sink)
        self._bulk = self._producer(linger_ms=5)
        self._prompt = self._producer(linger_ms=0)

    def _producer(self, *, linger_ms: int) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bench.bootstrap_servers,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": linger_ms,
                "log_level": 3,
            }
        )

    def employ(self) -> None:
        """From now on there is a worker."""
        self.worker = Program("engine-worker", worker(self.bench.place("worker")))

    def close(self) -> None:
        self.member.close()
        if self.worker is not None:
            self.worker.close()
        self._reader.close()
        for producer in (self._bulk, self._prompt):
            producer.close()

    # As `Subject` -----------------------------------------------------------------------------------------------------

    def send(self, commands: Sequence[Command], *, at_once: bool = False) -> None:
        """Publish commands in order. What is not sent at once is acknowledged when this returns."""
        producer = self._prompt if at_once else self._bulk
        for key, command in commands:
            producer.produce(self.bench.source, self._codec.encode(command), key)
            producer.poll(0)
        if not at_once and producer.flush(FLUSH_TIMEOUT_S):
            raise Refused(f"Expected {len(commands)} commands to be written in {FLUSH_TIMEOUT_S} s, but they were not")

    def answer(self, held: Sequence[Held]) -> None:
        """Find the tasks of these instances, and report success."""
        wanted = set(held)
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        reader = watcher(self.bench.bootstrap_servers, self._topology.topic(TASKS))
        while wanted:
            for message in reader.consume(READ_MAX, 0.05):
                task = self._codec.decode(message.value() or b"")
                if isinstance(task, c.Task) and (task.workflow_id, task.instance_id) in wanted:
                    wanted.remove((task.workflow_id, task.instance_id))
                    key, report = answer(task)
                    self._bulk.produce(self._topology.topic(RUN_COMMANDS), self._codec.encode(report), key)
            if time.monotonic() > deadline:
                raise Refused(f"Expected a task for each of {len(wanted)} instances, but found none")
        reader.close()
        self._bulk.flush(FLUSH_TIMEOUT_S)

    def events(self, contract: type[E], wait_s: float) -> list[E]:
        """Decode only records of the wanted types, which the first bytes show."""
        head = self._head(contract)
        first = self._reader.poll(wait_s)
        if first is None:
            return []
        found: list[E] = []
        for message in [first, *self._reader.consume(READ_MAX, 0)]:
            data = message.value() or b""
            if message.error() is None and data.startswith(head):
                value = self._codec.decode(data)
                assert isinstance(value, contract)
                found.append(value)
        return found

    def _head(self, contract: type[Contract]) -> bytes:
        if contract not in self._heads:
            self._heads[contract] = b"\xc3\x01" + contract.FINGERPRINT.to_bytes(8, "little")
        return self._heads[contract]

    def cpu_s(self) -> float:
        """Engine, broker, client, and the worker if there is one."""
        of_worker = self.worker.cpu_s() if self.worker is not None else 0.0
        return self.member.cpu_s() + _cpu_s(self._broker_pid) + time.process_time() + of_worker

    def engine_cpu_s(self) -> float:
        """The member's loop alone: its first thread."""
        pid = self.member.process.pid
        on_cpu_ns = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]
        return int(on_cpu_ns) / 1e9

    def check(self) -> None:
        """Refuse to continue without a member or a worker."""
        self.member.check()
        if self.worker is not None:
            self.worker.check()

    def verify(self, truths: Sequence[Truth]) -> None:
        """Read the whole history, and look for dead letters."""
        workflow_events = (value for _, value in self._history(WORKFLOW_EVENTS))
        wrong = faults(truths, workflow_events, self._history(RUN_EVENTS))
        _, letters = self._reader.get_watermark_offsets(TopicPartition(self._topology.dead_letters, 0), timeout=10)
        if wrong or letters:
            found = ", ".join([*wrong, *[f"{letters} dead letters"] * bool(letters)])
            raise Refused(f"Expected every instance to succeed exactly once, but found {found}")

    def _history(self, stream: Stream) -> Iterator[tuple[str, Any]]:
        topic = self._topology.topic(stream)
        reader = watcher(self.bench.bootstrap_servers, topic, **{"enable.partition.eof": True})
        for message in _to_the_end(reader):
            yield (message.key() or b"").decode(), self._codec.decode(message.value() or b"")
        reader.close()


def _to_the_end(reader: Consumer) -> Iterator[Any]:
    ended = set[int | None]()
    while len(ended) < PARTITIONS:
        for message in reader.consume(READ_MAX, 1.0):
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(error)


def _cpu_s(pid: int | None) -> float:
    """User and system time of a process; 0 for one on another machine."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_S


@contextmanager
def kafka_subject(bootstrap_servers: str, broker_pid: int | None) -> Iterator[KafkaSubject]:
    """An engine on its own topics, which are deleted afterwards."""
    with ExitStack() as stack:
        bench = stack.enter_context(Bench(bootstrap_servers, "engine", ENGINE))
        subject = KafkaSubject(bench, broker_pid)
        stack.callback(subject.close)
        yield subject
