"""Retries: how many there are of which kind, how long each waits, and who is never tried again."""

import pytest

from kapelle.processors.definitions import Backoff, BackoffType, RetryPolicy, Step, StepKind
from kapelle.processors.runs.retries import Kind, delay_ms, limit_of, retry_of
from kapelle.schemas.contracts import Report
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import MINUTE_MS, I, S, noop, param, passed, pushed, reason, started, step, task

BIG_MS = 24 * 60 * MINUTE_MS


def nothing(name: str) -> object:
    raise KeyError(name)


def fail_until_it_is_over(run: RunHandle, report: Report) -> int:
    """Fail every attempt, and say how many there were."""
    for _ in range(200):
        if run.status is not I.IN_PROGRESS:
            return len(run.engine.tasks(run))
        task(run, "a").fail(report=report)
        run.engine.advance(2 * 60 * MINUTE_MS)
    raise AssertionError("Expected an end of retries, but there was none")


# How often ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("report", "attempts"), [(Report.USER_ERROR, 3), (Report.PLATFORM_ERROR, 11)])
def test_a_step_that_says_nothing_is_tried_again_as_often_as_the_default_says(report: Report, attempts: int) -> None:
    run = started(step("a"))

    assert fail_until_it_is_over(run, report) == attempts
    assert run.steps == {"a": S.FATALLY_FAILED}


@pytest.mark.parametrize(
    ("report", "limit"), [(Report.USER_ERROR, "error_retry_limit"), (Report.PLATFORM_ERROR, "platform_retry_limit")]
)
def test_a_limit_of_retries_counts_its_own_kind(report: Report, limit: str) -> None:
    run = started(step("a", retry_policy={limit: 4}))

    assert fail_until_it_is_over(run, report) == 5


def test_a_limit_of_no_retries_fails_the_step_at_the_first_error() -> None:
    run = started(step("a", retry_policy={"error_retry_limit": 0}))

    task(run, "a").fail("no such table")

    assert run.steps == {"a": S.FATALLY_FAILED}
    assert reason(run, "a") == "no such table"


@pytest.mark.parametrize("written", ["$tries", "${tries}"])
def test_a_limit_may_be_a_parameter_of_the_workflow(written: str) -> None:
    run = started(step("a", retry_policy={"error_retry_limit": written}), params={"tries": 1})

    assert fail_until_it_is_over(run, Report.USER_ERROR) == 2


def test_a_limit_that_turns_out_to_be_no_number_is_the_default() -> None:
    engine = pushed(step("a", retry_policy={"error_retry_limit": "$tries"}), params={"tries": "3"})
    run = engine.start("flow", run_params={"tries": param("many")})

    assert fail_until_it_is_over(run, Report.USER_ERROR) == 3


def test_errors_of_the_work_and_of_the_platform_are_counted_apart() -> None:
    run = started(step("a", retry_policy={"error_retry_limit": 1, "platform_retry_limit": 1}))

    task(run, "a").fail(report=Report.PLATFORM_ERROR)
    run.engine.advance(MINUTE_MS)
    task(run, "a").fail(report=Report.USER_ERROR)
    run.engine.advance(MINUTE_MS)

    assert run.step_rows()["a"].attempt == 3
    assert run.step_rows()["a"].retries == {"platform": 1, "error": 1}


def test_an_error_that_no_retry_will_mend_is_not_tried_again() -> None:
    run = started(step("a"))

    task(run, "a").fail("bad query", Report.FATAL_ERROR)

    assert run.steps == {"a": S.FATALLY_FAILED}
    assert run.status is I.FAILED


@pytest.mark.parametrize("report", [Report.USER_ERROR, Report.PLATFORM_ERROR])
def test_a_step_that_is_not_idempotent_is_never_tried_again(report: Report) -> None:
    run = started(step("a", idempotent=False))

    task(run, "a").fail(report=report)

    assert run.steps == {"a": S.FATALLY_FAILED}


def test_a_step_that_is_not_idempotent_is_not_tried_again_after_a_lost_lease() -> None:
    run = started(step("a", idempotent=False))
    task(run, "a").begin()

    run.engine.advance(30_000)

    assert run.steps == {"a": S.FATALLY_FAILED}
    assert len(run.engine.tasks(run)) == 1


def test_a_step_that_is_not_idempotent_is_not_tried_again_after_a_time_out() -> None:
    run = started(step("a", idempotent=False, timeout=60, retry_policy={"timeout_retry_limit": 3}))

    run.engine.advance(MINUTE_MS)

    assert run.steps == {"a": S.TIMED_OUT}


# What a retry is ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "status"), [(Report.USER_ERROR, S.USER_FAILED), (Report.PLATFORM_ERROR, S.PLATFORM_FAILED)]
)
def test_an_attempt_that_is_tried_again_ends_in_the_state_of_its_kind(report: Report, status: S) -> None:
    run = started(step("a"))

    task(run, "a").fail("it broke", report)

    assert run.steps == {"a": status}
    assert reason(run, "a") == "it broke"


def test_a_retry_is_an_attempt_of_its_own_from_the_beginning() -> None:
    run = started(step("a"))
    task(run, "a").fail()

    run.engine.advance(MINUTE_MS)

    assert passed(run, "a", attempt=2)[0] is S.CREATED
    assert run.steps == {"a": S.STARTING}
    assert task(run, "a").task.attempt == 2


def test_a_retry_evaluates_the_parameters_anew() -> None:
    run = started(step("a", tries="=params.getFromStep('MAESTRO_STEP_ERROR_RETRIES')"))
    task(run, "a").fail()

    run.engine.advance(MINUTE_MS)

    assert [one.params["tries"] for one in run.engine.tasks(run)] == [0, 1]


def test_a_run_goes_on_behind_a_step_that_succeeds_at_its_second_attempt() -> None:
    run = started(step("a", "b"), noop("b"))
    task(run, "a").fail()
    run.engine.advance(MINUTE_MS)

    task(run, "a").succeed()

    assert run.steps == {"a": S.SUCCEEDED, "b": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED


def test_a_retry_whose_parameters_cannot_be_evaluated_fails_for_good() -> None:
    again = "params.getFromStep('step_attempt_id')"
    run = started(step("a", x=f"=100 / (2 - {again})"))
    task(run, "a").fail()

    run.engine.advance(MINUTE_MS)

    assert run.steps == {"a": S.INTERNALLY_FAILED}


# How long -------------------------------------------------------------------------------------------------------------


def test_a_retry_waits_for_its_delay_and_no_longer() -> None:
    run = started(step("a"))
    task(run, "a").fail()
    wait_ms = (run.step_rows()["a"].due_at_ms or 0) - run.engine.clock.now_ms

    run.engine.advance(wait_ms - 1)
    before = len(run.engine.tasks(run))
    run.engine.advance(1)

    assert before == 1
    assert len(run.engine.tasks(run)) == 2


EXPONENTIAL = {
    # kind: delays in seconds before the first retries, without jitter
    Kind.ERROR: [60, 120, 240, 480, 600, 600],
    Kind.PLATFORM: [60, 120, 240, 480, 960, 1920, 3600, 3600],
    Kind.TIMEOUT: [60, 120, 240, 480, 960, 1920, 3600, 3600],
}


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("seed", ["w/1/1/a/1/1", "w/2/1/b/1/3", "x"])
def test_an_exponential_delay_grows_to_its_limit_and_jitter_takes_a_quarter_at_most(kind: Kind, seed: str) -> None:
    for made, seconds in enumerate(EXPONENTIAL[kind]):
        found = delay_ms(Backoff(), kind, made, lookup=nothing, seed=seed)

        assert 750 * seconds <= found <= 1000 * seconds


@pytest.mark.parametrize("kind", list(Kind))
def test_a_fixed_delay_stays_as_it_is(kind: Kind) -> None:
    backoff = Backoff(BackoffType.FIXED_BACKOFF)

    delays = [delay_ms(backoff, kind, made, lookup=nothing, seed="s") for made in range(6)]

    assert all(45_000 <= one <= 60_000 for one in delays)


def test_the_same_attempt_waits_as_long_whenever_it_is_asked() -> None:
    one = delay_ms(Backoff(), Kind.ERROR, 1, lookup=nothing, seed="w/1/1/a/1/2")
    two = delay_ms(Backoff(), Kind.ERROR, 1, lookup=nothing, seed="w/1/1/a/1/2")

    assert one == two


def test_attempts_that_failed_together_do_not_come_back_together() -> None:
    delays = {delay_ms(Backoff(), Kind.ERROR, 0, lookup=nothing, seed=f"w/{n}/1/a/1/1") for n in range(20)}

    assert len(delays) > 15


def test_delays_may_be_written_for_each_kind() -> None:
    backoff = Backoff(error_retry_backoff_in_secs="$wait", platform_retry_backoff_in_secs=5, platform_retry_exponent=3)

    error = delay_ms(backoff, Kind.ERROR, 0, lookup={"wait": "8"}.__getitem__, seed="s")
    platform = delay_ms(backoff, Kind.PLATFORM, 2, lookup=nothing, seed="s")

    assert 6_000 <= error <= 8_000
    assert 33_750 <= platform <= 45_000


@pytest.mark.parametrize("written", ["$gone", "soon", "9" * 30])
def test_a_delay_that_cannot_be_read_is_the_default(written: str) -> None:
    found = delay_ms(Backoff(error_retry_backoff_in_secs=written), Kind.ERROR, 0, lookup=nothing, seed="s")

    assert 45_000 <= found <= 60_000


def test_no_delay_is_longer_than_a_day() -> None:
    backoff = Backoff(
        error_retry_backoff_in_secs=2**62, error_retry_exponent=2**62, error_retry_limit_in_secs=2**63 - 1
    )

    assert delay_ms(backoff, Kind.ERROR, 98, lookup=nothing, seed="s") <= BIG_MS


def test_a_delay_of_nothing_tries_again_at_once() -> None:
    backoff = {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": "$wait"}
    engine = pushed(step("a", retry_policy={"backoff": backoff}), params={"wait": 5})
    run = engine.start("flow", run_params={"wait": param(0)})

    task(run, "a").fail()

    assert task(run, "a").task.attempt == 2


# The function by itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "limit"), [(Kind.ERROR, 2), (Kind.PLATFORM, 10), (Kind.TIMEOUT, 0)])
def test_the_defaults_allow_so_many_retries(kind: Kind, limit: int) -> None:
    made = Step(StepKind.STEP, "a", "shell")

    assert limit_of(RetryPolicy(), kind, nothing) == limit
    assert retry_of(made, kind, limit, lookup=nothing, seed="s") is None
    assert limit == 0 or retry_of(made, kind, limit - 1, lookup=nothing, seed="s") is not None
