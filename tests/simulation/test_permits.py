"""Limited steps and breakpoints on a simulated cluster, with faults, stops and restarts. A failing seed is printed.

The full form is `make prove NAME=limits`: ten thousand schedules.
"""

import os
from typing import Any

import pytest

from kapelle.processors.messages import Message
from kapelle.processors.permits import admission, deciding, permits, policy
from kapelle.processors.permits.applying import permit_returned
from kapelle.processors.permits.tables import Limit, PermitTables, holder_key
from kapelle.processors.runs import gates, pauses
from kapelle.processors.runs import permits as asking
from kapelle.processors.runs.breakpoints import matching
from kapelle.processors.runs.context import RunContext
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.tables import StepRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Breakpoint, StepStatus
from tests.proof.permits.simulate import problems_of

FIRST = int(os.environ.get("KAPELLE_SIMULATION_FIRST", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("KAPELLE_SIMULATION_SEEDS", "24")))
SMALL_DECISIONS = range(FIRST, FIRST + 4)
MUTANT_SEEDS_MAX = 60

pytestmark = pytest.mark.usefixtures("quiet")


def finds(text: str) -> bool:
    """Whether one of the first seeds finds this."""
    return any(text in problem for seed in range(MUTANT_SEEDS_MAX) for problem in problems_of(seed))


def test_permits_are_held_within_limits_and_nothing_stays_paused_without_a_breakpoint() -> None:
    failures = [f"seed {seed}: {problems[:3]}" for seed in SEEDS if (problems := problems_of(seed))]

    assert failures == []


def test_the_same_holds_when_a_decision_admits_only_one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "ADMITTED_MAX", 1)

    assert [f"seed {seed}: {problems[:3]}" for seed in SMALL_DECISIONS if (problems := problems_of(seed))] == []


def test_a_permit_that_a_kill_does_not_return_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    return_permits = RunContext._return_permits

    def forgetful(context: RunContext, step_id: str, row: StepRow) -> None:
        now = context.row(step_id)
        if now is None or now.status is not StepStatus.FATALLY_FAILED:
            return_permits(context, step_id, row)

    monkeypatch.setattr(RunContext, "_return_permits", forgetful)

    assert finds("was returned 0 times, but its attempt is over")


def test_a_permit_above_the_limit_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def generous(limit: Limit) -> bool:
        return limit.max is None or limit.held <= limit.max

    monkeypatch.setattr(deciding, "has_room", generous)
    monkeypatch.setattr(admission, "has_room", generous)

    assert finds("got a permit although")


def test_a_permit_that_is_returned_twice_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    return_permits = RunContext._return_permits

    def twice(context: RunContext, step_id: str, row: StepRow) -> None:
        return_permits(context, step_id, row)
        return_permits(context, step_id, row)

    def keeping(message: Message[c.PermitReturned], state: PermitTables) -> None:
        at = holder_key(message.key, message.value.holder)
        row = state.permits.get(at)
        permit_returned(message, state)
        if row is not None:
            state.permits.put(at, row)

    monkeypatch.setattr(RunContext, "_return_permits", twice)
    appliers: dict[type[Any], Any] = {**permits.appliers, c.PermitReturned: keeping}
    monkeypatch.setattr(permits, "appliers", appliers)

    assert finds("returned what it neither held nor waited for")


def test_an_attempt_that_waits_while_there_is_room_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "admit_waiting", lambda *_: None)

    assert finds("wait, but")


def test_an_admission_out_of_turn_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_below(limit: Limit) -> int:
        return max(number for number, count in enumerate(limit.waiting) if count)

    monkeypatch.setattr(admission, "next_class", from_below)

    assert finds("was admitted before")


def test_a_class_that_is_passed_over_for_too_long_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "PASSED_OVER_MAX", 1_000)

    assert finds("passed over too often")


def test_permits_that_are_asked_for_out_of_order_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "needed", lambda *what: tuple(reversed(asking.needed(*what))))

    assert finds("but needs")


def test_an_attempt_that_starts_before_it_has_all_permits_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(context: RunContext, step_id: str) -> None:
        row = context.row(step_id)
        ask(context, step_id)
        if row is not None and isinstance(context, Flow) and row.held + 1 == len(row.permits) > 1:
            context.pass_on(step_id)

    ask = asking.ask
    monkeypatch.setattr(asking, "ask", hasty)

    assert finds("started with")


def test_a_pause_by_a_deleted_breakpoint_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict[str, Breakpoint]()

    def remembering(points: tuple[Breakpoint, ...], step_id: str, attempt: int) -> Breakpoint | None:
        known.update({point.step_id: point for point in points})
        return matching(points, step_id, attempt) or known.get(step_id)

    monkeypatch.setattr(gates, "matching", remembering)

    assert finds("paused, but no breakpoint of its run matches")


def test_a_deleted_breakpoint_that_leaves_an_attempt_paused_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "_resume_all", lambda *_: None)

    assert finds("is still paused, but no breakpoint matches it")


def test_iterations_that_are_not_told_of_breakpoints_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "_tell_children", lambda *_, **__: None)

    assert finds("at rest, but its workflow")


def test_a_breakpoint_that_does_not_pause_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "matching", lambda *_: None)

    assert finds("passed a breakpoint that matches it")
