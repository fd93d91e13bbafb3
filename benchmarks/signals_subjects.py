"""The engine on Kafka and on the embedded log, as a client that announces signals sees it."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Protocol, TypeVar

from confluent_kafka import Consumer

from benchmarks.engine_embedded import TIMEOUT_S, EmbeddedSubject, Tail
from benchmarks.engine_kafka import ENGINE, FLUSH_TIMEOUT_S, READ_MAX, KafkaSubject
from benchmarks.engine_work import PARTITIONS, Command
from benchmarks.harness import Bench, Refused, watcher
from kapelle.processors.intake import intake
from kapelle.processors.publisher.streams import SIGNAL_VERDICTS
from kapelle.processors.runs import runs
from kapelle.processors.signals import signals
from kapelle.processors.triggers import triggers
from kapelle.processors.wiring import SIGNAL_EVENTS, SIGNALS
from kapelle.processors.workflows import workflows
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.topology.build import Topology
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology

E = TypeVar("E", bound=Contract)


class Subject(Protocol):
    """The engine, with an announcer beside it."""

    def send(self, commands: Sequence[Command], *, at_once: bool = False) -> None:
        """Publish commands to workflows."""
        ...

    def announce(self, said: Sequence[c.AnnounceSignal], *, at_once: bool = False) -> None:
        """Publish signals in order; `at_once` without waiting for others to go with them."""
        ...

    def events(self, contract: type[E], wait_s: float) -> list[E]:
        """New events of workflows."""
        ...

    def told(self, contract: type[E], wait_s: float) -> list[E]:
        """New events of signals."""
        ...

    def judged(self, contract: type[E], wait_s: float) -> list[E]:
        """New verdicts on signals; there are none unless the engine publishes."""
        ...

    def engine_cpu_s(self) -> float:
        """CPU seconds of the engine so far."""
        ...

    def check(self) -> None:
        """Refuse to continue if a process has died."""
        ...


ENGINE_PROCESSORS: Final = (intake, signals, triggers, workflows, runs)


class KafkaSignals(KafkaSubject):
    """On Kafka: the engine is a separate process."""

    def __init__(self, bench: Bench, hosted: Sequence[str]) -> None:
        super().__init__(bench, None, hosted=hosted)
        self._topic = self._topology.topic(SIGNALS)
        self._signals = watcher(bench.bootstrap_servers, self._topology.topic(SIGNAL_EVENTS))
        self._verdicts = watcher(bench.bootstrap_servers, self._topology.topic(SIGNAL_VERDICTS))

    def close(self) -> None:
        self._signals.close()
        self._verdicts.close()
        super().close()

    def announce(self, said: Sequence[c.AnnounceSignal], *, at_once: bool = False) -> None:
        producer = self._prompt if at_once else self._bulk
        for signal in said:
            producer.produce(self._topic, self._codec.encode(signal), signal.name)
            producer.poll(0)
        if not at_once and producer.flush(FLUSH_TIMEOUT_S):
            raise Refused(f"Expected {len(said)} signals to be written in {FLUSH_TIMEOUT_S} s, but they were not")

    def told(self, contract: type[E], wait_s: float) -> list[E]:
        return self._read(self._signals, contract, wait_s)

    def judged(self, contract: type[E], wait_s: float) -> list[E]:
        return self._read(self._verdicts, contract, wait_s)

    def _read(self, reader: Consumer, contract: type[E], wait_s: float) -> list[E]:
        head = self._head(contract)
        first = reader.poll(wait_s)
        messages = [] if first is None else [first, *reader.consume(READ_MAX, 0)]
        values = [message.value() or b"" for message in messages if message.error() is None]
        found = [self._codec.decode(data) for data in values if data.startswith(head)]
        return [value for value in found if isinstance(value, contract)]


class EmbeddedSignals(EmbeddedSubject):
    """On the embedded log: the engine is a thread."""

    def __init__(self, runtime: EmbeddedRuntime) -> None:
        super().__init__(runtime)
        self._signals = Tail(runtime, SIGNAL_EVENTS)
        self._verdicts = Tail(runtime, SIGNAL_VERDICTS)

    def announce(self, said: Sequence[c.AnnounceSignal], *, at_once: bool = False) -> None:
        published = self.runtime.publish_all([(SIGNALS, one.name, one) for one in said], timeout_s=TIMEOUT_S)
        if not at_once:
            published.result(TIMEOUT_S)

    def told(self, contract: type[E], wait_s: float) -> list[E]:
        return self._read(self._signals, contract, wait_s)

    def judged(self, contract: type[E], wait_s: float) -> list[E]:
        return self._read(self._verdicts, contract, wait_s)

    def _read(self, tail: Tail, contract: type[E], wait_s: float) -> list[E]:
        head = b"\xc3\x01" + contract.FINGERPRINT.to_bytes(8, "little")
        found = [self._codec.decode(data) for data in tail.read(wait_s) if data.startswith(head)]
        return [value for value in found if isinstance(value, contract)]


@contextmanager
def on_kafka(bootstrap_servers: str, *, publishing: bool = False) -> Iterator[KafkaSignals]:
    """An engine on its own topics, which are deleted afterwards; with or without publishers."""
    hosted = () if publishing else [processor.name for processor in ENGINE_PROCESSORS]
    with ExitStack() as stack:
        subject = KafkaSignals(stack.enter_context(Bench(bootstrap_servers, "signals", ENGINE)), hosted)
        stack.callback(subject.close)
        yield subject


@contextmanager
def embedded(*, publishing: bool = False) -> Iterator[EmbeddedSignals]:
    """An engine in a directory of its own, gone afterwards; with or without the processors that publish to others."""
    processors = topology().processors.values() if publishing else ENGINE_PROCESSORS
    made = Topology(processors, prefix="signals", partitions=PARTITIONS)
    with (
        tempfile.TemporaryDirectory(prefix="signals-embedded-") as directory,
        EmbeddedRuntime(made, Path(directory) / "log") as runtime,
    ):
        runtime.start()
        subject = EmbeddedSignals(runtime)
        try:
            yield subject
        finally:
            subject.close()
