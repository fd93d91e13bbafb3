"""Tasks and workers: what a task says, who may speak for it, leases, lost workers, and output data."""

import json

import pytest

from kapelle.processors.wiring import RUN_COMMANDS, RUN_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Criticality, Report
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import (
    BEGINNING,
    MINUTE_MS,
    ONCE,
    I,
    S,
    noop,
    passed,
    reason,
    started,
    step,
    task,
    value_of,
)

LEASE_MS = 30_000


def refusals(run: RunHandle) -> list[c.ReportRefused]:
    """The words of workers that were not taken."""
    return [one for one in run.events() if isinstance(one, c.ReportRefused)]


# What a task says -----------------------------------------------------------------------------------------------------


def test_a_task_says_what_is_to_be_done_and_for_whom() -> None:
    run = started(step("a", type="shell", sub_type="bash", script="ls"), criticality="HIGH")

    found = task(run, "a").task

    assert (found.workflow_id, found.instance_id, found.run_id) == ("flow", 1, 1)
    assert (found.step_id, found.attempt, found.iteration) == ("a", 1, 1)
    assert (found.type, found.sub_type) == ("shell", "bash")
    assert task(run, "a").params["script"] == "ls"
    assert found.criticality is Criticality.HIGH
    assert found.lease_ms == LEASE_MS


def test_the_criticality_of_a_workflow_that_says_nothing_is_medium() -> None:
    assert task(started(step("a")), "a").task.criticality is Criticality.MEDIUM


def test_a_step_may_ask_for_a_longer_lease() -> None:
    run = started(step("a", lease_seconds=90))

    assert task(run, "a").task.lease_ms == 90_000


@pytest.mark.parametrize("given", [0, -5, "long", 1.5])
def test_a_lease_that_makes_no_sense_is_the_default(given: object) -> None:
    run = started(step("a", lease_seconds=given))

    assert task(run, "a").task.lease_ms == LEASE_MS


def test_a_lease_longer_than_any_run_is_cut() -> None:
    run = started(step("a", lease_seconds=2**63 - 1))
    task(run, "a").begin()

    assert run.steps == {"a": S.RUNNING}


def test_every_attempt_has_a_token_of_its_own() -> None:
    run = started(step("a"), step("b"))
    task(run, "a").fail()
    run.engine.advance(MINUTE_MS)

    tokens = [one.task.token for one in run.engine.tasks(run)]

    assert len(set(tokens)) == 3


def test_the_idempotency_key_is_the_same_over_attempts() -> None:
    run = started(step("a"))
    task(run, "a").fail()
    run.engine.advance(MINUTE_MS)

    keys = [one.task.idempotency_key for one in run.engine.tasks(run)]

    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_the_idempotency_key_differs_from_run_to_run() -> None:
    run = started(step("a"))
    task(run, "a").succeed()

    run.restart(BEGINNING)

    assert len({one.task.idempotency_key for one in run.engine.tasks(run)}) == 2


def test_the_idempotency_key_differs_from_iteration_to_iteration() -> None:
    run = started(step("a", {"a": "more"}, more=False))
    task(run, "a").succeed(more=True)
    task(run, "a").succeed(more=True)

    assert len({one.task.idempotency_key for one in run.engine.tasks(run)}) == 3


# Leases ---------------------------------------------------------------------------------------------------------------


def test_a_worker_that_is_silent_for_its_lease_loses_the_task_to_another_at_once() -> None:
    run = started(step("a"))
    task(run, "a").begin()

    run.engine.advance(LEASE_MS)

    assert [one.task.attempt for one in run.engine.tasks(run)] == [1, 2]
    assert passed(run, "a")[-1] is S.PLATFORM_FAILED
    assert run.step_rows()["a"].retries == {"platform": 1}
    assert "'worker-1'" in run.changes("a")[-2].reason


def test_a_worker_that_is_given_up_is_told_so() -> None:
    run = started(step("a"))
    task(run, "a").begin()

    run.engine.advance(LEASE_MS)

    assert [(one.attempt, one.action) for one in run.engine.cancelled()] == [(1, Action.STOP)]


def test_a_task_that_no_worker_took_has_no_lease_to_lose() -> None:
    run = started(step("a"))

    run.engine.advance(60 * MINUTE_MS)

    assert len(run.engine.tasks(run)) == 1


def test_a_worker_that_beats_keeps_its_task() -> None:
    run = started(step("a"))
    task(run, "a").begin()

    for _ in range(10):
        run.engine.advance(LEASE_MS - 1)
        task(run, "a").beat()

    assert len(run.engine.tasks(run)) == 1


def test_a_beat_that_comes_early_writes_nothing() -> None:
    run = started(step("a"))
    task(run, "a").begin()
    before = len(run.events())

    for _ in range(5):
        run.engine.advance(1_000)
        task(run, "a").beat()

    assert len(run.events()) == before


def test_a_lease_goes_on_from_the_beat_and_with_the_length_that_the_step_asked_for() -> None:
    run = started(step("a", lease_seconds=100))
    task(run, "a").begin()
    run.engine.advance(60_000)

    task(run, "a").beat()

    assert run.step_rows()["a"].lease_at_ms == run.engine.clock.now_ms + 100_000


def test_lost_leases_are_counted_as_failures_of_the_platform() -> None:
    run = started(step("a", retry_policy={"platform_retry_limit": 2}))

    for _ in range(3):
        task(run, "a").begin()
        run.engine.advance(LEASE_MS)

    assert len(run.engine.tasks(run)) == 3
    assert run.steps == {"a": S.FATALLY_FAILED}


def test_a_lost_lease_at_the_end_of_retries_is_softened_by_the_failure_mode() -> None:
    run = started(step("a", "b", retry_policy=ONCE, failure_mode="IGNORE_FAILURE"), noop("b"))
    task(run, "a").begin()

    run.engine.advance(LEASE_MS)

    assert run.steps == {"a": S.COMPLETED_WITH_ERROR, "b": S.SUCCEEDED}


# Who may speak --------------------------------------------------------------------------------------------------------


def test_a_result_is_accepted_once() -> None:
    run = started(step("a", rows=0))
    first = task(run, "a")
    first.succeed(rows=1)

    first.succeed(rows=2)

    assert value_of(run, "a", "rows") == 1
    assert [(one.report, one.worker) for one in refusals(run)] == [(Report.SUCCEEDED, "worker-1")]


def test_a_second_worker_cannot_take_a_task_that_is_taken() -> None:
    run = started(step("a"))
    task(run, "a").begin("one")

    task(run, "a").begin("two")

    assert run.step_rows()["a"].worker == "one"
    assert "'one'" in refusals(run)[0].reason


def test_a_second_worker_cannot_answer_for_the_first() -> None:
    run = started(step("a"))
    task(run, "a").begin("one")

    task(run, "a").succeed("two")

    assert run.steps == {"a": S.RUNNING}
    assert refusals(run)[0].worker == "two"


def test_a_worker_may_answer_without_having_said_that_it_began() -> None:
    run = started(step("a"))

    task(run, "a").succeed("one")

    assert run.steps == {"a": S.SUCCEEDED}


@pytest.mark.parametrize("report", [one for one in Report if one is not Report.OTHER])
def test_a_worker_that_was_given_up_cannot_speak_for_the_attempt_after_its_own(report: Report) -> None:
    run = started(step("a"))
    late = task(run, "a")
    late.begin()
    run.engine.advance(LEASE_MS)

    late.say(report)

    assert run.steps == {"a": S.STARTING}
    assert run.step_rows()["a"].attempt == 2
    assert "another attempt" in refusals(run)[-1].reason


def test_a_worker_whose_step_waits_for_a_retry_is_refused() -> None:
    run = started(step("a"))
    task(run, "a").fail()

    task(run, "a").succeed()

    assert run.steps == {"a": S.USER_FAILED}
    assert "USER_FAILED" in refusals(run)[0].reason


def test_a_forged_token_is_refused() -> None:
    run = started(step("a"))

    task(run, "a").say(Report.SUCCEEDED, token="f" * 32)

    assert run.steps == {"a": S.STARTING}
    assert len(refusals(run)) == 1


def test_the_word_on_a_step_that_was_never_created_is_refused() -> None:
    run = started(step("a", "b"), noop("b"))
    word = c.ReportTask(task(run, "a").task.token, "b", "worker-1", Report.SUCCEEDED)

    run.engine.send(RUN_COMMANDS, run.key, word)

    assert "there is none" in refusals(run)[0].reason


def test_the_word_on_an_instance_that_does_not_exist_is_refused() -> None:
    run = started(step("a"))
    word = c.ReportTask("t", "a", "worker-1", Report.SUCCEEDED)

    run.engine.send(RUN_COMMANDS, "flow/99", word)

    assert [type(one) for one in run.engine.events(RUN_EVENTS, "flow/99")] == [c.ReportRefused]


def test_a_word_that_this_version_does_not_know_is_refused() -> None:
    run = started(step("a"))

    task(run, "a").say(Report.OTHER)

    assert run.steps == {"a": S.STARTING}
    assert len(refusals(run)) == 1


def test_a_worker_whose_name_is_a_novel_is_refused_and_its_name_cut() -> None:
    run = started(step("a"))

    task(run, "a").begin("w" * 900_000)

    assert run.steps == {"a": S.STARTING}
    assert len(refusals(run)[0].worker) == 256


def test_a_step_whose_name_is_a_novel_is_refused_and_its_name_cut() -> None:
    run = started(step("a"))
    word = c.ReportTask("t", "s" * 900_000, "worker-1", Report.SUCCEEDED)

    run.engine.send(RUN_COMMANDS, run.key, word)

    assert len(refusals(run)[0].step_id) == 256


def test_a_failure_whose_reason_is_a_novel_is_taken_and_the_reason_cut() -> None:
    others = [step(f"b{number}") for number in range(20)]
    run = started(step("a", failure_mode="FAIL_IMMEDIATELY"), *others)

    task(run, "a").fail("x" * 900_000, Report.FATAL_ERROR)

    assert run.status is I.FAILED
    assert len(reason(run, "a")) == 4_000


def test_the_word_of_a_worker_of_the_run_before_is_refused() -> None:
    run = started(step("a"))
    before = task(run, "a")
    run.stop()
    run.restart(BEGINNING)

    before.succeed()

    assert run.steps == {"a": S.STARTING}
    assert len(refusals(run)) == 1


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL])
def test_a_result_that_comes_after_the_end_of_the_run_is_refused(action: Action) -> None:
    run = started(step("a"))
    run.stop(action)

    task(run, "a").succeed()

    assert run.status is not I.SUCCEEDED
    assert len(refusals(run)) == 1


# Taking tasks back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL, Action.SKIP])
@pytest.mark.parametrize("is_begun", [True, False])
def test_an_action_on_a_step_takes_its_task_back(action: Action, is_begun: bool) -> None:
    run = started(step("a"), step("b"))
    if is_begun:
        task(run, "a").begin()

    run.act("a", action, "no need")

    (found,) = run.engine.cancelled()
    assert (found.step_id, found.action, found.reason) == ("a", action, "no need")
    assert found.token == task(run, "a").task.token


@pytest.mark.parametrize("action", [Action.STOP, Action.KILL])
def test_an_action_on_an_instance_takes_all_its_tasks_back(action: Action) -> None:
    run = started(step("a"), step("b"), noop("c"))

    run.stop(action)

    assert {one.step_id for one in run.engine.cancelled()} == {"a", "b"}


def test_nothing_is_taken_back_where_no_worker_has_a_task() -> None:
    run = started(step("a"))
    task(run, "a").fail()

    run.act("a", Action.STOP)

    assert run.engine.cancelled() == []


# Giving tasks back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_task_that_a_worker_gives_back_goes_to_another_at_once_and_counts_as_no_retry(is_begun: bool) -> None:
    run = started(step("a", retry_policy=ONCE))
    first = task(run, "a")
    if is_begun:
        first.begin()

    first.say(Report.RETURNED, message="the worker was stopped")

    assert [one.task.attempt for one in run.engine.tasks(run)] == [1, 2]
    assert [change.reason for change in run.changes("a") if S.PLATFORM_FAILED in change.statuses] == [
        "the worker was stopped"
    ]
    assert run.step_rows()["a"].retries == {}


def test_a_task_may_be_given_back_any_number_of_times() -> None:
    run = started(step("a", retry_policy=ONCE))

    for _ in range(30):
        task(run, "a").say(Report.RETURNED)
    task(run, "a").succeed()

    assert run.status is I.SUCCEEDED
    assert len({one.task.token for one in run.engine.tasks(run)}) == 31


def test_a_worker_that_gave_its_task_back_is_refused_from_then_on() -> None:
    run = started(step("a"))
    first = task(run, "a")
    first.say(Report.RETURNED)

    first.succeed()

    assert run.steps == {"a": S.STARTING}
    assert "another attempt" in refusals(run)[0].reason


def test_a_task_of_a_step_that_must_not_run_twice_is_given_to_nobody_else() -> None:
    run = started(step("a", idempotent=False))

    task(run, "a").say(Report.RETURNED, message="the worker was stopped")

    assert run.steps == {"a": S.FATALLY_FAILED}
    assert reason(run, "a") == "the worker was stopped"


# What steps write -----------------------------------------------------------------------------------------------------


def logged(run: RunHandle) -> list[str]:
    """What steps wrote, in the order of the history."""
    return [one.text for one in run.events() if isinstance(one, c.StepLogged)]


@pytest.mark.parametrize("report", [one for one in Report if one is not Report.OTHER])
def test_what_a_step_wrote_is_kept_with_whatever_its_worker_says(report: Report) -> None:
    run = started(step("a"))
    word = c.ReportTask(task(run, "a").task.token, "a", "worker-1", report, log="one\ntwo")

    run.engine.send(RUN_COMMANDS, run.key, word)

    assert logged(run) == ["one\ntwo"]


def test_a_beat_that_comes_early_keeps_its_message_and_not_the_lease() -> None:
    run = started(step("a"))
    task(run, "a").begin()

    task(run, "a").say(Report.HEARTBEAT, message="half way")

    assert logged(run) == ["half way"]
    assert not [one for one in run.events() if isinstance(one, c.LeaseRenewed)]


def test_the_reason_of_a_failure_is_no_line_of_the_log() -> None:
    run = started(step("a"))

    task(run, "a").fail("the disk is full")

    assert logged(run) == []


def test_what_a_step_writes_after_its_attempt_is_over_is_refused() -> None:
    run = started(step("a"))
    first = task(run, "a")
    first.succeed()

    first.say(Report.HEARTBEAT, message="still here")

    assert logged(run) == []
    assert len(refusals(run)) == 1


def test_a_step_that_writes_a_novel_is_heard_and_the_novel_cut() -> None:
    run = started(step("a"))

    task(run, "a").say(Report.HEARTBEAT, message="x" * 900_000)

    assert len(logged(run)[0]) == 16_384


# Output data ----------------------------------------------------------------------------------------------------------


def test_output_data_replaces_the_parameters_of_the_step() -> None:
    run = started(step("a", rows=0, name="x"))

    task(run, "a").succeed(rows=5)

    assert run.params("a") == {"rows": 5, "name": "x"}


def test_output_data_of_maps_is_merged() -> None:
    run = started(step("a", tags={"type": "STRING_MAP", "value": {"a": "1", "b": "2"}}))

    task(run, "a").say(Report.SUCCEEDED, outputs={"tags": {"type": "STRING_MAP", "value": {"b": "3"}}})

    assert run.params("a")["tags"] == {"a": "1", "b": "3"}


def test_the_next_steps_read_output_data() -> None:
    run = started(step("a", "b", rows=0), step("b", twice="=a__rows * 2"))

    task(run, "a").succeed(rows=21)

    assert task(run, "b").params["twice"] == 42


@pytest.mark.parametrize(
    ("outputs", "text"),
    [
        ({"other": {"type": "LONG", "value": 1}}, "not defined in params"),
        ({"fixed": {"type": "LONG", "value": 2}}, "IMMUTABLE"),
        ({"rows": {"type": "STRING", "value": "many"}}, "rows"),
        ({"rows": {"type": "LONG", "expression": "1 + 1"}}, "literal"),
        ({"rows": {"type": "LONG", "value": 10**30}}, "rows"),
        ({"rows": {"type": "NUMBER", "value": 1}}, "NUMBER"),
        ({"rows": 5}, "rows"),
        ({"rows": None}, "rows"),
        (["rows"], "object"),
        ({"text": {"type": "STRING", "value": "x" * 760_000}}, "750,000"),
    ],
)
def test_output_data_that_does_not_fit_fails_the_step_with_the_reason(outputs: object, text: str) -> None:
    fixed = {"type": "LONG", "value": 1, "mode": "IMMUTABLE"}
    run = started(step("a", "b", rows=0, text="", fixed=fixed), noop("b"))

    task(run, "a").say(Report.SUCCEEDED, outputs=outputs)  # type: ignore[arg-type]  # a worker may send anything

    assert passed(run, "a")[-2:] == [S.FINISHING, S.INTERNALLY_FAILED]
    assert text in reason(run, "a")
    assert run.status is I.FAILED


def test_output_data_is_measured_in_bytes_and_not_in_characters() -> None:
    run = started(step("a", one="", two=""))
    one = {"type": "STRING", "value": 150_000 * "€"}
    text = json.dumps({"one": one, "two": one}, ensure_ascii=False)
    word = c.ReportTask(task(run, "a").task.token, "a", "worker-1", Report.SUCCEEDED, "", text)

    run.engine.send(RUN_COMMANDS, run.key, word)

    assert run.steps == {"a": S.INTERNALLY_FAILED}


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "", "{", "null", '{"rows": {"type": "DOUBLE", "value": 1e999}}', '"\\ud800"']
)
def test_output_data_that_is_no_json_object_fails_the_step(text: str) -> None:
    run = started(step("a", rows=0.5))
    word = c.ReportTask(task(run, "a").task.token, "a", "worker-1", Report.SUCCEEDED, "", text)

    run.engine.send(RUN_COMMANDS, run.key, word)

    assert run.steps == {"a": S.INTERNALLY_FAILED}


def test_output_data_of_a_failure_is_not_taken() -> None:
    run = started(step("a", "b", rows=0, failure_mode="IGNORE_FAILURE", retry_policy=ONCE), noop("b"))

    task(run, "a").say(Report.USER_ERROR, outputs={"rows": {"type": "LONG", "value": 9}})

    assert run.params("a") == {"rows": 0}
