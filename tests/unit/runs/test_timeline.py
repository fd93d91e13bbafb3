"""The timeline of an instance: entries in order, with times, subjects and reasons."""

from kapelle.processors.runs.timeline import EntryType, timeline
from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Report, StepStatus
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import (
    INCOMPLETE,
    MINUTE_MS,
    SPECIFIC,
    UNTIL_STARTING,
    fail,
    noop,
    pushed,
    started,
    step,
    succeed,
    task,
)


def texts(run: RunHandle, step_id: str | None, *types: EntryType) -> list[str]:
    """The entries about a step, or about the instance, as text."""
    wanted = types or tuple(EntryType)
    return [one.body.text for one in run.timeline() if one.step_id == step_id and one.type in wanted]


def test_the_states_of_an_instance_are_told_from_its_start_to_its_end() -> None:
    run = started(noop("a"))

    assert texts(run, None, EntryType.STATUS) == ["CREATED", "IN_PROGRESS", "SUCCEEDED"]


def test_every_state_of_an_attempt_is_told() -> None:
    run = started(step("a"))
    task(run, "a").begin()
    succeed(run, "a")

    found = [status for one in run.timeline() for status in one.body.statuses or ()]

    assert found == [*UNTIL_STARTING, StepStatus.RUNNING, StepStatus.FINISHING, StepStatus.SUCCEEDED]


def test_entries_have_the_time_of_their_events_and_are_in_that_order() -> None:
    run = started(step("a"))
    run.engine.advance(1_500)
    task(run, "a").begin()

    entries = run.timeline()

    assert [one.at_ms for one in entries] == sorted(one.at_ms for one in entries)
    running = next(one for one in entries if one.body.status is StepStatus.RUNNING)
    assert running.at_ms == entries[0].at_ms + 1_500


def test_an_entry_names_the_iteration_and_the_attempt_of_its_step() -> None:
    run = started(step("a", {"a": "more"}, more=False))
    task(run, "a").fail()
    run.engine.advance(MINUTE_MS)
    task(run, "a").succeed(more=True)

    subjects = {(one.iteration, one.attempt) for one in run.timeline() if one.type is EntryType.STATUS and one.step_id}

    assert subjects == {(1, 1), (1, 2), (2, 1)}


def test_a_failure_is_told_with_its_reason() -> None:
    run = started(step("a"))

    fail(run, "a", "no such table")

    assert texts(run, "a", EntryType.STATUS)[-1] == "FATALLY_FAILED  no such table"


def test_an_action_is_told_with_who_and_why() -> None:
    run = started(step("a"), step("b"))

    run.act("a", Action.STOP, "no need")

    assert texts(run, "a", EntryType.ACTION) == ["STOP by tester  no need"]


def test_a_stop_of_the_instance_is_told_of_the_instance() -> None:
    run = started(step("a"))

    run.stop(Action.STOP, "enough")

    assert set(texts(run, None, EntryType.ACTION)) == {"STOP by tester  enough"}


def test_a_restart_is_told_of_the_run_that_it_makes() -> None:
    run = started(step("a"))
    fail(run, "a")

    run.restart(INCOMPLETE)

    found = [one.body.text for one in run.timeline() if one.run_id == 2 and one.step_id is None]
    assert found == ["CREATED", "The run left the queue", "RESTART by tester", "IN_PROGRESS"]


def test_a_run_that_ended_better_than_the_instance_says_so() -> None:
    run = started(step("a"), step("b"))
    fail(run, "a")
    fail(run, "b")

    run.restart(SPECIFIC, step_id="a")
    succeed(run, "a")

    assert texts(run, None)[-1] == "FAILED  The status of this run alone is SUCCEEDED"


def test_an_instance_that_was_stopped_in_the_queue_has_a_timeline_too() -> None:
    engine = pushed(step("x"))
    engine.push(
        {
            "properties": {"owner": "ann", "run_strategy": "SEQUENTIAL"},
            "workflow": {"id": "queue", "steps": [step("a")]},
        }
    )
    engine.start("queue")
    second = engine.start("queue")

    second.stop(Action.STOP, "too late")

    assert texts(second, None, EntryType.STATUS) == ["CREATED", "STOPPED  too late"]


def test_loops_are_told_of_their_header() -> None:
    run = started(noop("a", {"a": "n < 2"}, n="=params.getFromStep('step_instance_id')"))

    assert texts(run, "a", EntryType.LOG) == [
        "The loop of 'a' began iteration 2",
        "The loop of 'a' ended after iteration 2",
    ]


def test_a_refused_report_is_told_of_its_step_after_what_came_before_it() -> None:
    run = started(step("a"))
    task(run, "a").begin("one")

    task(run, "a").succeed("two")

    last = texts(run, "a")[-1]
    assert last.startswith("The report SUCCEEDED was refused: ")
    assert last.endswith("[two]")


def test_what_a_worker_says_with_a_beat_is_told() -> None:
    run = started(step("a"))
    task(run, "a").begin()
    run.engine.advance(20_000)

    task(run, "a").say(Report.HEARTBEAT, message="half of it is done")

    assert texts(run, "a")[-1] == "half of it is done  [worker-1]"


def test_the_signals_of_a_step_are_told_as_they_come() -> None:
    events = [
        c.DependenciesSet(1, "a", 1, 1, ("orders", "items"), ("{}", "{}"), 1),
        c.DependencyMatched(1, "a", 1, 1, 0, "orders", "7", 1, "{}", 2),
        c.DependencyMatched(1, "a", 1, 1, 1, "items", "", 0, "{}", 3),
    ]

    assert [one.body.text for one in timeline(events)] == [
        "The step waits for signals 'orders', 'items'",
        "The step received signal 'orders'",
        "The step no longer waits for signal 'items'",
    ]


def test_events_of_workflows_that_are_of_no_instance_are_passed_over() -> None:
    run = started(noop("a"))

    assert timeline(run.engine.events(WORKFLOW_EVENTS)[:1]) == []
