"""What a step returns or raises, as the engine is told."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from kapelle.schemas.contracts import Report
from kapelle.worker import Cancelled, Context, NonRetryable, PlatformFailure, Retryable, TaskReport
from kapelle.worker.context import LINES_MAX, MESSAGE_CHARS_MAX, SIGNALS_MAX
from kapelle.worker.execution import run_here
from kapelle.worker.steps import Step
from tests.unit.worker.samples import task


def outcome(function: Callable[..., Any], **params: Any) -> TaskReport:
    given = task(params=params)
    word = run_here(Step("load", function), given, Context(given))
    assert word is not None
    return word


def test_a_result_is_reported_with_its_outputs() -> None:
    def load(rows: int) -> dict[str, int]:
        return {"rows": rows + 1}

    word = outcome(load, rows=1)

    assert (word.report, word.outputs) == (Report.SUCCEEDED, '{"rows":{"type":"LONG","value":2}}')


def test_an_async_function_is_awaited() -> None:
    async def done() -> None: ...

    async def load(rows: int) -> dict[str, int]:
        await asyncio.wait_for(done(), 1)
        return {"rows": rows + 1}

    assert outcome(load, rows=1).outputs == '{"rows":{"type":"LONG","value":2}}'


@pytest.mark.parametrize(
    ("error", "report"),
    [
        (Retryable("later"), Report.USER_ERROR),
        (NonRetryable("never"), Report.FATAL_ERROR),
        (PlatformFailure("the disk"), Report.PLATFORM_ERROR),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_the_errors_of_the_sdk_say_what_kind_of_failure_it_is(error: Exception, report: Report, is_async: bool) -> None:
    def load() -> None:
        raise error

    async def load_async() -> None:
        raise error

    word = outcome(load_async if is_async else load)

    assert (word.report, word.message) == (report, str(error))


def test_any_other_exception_is_an_error_of_the_user_with_its_type_and_place() -> None:
    def divide(by: int) -> float:
        return 1 / by

    word = outcome(divide, by=0)

    assert word.report is Report.USER_ERROR
    first, *frames = word.message.splitlines()
    assert first == "ZeroDivisionError: division by zero"
    assert len(frames) == 1
    assert "test_execution.py" in frames[0]
    assert frames[0].endswith("in divide: return 1 / by")


def test_a_step_that_wants_to_end_the_process_only_fails() -> None:
    def load() -> None:
        raise SystemExit(3)

    assert outcome(load).message.startswith("SystemExit: 3")


def test_a_message_without_end_is_cut() -> None:
    def load() -> None:
        raise Retryable("x" * 1_000_000)

    assert len(outcome(load).message) == MESSAGE_CHARS_MAX


def test_a_parameter_that_does_not_fit_fails_for_good() -> None:
    def load(rows: int) -> None: ...

    word = outcome(load, rows="many")

    assert word.report is Report.FATAL_ERROR
    assert word.message.startswith("Expected parameter 'rows' to be int, but found 'many'")


def test_a_result_that_cannot_be_written_fails_for_good() -> None:
    def load() -> dict[str, object]:
        return {"rows": object}

    word = outcome(load)

    assert word.report is Report.FATAL_ERROR
    assert word.message.startswith("Expected output 'rows' to be a string, number, boolean, list or dictionary")


def test_what_a_step_announces_goes_with_its_result() -> None:
    def load(context: Context) -> dict[str, int]:
        context.announce("loaded", {"day": 20260701, "table": "users"}, payload={"parts": [1, None]})
        context.announce("done")
        return {"rows": 2}

    word = outcome(load)

    assert word.outputs == '{"rows":{"type":"LONG","value":2}}'
    assert json.loads(word.signals or "") == [
        {"name": "loaded", "params": {"day": 20260701, "table": "users"}, "payload": {"parts": [1, None]}},
        {"name": "done", "params": {}, "payload": {}},
    ]


def test_what_a_failed_step_announced_is_not_said() -> None:
    def load(context: Context) -> None:
        context.announce("loaded")
        raise Retryable("later")

    assert outcome(load).signals is None


@pytest.mark.parametrize(
    ("params", "payload", "message"),
    [
        ({"x": 1.5}, {}, "Expected output 'signals.loaded.x' to be a string or an integer: all else is payload"),
        ({"x": True}, {}, "Expected output 'signals.loaded.x' to be a string or an integer: all else is payload"),
        ({"x": 2**63}, {}, "Expected output 'signals.loaded.x' to be an integer of 64 bits"),
        ({"": 1}, {}, "Expected output 'signals.loaded' to be a dictionary with names as keys"),
        ({}, {"x": object}, "Expected output 'signals.loaded' to be something that can be written as JSON"),
        ({}, {"x": float("nan")}, "Expected output 'signals.loaded' to be something that can be written as JSON"),
        ({"x": "\ud800"}, {}, "Expected output 'signals.loaded' to be something that can be written as JSON"),
    ],
)
def test_a_signal_that_cannot_be_written_fails_for_good(params: Any, payload: Any, message: str) -> None:
    def load(context: Context) -> None:
        context.announce("loaded", params, payload)

    word = outcome(load)

    assert word.report is Report.FATAL_ERROR
    assert word.message.startswith(message)


def test_more_signals_than_one_step_may_announce_fail_for_good() -> None:
    def load(context: Context) -> None:
        for number in range(SIGNALS_MAX + 1):
            context.announce("loaded", {"part": number})

    word = outcome(load)

    assert (word.report, word.signals) == (Report.FATAL_ERROR, None)
    assert word.message == "Expected output 'signals' to be at most 100 of one step, but found more"


def test_signals_and_outputs_must_fit_into_one_record() -> None:
    def load(context: Context) -> dict[str, str]:
        context.announce("loaded", payload={"text": "x" * 400_000})
        return {"text": "x" * 400_000}

    word = outcome(load)

    assert word.report is Report.FATAL_ERROR
    assert word.message.startswith("Expected the step's output to be at most 750,000 bytes as JSON, with its signals")


def test_after_a_cancellation_nothing_is_reported_whatever_the_step_does() -> None:
    def returns(ctx: Context) -> None:
        ctx.cancel("stopped")

    def raises(ctx: Context) -> None:
        ctx.cancel("stopped")
        raise ValueError

    def calls(ctx: Context) -> None:
        ctx.cancel("stopped")
        ctx.heartbeat()

    given = task()

    assert [run_here(Step("load", one), given, Context(given)) for one in (returns, raises, calls)] == [None] * 3


@pytest.mark.parametrize("call", ["heartbeat", "raise_if_cancelled", "log"])
def test_every_call_of_a_cancelled_context_raises_what_no_except_exception_catches(call: str) -> None:
    context = Context(task())
    context.cancel("stopped by ann")

    with pytest.raises(Cancelled, match="stopped by ann"):
        getattr(context, call)(*(["line"] if call == "log" else []))

    assert not issubclass(Cancelled, Exception)
    assert issubclass(Cancelled, asyncio.CancelledError)


def test_log_lines_are_kept_for_the_next_word_and_bounded() -> None:
    context = Context(task())

    for number in range(LINES_MAX + 5):
        context.log(f"line {number}")
    said = context.said().splitlines()

    assert (said[0], said[-1], len(said)) == ("line 5", "line 104", LINES_MAX)
    assert context.said() == ""


def test_the_context_tells_what_is_known_of_the_attempt() -> None:
    context = Context(task(attempt=2, iteration=3, deadline_at_ms=1_700_000_000_000))

    assert (context.attempt, context.iteration, context.step_id, context.instance_id) == (2, 3, "load", 1)
    assert context.deadline.isoformat() == "2023-11-14T22:13:20+00:00"


def test_a_message_that_is_no_unicode_is_told_all_the_same() -> None:
    def load(ctx: Context) -> None:
        ctx.log("line \udcff")
        raise Retryable("file \udcff")

    context = Context(task())
    context.log("line \udcff")

    assert (outcome(load).message, context.said()) == ("file ?", "line ?")
