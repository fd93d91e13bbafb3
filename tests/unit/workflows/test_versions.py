"""Pushing, activating and deleting: what each request comes to, once."""

import json

import pytest

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from tests.unit.workflows.world import KEY, NOW_MS, World, definition, only, types


def pushed(times: int = 1) -> World:
    world = World()
    for _ in range(times):
        world.push()
    return world


def workflow_of(world: World) -> tuple[int, int]:
    """The latest version and the active one."""
    row = world.state.reader.workflows.get((KEY,))
    assert row is not None
    return row.latest_version, row.active_version


def test_the_first_push_makes_an_active_version_and_its_properties() -> None:
    world = World()

    events = world.push(git_info={"commit": "abc"}, team="data")

    assert types(events) == ["VersionPushed", "PropertiesChanged", "VersionActivated", "CommandSettled"]
    version = only(c.VersionPushed, events)
    assert (version.version, version.author, version.at_ms) == (1, "ann", NOW_MS)
    assert json.loads(version.definition)["id"] == KEY
    assert json.loads(version.metadata) == {"git_info": {"commit": "abc"}, "team": "data"}
    assert json.loads(only(c.PropertiesChanged, events).changes) == {"owner": "ann"}
    assert only(c.VersionActivated, events).previous_version == 0


def test_versions_count_up_and_the_latest_is_active() -> None:
    assert workflow_of(pushed(3)) == (3, 3)


def test_a_version_that_is_pushed_inactive_leaves_the_active_one() -> None:
    world = pushed()

    events = world.push(is_active=False)

    assert types(events) == ["VersionPushed", "PropertiesChanged", "CommandSettled"]
    assert workflow_of(world) == (2, 1)


def test_a_push_without_properties_makes_no_snapshot() -> None:
    world = pushed()

    assert types(world.push(properties=None)) == ["VersionPushed", "VersionActivated", "CommandSettled"]


def test_a_repeated_push_is_told_the_version_of_the_first() -> None:
    world = World()
    world.push(request_id="p")
    world.push()

    settled = only(c.CommandSettled, world.push(request_id="p"))

    assert (settled.command, settled.version, settled.workflow_id) == ("PushVersion", 1, KEY)
    assert workflow_of(world) == (2, 2)


def test_a_refused_push_may_be_mended_under_the_same_request() -> None:
    world = World()
    world.push(request_id="p", properties=None)

    only(c.VersionPushed, world.push(request_id="p"))


@pytest.mark.parametrize(
    ("selector", "version"), [("1", 1), ("latest", 3), ("LATEST", 3), ("default", 2), ("active", 2), ("02", 2)]
)
def test_a_version_is_named_by_a_number_or_a_word(selector: str, version: int) -> None:
    world = pushed(3)
    world.do(c.ActivateVersion("two", "ann", "2"))

    started = only(c.InstanceCreated, world.start("a", version=selector))

    assert started.version == version


def test_default_is_the_latest_if_none_is_active() -> None:
    world = pushed(2)
    world.do(c.DeactivateWorkflow("off", "ann"))

    assert only(c.InstanceCreated, world.start("a", version="default")).version == 2


def test_activating_says_which_version_was_active_before() -> None:
    world = pushed(2)

    activated = only(c.VersionActivated, world.do(c.ActivateVersion("x", "bob", "1")))

    assert (activated.version, activated.previous_version, activated.author) == (1, 2, "bob")
    assert workflow_of(world) == (2, 1)


def test_activating_the_active_version_changes_nothing() -> None:
    world = pushed()

    settled = only(c.CommandSettled, world.do(c.ActivateVersion("x", "ann", "latest")))

    assert (settled.reason, settled.version) == ("Version 1 is active already", 1)


def test_a_repeated_activation_does_not_undo_a_later_one() -> None:
    world = pushed(2)
    world.do(c.ActivateVersion("x", "ann", "1"))
    world.do(c.ActivateVersion("y", "ann", "2"))

    settled = only(c.CommandSettled, world.do(c.ActivateVersion("x", "ann", "1")))

    assert settled.version == 1
    assert workflow_of(world) == (2, 2)


def test_deactivating_leaves_no_active_version() -> None:
    world = pushed()

    deactivated = only(c.WorkflowDeactivated, world.do(c.DeactivateWorkflow("off", "ann")))

    assert deactivated.previous_version == 1
    assert workflow_of(world) == (1, 0)
    assert only(c.CommandSettled, world.do(c.DeactivateWorkflow("again", "ann"))).reason == "No version is active"


def test_a_workflow_with_something_queued_or_running_is_not_deleted() -> None:
    world = pushed()
    world.start("a", "b")

    refused = only(c.CommandRefused, world.do(c.DeleteWorkflow("d", "ann")))

    assert refused.refusal == "CONFLICT"
    assert refused.message == ("Workflow 'etl' has 1 queued and 1 running instances")


def test_a_deleted_workflow_is_gone_and_its_request_is_not_carried_out_twice() -> None:
    world = pushed(2)
    only(c.WorkflowDeleted, world.do(c.DeleteWorkflow("d", "ann")))

    assert only(c.CommandRefused, world.start("a")).refusal == "NOT_FOUND"
    assert list(world.state.reader.versions.prefix((KEY,))) == []
    assert list(world.state.reader.properties.prefix((KEY,))) == []
    world.push()
    assert types(world.do(c.DeleteWorkflow("d", "ann"))) == ["CommandSettled"]


def test_a_workflow_made_anew_counts_its_versions_from_one_and_goes_on_counting_instances() -> None:
    world = pushed(2)
    world.start("a")
    world.fail(1)
    world.do(c.DeleteWorkflow("d", "ann"))

    world.push(run_strategy="STRICT_SEQUENTIAL")
    started = only(c.InstanceCreated, world.start("b"))

    assert (started.version, started.instance_id) == (1, 2)
    assert world.seen() == "1F 2r"
    assert only(c.CommandSettled, world.unblock()).reason == "There is nothing to unblock"


def test_instances_of_a_deleted_workflow_are_out_of_reach_and_their_requests_are_known() -> None:
    world = pushed()
    world.start("a")
    world.end(1, InstanceStatus.FAILED)
    world.do(c.DeleteWorkflow("d", "ann"))
    world.push()

    assert only(c.CommandRefused, world.restart(1)).refusal == "NOT_FOUND"
    assert only(c.CommandRefused, world.unblock(1)).refusal == "NOT_FOUND"
    assert only(c.StartDuplicated, world.start("a")).instance_id == 1


def test_what_an_instance_runs_is_the_version_that_it_was_started_with() -> None:
    world = pushed()
    world.start("a", "b")
    world.push({"description": "the second"})

    world.end(1)

    launched = world.sent_of(c.StartRun)[-1][1]
    assert (launched.instance_id, launched.version) == (2, 1)
    assert "the second" not in launched.definition


def test_history_rebuilds_the_tables_of_a_workflow_that_was_deleted_and_made_anew() -> None:
    world = pushed(3)
    world.start("a")
    world.fail(1)
    world.do(c.DeleteWorkflow("d", "ann"))
    world.push()
    world.start("b")

    assert world.replayed() == world.state.fingerprint()


def test_a_kind_of_step_that_cannot_be_run_is_refused_by_its_path() -> None:
    steps = [{"step": {"id": "first", "type": "NoOp"}}, {"template": {"id": "second", "sub_type": "etl"}}]
    world = World()

    refused = only(c.CommandRefused, world.push({"steps": steps}))

    kinds = "'step', 'subworkflow', 'foreach', 'while'"
    assert refused.refusal == "INVALID"
    assert refused.errors == (f"workflow.steps[1]: Expected {kinds}, but found 'template', which cannot be run",)


def test_a_kind_of_step_that_cannot_be_run_is_told_with_all_else_that_is_wrong() -> None:
    template = {"template": {"id": "made", "sub_type": "etl"}}
    world = World()

    refused = only(c.CommandRefused, world.push({"steps": [template], "timeout": "soon"}))

    assert refused.message == "Expected a definition that can be run, but found 2 problems"


def test_triggers_are_kept_with_the_version() -> None:
    world = World()
    triggers = {"time_triggers": [{"type": "CRON", "cron": "0 5 * * *", "timezone": "Europe/Berlin"}]}

    version = only(c.VersionPushed, world.push(triggers))

    assert json.loads(version.definition)["time_triggers"][0]["cron"] == "0 5 * * *"


def test_all_problems_of_a_definition_are_told_at_once() -> None:
    world = World()
    text = json.loads(definition({"timeout": -1, "surprise": 1}))

    refused = only(c.CommandRefused, world.do(c.PushVersion("p", "ann", json.dumps(text))))

    assert refused.message == "Expected a definition that can be run, but found 2 problems"
    assert len(refused.errors) == 2
