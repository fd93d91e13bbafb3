"""An engine with the workflows of the documents on a broker of its own, and the programs of the documents beside it."""

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from confluent_kafka import Producer

from kapelle.processors.publisher.streams import INSTANCE_CHANGES
from kapelle.processors.wiring import WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import Catalog, Codec
from kapelle.schemas import contracts as c
from kapelle.topology.journal import Journal, KafkaJournal
from kapelle.topology.page import topology
from tests.integration.runtime.members import Deployment
from tests.support.broker import open_private_broker

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "faust"
DOCUMENT = ROOT / "docs" / "subscribe.md"
ADDRESS = "127.0.0.1:9092"
ENOUGH_S = 120.0
NEVER = 999_999  # the instance of a change that was never committed


def section(heading: str) -> str:
    """What the document says under a heading."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"Expected a section {heading!r} in {DOCUMENT.name}"
    return found[1]


def blocks(heading: str, language: str) -> list[str]:
    """The programs in a language under a heading of the document."""
    return re.findall(rf"^```{language}\n(.*?)^```$", section(heading), re.MULTILINE | re.DOTALL)


class Program:
    """A program of the document as a process in a directory of its own."""

    def __init__(self, command: list[str], directory: Path, variables: Mapping[str, str]) -> None:
        self._log = directory / "output.log"
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(command, cwd=directory, env=environment, stdout=output, stderr=output)

    def said(self) -> str:
        return self._log.read_text(errors="replace")

    def lives(self) -> bool:
        return self._process.poll() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()


class World:
    """Loads of orders, and the reports that came of them."""

    def __init__(self, place: Deployment, journal: Journal) -> None:
        self.servers = place.broker.bootstrap_servers
        self.loads = 0
        self.by_hand = 0
        self.ended: dict[str, set[int]] = {"load-orders": set(), "report": set()}
        self._journal = journal
        self._follower = journal.follow([INSTANCE_CHANGES, WORKFLOW_EVENTS], {})
        self._armed = False

    def push(self) -> None:
        for workflow in ("load-orders", "report"):
            body = (EXAMPLE / f"{workflow}.json").read_text()
            self._journal.publish(WORKFLOW_COMMANDS, workflow, c.PushVersion("push", "ann", body)).result()
        self.until(lambda: self._armed, lambda: "the trigger of reports to be armed")

    def load(self) -> int:
        """Load orders once more, to the end. Gives the instance."""
        self.loads += 1
        start = c.StartInstances("ann", (c.Start(request_id=f"load-{self.loads}"),))
        self._journal.publish(WORKFLOW_COMMANDS, "load-orders", start).result()
        self.until(lambda: len(self.ended["load-orders"]) == self.loads, lambda: "the load to end")
        return max(self.ended["load-orders"])

    def reported(self) -> bool:
        """Whether each load, and each signal by hand, has its report."""
        return len(self.ended["report"]) >= self.loads + self.by_hand

    def look(self) -> None:
        for entry in self._follower.take(1_000, 0.05):
            value = entry.value
            self._armed |= isinstance(value, c.TriggersArmed) and entry.key == "report"
            if isinstance(value, c.InstanceStatusChange) and value.status == "SUCCEEDED":
                self.ended[value.workflow_id].add(value.instance_id)

    def until(self, condition: Callable[[], bool], what: Callable[[], str]) -> None:
        end = time.monotonic() + ENOUGH_S
        while not condition():
            assert time.monotonic() < end, f"Expected {what()} within {ENOUGH_S:g} s"
            self.look()

    def file(self, directory: Path, name: str, text: str) -> Path:
        """A program as the document has it, but for the address of the broker."""
        path = directory / name
        path.write_text(text.replace(ADDRESS, self.servers))
        return path

    def close(self) -> None:
        self._follower.close()


def abort(servers: str) -> None:
    """Say of a load, and take it back, that it has ended: whoever hears of it reads uncommitted records."""
    change = c.InstanceStatusChange(
        workflow_id="load-orders",
        instance_id=NEVER,
        run_id=1,
        sequence=NEVER,
        version=1,
        status=c.InstanceStatus.SUCCEEDED,
        initiator=c.InitiatorType.MANUAL,
        author="ann",
        reason="",
        request_id="never",
        correlation_id="never",
        created_at_ms=1,
        at_ms=1,
        source_topic="kapelle.workflows.events",
        source_partition=0,
        source_offset=NEVER,
    )
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "aborts"})
    producer.init_transactions(ENOUGH_S)
    producer.begin_transaction()
    topic, value = f"kapelle.{INSTANCE_CHANGES.name}", Codec(Catalog.of(c.InstanceStatusChange)).encode(change)
    producer.produce(topic, value, "load-orders")
    producer.flush(ENOUGH_S)
    producer.abort_transaction(ENOUGH_S)


@contextmanager
def opened_world(directory: Path) -> Iterator[World]:
    """A member that runs, the workflows of the documents, one load, and a change that never happened."""
    with open_private_broker() as broker:
        place = Deployment(broker, directory, topology(prefix="kapelle", partitions=2))
        patient = msgspec.structs.replace(place.settings, call_timeout_s=ENOUGH_S, request_timeout_s=ENOUGH_S)
        journal: Any = KafkaJournal(place.topology, patient)
        with place.member(), closing(journal), closing(World(place, journal)) as made:
            made.push()
            made.load()
            abort(made.servers)
            yield made
