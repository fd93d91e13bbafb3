"""A status changes only as the table allows; anything else raises before it is written."""

import pytest

from kapelle.processors.draft import Draft
from kapelle.processors.errors import WrongTransition
from kapelle.processors.runs import runs
from kapelle.processors.runs.attempts import attempt_of
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.states import ACTIVE, ENDS_AS, NEXT, RESTARTABLE_IN_RUN, STEP_ACTIONS, TERMINAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, StepStatus
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import I, S, started, step, succeed


def flow_of(run: RunHandle) -> Flow:
    """A decision about a run, as it is now."""
    state = run.engine.state("runs", run.key)
    return Flow(Draft(runs, run.key, state), "test", state.steps.get((run.key, "a")).changed_at_ms, BEHAVIOURS)


@pytest.mark.parametrize("status", sorted(set(StepStatus) - NEXT[S.STARTING]))
def test_a_change_that_the_table_does_not_allow_raises_and_changes_nothing(status: StepStatus) -> None:
    flow = flow_of(started(step("a")))
    row = flow.row("a")
    assert row is not None
    assert row.status is S.STARTING

    with pytest.raises(WrongTransition, match=f"follows STARTING for step 'a' of flow/1/run 1, but found {status}"):
        flow.change(attempt_of("a", row), (status,))

    assert flow.row("a") == row
    assert flow.draft.effects == []


def test_every_status_on_the_way_is_looked_at() -> None:
    flow = flow_of(started(step("a")))
    row = flow.row("a")
    assert row is not None

    with pytest.raises(WrongTransition, match="follows RUNNING"):
        flow.change(attempt_of("a", row), (S.RUNNING, S.SUCCEEDED))


def test_a_run_ends_only_once() -> None:
    run = started(step("a"))
    succeed(run, "a")

    with pytest.raises(WrongTransition, match="follows SUCCEEDED"):
        flow_of(run).end(I.FAILED)


def test_the_table_has_a_row_for_every_status() -> None:
    assert set(NEXT) == set(StepStatus)


def test_what_people_may_do_to_an_active_step_is_a_change_that_exists() -> None:
    for status in ACTIVE:
        for action in STEP_ACTIONS[status] & set(ENDS_AS):
            assert action is Action.TIME_OUT or ENDS_AS[action] in NEXT[status]


def test_an_attempt_that_is_over_for_good_leads_to_nothing_but_a_new_attempt() -> None:
    for status in TERMINAL - ACTIVE:
        assert NEXT[status] == ({S.CREATED} if status in RESTARTABLE_IN_RUN else set())


def test_every_status_but_those_of_later_versions_can_be_reached() -> None:
    found, left = {S.NOT_CREATED}, [S.NOT_CREATED]
    while left:
        for after in NEXT[left.pop()] - found:
            found.add(after)
            left.append(after)

    assert set(StepStatus) - found == {S.DISABLED, S.OTHER}


def test_a_change_of_an_earlier_run_does_not_bind_the_next_one() -> None:
    run = started(step("a"))
    run.engine.task(run, "a").fail("broken", c.Report.FATAL_ERROR)
    run.restart()

    assert run.changes("a")[-1].statuses[0] is S.CREATED
