"""Schedules and backfills on a simulated cluster, with faults and clocks that are set. A failing seed is printed.

The full form is `make prove NAME=ticks`: ten thousand schedules. The engine is broken on purpose too, in each way that
the proof must catch.
"""

import os
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from kapelle.processors.calendar import Times
from kapelle.processors.messages import Message
from kapelle.processors.workflows import applying, catch_up, schedule_applying, schedules, ticks, workflows
from kapelle.processors.workflows.catch_up import Fate, Window
from kapelle.processors.workflows.schedules import Wanted
from kapelle.processors.workflows.tables import WorkflowTables
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import CatchUp
from tests.proof.schedules.simulate import problems_of

FIRST = int(os.environ.get("KAPELLE_SIMULATION_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("KAPELLE_SIMULATION_SEEDS", "24")))
MUTANT_SEEDS_MAX = 40
FATES = ("started", "passed over", "missed", "slots", "slots that existed", "started by a backfill")

pytestmark = pytest.mark.usefixtures("quiet")


def finds(text: str) -> bool:
    """Whether one of the first seeds finds this."""
    return any(text in problem for seed in range(MUTANT_SEEDS_MAX) for problem in problems_of(seed))


def broken(monkeypatch: pytest.MonkeyPatch, **appliers: Any) -> None:
    """Apply some events in another way."""
    changed = {getattr(c, name): applier for name, applier in appliers.items()}
    monkeypatch.setattr(workflows, "appliers", {**workflows.appliers, **changed})


def test_each_tick_has_one_fate_and_each_slot_one_instance() -> None:
    counts = Counter[str]()

    failures = [f"seed {seed}: {problems[:3]}" for seed in SEEDS if (problems := problems_of(seed, counts))]

    assert failures == []
    assert all(counts[fate] for fate in FATES), counts


def test_a_tick_whose_trigger_stays_where_it_is_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def staying(message: Message[c.ScheduleTicked], state: WorkflowTables) -> None:
        row = state.schedules.get((message.key, message.value.trigger_id))
        after_ms = message.value.after_ms if row is None else row.after_ms
        schedule_applying.schedule_ticked(replace(message, value=replace(message.value, after_ms=after_ms)), state)

    broken(monkeypatch, ScheduleTicked=staying)

    assert finds("to be decided on once")


def test_ticks_that_are_counted_wrongly_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    latest = catch_up.POLICIES[CatchUp.LATEST]

    def one_too_many(window: Window, times: Times) -> Fate:
        fate = latest(window, times)
        return replace(fate, passed_over=fate.passed_over + 1) if fate.passed_over else fate

    monkeypatch.setattr(catch_up, "POLICIES", {**catch_up.POLICIES, CatchUp.LATEST: one_too_many})

    assert finds("to pass over")


def test_a_policy_that_starts_what_it_must_pass_over_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = catch_up.POLICIES[CatchUp.ALL]
    monkeypatch.setattr(catch_up, "POLICIES", {**catch_up.POLICIES, CatchUp.NONE: everything})

    assert finds("to start [] and pass over")


def test_a_timer_that_outlives_its_trigger_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(message: Message[c.SchedulesArmed], state: WorkflowTables) -> None:
        for gone in message.value.disarmed:
            state.schedules.delete((message.key, gone.trigger_id))
        schedule_applying.schedules_armed(message, state)

    broken(monkeypatch, SchedulesArmed=forgetful)

    assert finds("RowMissing")


def test_request_ids_that_differ_each_time_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticks, "tick_request_id", lambda *_: str(uuid4()))

    assert finds("to have the id")


def test_a_lane_that_nobody_counts_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "lane_changed", lambda *_: None)

    assert finds("at most 1 of backfill")


def test_a_pause_that_pauses_nothing_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "arm_schedules", lambda *_: None)

    assert finds("on their terms")


def test_a_trigger_that_is_armed_anew_by_each_version_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "_differs", lambda *_: True)

    def from_now_on(workflow_id: str, trigger_id: str, new: Wanted, _: object, now_ms: int) -> c.ArmedSchedule:
        return armed(workflow_id, trigger_id, new, None, now_ms)

    armed = schedules._armed
    monkeypatch.setattr(schedules, "_armed", from_now_on)

    assert finds("armed from")


def test_a_backfill_that_starts_its_first_slots_again_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def again(message: Message[c.BackfillProgressed], state: WorkflowTables) -> None:
        row = state.backfills.get((message.key, message.value.backfill_id))
        position_ms = message.value.position_ms if row is None or message.value.is_last else row.position_ms
        schedule_applying.backfill_progressed(
            replace(message, value=replace(message.value, position_ms=position_ms)), state
        )

    broken(monkeypatch, BackfillProgressed=again)

    assert finds("to go on with")
