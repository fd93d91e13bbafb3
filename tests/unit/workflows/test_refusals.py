"""Each wrong command has its refusal and its message, and changes nothing."""

import json
from typing import Any

import pytest

from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Start
from tests.unit.workflows.world import KEY, World, definition, only

ABSENT = "Expected workflow 'etl' to exist, but it does not"
LONG_ID = "x" * 257


def start(**fields: Any) -> c.StartInstances:
    return c.StartInstances("ann", (Start("q", **fields),))


def props(text: str) -> c.ChangeProperties:
    return c.ChangeProperties("q", "ann", text)


# Commands to a workflow that was never pushed.
TO_NOBODY: list[Contract] = [
    c.ActivateVersion("q", "ann", "1"),
    c.DeactivateWorkflow("q", "ann"),
    props('{"description":"x"}'),
    c.TagWorkflow("q", "ann", '"x"'),
    c.UntagWorkflow("q", "ann", "x"),
    c.DeleteWorkflow("q", "ann"),
    start(),
    c.QueueRun("q", "ann", 1, "{}", "{}"),
    c.TerminateInstance("q", "ann", 1, Action.STOP, "x"),
    c.TerminateInstances("q", "ann", Action.STOP, "x"),
    c.UnblockInstances("q", "ann", "x"),
    c.SetBreakpoint("q", "ann", "load"),
    c.DeleteBreakpoint("q", "ann", "load"),
]

# Commands to a workflow of one version with instance 1 running: the refusal, and how its message begins.
WRONG: list[tuple[Contract, str, str]] = [
    (c.PushVersion("q", "ann", "{"), "INVALID", "Expected a definition that can be run, but found 1 problem"),
    (c.PushVersion("q", "ann", "[]"), "INVALID", "Expected a definition that can be run, but found 1 problem"),
    (
        c.PushVersion("q", "ann", definition({"id": "other"})),
        "INVALID",
        "Expected the definition of workflow 'etl', but found that of 'other'",
    ),
    (
        c.PushVersion("q", "ann", definition(properties={"owner": ""})),
        "INVALID",
        "Expected a definition that can be run, but found 1 problem",
    ),
    (
        c.PushVersion(
            "q", "ann", definition(properties={"run_strategy": {"rule": "SEQUENTIAL", "workflow_concurrency": 2}})
        ),
        "INVALID",
        "Expected ",
    ),
    (c.ActivateVersion("q", "ann", "0"), "NOT_FOUND", "Expected a version of workflow 'etl' from 1 to 1, but found 0"),
    (c.ActivateVersion("q", "ann", "2"), "NOT_FOUND", "Expected a version of workflow 'etl' from 1 to 1, but found 2"),
    (c.ActivateVersion("q", "ann", "9" * 99), "NOT_FOUND", "Expected a version of workflow 'etl' from 1 to 1, but"),
    (c.ActivateVersion("q", "ann", ""), "INVALID", "Expected active, latest, default or a number as version, but"),
    (c.ActivateVersion("q", "ann", "-1"), "INVALID", "Expected active, latest, default or a number as version"),
    (c.ActivateVersion("q", "ann", "²"), "INVALID", "Expected active, latest, default or a number as version"),
    (props("{}"), "INVALID", "Expected a change of properties, but found"),
    (props("x"), "INVALID", "Expected a change of properties, but found"),
    (props('{"owner":5}'), "INVALID", "Expected a change of properties, but found"),
    (props('{"tags":["x"]}'), "INVALID", "Expected a change of properties, but found"),
    (props('{"run_strategy":"SOMETIMES"}'), "INVALID", "Expected a change of properties, but found"),
    (props('{"reset_workflow_concurrency":true}'), "INVALID", "Expected a change of properties, but found"),
    (c.TagWorkflow("q", "ann", "5"), "INVALID", "Expected a tag, but found 1 problem"),
    (c.TagWorkflow("q", "ann", '"no|pipes"'), "INVALID", "Expected a tag, but found 1 problem"),
    (c.TagWorkflow("q", "ann", "{"), "INVALID", "Expected a tag, but found 1 problem"),
    (
        c.UntagWorkflow("q", "ann", "x"),
        "NOT_FOUND",
        "Expected workflow 'etl' to have the tag 'x', but it does not have it",
    ),
    (c.DeleteWorkflow("q", "ann"), "CONFLICT", "Workflow 'etl' has "),
    (c.StartInstances("ann", ()), "INVALID", "Expected 1 to 10 starts, but found 0"),
    (
        c.StartInstances("ann", tuple(Start(f"q{number}") for number in range(11))),
        "INVALID",
        "Expected 1 to 10 starts, but found 11",
    ),
    (c.StartInstances("ann", (Start(""),)), "INVALID", "Expected a request_id of 1 to 256 characters, but found 0"),
    (c.StartInstances("ann", (Start(LONG_ID),)), "INVALID", "Expected a request_id of 1 to 256 characters, but"),
    (start(version="7"), "NOT_FOUND", "Expected a version of workflow 'etl' from 1 to 1, but found 7"),
    (start(version="newest"), "INVALID", "Expected active, latest, default or a number as version, but found 'newest'"),
    (start(initiator="x"), "INVALID", "Expected initiator as JSON, but found 'x'"),
    (start(initiator="[]"), "INVALID", "Expected initiator as a JSON object, but found '[]'"),
    (start(initiator="{}"), "INVALID", "Expected MANUAL as initiator.type, but found None"),
    (start(initiator='{"type":"GHOST"}'), "INVALID", "Expected MANUAL as initiator.type, but found 'GHOST'"),
    (
        start(initiator='{"type":"MANUAL","params":[]}'),
        "INVALID",
        "Expected initiator.params as an object, but found []",
    ),
    (
        start(initiator='{"type":"MANUAL","signals":1}'),
        "INVALID",
        "Expected initiator.signals as an object, but found 1",
    ),
    (
        start(initiator=json.dumps({"type": "MANUAL", "ancestors": [{}] * 11})),
        "INVALID",
        "Expected at most 10 initiator.ancestors, but found [{}",
    ),
    (start(run_params="["), "INVALID", "Expected run_params as JSON, but found '['"),
    (start(run_params="5"), "INVALID", "Expected run_params as a JSON object, but found '5'"),
    (start(run_params='{"x":"\\ud800"}'), "INVALID", "Expected run_params as JSON"),
    (start(run_params="[" * 100_000), "INVALID", "Expected run_params as JSON"),
    (start(run_params='{"x":5}'), "INVALID", "Expected a definition of parameter 'x', but it is not an object"),
    (
        start(run_params='{"x":{"type":"LONG"}}'),
        "INVALID",
        "Expected a definition of parameter 'x', but it needs exactly one of 'value' and 'expression' (run_params)",
    ),
    (
        start(run_params='{"params":{"type":"LONG","value":1}}'),
        "INVALID",
        "Expected a definition of parameter 'params', but the name is reserved for the system",
    ),
    (
        start(run_params=json.dumps({f"p{n}": {"type": "LONG", "value": n} for n in range(129)})),
        "INVALID",
        "Expected a definition of parameter 'p128', but a request may give 128 parameters",
    ),
    (
        start(run_params='{"fixed":{"type":"LONG","value":2}}'),
        "INVALID",
        "Expected a change of parameter 'fixed' that 'run params' may make, but its mode is CONSTANT",
    ),
    (
        start(run_params='{"x":{"type":"STRING","expression":"nobody"}}'),
        "INVALID",
        "Expected workflow 'etl' to know 'nobody', to which parameter 'x' refers, but it does not",
    ),
    (
        start(run_params='{"x":{"type":"LONG","expression":"while (true) { 1; }"}}'),
        "INVALID",
        "Expected a value for parameter 'x', but its expression failed",
    ),
    (
        start(run_params='{"positive":{"type":"LONG","value":-1}}'),
        "INVALID",
        "Expected parameter 'positive' to satisfy 'value > 0', but its value is -1",
    ),
    (start(step_run_params="[]"), "INVALID", "Expected step_run_params as a JSON object, but found '[]'"),
    (
        start(step_run_params='{"nobody":{}}'),
        "INVALID",
        "Expected a step of the workflow in step_run_params, but found 'nobody'",
    ),
    (start(step_run_params='{"load":1}'), "INVALID", "Expected step_run_params.load as an object, but found 1"),
    (start(step_run_params='{"load":{"x":1}}'), "INVALID", "Expected a definition of parameter 'x'"),
    (start(runtime_tags="{}"), "INVALID", "Expected runtime_tags as a JSON list, but found '{}'"),
    (start(runtime_tags="[5]"), "INVALID", "Expected tags as runtime_tags, but found 1 problem"),
    (start(artifacts="[]"), "INVALID", "Expected artifacts as a JSON object, but found '[]'"),
    (c.QueueRun("q", "ann", 1, "{}", "{}"), "CONFLICT", "Expected run 1 of instance etl/1 to have ended, but it is IN"),
    (c.QueueRun("q", "ann", 2, "{}", "{}"), "NOT_FOUND", "Expected instance 2 of workflow 'etl' to exist"),
    (c.QueueRun("q", "ann", 0, "{}", "{}"), "NOT_FOUND", "Expected instance 0 of workflow 'etl' to exist"),
    (
        c.TerminateInstance("q", "ann", 9, Action.STOP, "x"),
        "NOT_FOUND",
        "Expected instance 9 of workflow 'etl' to exist",
    ),
    (c.TerminateInstance("q", "ann", 1, Action.PAUSE, "x"), "INVALID", "Expected STOP or KILL, but found PAUSE"),
    (c.TerminateInstances("q", "ann", Action.RESTART, "x"), "INVALID", "Expected STOP or KILL, but found RESTART"),
    (c.UnblockInstances("q", "ann", "x", 9), "NOT_FOUND", "Expected instance 9 of workflow 'etl' to exist"),
    (
        c.UnblockInstances("q", "ann", "x", 1),
        "INVALID",
        "Expected instance etl/1 to have failed, but it is IN_PROGRESS",
    ),
    (
        c.SetBreakpoint("q", "ann", "unload"),
        "NOT_FOUND",
        "Expected a step of version 1 of workflow 'etl', but found 'unload'",
    ),
    (
        c.SetBreakpoint("q", "ann", "load", version=2),
        "NOT_FOUND",
        "Expected a version of workflow 'etl' from 1 to 1, but found 2",
    ),
    (c.SetBreakpoint("q", "ann", ""), "INVALID", "Expected a step_id of 1 to 128 characters, but found 0"),
    (c.SetBreakpoint("q", "ann", "x" * 129), "INVALID", "Expected a step_id of 1 to 128 characters, but found 129"),
    (c.SetBreakpoint("q", "ann", "load", version=0), "INVALID", "Expected version of at least 1, but found 0"),
    (c.SetBreakpoint("q", "ann", "load", version=-1), "INVALID", "Expected version of at least 1, but found -1"),
    (c.SetBreakpoint("q", "ann", "load", instance_id=0), "INVALID", "Expected instance_id of at least 1, but found 0"),
    (c.SetBreakpoint("q", "ann", "load", instance_id=-1), "INVALID", "Expected instance_id of at least 0, but found"),
    (
        c.SetBreakpoint("q", "ann", "load", instance_id=1, run_id=0),
        "INVALID",
        "Expected run_id of at least 1, but found 0",
    ),
    (c.SetBreakpoint("q", "ann", "load", attempt=0), "INVALID", "Expected attempt of at least 1, but found 0"),
    (
        c.SetBreakpoint("q", "ann", "load", run_id=1),
        "INVALID",
        "Expected instance_id beside run_id, but found only run_id 1",
    ),
    (c.SetBreakpoint(LONG_ID, "ann", "load"), "INVALID", "Expected request_id of at most 256 characters, but found"),
    (c.SetBreakpoint("q", LONG_ID, "load"), "INVALID", "Expected author of at most 256 characters, but found 257"),
    (
        c.DeleteBreakpoint("q", "ann", "load"),
        "NOT_FOUND",
        "Expected a breakpoint of workflow 'etl' on step 'load', but there is none",
    ),
    (
        c.DeleteBreakpoint("q", "ann", "load", version=1, attempt=2),
        "NOT_FOUND",
        "Expected a breakpoint of workflow 'etl' on step 'load', version 1, attempt 2, but there is none",
    ),
    (
        c.DeleteBreakpoint("q", "ann", "load", run_id=1),
        "INVALID",
        "Expected instance_id beside run_id, but found only run_id 1",
    ),
    (c.DeleteBreakpoint("q", "ann", "x" * 129), "INVALID", "Expected a step_id of 1 to 128 characters, but found 129"),
    (c.DeactivateWorkflow(LONG_ID, "ann"), "INVALID", "Expected request_id of at most 256 characters, but found 257"),
    (c.DeactivateWorkflow("q", LONG_ID), "INVALID", "Expected author of at most 256 characters, but found 257"),
    (
        c.TerminateInstances("q", "ann", Action.STOP, "x" * 20_000),
        "INVALID",
        "Expected reason of at most 16,384 characters, but found 20,000",
    ),
]


def busy() -> World:
    params = {
        "fixed": {"type": "LONG", "value": 1, "mode": "CONSTANT"},
        "positive": {"type": "LONG", "value": 1, "validator": "value > 0"},
    }
    world = World()
    world.push({"params": params})
    world.start("first")
    return world


@pytest.mark.parametrize("command", TO_NOBODY, ids=lambda command: type(command).__name__)
def test_a_workflow_that_does_not_exist_is_not_found(command: Contract) -> None:
    world = World()

    refused = only(c.CommandRefused, world.do(command))

    assert (refused.request_id, refused.command) == ("q", type(command).__name__)
    assert (refused.refusal, refused.message) == ("NOT_FOUND", ABSENT)


@pytest.mark.parametrize(
    ("command", "refusal", "message"),
    WRONG,
    ids=[f"{n} {message[:60]}" for n, (*_, message) in enumerate(WRONG)],
)
def test_a_wrong_command_has_its_refusal_and_changes_nothing(command: Contract, refusal: str, message: str) -> None:
    world = busy()
    before, sent = world.state.fingerprint(), len(world.sent)

    events = world.do(command)

    assert events
    assert all(isinstance(event, c.CommandRefused) for event in events)
    assert events[0].refusal == refusal
    assert events[0].message.startswith(message)
    assert events[0].command == type(command).__name__
    assert world.state.fingerprint() == before
    assert len(world.sent) == sent
    assert not world.continued


def test_the_first_push_needs_an_owner() -> None:
    world = World()

    without = only(c.CommandRefused, world.push(properties=None))
    nameless = only(c.CommandRefused, world.push(properties={"description": "x"}))

    assert without.message == "Expected properties.owner in the first push of a workflow, but found none"
    assert nameless.errors == ("properties.owner: Expected the owner of a new workflow, but found nothing",)
    assert world.state.reader.workflows.get((KEY,)) is None


def test_an_answer_is_short_however_long_the_command_was() -> None:
    world = busy()
    name = "n" * 500_000

    refused = only(c.CommandRefused, world.start("q", run_params=json.dumps({name: 5})))

    assert len(refused.message) == 2_000


def test_ten_of_the_starts_of_a_batch_that_is_too_large_are_answered() -> None:
    events = busy().do(c.StartInstances("ann", tuple(Start(f"q{number}") for number in range(11))))

    assert [event.request_id for event in events] == [f"q{number}" for number in range(10)]
