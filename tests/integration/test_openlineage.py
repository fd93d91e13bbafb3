"""Lineage as OpenLineage tells it, on a real broker: all of it, through kills, in what the package itself takes."""

import json
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.lineage.emitter import Emitter
from kapelle.lineage.errors import NotEmitted
from kapelle.lineage.events import Attempt, LineageEvents
from kapelle.topology.journal import KafkaJournal
from kapelle.topology.kafka.config import KafkaSettings
from tests.integration.api.places import Place, definition, kafka_place, step, until
from tests.integration.runtime.reading import read
from tests.integration.sources.world import Command
from tests.support.broker import Broker

pytestmark = pytest.mark.timeout(280)

SESSION_MS = 2_000  # so long after a kill nobody has the partitions
ENDED = {"COMPLETE", "FAIL", "ABORT"}


@pytest.fixture(scope="module")
def place(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with kafka_place(broker, tmp_path_factory.mktemp("lineage")) as opened:
        yield opened


def prefix_of(place: Place) -> str:
    assert isinstance(place.journal, KafkaJournal)
    return place.journal._topology.prefix


def relay(broker: Broker, place: Place, topic: str, log: Path, *more: str) -> Command:
    where = ["--bootstrap-servers", broker.bootstrap_servers, "--prefix", prefix_of(place), "--partitions", "2"]
    where += ["--session-timeout-ms", str(SESSION_MS)]
    return Command(["openlineage", "run", "--topic", topic, *where, *more], log)


def told(broker: Broker, topic: str) -> list[tuple[str, bytes]]:
    """The events on a topic of two partitions, with their keys."""
    found = read(broker.bootstrap_servers, {topic: 2})[topic]
    return [((m.key() or b"").decode(), m.value() or b"") for number in found for m in found[number]]


def taken(value: bytes) -> RunEvent:
    """An event as the package's own types take it: they check ids, times and addresses."""
    body: dict[str, Any] = json.loads(value)
    run, job = body["run"], body["job"]
    return RunEvent(
        eventType=RunState(body["eventType"]),
        eventTime=body["eventTime"],
        run=Run(run["runId"], run["facets"]),
        job=Job(job["namespace"], job["name"], job["facets"]),
        inputs=[InputDataset(one["namespace"], one["name"], facets=one["facets"]) for one in body["inputs"]],
        outputs=[OutputDataset(one["namespace"], one["name"], facets=one["facets"]) for one in body["outputs"]],
        producer=body["producer"],
    )


def ends(values: list[tuple[str, bytes]], workflow_id: str) -> set[str]:
    bodies = [json.loads(value) for _, value in values]
    return {b["run"]["runId"] for b in bodies if b["job"]["name"] == workflow_id and b["eventType"] in ENDED}


def kill_once_it_tells(broker: Broker, place: Place, topic: str, log: Path) -> None:
    before = len(told(broker, topic))
    with relay(broker, place, topic, log) as running:
        until(lambda: len(told(broker, topic)) > before, f"a first event; {running.said()}", within_s=90)
        running.kill()


def test_runs_steps_and_signals_are_told_through_kills(broker: Broker, place: Place, tmp_path: Path) -> None:
    topic, metrics = f"lineage-{uuid.uuid4().hex[:8]}", tmp_path / "metrics.prom"
    broker.create_topic(topic, partitions=2)
    name, said = f"wf-{uuid.uuid4().hex[:8]}", f"done-{uuid.uuid4().hex[:8]}"
    output = {"name": said, "params": {"n": {"type": "LONG", "expression": f"params.getFromSignal('{name}', 'n')"}}}
    body = definition(name, step("say", signal_outputs=[output]), run_strategy="PARALLEL")
    body["workflow"]["signal_triggers"] = [{"definitions": {name: {}}}]
    place.call("POST", "/workflows", json=body)

    for part in range(3):
        for number in range(5):
            place.call("POST", "/signals", json={"name": name, "params": {"n": part * 5 + number}})
        if part < 2:
            kill_once_it_tells(broker, place, topic, tmp_path / "killed.log")
    with relay(broker, place, topic, tmp_path / "last.log", "--metrics", str(metrics)) as running:
        until(lambda: len(ends(told(broker, topic), name)) == 15, f"all ends; {running.said()}", within_s=120)
        until(lambda: sum(bool(json.loads(v)["outputs"]) for _, v in set(told(broker, topic))) == 15, "all outputs")
        assert running.terminate() == 0, running.said()

    values = told(broker, topic)
    by_run: dict[str, set[RunState | None]] = defaultdict(set)
    for event in (taken(value) for _, value in set(values)):
        by_run[event.run.runId].add(event.eventType)
    assert len(by_run) == 30
    assert {frozenset(states) for states in by_run.values()} == {
        frozenset({RunState.START, RunState.COMPLETE}),
        frozenset({RunState.START, RunState.COMPLETE, RunState.OTHER}),
    }
    assert {key for key, _ in values} == {f"run:{prefix_of(place)}/{name}"}
    starts = [taken(value) for _, value in set(values) if json.loads(value)["inputs"]]
    versions = {one.facets["version"]["datasetVersion"] for event in starts for one in event.inputs or ()}  # type: ignore[index] # as JSON
    assert versions == {str(number) for number in range(1, 16)}
    assert "kapelle_openlineage_emitted_total" in metrics.read_text()


def test_events_that_kafka_does_not_acknowledge_count_as_not_told(broker: Broker) -> None:
    topic = f"lineage-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, partitions=1)
    impatient = {"producer.topic.metadata.propagation.max.ms": 500}  # with a topic that is gone
    emitter = Emitter(KafkaSettings(bootstrap_servers=broker.bootstrap_servers, extra=impatient), topic)
    event = LineageEvents("shop").event(Attempt("etl", 1, 1), RunState.START, 1_794_823_200_000)
    emitter.emit_all([event])
    admin = broker.admin()
    admin.delete_topics([topic])[topic].result(60)

    with pytest.raises(NotEmitted, match="to be acknowledged, but"):
        emitter.emit_all([event] * 3)


def test_a_topic_that_is_not_there_is_refused_with_what_to_do(broker: Broker, place: Place) -> None:
    words = ["openlineage", "run", "--topic", "nobody-has-made-this", "--bootstrap-servers", broker.bootstrap_servers]

    done = CliRunner().invoke(cli, [*words, "--prefix", prefix_of(place), "--partitions", "2"], prog_name="kapelle")

    assert done.exit_code == 3
    assert "create it first" in done.stderr
