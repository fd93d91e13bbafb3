"""Members on the real broker, in this process or in their own, and what came of them."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Message, Producer

from kapelle.processors.processor import Processor
from kapelle.schemas import Codec
from kapelle.schemas.contracts import DeadLetter
from kapelle.topology.build import Topology
from kapelle.topology.deadletters import letter_bytes_max
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.run import KafkaMember
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.settings import Limits, MemberSettings
from kapelle.topology.tables import Batch, Memory, MemoryStore, RocksStore, ShardState
from tests.integration.runtime.reading import read
from tests.proof.checks import Seen, table_violations
from tests.proof.kafka import publish
from tests.proof.tables import last_owned
from tests.proof.workload import Published
from tests.support.broker import Broker

Raw = tuple[bytes | None, bytes | None, list[Any] | None]  # key, value, headers

ENOUGH_S = 30.0
SESSION_MS = 1_500  # short, so that the members of killed processes are soon forgotten
LIMITS = Limits(idle_wait_ms=20)  # partitions that come are taken up, and stops are heard, without a wait


def until(condition: Callable[[], bool], what: str, within_s: float = ENOUGH_S) -> float:
    """Wait for a condition. Returns how long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, f"Expected {what} within {within_s:g} s"
        time.sleep(0.02)
    return time.monotonic() - began


class Running:
    """A member that runs in a thread of this process until the block ends."""

    def __init__(self, member: KafkaMember) -> None:
        self.kafka = member
        self.member = member.member
        self.counters = member.member.counters
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.kafka.run()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the thread is told
            self.error = error

    def stop(self) -> float:
        """Stop it. Returns how long that took."""
        began = time.monotonic()
        self.kafka.stop()
        self._thread.join(ENOUGH_S)
        assert not self._thread.is_alive(), "the member did not stop"
        return time.monotonic() - began

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        if self.error is not None and error is None:
            raise self.error


class Deployment:
    """A topology with topics of its own on a broker, and directories for its members."""

    def __init__(self, broker: Broker, directory: Path, topology: Topology, **settings: Any) -> None:
        self.broker = broker
        self.directory = directory
        self.topology = topology
        self.settings = KafkaSettings(
            **{"bootstrap_servers": broker.bootstrap_servers, "session_timeout_ms": SESSION_MS, **settings}
        )
        Topics(topology, self.settings).apply()
        until(lambda: not Topics(topology, self.settings).plan(), "the topics to be there")

    def member(self, name: str = "one", *, settings: MemberSettings | None = None, **how: Any) -> Running:
        """A member to run in a `with` block; the directory that it has goes by the name."""
        chosen = settings or MemberSettings(limits=LIMITS)
        return Running(KafkaMember(self.topology, self.settings, self.directory / name, settings=chosen, **how))

    def publish(self, published: Iterable[Published]) -> None:
        publish(self.broker.bootstrap_servers, self.topology, published)

    def publish_bytes(self, stream: str, records: Iterable[Raw]) -> None:
        """Records as they are, to partition 0."""
        # Idempotent: a first try that finds no leader yet must not change the order.
        config = {"message.max.bytes": 2_000_000, "enable.idempotence": True}
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers, **config})
        topic = self.topology.topic(self.topology.streams[stream])
        failed: list[object] = []

        def report(error: object, _: Message) -> None:
            if error is not None:
                failed.append(error)

        for key, value, headers in records:
            producer.produce(topic, value, key, 0, on_delivery=report, headers=headers or [])
        assert (producer.flush(ENOUGH_S), failed) == (0, [])

    def messages(self, topic: str) -> list[Message]:
        """What a `read_committed` reader sees on a topic, partition by partition."""
        counts = {t.name: t.partitions for t in self.topology.topics()}
        found = read(self.broker.bootstrap_servers, {topic: counts[topic]})[topic]
        return [message for partition in sorted(found) for message in found[partition]]

    def letters(self) -> list[DeadLetter]:
        codec = Codec(self.topology.catalog(), record_bytes_max=letter_bytes_max(self.settings.record_bytes_max))
        found = [codec.decode(message.value() or b"") for message in self.messages(self.topology.dead_letters)]
        return [letter for letter in found if isinstance(letter, DeadLetter)]

    def seen(self) -> Seen:
        """The history of every processor, decoded."""
        codec = Codec(self.topology.catalog())
        histories = [processor.events for processor in self.topology.processors.values()]
        topics = {self.topology.topic(s): self.topology.partitions(s) for s in histories}
        found = read(self.broker.bootstrap_servers, topics)
        return {
            stream.name: {
                partition: [((m.key() or b"").decode(), codec.decode(m.value() or b"")) for m in messages]
                for partition, messages in found[self.topology.topic(stream)].items()
            }
            for stream in histories
        }

    def table_problems(self) -> list[str]:
        """How changelogs and directories differ from the fold of history. Members must have left."""
        history = self.seen()
        stores = [RocksStore(path, Memory()) for path in sorted(self.directory.glob("*/tables"))]
        try:
            local = table_violations(last_owned(self.topology, stores), history)
        finally:
            for store in stores:
                store.close()
        return local + [f"changelog: {p}" for p in table_violations(self._from_changelogs(), history)]

    def _from_changelogs(self) -> Iterator[tuple[Processor[Any], int, ShardState[Any]]]:
        topics = {
            self.topology.changelog(name): self.topology.processor_partitions(name) for name in self.topology.processors
        }
        found = read(self.broker.bootstrap_servers, topics)
        for name, processor in self.topology.processors.items():
            for partition, messages in found[self.topology.changelog(name)].items():
                store, batch = MemoryStore(), Batch()
                state = ShardState(processor, partition, store)
                state.restore([(m.key() or b"", m.value()) for m in messages], batch)
                store.write(batch)
                state.clear()
                yield processor, partition, state


def own(processors: Iterable[Processor[Any]], partitions: int = 2) -> Topology:
    """A topology with a prefix that nobody else has."""
    return Topology(processors, prefix=f"runtime-{random.SystemRandom().randrange(10**12)}", partitions=partitions)


class Process:
    """A member in a process of its own (`python -m tests.proof.member`), to be killed and signalled."""

    def __init__(self, place: Deployment, *arguments: str, name: str = "one", servers: str | None = None) -> None:
        state = place.directory / name
        state.mkdir(parents=True, exist_ok=True)
        self.output = place.directory / f"{name}.log"
        command = [
            *(sys.executable, "-m", "tests.proof.member", "--state-dir", str(state)),
            *("--bootstrap-servers", servers or place.broker.bootstrap_servers, "--prefix", place.topology.prefix),
            *("--partitions", str(place.topology.partitions_default), "--session-timeout-ms", str(SESSION_MS)),
            *arguments,
        ]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def terminate(self, within_s: float) -> float:
        """Ask it to stop (SIGTERM). Returns how long that took."""
        began = time.monotonic()
        self.process.terminate()
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGUSR1)  # it says where it stands
            time.sleep(0.5)
            raise AssertionError(f"Expected it to stop within {within_s:g} s: {self.said()}") from None
        assert code == 0, self.said()
        return time.monotonic() - began

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        return self.output.read_text(errors="replace")[-4_000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.kill()
