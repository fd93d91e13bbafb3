"""The timeline of an instance: entries in order, with times, subjects and reasons, and no echoes."""

from typing import Any

from kapelle.processors.runs.timeline import NEWEST, Entry, EntryType, Subject, timeline
from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Report
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


def told(run: RunHandle, **more: Any) -> list[Entry]:
    """The timeline of an instance, from both histories."""
    of_workflow = [
        one for one in run.engine.events(WORKFLOW_EVENTS) if getattr(one, "instance_id", None) == run.instance_id
    ]
    return timeline([*of_workflow, *run.events()], **more)


def texts(entries: list[Entry], subject: Subject, *types: EntryType) -> list[str]:
    wanted = types or tuple(EntryType)
    return [one.text for one in entries if one.subject == subject and one.type in wanted]


A1 = Subject(1, "a", 1, 1)


def test_the_states_of_an_instance_are_told_from_its_start_to_its_end() -> None:
    run = started(noop("a"))

    assert texts(told(run), Subject(1), EntryType.STATUS) == ["CREATED", "IN_PROGRESS", "SUCCEEDED"]


def test_every_state_of_an_attempt_is_told() -> None:
    run = started(step("a"))
    task(run, "a").begin()
    succeed(run, "a")

    found = texts(told(run), A1, EntryType.STATUS)

    assert found == [*map(str, UNTIL_STARTING), "RUNNING", "FINISHING", "SUCCEEDED"]


def test_entries_have_the_time_of_their_events_and_are_in_that_order() -> None:
    run = started(step("a"))
    run.engine.advance(1_500)
    task(run, "a").begin()

    entries = told(run)

    assert [one.at_ms for one in entries] == sorted(one.at_ms for one in entries)
    running = next(one for one in entries if one.text == "RUNNING")
    assert running.at_ms == entries[0].at_ms + 1_500


def test_attempts_and_iterations_are_subjects_of_their_own() -> None:
    run = started(step("a", {"a": "more"}, more=False))
    task(run, "a").fail()
    run.engine.advance(MINUTE_MS)
    task(run, "a").succeed(more=True)

    subjects = {one.subject for one in told(run) if one.subject.step_id}

    assert subjects == {A1, Subject(1, "a", 1, 2), Subject(1, "a", 2, 1)}


def test_a_failure_is_told_with_its_reason() -> None:
    run = started(step("a"))

    fail(run, "a", "no such table")

    assert texts(told(run), A1, EntryType.DETAILS) == ["no such table"]


def test_an_action_is_told_with_who_and_why() -> None:
    run = started(step("a"), step("b"))

    run.act("a", Action.STOP, "no need")

    (found,) = [one for one in told(run) if one.type is EntryType.ACTION and one.subject == A1]
    assert found.text == "tester asked for STOP: no need"
    assert found.author == "tester"


def test_a_stop_of_the_instance_is_told_of_the_instance() -> None:
    run = started(step("a"))

    run.stop(Action.STOP, "enough")

    assert texts(told(run), Subject(1), EntryType.ACTION) == ["tester started it", "tester asked for STOP: enough"]


def test_a_restart_is_told_of_the_run_that_it_makes() -> None:
    run = started(step("a"))
    fail(run, "a")

    run.restart(INCOMPLETE)

    assert texts(told(run), Subject(2), EntryType.STATUS) == ["CREATED", "IN_PROGRESS"]
    assert "tester asked for RESTART" in texts(told(run), Subject(2), EntryType.ACTION)


def test_a_run_that_ended_better_than_the_instance_says_so() -> None:
    run = started(step("a"), step("b"))
    fail(run, "a")
    fail(run, "b")

    run.restart(SPECIFIC, step_id="a")
    succeed(run, "a")

    assert any("of all runs together the instance is FAILED" in one for one in texts(told(run), Subject(2)))


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

    assert texts(told(second), Subject(1), EntryType.STATUS) == ["CREATED", "STOPPED"]


def test_loops_are_told_of_the_instance() -> None:
    run = started(noop("a", {"a": "n < 2"}, n="=params.getFromStep('step_instance_id')"))

    found = texts(told(run), Subject(1), EntryType.DETAILS)

    assert "The loop of 'a' began iteration 2" in found
    assert "The loop of 'a' ended with iteration 2" in found


def test_a_refused_word_is_told_of_the_attempt_that_it_would_have_changed() -> None:
    run = started(step("a"))
    task(run, "a").begin("one")

    task(run, "a").succeed("two")

    assert any("SUCCEEDED of 'two' was refused" in one for one in texts(told(run), A1, EntryType.DETAILS))


def test_what_a_worker_says_with_a_beat_is_told() -> None:
    run = started(step("a"))
    task(run, "a").begin()
    run.engine.advance(20_000)

    task(run, "a").say(Report.HEARTBEAT, message="half of it is done")

    assert "half of it is done" in texts(told(run), A1)


def test_neighbours_that_tell_the_same_are_told_once() -> None:
    run = started(step("a"))
    task(run, "a").begin("one")
    for _ in range(5):
        task(run, "a").succeed("two")

    assert sum("was refused" in one for one in texts(told(run), A1)) == 1


def test_what_is_told_again_after_something_else_stays() -> None:
    begun = c.StepChanged(1, "a", 1, 1, 1, (c.StepStatus.CREATED,), 1)
    words = ["first", "second", "first"]
    refusals = [c.ReportRefused("a", "t", "w", Report.SUCCEEDED, word, 2 + at) for at, word in enumerate(words)]

    assert len(timeline([begun, *refusals])) == 4


def test_of_each_subject_the_newest_entries_are_kept_when_asked_for() -> None:
    run = started(noop("a", {"a": "n < 60"}, n="=params.getFromStep('step_instance_id')"), noop("b"))

    entries, all_entries = told(run, newest=NEWEST), told(run)

    of_run = [one for one in entries if one.subject == Subject(1)]
    assert len(of_run) == NEWEST
    assert of_run == [one for one in all_entries if one.subject == Subject(1)][-NEWEST:]
    assert texts(entries, Subject(1, "b", 1, 1)) == texts(all_entries, Subject(1, "b", 1, 1))


def test_events_of_workflows_that_are_of_no_instance_are_passed_over() -> None:
    run = started(noop("a"))

    assert timeline(run.engine.events(WORKFLOW_EVENTS)[:1]) == []
