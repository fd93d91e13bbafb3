"""An engine on the broker, the signals that it has accepted, and processes of the command line beside it."""

import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from confluent_kafka import Producer

from kapelle.processors.wiring import SIGNAL_EVENTS
from kapelle.schemas.contracts import SignalAccepted, SignalDuplicated
from kapelle.topology.journal import Journal, KafkaJournal
from kapelle.topology.page import topology
from tests.integration.runtime.members import Deployment
from tests.support.broker import Broker

ENOUGH_S = 90.0
Headers = Sequence[tuple[str, bytes]]
KAPELLE = [sys.executable, "-m", "kapelle.cli.main"]


class Command:
    """A `kapelle` process, to be signalled and killed."""

    def __init__(self, arguments: list[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen([*KAPELLE, *arguments], stdout=output, stderr=output)

    def terminate(self) -> int:
        self.process.terminate()
        return self.process.wait(ENOUGH_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4_000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.kill()


class World:
    """What the engine makes of signals."""

    def __init__(self, place: Deployment, journal: Journal, directory: Path) -> None:
        self.place = place
        self.prefix = place.topology.prefix
        self.servers = place.broker.bootstrap_servers
        self.directory = directory
        self.accepted: list[SignalAccepted] = []
        self.duplicated: list[SignalDuplicated] = []
        self._follower = journal.follow([SIGNAL_EVENTS], {})

    def look(self, wait_s: float = 0.1) -> None:
        """Take up what has happened."""
        events = [entry.value for entry in self._follower.take(5_000, wait_s)]
        self.accepted += [event for event in events if isinstance(event, SignalAccepted)]
        self.duplicated += [event for event in events if isinstance(event, SignalDuplicated)]

    def ids(self, name: str) -> list[str]:
        return [event.signal_id for event in self.accepted if event.name == name]

    def until(self, condition: Callable[[], Any], what: str) -> None:
        until = time.monotonic() + ENOUGH_S
        while not condition():
            assert time.monotonic() < until, f"Expected {what} within {ENOUGH_S:g} s; accepted {len(self.accepted)}"
            self.look()

    def command(self, *words: str, name: str = "one") -> Command:
        """A command of this deployment."""
        where = ["--bootstrap-servers", self.servers, "--prefix", self.prefix, "--partitions", "2"]
        return Command([*words, *where], self.directory / f"{name}.log")

    def topic(self, partitions: int = 2) -> str:
        """A topic of somebody's own."""
        name = f"shop-{uuid.uuid4().hex[:8]}"
        self.place.broker.create_topic(name, partitions=partitions)
        return name

    def write(self, topic: str, *values: bytes | None, headers: Headers = (("from", b"a test"),)) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})
        for number, value in enumerate(values):
            producer.produce(topic, value, f"k{number}", headers=[*headers])
        assert producer.flush(ENOUGH_S) == 0

    def close(self) -> None:
        self._follower.close()


@contextmanager
def opened_world(broker: Broker, directory: Path) -> Iterator[World]:
    """An engine with a member that runs."""
    place = Deployment(broker, directory, topology(prefix=f"sources-{uuid.uuid4().hex[:8]}", partitions=2))
    patient = msgspec.structs.replace(place.settings, call_timeout_s=ENOUGH_S, request_timeout_s=ENOUGH_S)
    with (
        place.member(hosted=["intake", "signals"]),
        closing(KafkaJournal(place.topology, patient)) as journal,
        closing(World(place, journal, directory)) as made,
    ):
        yield made
