"""Decisions that are full: a large run goes on in parts, and loses nothing on the way."""

import pytest

from kapelle.processors.runs import context, flow
from kapelle.processors.wiring import RUN_COMMANDS, RUN_INTERNAL, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action
from kapelle.testing.engine import Engine
from tests.unit.runs.flows import I, S, noop, passed, started, step


def test_a_workflow_of_three_hundred_steps_side_by_side_runs_them_all() -> None:
    run = started(*(noop(f"s{number}") for number in range(300)))

    assert list(run.steps.values()) == [S.SUCCEEDED] * 300
    assert run.status is I.SUCCEEDED


def test_a_workflow_of_three_hundred_steps_in_a_row_runs_them_all_in_their_order() -> None:
    run = started(*(noop(f"s{number}", *([f"s{number + 1}"] * (number < 299))) for number in range(300)))

    rows = run.step_rows()
    assert [rows[f"s{number}"].sequence for number in range(300)] == list(range(1, 301))
    assert run.status is I.SUCCEEDED


def test_a_step_that_three_hundred_lead_to_runs_once() -> None:
    run = started(*(noop(f"s{number}", "end") for number in range(299)), noop("end"))

    assert len(run.changes("end")) == 1
    assert run.status is I.SUCCEEDED


def test_a_step_that_was_left_over_passes_every_state_once() -> None:
    run = started(*(noop(f"s{number}") for number in range(300)))

    first, last = passed(run, "s0"), passed(run, "s299")

    assert len(run.changes("s299")) == 2
    assert first == last


def test_three_hundred_tasks_are_each_given_out_once() -> None:
    run = started(*(step(f"s{number}") for number in range(300)))

    tasks = [one.task.step_id for one in run.engine.tasks(run)]

    assert sorted(tasks) == sorted(f"s{number}" for number in range(300))


def test_a_stop_takes_what_was_left_over_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CHANGES_MAX", 2)
    engine = Engine(same_cycle=False)
    steps = [step("a", *(f"s{number}" for number in range(6))), *(step(f"s{number}") for number in range(6))]
    engine.push({"properties": {"owner": "ann"}, "workflow": {"id": "flow", "steps": steps}})
    run = engine.start("flow")
    done = c.ReportTask(engine.task(run, "a").task.token, "a", "w", c.Report.SUCCEEDED)
    engine.runtime.publish(RUN_COMMANDS, run.key, done)
    engine.runtime.step()  # the steps left over wait for their timers now
    engine.runtime.publish(RUN_INTERNAL, run.key, c.TerminateRun("r", "ann", 1, Action.STOP, "enough"))

    engine.runtime.step_until_idle()

    assert set(run.steps.values()) == {S.SUCCEEDED, S.STOPPED}
    assert run.status is I.STOPPED


@pytest.mark.parametrize("changes_max", [1, 2, 3, 7])
def test_however_little_a_decision_may_change_the_run_is_the_same(
    changes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome() -> dict[str, tuple[S, int, int]]:
        run = started(
            noop("begin", "a"),
            noop("a", "b", "c"),
            noop("b", "d", {"x": "false"}),
            noop("c", "d"),
            noop("d", {"a": "n < 8", "e": "true"}, n="=params.getFromStep('step_instance_id')"),
            noop("e"),
            noop("x"),
            noop("y"),
        )
        assert run.status is I.SUCCEEDED
        return {name: (row.status, row.attempt, row.iteration) for name, row in run.step_rows().items()}

    expected = outcome()
    monkeypatch.setattr(context, "CHANGES_MAX", changes_max)

    assert outcome() == expected


def test_a_loop_that_goes_on_lets_the_start_of_another_workflow_pass() -> None:
    engine = Engine()
    counted = noop("a", {"a": "n < 2000", "out": "true"}, n="=params.getFromStep('step_instance_id')")
    for name, steps in (("loop", [counted, noop("out")]), ("bystander", [noop("only")])):
        engine.push({"properties": {"owner": "ann"}, "workflow": {"id": name, "steps": steps}})
    start = c.StartInstances("ann", (c.Start("mine"),))
    engine.runtime.publish(WORKFLOW_COMMANDS, "loop", start)
    engine.runtime.step()
    engine.runtime.step()

    engine.runtime.publish(WORKFLOW_COMMANDS, "bystander", start)
    engine.runtime.step()

    (loop,), (bystander,) = engine.runs("loop"), engine.runs("bystander")
    assert (loop.status, bystander.status) == (I.IN_PROGRESS, I.SUCCEEDED)
    engine.runtime.step_until_idle()
    assert loop.status is I.SUCCEEDED
    assert engine.runtime.next_due_at_ms() is None


def test_a_loop_that_never_waits_pauses_after_thousands_of_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "AT_ONCE_MAX", 400)
    run = started(noop("a", {"a": "n < 1000", "out": "true"}, n="=params.getFromStep('step_instance_id')"), noop("out"))

    made = len(run.changes("a"))

    assert 400 <= made < 600
    run.engine.advance(flow.PAUSE_MS)
    assert made < len(run.changes("a")) <= made + context.CONTINUED_MAX
    run.engine.advance(60_000)
    assert run.status is I.SUCCEEDED
