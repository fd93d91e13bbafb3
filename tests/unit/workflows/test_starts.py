"""Starting instances: what is created and launched, what is repeated, what fails before it begins."""

import json
import sys
from types import FrameType

import pytest

from kapelle.processors.wiring import WORKFLOW_EVENTS, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Start
from kapelle.testing.engine import Engine
from tests.unit.workflows.world import NOW_MS, World, only, types

PARAMS = {
    "rows": {"type": "LONG", "value": 10},
    "double": {"type": "LONG", "expression": "rows * 2"},
}
BROKEN = '{"rows":{"type":"LONG","expression":"1 / 0"}}'


def pushed(**properties: object) -> World:
    world = World()
    world.push({"params": PARAMS}, properties={"owner": "ann", **properties})
    return world


def test_a_start_is_created_with_its_parameters_and_launched() -> None:
    world = pushed()

    events = world.start("a", run_params='{"rows":{"type":"LONG","value":21}}')

    assert types(events) == ["InstanceCreated", "InstanceLaunched"]
    created = only(c.InstanceCreated, events)
    assert json.loads(created.params) == {"RUN_TS": NOW_MS, "rows": 21, "double": 42}
    assert (created.status, created.version, created.instance_id, created.run_id) == ("CREATED", 1, 1, 1)
    assert created.correlation_id == "etl:1:1"


def test_a_launch_tells_runs_all_that_it_needs() -> None:
    world = pushed()

    created = only(
        c.InstanceCreated,
        world.start(
            "a",
            initiator='{"type":"manual","user":"ann"}',
            step_run_params='{"load":{"x":{"type":"LONG","value":1}}}',
            correlation_id="tree",
        ),
    )

    [(key, told)] = world.sent_of(c.StartRun)
    assert key == "etl/1"
    assert (told.workflow_id, told.instance_id, told.run_id, told.request_id) == ("etl", 1, 1, "a")
    assert (told.version, json.loads(told.definition)["id"]) == (1, "etl")
    assert told.params == created.params
    assert told.initiator == '{"type":"manual","user":"ann"}'
    assert json.loads(told.step_run_params) == {"load": {"x": {"type": "LONG", "value": 1}}}
    assert told.correlation_id == "tree"
    assert told.restart is None


@pytest.mark.parametrize("status", list(InstanceStatus)[3:7])
def test_a_repeated_start_is_told_its_instance_whatever_became_of_it(status: InstanceStatus) -> None:
    world = pushed()
    world.start("other", "a")
    world.end(1)
    world.end(2, status)

    events = world.start("a")

    assert types(events) == ["StartDuplicated"]
    assert (events[0].request_id, events[0].instance_id, events[0].run_id) == ("a", 2, 1)


def test_a_start_whose_parameters_fail_is_refused() -> None:
    world = pushed()

    refused = only(c.CommandRefused, world.start("a", run_params=BROKEN))

    assert refused.refusal == "INVALID"
    assert refused.message.startswith("Expected a value for parameter 'rows', but its expression failed")
    assert world.seen() == ""


def test_a_start_that_is_to_be_kept_is_created_as_failed_with_the_reason() -> None:
    world = pushed()

    created = only(c.InstanceCreated, world.start("a", run_params=BROKEN, persist_failed_run=True))

    assert created.status == "FAILED"
    assert created.reason.startswith("Expected a value for parameter 'rows', but its expression failed")
    assert created.params == "{}"
    assert not world.sent
    assert types(world.start("a")) == ["StartDuplicated"]


def test_a_start_that_was_refused_may_be_mended_under_the_same_request() -> None:
    world = pushed()
    world.start("a", run_params=BROKEN)

    only(c.InstanceLaunched, world.start("a"))


@pytest.mark.parametrize("kind", ["TIME", "SIGNAL", "SUBWORKFLOW", "FOREACH", "WHILE", "TEMPLATE", "signal"])
def test_a_start_from_outside_cannot_claim_that_the_engine_made_it(kind: str) -> None:
    world = pushed()

    refused = only(c.CommandRefused, world.start("a", initiator=json.dumps({"type": kind})))

    assert (refused.command, refused.refusal) == ("StartInstances", "INVALID")
    assert refused.message == (
        f"Expected MANUAL as initiator.type, but found {kind!r}: only the engine starts instances like this"
    )


@pytest.mark.parametrize("kind", ["MANUAL", "SUBWORKFLOW"])
def test_a_trigger_starts_nothing_in_the_name_of_others(kind: str) -> None:
    world = pushed()

    refused = only(c.CommandRefused, world.trigger("a", initiator=json.dumps({"type": kind})))

    assert refused.message.startswith(f"Expected TIME or SIGNAL as initiator.type, but found {kind!r}")


@pytest.mark.parametrize("kind", ["TIME", "SIGNAL"])
def test_a_trigger_starts_the_active_version_alone(kind: str) -> None:
    world = pushed()
    world.push(properties=None, is_active=False)
    initiator = json.dumps({"type": kind})

    refused = only(c.CommandRefused, world.trigger("a", version="latest", initiator=initiator))
    assert refused.refusal == "NOT_FOUND"
    assert refused.message == f"Expected a {kind} trigger to start the active version 1, but found 2"

    only(c.InstanceLaunched, world.trigger("b", version="active", initiator=initiator))


@pytest.mark.parametrize(("kind", "flag"), [("TIME", "time_trigger_disabled"), ("SIGNAL", "signal_trigger_disabled")])
def test_a_disabled_trigger_starts_nothing(kind: str, flag: str) -> None:
    world = pushed(**{flag: True})

    refused = only(c.CommandRefused, world.trigger("a", initiator=json.dumps({"type": kind})))

    assert refused.refusal == "UNPROCESSABLE"
    assert refused.message == f"Expected {kind} triggers to be enabled, but {flag} is set"
    only(c.InstanceLaunched, world.start("b"))


def test_no_active_version_is_not_found() -> None:
    world = pushed()
    world.do(c.DeactivateWorkflow("off", "ann"))

    refused = only(c.CommandRefused, world.start("a"))

    assert refused.refusal == "NOT_FOUND"
    assert refused.message == "Expected workflow 'etl' to have an active version, but it has none"


def test_parameters_are_fixed_when_the_instance_is_created_and_not_when_it_is_launched() -> None:
    world = pushed()
    world.start("a", "b")

    world.now_ms += 60_000
    world.end(1)

    assert json.loads(world.sent_of(c.StartRun)[1][1].params)["RUN_TS"] == NOW_MS


def test_the_parameters_of_a_launched_instance_are_kept_by_runs_alone() -> None:
    world = pushed()
    world.start("a", "b")

    launched = [row.params for _, row in world.state.reader.origins.prefix(("etl",))]
    queued = [row.origin.params for _, row in world.state.reader.queue.prefix(("etl",)) if row.origin]
    rows = [*launched, *queued]

    assert rows[0] is None
    assert json.loads(rows[1] or "")["double"] == 20


def test_the_same_command_on_the_same_state_decides_the_same() -> None:
    one, two = pushed(), pushed()

    assert one.start("a", "b") == two.start("a", "b")


def test_what_a_start_may_ask_about_itself() -> None:
    world = World()
    asked = {
        name: {"type": "STRING", "expression": f"params.getFromInstance('{field}')"}
        for name, field in {
            "zone": "INITIATOR_TIMEZONE",
            "kind": "INITIATOR_TYPE",
            "runner": "INITIATOR_RUNNER_NAME",
            "policy": "RUN_POLICY",
            "whose": "owner",
            "first_zone": "FIRST_TIME_TRIGGER_TIMEZONE",
            "which": "workflow_id",
            "number": "workflow_instance_id",
            "run": "workflow_run_id",
        }.items()
    }
    triggers = [{"type": "CRON", "cron": "0 5 * * *", "timezone": "Europe/Berlin"}]
    world.push({"params": asked, "time_triggers": triggers})

    created = only(c.InstanceCreated, world.trigger("a", initiator='{"type":"TIME","timezone":"Asia/Tokyo"}'))

    params = json.loads(created.params)
    assert [params[name] for name in asked] == [
        "Asia/Tokyo",
        "TIME",
        "ann",
        "START_FRESH_NEW_RUN",
        "ann",
        "Europe/Berlin",
        "etl",
        "1",
        "1",
    ]


def test_a_signal_gives_its_parameters() -> None:
    world = World()
    world.push(
        {
            "params": {
                "own": {"type": "STRING", "expression": "params.getFromSignalOrDefault('day', 'none')"},
                "other": {"type": "STRING", "expression": "params.getFromSignalOrDefault('db', 'table', 'none')"},
                "missing": {"type": "STRING", "expression": "params.getFromSignalOrDefault('db', 'row', 'none')"},
            }
        }
    )
    initiator = '{"type":"SIGNAL","params":{"day":"monday"},"signals":{"db":{"table":"events"}}}'

    created = only(c.InstanceCreated, world.trigger("a", initiator=initiator))

    params = json.loads(created.params)
    assert (params["own"], params["other"], params["missing"]) == ("monday", "events", "none")


def test_ids_that_an_expression_makes_are_the_same_in_every_replay() -> None:
    def made() -> str:
        world = World()
        world.push({"params": {"id": {"type": "STRING", "expression": "params.nextUniqueId()"}}})
        return only(c.InstanceCreated, world.start("a")).params

    assert made() == made()


def test_a_start_that_no_record_could_hold_is_refused() -> None:
    world = pushed()
    run_params = json.dumps({"text": {"type": "STRING", "value": "é" * 300_000}}, ensure_ascii=False)

    refused = only(c.CommandRefused, world.start("a", run_params=run_params, persist_failed_run=True))

    assert refused.message.startswith("Expected a definition and a start of at most 950,000 bytes, but found 1,2")


def test_a_queued_start_that_was_stopped_is_still_known_by_its_request() -> None:
    world = pushed()
    world.start("a", "b")
    world.terminate(2, Action.STOP)

    assert only(c.StartDuplicated, world.start("b")).instance_id == 2


def test_a_signal_trigger_that_the_workflow_has_no_more_is_a_conflict() -> None:
    engine = Engine()
    steps = [{"step": {"id": "load", "type": "NoOp"}}]
    trigger: dict[str, object] = {"definitions": {"db/raw": {"match_params": {}}}}
    workflow = {"id": "etl", "steps": steps, "signal_triggers": [trigger]}
    engine.push({"properties": {"owner": "ann"}, "workflow": workflow})
    armed = only(c.TriggersArmed, engine.events(WORKFLOW_EVENTS, "etl"))
    initiator = json.dumps({"type": "SIGNAL", "trigger_uuid": armed.armed[0]})
    engine.send(WORKFLOW_INTERNAL, "etl", c.StartTriggered("signal", (Start("soon", initiator=initiator),)))

    engine.push({"workflow": {"id": "etl", "steps": steps}})
    engine.send(WORKFLOW_INTERNAL, "etl", c.StartTriggered("signal", (Start("late", initiator=initiator),)))

    refused = engine.refusals()[-1]
    assert (refused.request_id, refused.refusal) == ("late", "CONFLICT")
    assert refused.message == f"Expected a trigger of version 2, but found {armed.armed[0]!r}"


def test_a_start_can_be_read_in_ten_modules() -> None:
    world = World()
    world.push()
    modules: set[str] = set()

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("kapelle.processors.workflows."):
            modules.add(name)

    sys.setprofile(note)
    try:
        world.start("a")
    finally:
        sys.setprofile(None)

    assert 5 < len(modules) <= 10, sorted(modules)
