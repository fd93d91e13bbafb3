"""An engine with its journal, and worker processes beside it."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kapelle.api.app import create_app
from kapelle.api.server import ApiServer
from kapelle.processors.wiring import RUN_COMMANDS, RUN_EVENTS, WORKFLOW_COMMANDS, WORKFLOW_EVENTS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, StepStatus
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import Journal
from kapelle.topology.journal.embedded import EmbeddedJournal
from kapelle.topology.journal.kafka import KafkaJournal
from kapelle.topology.page import topology
from kapelle.views import Views
from kapelle.worker import HttpTransport, KafkaTransport, Transport
from tests.integration.runtime.members import Deployment
from tests.support.broker import Broker

ENOUGH_S = 40.0
AUTHOR = "tester"
STARTS_MAX = 10  # in one command


class Reach:
    """How workers reach the engine: by a transport in this process, by options in another."""

    def __init__(self, name: str, *, bootstrap_servers: str = "", prefix: str = "", url: str = "") -> None:
        self.name = name
        self.prefix = prefix
        self._servers, self._url = bootstrap_servers, url

    def transport(self) -> Transport:
        if self._url:
            return HttpTransport(self._url)
        return KafkaTransport(self._servers, self.prefix, dispatch="share" if self.name == "share" else "consumer")

    def options(self) -> list[str]:
        where = ["--url", self._url] if self._url else ["--bootstrap-servers", self._servers, "--prefix", self.prefix]
        return [*where, "--dispatch", "share" if self.name == "share" else "consumer"]


class World:
    """What goes into the engine, and its history."""

    def __init__(self, journal: Journal, reach: Reach) -> None:
        self.journal = journal
        self.reach = reach
        self.history: list[tuple[str, Any]] = []
        self._follower = journal.follow([WORKFLOW_EVENTS, RUN_EVENTS], {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._follower.close()

    # What goes in -----------------------------------------------------------------------------------------------------

    def push(self, *steps: dict[str, Any], workflow_id: str = "etl") -> None:
        """Push a workflow of these steps, which may run in any number of instances."""
        strategy = {"rule": "PARALLEL", "workflow_concurrency": 1_000}
        request = {
            "properties": {"owner": "ann", "run_strategy": strategy},
            "workflow": {"id": workflow_id, "steps": steps},
        }
        request_id = fresh()
        self._send(WORKFLOW_COMMANDS, workflow_id, c.PushVersion(request_id, AUTHOR, json.dumps(request)))
        self.until(lambda: self._answered(request_id), "the push to be answered")
        refused = [e for _, e in self.history if isinstance(e, c.CommandRefused) and e.request_id == request_id]
        assert not refused, refused

    def start(self, count: int = 1, workflow_id: str = "etl") -> list[int]:
        """Start instances, and give their numbers."""
        names = [fresh() for _ in range(count)]
        for at in range(0, count, STARTS_MAX):
            starts = tuple(c.Start(name) for name in names[at : at + STARTS_MAX])
            self._send(WORKFLOW_COMMANDS, workflow_id, c.StartInstances(AUTHOR, starts))
        self.until(lambda: all(self._created(name) for name in names), "the instances to be created")
        return [created for name in names for created in self._created(name)]

    def stop(self, instance_id: int, workflow_id: str = "etl") -> None:
        command = c.TerminateInstance(fresh(), AUTHOR, instance_id, Action.STOP, "enough")
        self._send(WORKFLOW_COMMANDS, workflow_id, command)

    def say(self, task: c.StepChanged, instance_id: int, report: c.Report, worker: str) -> None:
        """A word of a worker, right or wrong."""
        word = c.ReportTask(task.token or "", task.step_id, worker, report)
        self._send(RUN_COMMANDS, run_key("etl", instance_id), word)

    def _send(self, stream: Any, key: str, command: Any) -> None:
        self.journal.publish(stream, key, command).result(ENOUGH_S)

    # What comes out ---------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], object], what: str, within_s: float = ENOUGH_S) -> float:
        """Wait for a condition of the history. Returns how long it took."""
        began_s = time.monotonic()
        while not condition():
            assert time.monotonic() - began_s < within_s, f"Expected {what} within {within_s:g} s: {self.told()}"
            self.look()
        return time.monotonic() - began_s

    def look(self, wait_s: float = 0.05) -> None:
        """Take up what has happened."""
        self.history += [(entry.key, entry.value) for entry in self._follower.take(1_000, wait_s)]

    def told(self) -> str:
        return "\n".join(f"{key}: {event}" for key, event in self.history[-15:])

    def _answered(self, request_id: str) -> bool:
        return any(getattr(event, "request_id", "") == request_id for _, event in self.history)

    def _created(self, request_id: str) -> list[int]:
        events = [event for _, event in self.history]
        return [e.instance_id for e in events if isinstance(e, c.InstanceCreated) and e.request_id == request_id]

    def events(self, instance_id: int, kind: type[Any], workflow_id: str = "etl") -> list[Any]:
        key = run_key(workflow_id, instance_id)
        return [event for found, event in self.history if found == key and isinstance(event, kind)]

    def changes(self, instance_id: int, step_id: str = "load") -> list[c.StepChanged]:
        return [change for change in self.events(instance_id, c.StepChanged) if change.step_id == step_id]

    def passed(self, instance_id: int, status: StepStatus, *, attempt: int = 1, step_id: str = "load") -> bool:
        """Whether an attempt has been in a state."""
        return any(one.attempt == attempt and status in one.statuses for one in self.changes(instance_id, step_id))

    def ended(self, instance_id: int) -> InstanceStatus | None:
        found = self.events(instance_id, c.RunEnded)
        return found[-1].status if found else None

    def refused(self, instance_id: int) -> list[str]:
        """Why words about the instance were refused."""
        return [event.reason for event in self.events(instance_id, c.ReportRefused)]

    def await_passed(
        self, instance_id: int, status: StepStatus, *, attempt: int = 1, within_s: float = ENOUGH_S
    ) -> float:
        passed = lambda: self.passed(instance_id, status, attempt=attempt)  # noqa: E731 - read in the next line
        return self.until(passed, f"attempt {attempt} of {instance_id} to be {status}", within_s)

    def await_ended(self, *instances: int, status: InstanceStatus = InstanceStatus.SUCCEEDED) -> None:
        self.until(lambda: all(map(self.ended, instances)), f"the instances {instances} to end")
        assert {self.ended(one) for one in instances} == {status}, self.told()


@contextmanager
def kafka_world(broker: Broker, directory: Path, way: str) -> Iterator[World]:
    """An engine on the broker, reached straight, by share groups, or over the HTTP API."""
    place = Deployment(broker, directory, topology(prefix=f"workers-{fresh()}", partitions=4))
    servers, prefix = broker.bootstrap_servers, place.topology.prefix
    with place.member(), closing(KafkaJournal(place.topology, place.settings)) as journal, ExitStack() as opened:
        url = opened.enter_context(served(journal)) if way == "http" else ""
        reach = Reach(way, url=url) if url else Reach(way, bootstrap_servers=servers, prefix=prefix)
        yield opened.enter_context(World(journal, reach))


@contextmanager
def embedded_world(directory: Path) -> Iterator[World]:
    """An engine on the embedded log, reached over the HTTP API."""
    with EmbeddedRuntime(topology(partitions=2), directory / "log") as runtime:
        runtime.start()
        journal = EmbeddedJournal(runtime)
        with served(journal) as url, World(journal, Reach("embedded", url=url)) as made:
            yield made


@contextmanager
def served(journal: Journal) -> Iterator[str]:
    """The API over a journal; gives its URL."""
    with Views(journal) as views, ApiServer(create_app(journal, views), "127.0.0.1", 0) as server:
        yield server.url


class Program:
    """A worker in a process of its own (`python -m tests.integration.workers.program`)."""

    def __init__(self, world: World, directory: Path, name: str, *options: str) -> None:
        self.name = name
        self.output = directory / f"{name}.log"
        command = [sys.executable, "-m", "tests.integration.workers.program", "--name", name, "--marks", str(directory)]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, *world.reach.options(), *options], stdout=output, stderr=output, start_new_session=True
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)
            self.process.kill()
            self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, within_s: float = ENOUGH_S) -> int:
        return self.process.wait(within_s)

    def said(self) -> str:
        return self.output.read_text(errors="replace")[-4_000:]


def fresh() -> str:
    """An id that nobody had before."""
    return f"request-{random.SystemRandom().randrange(10**15)}"


def step(kind: str, step_id: str = "load", **params: Any) -> dict[str, Any]:
    """A step as definitions have it, tried again at once."""
    kinds = {str: "STRING", int: "LONG", float: "DOUBLE", bool: "BOOLEAN"}
    given = {name: {"type": kinds[type(value)], "value": value} for name, value in params.items()}
    backoff = {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 1, "platform_retry_backoff_in_secs": 1}
    return {"step": {"id": step_id, "type": kind, "params": given, "retry_policy": {"backoff": backoff}}}
