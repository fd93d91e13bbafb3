"""Signals from end to end: announced, explained and followed; and dead letters on their way back."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.client import Client
from kapelle.topology.journal import KafkaJournal
from tests.integration.api.places import Place, definition, embedded_place, kafka_place, step, until
from tests.support.broker import Broker


@pytest.fixture(scope="module")
def on_kafka(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with kafka_place(broker, tmp_path_factory.mktemp("signals-kafka")) as place:
        yield place


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    if request.param == "kafka":
        yield request.getfixturevalue("on_kafka")
        return
    directory: Path = tmp_path_factory.mktemp("signals-embedded")
    with embedded_place(directory) as found:
        yield found


def new(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


def push(place: Place, triggers: list[Any], *steps: Any) -> str:
    name = new("wf")
    body = definition(name, *steps, run_strategy="PARALLEL")
    body["workflow"]["signal_triggers"] = triggers
    place.call("POST", "/workflows", json=body)
    return name


def says(name: str) -> Any:
    return {"name": name, "params": {"n": {"type": "LONG", "value": 1}}}


def test_three_workflows_joined_by_signals_are_one_lineage(place: Place) -> None:
    begin, left, right, done = (new(f"chain/{name}") for name in ("begin", "left", "right", "done"))
    first = push(place, [{"definitions": {begin: {}}}], step("say", signal_outputs=[says(left), says(right)]))
    both = {left: {"join_keys": ["n"]}, right: {"join_keys": ["n"]}}
    second = push(place, [{"definitions": both}], step("say", signal_outputs=[says(done)]))
    third = push(place, [{"definitions": {done: {}}}], step("say", signal_outputs=[says(begin)]))

    with Client(place.url) as client:
        client.signals.announce(begin, {"n": 1})
        place_of = f"/signals/{begin}/instances/1/lineage"
        until(lambda: len(place.get(place_of, direction="forward")["edges"]) == 8, "the whole cycle")
        forward = client.signals.lineage(begin, 1, direction="forward")
        backward = client.signals.lineage(done, direction="backward")
        fired = client.signals.explain(left, 1).verdicts

    assert {edge.type for edge in forward.edges} == {"STARTED", "PUBLISHED"}
    assert {node.workflow_id for node in forward.nodes if node.workflow_id} == {first, second, third}
    assert set(backward.edges) == set(forward.edges)
    assert [(one.verdict, one.start, one.partners) for one in fired] == [("FIRED", "CREATED", {right: 1})]
    assert [edge.is_repetition for edge in forward.edges].count(True) == 1


def test_an_announcement_is_known_again_wherever_it_comes_from(place: Place) -> None:
    name = new("orders/eu")
    workflow_id = push(place, [{"definitions": {name: {}}}])

    with Client(place.url) as client:
        answers = [client.signals.announce(name, {"day": 1}) for _ in range(3)]
        until(lambda: place.get(f"/workflows/{workflow_id}/instances")["elements"], "the start")
        explained = client.signals.explain(name)

    assert [(one.status, one.sequence) for one in answers] == [("ACCEPTED", 1), ("DUPLICATED", 1), ("DUPLICATED", 1)]
    assert explained.repetitions.count == 2
    assert place.get(f"/workflows/{workflow_id}/instances")["total_count"] == 1


def kapelle(broker: Broker, prefix: str, *words: str, answer: str = "") -> Any:
    options = ("--bootstrap-servers", broker.bootstrap_servers, "--prefix", prefix)
    return CliRunner().invoke(cli, [*words, *options], input=answer, prog_name="kapelle")


def test_a_dead_letter_is_listed_shown_and_published_again_with_a_count(on_kafka: Place, broker: Broker) -> None:
    assert isinstance(on_kafka.journal, KafkaJournal)
    prefix = on_kafka.journal._topology.prefix
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(f"{prefix}.signals", b"no signal", b"a key", headers=[("mine", b"1")])
    producer.flush(30)

    def letters(count: int) -> list[Any] | None:
        found = json.loads(kapelle(broker, prefix, "dlq", "list", "-o", "json").stdout or "[]")
        return found if len(found) == count else None

    (first,) = until(lambda: letters(1), "a dead letter")
    at = str(first["offset"])
    shown = kapelle(broker, prefix, "dlq", "show", at)
    refused = kapelle(broker, prefix, "dlq", "redrive", at, answer="n\n")
    missing = kapelle(broker, prefix, "dlq", "show", "1000000")
    done = kapelle(broker, prefix, "dlq", "redrive", at, answer="y\n")
    (_, second) = until(lambda: letters(2), "the letter of the record that was published again")
    again = kapelle(broker, prefix, "dlq", "redrive", str(second["offset"]), "--yes", "-o", "json")
    (*_, third) = until(lambda: letters(3), "a third letter")

    assert "Expected Avro, JSON or a CloudEvent" in shown.stdout
    assert (refused.exit_code, missing.exit_code, done.exit_code) == (1, 3, 0)
    assert f"letter {at}: to {prefix}.signals" in refused.stderr
    assert (
        (second["key"], second["value"]) == (first["key"], first["value"]) == ({"text": "a key"}, {"text": "no signal"})
    )
    counts = [[one["value"]["text"] for one in letter["headers"]] for letter in (first, second, third)]
    assert counts == [["1"], ["1", "1"], ["1", "2"]]
    assert json.loads(again.stdout)[0]["redriven"] == 2
