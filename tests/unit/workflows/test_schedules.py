"""Which time triggers are armed: pushes, activations, pauses, and what becomes of ticks that come meanwhile."""

from typing import Any

import pytest

from kapelle.schemas import contracts as c
from tests.unit.workflows.test_ticks import at, cron, passed_over, started, world_of
from tests.unit.workflows.world import KEY, World, only, types

DAILY = cron("0 5 * * *")
NOON = cron("0 12 * * *")


def armed_in(world: World) -> list[str]:
    """The schedules that are armed now."""
    return [row.schedule for _, row in world.state.reader.schedules.prefix((KEY,))]


def trigger_id(world: World) -> str:
    [(_, name)] = [place for place, _ in world.state.reader.schedules.prefix((KEY,))]
    return name


def pause(world: World, trigger: str | None = None, **fields: Any) -> list[Any]:
    return world.do(c.PauseSchedules(fields.pop("request_id", world.fresh()), "ann", trigger, "maintenance"))


def resume(world: World, trigger: str | None = None, **fields: Any) -> list[Any]:
    return world.do(c.ResumeSchedules(fields.pop("request_id", world.fresh()), "bob", trigger))


def disarmed(events: list[Any]) -> list[tuple[str, int]]:
    return [(gone.reason, gone.missed) for gone in only(c.SchedulesArmed, events).disarmed]


def disable(world: World, is_disabled: bool) -> list[Any]:
    changes = f'{{"time_trigger_disabled": {str(is_disabled).lower()}}}'
    return world.do(c.ChangeProperties(world.fresh(), "ann", changes))


# Versions -----------------------------------------------------------------------------------------------------------


def test_a_workflow_without_time_triggers_arms_nothing() -> None:
    world = World()

    assert "SchedulesArmed" not in types(world.push())


def test_a_version_with_the_same_times_keeps_their_position() -> None:
    world = world_of(DAILY)
    world.now_ms = at("2026-03-02T04:59:59")

    events = world.push({"time_triggers": [DAILY], "description": "two"})

    assert "SchedulesArmed" not in types(events)
    assert started(world.pass_time(at("2026-03-02T06:00:00"))) == [at("2026-03-02T05:00:00")]


def test_a_version_that_comes_between_a_time_and_its_tick_neither_loses_nor_doubles_it() -> None:
    world = world_of(DAILY)
    world.now_ms = at("2026-03-02T05:00:07")

    world.push({"time_triggers": [cron("0 5 * * *", catch_up="ALL")]})
    events = world.pass_time(at("2026-03-02T06:00:00"))

    assert started(events) == [at("2026-03-02T05:00:00")]


def test_another_policy_keeps_the_position_of_a_trigger() -> None:
    world = world_of(DAILY)
    world.now_ms = at("2026-03-04T12:00:00")

    world.push({"time_triggers": [cron("0 5 * * *", catch_up="ALL")]})

    assert len(started(world.pass_time(world.now_ms))) == 3


def test_other_times_are_armed_from_now_on_and_the_old_ones_tick_no_more() -> None:
    world = world_of(DAILY)
    world.now_ms = at("2026-03-02T05:00:07")

    events = world.push({"time_triggers": [NOON]})

    assert disarmed(events) == [("Version 2 does not have it", 1)]
    assert started(world.pass_time(at("2026-03-03T06:00:00"))) == [at("2026-03-02T12:00:00")]


def test_a_version_that_is_pushed_but_not_activated_changes_nothing() -> None:
    world = world_of(DAILY)

    world.push({"time_triggers": [NOON]}, is_active=False)

    assert started(world.pass_time(at("2026-03-02T13:00:00"))) == [at("2026-03-02T05:00:00")]


def test_activating_an_older_version_arms_its_triggers() -> None:
    world = world_of(DAILY)
    world.push({"time_triggers": [NOON]})

    world.do(c.ActivateVersion(world.fresh(), "ann", "1"))

    assert started(world.pass_time(at("2026-03-02T13:00:00"))) == [at("2026-03-02T05:00:00")]


# Not armed ----------------------------------------------------------------------------------------------------------


def test_ticks_while_the_workflow_is_inactive_never_start() -> None:
    world = world_of(cron("0 5 * * *", catch_up="ALL"))

    events = world.do(c.DeactivateWorkflow(world.fresh(), "ann"))
    assert disarmed(events) == [("No version is active", 0)]
    assert world.pass_time(at("2026-03-05T12:00:00")) == []
    world.do(c.ActivateVersion(world.fresh(), "ann", "latest"))

    assert started(world.pass_time(at("2026-03-06T12:00:00"))) == [at("2026-03-06T05:00:00")]


def test_ticks_while_time_triggers_are_disabled_never_start() -> None:
    world = world_of(cron("0 5 * * *", catch_up="ALL"))

    assert disarmed(disable(world, True)) == [("time_trigger_disabled is set", 0)]
    assert world.pass_time(at("2026-03-05T12:00:00")) == []
    disable(world, False)

    assert started(world.pass_time(at("2026-03-06T12:00:00"))) == [at("2026-03-06T05:00:00")]


def test_a_tick_that_is_due_when_its_trigger_is_disarmed_is_counted() -> None:
    world = world_of(DAILY)
    world.now_ms = at("2026-03-04T05:00:00")

    assert disarmed(pause(world)) == [("All time triggers of the workflow are paused", 3)]


def test_a_workflow_that_is_deleted_and_pushed_again_ticks_from_then_on() -> None:
    world = world_of(cron("0 5 * * *", catch_up="ALL"))
    world.pass_time(at("2026-03-02T05:00:00"))
    world.end(1)

    events = world.do(c.DeleteWorkflow(world.fresh(), "ann"))
    assert disarmed(events) == [("The workflow was deleted", 0)]
    assert world.pass_time(at("2026-03-05T12:00:00")) == []
    world.push({"time_triggers": [DAILY]})

    assert started(world.pass_time(at("2026-03-06T12:00:00"))) == [at("2026-03-06T05:00:00")]


def test_arming_twice_in_one_moment_starts_no_tick_twice() -> None:
    world = world_of(DAILY)
    tick = at("2026-03-02T05:00:00")
    assert started(world.pass_time(tick)) == [tick]

    world.do(c.DeactivateWorkflow(world.fresh(), "ann"))
    world.do(c.ActivateVersion(world.fresh(), "ann", "latest"))

    assert world.pass_time(tick + 1_000) == []


# Pauses -------------------------------------------------------------------------------------------------------------


def test_a_paused_workflow_starts_no_ticks_until_it_is_resumed() -> None:
    world = world_of(cron("0 5 * * *", catch_up="ALL"), NOON)

    events = pause(world)
    assert types(events) == ["SchedulesPaused", "SchedulesArmed", "CommandSettled"]
    assert world.pass_time(at("2026-03-05T06:00:00")) == []
    assert types(resume(world)) == ["SchedulesResumed", "SchedulesArmed", "CommandSettled"]

    assert started(world.pass_time(at("2026-03-06T06:00:00"))) == [at("2026-03-05T12:00:00"), at("2026-03-06T05:00:00")]


def test_one_trigger_is_paused_by_itself() -> None:
    world = world_of(DAILY)
    daily = trigger_id(world)
    world.push({"time_triggers": [DAILY, NOON]})

    assert disarmed(pause(world, daily)) == [("The time trigger is paused", 0)]
    assert started(world.pass_time(at("2026-03-02T13:00:00"))) == [at("2026-03-02T12:00:00")]
    resume(world, daily)

    assert len(armed_in(world)) == 2


def test_a_pause_of_the_workflow_is_for_the_triggers_of_later_versions_too() -> None:
    world = world_of(DAILY)
    pause(world)

    world.push({"time_triggers": [NOON]})

    assert armed_in(world) == []


def test_a_trigger_cannot_be_resumed_alone_while_the_workflow_is_paused() -> None:
    world = world_of(DAILY)
    daily = trigger_id(world)
    pause(world)

    refused = only(c.CommandRefused, resume(world, daily))

    assert refused.refusal == "CONFLICT"
    assert "resume the workflow" in refused.message


def test_resuming_the_workflow_resumes_its_triggers_too() -> None:
    world = world_of(DAILY)
    daily = trigger_id(world)
    pause(world, daily)
    pause(world)

    resume(world)

    assert len(armed_in(world)) == 1


def test_pausing_or_resuming_twice_changes_nothing() -> None:
    world = world_of(DAILY)

    assert only(c.CommandSettled, resume(world)).status == "UNCHANGED"
    pause(world)
    assert only(c.CommandSettled, pause(world)).status == "UNCHANGED"


def test_a_repeated_request_pauses_nothing() -> None:
    world = world_of(DAILY)
    pause(world, request_id="p")
    resume(world)

    assert only(c.CommandSettled, pause(world, request_id="p")).status == "UNCHANGED"
    assert len(armed_in(world)) == 1


@pytest.mark.parametrize("act", [pause, resume])
def test_a_trigger_that_the_workflow_does_not_have_is_refused(act: Any) -> None:
    world = world_of(DAILY)

    refused = only(c.CommandRefused, act(world, "none-such"))

    assert (refused.refusal, trigger_id(world) in refused.message) == ("NOT_FOUND", True)


def test_history_alone_makes_the_same_tables() -> None:
    world = world_of(DAILY, NOON)
    pause(world)
    resume(world)
    events = world.jump(at("2026-03-09T05:00:00"))
    disable(world, True)

    assert passed_over(events) == 13
    assert world.replayed() == world.state.fingerprint()
