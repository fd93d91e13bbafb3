"""Our history as OpenLineage tells it: which runs begin and end, what they read and write, and always the same."""

from collections.abc import Iterator
from typing import Any

from openlineage.client.event_v2 import RunEvent, RunState
from openlineage.client.serde import Serde

from kapelle.lineage.events import PRODUCER, LineageEvents
from kapelle.processors.wiring import RUN_EVENTS, SIGNAL_EVENTS, SIGNALS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.testing import Engine
from kapelle.topology.journal import Entry

STREAMS = (WORKFLOW_EVENTS, RUN_EVENTS, SIGNAL_EVENTS)


def entries(engine: Engine) -> Iterator[Entry]:
    for stream in STREAMS:
        for offset, (key, value) in enumerate(engine.history(stream, 0)):
            yield Entry(stream.name, 0, offset, key, value, 0)


def told(engine: Engine, namespace: str = "shop") -> list[RunEvent]:
    telling = LineageEvents(namespace)
    return [event for entry in entries(engine) for event in telling.of(entry)]


def states(events: list[RunEvent], job: str) -> list[RunState | None]:
    return [event.eventType for event in events if event.job.name == job]


def announce(engine: Engine, name: str, params: str = "{}", source: str = "{}") -> None:
    engine.send(SIGNALS, name, c.AnnounceSignal(name, "", params, "{}", source=source))


def workflow(name: str, *steps: dict[str, Any], triggers: Any = ()) -> dict[str, Any]:
    body = {"id": name, "steps": [{"step": one} for one in steps], "signal_triggers": list(triggers)}
    return {"properties": {"owner": "ann", "run_strategy": "PARALLEL"}, "workflow": body}


def test_an_instance_and_its_steps_start_and_complete() -> None:
    engine = Engine()
    engine.push(workflow("etl", {"id": "load", "type": "loader"}))
    engine.task(engine.start("etl"), "load").succeed()

    found = told(engine)

    assert states(found, "etl") == [RunState.START, RunState.COMPLETE]
    assert states(found, "etl.load") == [RunState.START, RunState.COMPLETE]
    assert {event.job.namespace for event in found} == {"shop"}
    assert {event.producer for event in found} == {PRODUCER}


def test_a_step_names_the_run_that_it_belongs_to_and_no_root() -> None:
    engine = Engine()
    engine.push(workflow("etl", {"id": "load", "type": "NoOp"}))
    engine.start("etl")

    found = told(engine)

    (whole,) = {event.run.runId for event in found if event.job.name == "etl"}
    parents = [Serde.to_dict(event)["run"]["facets"]["parent"] for event in found if event.job.name == "etl.load"]
    assert [(one["run"]["runId"], one["job"]["name"], one.get("root")) for one in parents] == [(whole, "etl", None)] * 2


def test_each_attempt_is_a_run_of_its_own_and_a_failed_one_says_why() -> None:
    engine = Engine()
    retry = {"error_retry_limit": 1}
    engine.push(workflow("etl", {"id": "load", "type": "loader", "retry_policy": retry}))
    run = engine.start("etl")
    engine.task(run, "load").fail("no such table")
    engine.advance(3_600_000)
    engine.task(run, "load").succeed()

    steps = [event for event in told(engine) if event.job.name == "etl.load"]

    assert [event.eventType for event in steps] == [RunState.START, RunState.FAIL, RunState.START, RunState.COMPLETE]
    assert len({event.run.runId for event in steps}) == 2
    facets = Serde.to_dict(steps[1])["run"]["facets"]
    assert "no such table" in facets["errorMessage"]["message"]
    tags = {one["key"]: one["value"] for one in facets["tags"]["tags"]}
    assert tags == {
        "workflow_id": "etl",
        "instance_id": "1",
        "run_id": "1",
        "step_id": "load",
        "iteration": "1",
        "attempt": "1",
    }


def test_a_stopped_instance_is_aborted_with_its_steps() -> None:
    engine = Engine()
    engine.push(workflow("etl", {"id": "load", "type": "loader"}))
    engine.start("etl").stop()

    found = told(engine)

    assert states(found, "etl") == [RunState.START, RunState.ABORT]
    assert states(found, "etl.load") == [RunState.START, RunState.ABORT]


def test_an_instance_that_never_leaves_the_queue_has_begun_and_ended() -> None:
    engine = Engine()
    body = workflow("etl", {"id": "load", "type": "loader"})
    body["properties"]["run_strategy"] = "FIRST_ONLY"
    engine.push(body)
    engine.start("etl")
    second = engine.start("etl")

    found = [event for event in told(engine) if _tag(event, "instance_id") == str(second.instance_id)]

    assert [event.eventType for event in found] == [RunState.START, RunState.ABORT]


def _tag(event: RunEvent, name: str) -> str | None:
    tags = Serde.to_dict(event)["run"]["facets"]["tags"]["tags"]
    return next((one["value"] for one in tags if one["key"] == name), None)


def test_a_step_that_no_condition_leads_to_has_no_run() -> None:
    engine = Engine()
    first = {"id": "first", "type": "NoOp", "transition": {"successors": {"second": "false"}}}
    engine.push(workflow("etl", first, {"id": "second", "type": "NoOp"}))
    engine.start("etl")

    assert states(told(engine), "etl.second") == []


def test_signals_are_read_by_what_they_start_and_by_steps_that_wait() -> None:
    engine = Engine()
    wait = {"id": "wait", "type": "NoOp", "signal_dependencies": [{"name": "rates"}]}
    engine.push(workflow("etl", wait, triggers=[{"definitions": {"orders": {}}}]))
    announce(engine, "orders")
    announce(engine, "rates")

    found = [(event.job.name, event.eventType, one) for event in told(engine) for one in event.inputs or ()]

    assert [(job, state, one.namespace, one.name) for job, state, one in found] == [
        ("etl", RunState.START, "shop", "signal/orders"),
        ("etl.wait", RunState.RUNNING, "shop", "signal/rates"),
    ]
    assert [Serde.to_dict(one)["facets"]["version"]["datasetVersion"] for _, _, one in found] == ["1", "1"]
    events = told(engine)
    assert len({event.run.runId for event in events if event.job.name == "etl.wait"}) == 1


def test_signals_are_written_by_the_steps_that_announce_them_also_when_they_are_repeated() -> None:
    engine = Engine()
    says = {"name": "done", "params": {"n": {"type": "LONG", "value": 1}}}
    engine.push(workflow("etl", {"id": "say", "type": "NoOp", "signal_outputs": [says]}))
    engine.start("etl")
    engine.start("etl")

    found = [event for event in told(engine) if event.outputs]

    assert [(event.job.name, event.eventType) for event in found] == [("etl.say", RunState.OTHER)] * 2
    assert len({event.run.runId for event in found}) == 2
    versions = [Serde.to_dict(one)["facets"]["version"]["datasetVersion"] for e in found for one in e.outputs or ()]
    assert versions == ["1", "1"]


def test_a_signal_that_no_step_announced_is_nobodys_output() -> None:
    engine = Engine()
    announce(engine, "orders", source='{"workflow_id": 7}')

    assert told(engine) == []


def test_the_same_history_is_told_in_the_same_bytes() -> None:
    engine = Engine()
    engine.push(workflow("etl", {"id": "load", "type": "NoOp"}))
    engine.start("etl")

    once, again = ([Serde.to_json(event) for event in told(engine)] for _ in range(2))

    assert once == again
    assert len(once) == len(set(once)) == 4


def test_ids_never_change() -> None:
    engine = Engine()
    engine.push(workflow("etl", {"id": "load", "type": "NoOp"}))
    engine.start("etl")

    found = {event.job.name: event.run.runId for event in told(engine, "kapelle")}

    assert found == {
        "etl": "35ccea74-dbb4-51d6-b382-bc612e86110e",
        "etl.load": "b7042ad6-d1a5-513a-9779-462f24c24b9e",
    }
