"""Where the API is tried: on the embedded log in this process, and on a real broker with processors in their own."""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from kapelle.api import BASE, ApiServer, ApiSettings, create_app
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal, Journal, KafkaJournal
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from kapelle.views import Views
from tests.support.answers import Answers
from tests.support.broker import Broker

PARTITIONS = 2
ENOUGH_S = 60.0
TERMINAL = {"SUCCEEDED", "FAILED", "STOPPED", "TIMED_OUT"}

# On a busy machine topics that have just been made take their time to have leaders, and a view to see a write.
PATIENT = ApiSettings(wait_ms=30_000)
CALL_S = 30.0

Json = dict[str, Any]


def until(condition: Callable[[], Any], what: str, within_s: float = ENOUGH_S) -> Any:
    """Wait for a condition, and give what it found."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"Expected {what} within {within_s:g} s"
        time.sleep(0.02)
    return found


class Place:
    """A running API, and what a test does with it."""

    def __init__(self, server: ApiServer, journal: Journal, views: Views) -> None:
        self.url = server.url
        self.journal = journal
        self.views = views
        self.answers = Answers()
        self.http = httpx.Client(base_url=f"{server.url}{BASE}", timeout=ENOUGH_S)

    def call(self, method: str, path: str, expected: int = 200, **more: Any) -> Any:
        """Call a route, which must answer so."""
        response = self.http.request(method, path, **more)
        assert response.status_code == expected, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()

    def get(self, path: str, expected: int = 200, **params: Any) -> Any:
        return self.call("GET", path, expected, params=params)

    def push(self, *steps: Json, workflow_id: str | None = None, **properties: Any) -> str:
        """Push a workflow of these steps, under an id that nobody else has."""
        name = workflow_id or f"wf-{uuid.uuid4().hex[:12]}"
        self.call("POST", "/workflows", json=definition(name, *steps, **properties))
        return name

    def start(self, workflow_id: str, **body: Any) -> int:
        answer = self.call("POST", f"/workflows/{workflow_id}/versions/active/actions/start", json=body)
        return int(answer["workflow_instance_id"])

    def take(self, task_type: str, *, worker: str = "worker-1", most: int = 1) -> list[Json]:
        """Poll until there is a task."""
        body = {"worker": worker, "types": [task_type], "max": most, "wait_ms": 2_000}
        found = until(lambda: self.call("POST", "/tasks/poll", json=body)["tasks"], f"a task of type {task_type!r}")
        return list(found)

    def report(self, task: Json, report: str, *, worker: str = "worker-1", **more: Any) -> Json:
        said = {name: task[name] for name in ("token", "workflow_id", "instance_id", "step_id")}
        body = {"worker": worker, "reports": [{**said, "report": report, **more}]}
        answer: Json = self.call("POST", "/tasks/reports", json=body)
        return answer

    def ended(self, workflow_id: str, instance_id: int, run_id: int = 1) -> str:
        """The status of a run once it has ended."""
        path = f"/workflows/{workflow_id}/instances/{instance_id}/runs/{run_id}"

        def status() -> str | None:
            found = self.get(path)["status"]
            return found if found in TERMINAL else None

        return str(until(status, f"{path} to end"))


def step(step_id: str, kind: str = "NoOp", *successors: str, **more: Any) -> Json:
    """A step of a definition, and the steps that come after it."""
    after = {"transition": {"successors": dict.fromkeys(successors, "true")}} if successors else {}
    return {"step": {"id": step_id, "type": kind, **after, **more}}


def definition(workflow_id: str, *steps: Json, **properties: Any) -> Json:
    """A push."""
    workflow = {"id": workflow_id, "steps": list(steps) or [step("only")]}
    return {"properties": {"owner": "ann", **properties}, "workflow": workflow}


@contextmanager
def embedded_place(directory: Path, settings: ApiSettings | None = None) -> Iterator[Place]:
    """The API over an embedded log. Every answer is compared with its shape."""
    with ExitStack() as opened:
        runtime = opened.enter_context(EmbeddedRuntime(topology(partitions=PARTITIONS), directory / "log"))
        runtime.start()
        journal = EmbeddedJournal(runtime)
        views = opened.enter_context(Views(journal, directory / "views"))
        server = opened.enter_context(ApiServer(create_app(journal, views, settings), "127.0.0.1", 0))
        place = Place(server, journal, views)
        place.http.event_hooks = {"response": [place.answers.look]}
        opened.enter_context(place.http)
        yield place


@contextmanager
def kafka_place(broker: Broker, directory: Path) -> Iterator[Place]:
    """The API over a broker, with the processors in a process of their own."""
    shape = topology(prefix=f"api-{uuid.uuid4().hex[:8]}", partitions=PARTITIONS)
    kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers, call_timeout_s=CALL_S)
    Topics(shape, kafka).apply()
    until(lambda: not Topics(shape, kafka).plan(), "the topics to be there")
    with ExitStack() as opened:
        opened.enter_context(processors(broker, shape.prefix, directory))
        journal = KafkaJournal(shape, kafka)
        opened.callback(journal.close)
        views = opened.enter_context(Views(journal, directory / "views"))
        server = opened.enter_context(ApiServer(create_app(journal, views, PATIENT), "127.0.0.1", 0))
        place = Place(server, journal, views)
        opened.enter_context(place.http)
        yield place


@contextmanager
def processors(broker: Broker, prefix: str, directory: Path, *, partitions: int = PARTITIONS) -> Iterator[None]:
    """The product's processors, as an operator runs them."""
    log = directory / "processors.log"
    words = ["processors", "run", "--bootstrap-servers", broker.bootstrap_servers, "--prefix", prefix]
    words += ["--partitions", str(partitions), "--state-dir", str(directory / "state")]
    with log.open("wb") as output:
        process = subprocess.Popen([sys.executable, "-m", "kapelle.cli.main", *words], stdout=output, stderr=output)
    try:
        yield
        assert process.poll() is None, log.read_text()[-4_000:]
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def written(value: Any) -> str:
    """JSON in one order, to be compared."""
    return json.dumps(value, sort_keys=True)
