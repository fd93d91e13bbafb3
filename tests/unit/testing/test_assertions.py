"""Assertions of the test kit hold when they should, and explain themselves when they do not."""

import json
from pathlib import Path

import pytest

from kapelle.client import Workflow
from kapelle.schemas.contracts import StepChanged
from kapelle.testing import Engine, Refused, RunHandle, assert_event, assert_not_run, assert_run, assert_step
from kapelle.testing.definitions import Definition


def two_steps() -> Workflow:
    flow = Workflow("flow", owner="ann")
    flow.step("a", "work") >> flow.step("b", "NoOp")
    return flow


@pytest.fixture
def run(engine: Engine) -> RunHandle:
    return engine.start(engine.push(two_steps()))


def failed(raised: pytest.ExceptionInfo[AssertionError]) -> str:
    """The message without the timeline."""
    message, _, timeline = str(raised.value).partition("\n\n")
    assert "a  STARTING" in timeline
    return message


def test_a_status_that_differs_is_told_with_the_timeline(run: RunHandle) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_run(run, "SUCCEEDED")

    assert failed(raised) == "Expected flow/1 to be SUCCEEDED, but it is IN_PROGRESS"


def test_a_step_that_was_not_created_is_told_with_those_that_were(run: RunHandle) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_step(run, "nothing", "SUCCEEDED")

    assert failed(raised) == "Expected step 'nothing' of flow/1 to be SUCCEEDED, but it was not created: there is a"


def test_another_attempt_than_expected_is_told(run: RunHandle) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_step(run, "a", "STARTING", attempts=2)

    assert failed(raised) == "Expected step 'a' of flow/1 to be STARTING at attempt 2, but it is at attempt 1"


def test_a_step_that_runs_although_it_should_not_is_told(run: RunHandle) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_not_run(run, "a")

    assert failed(raised) == "Expected step 'a' of flow/1 not to run, but it is STARTING"


def test_an_event_that_is_missing_is_told_with_what_there_is_of_its_kind(run: RunHandle) -> None:
    with pytest.raises(AssertionError) as raised:
        assert_event(run, "StepChanged", step_id="b")

    assert failed(raised) == (
        "Expected an event StepChanged(step_id='b') of flow/1, but found 1 of them without these fields"
    )


def test_an_event_that_is_there_is_given(run: RunHandle) -> None:
    found = assert_event(run, "StepChanged", step_id="a")

    assert isinstance(found, StepChanged)
    assert found.step_id == "a"


@pytest.mark.parametrize("form", ["built", "object", "text", "json file", "yaml file"])
def test_a_definition_may_be_pushed_in_every_form(engine: Engine, tmp_path: Path, form: str) -> None:
    (tmp_path / "flow.json").write_text(two_steps().to_json())
    (tmp_path / "flow.yaml").write_text("Workflow: {id: flow, owner: ann, jobs: [{job: {id: a, type: work}}]}")
    forms: dict[str, Definition] = {
        "built": two_steps(),
        "object": two_steps().as_json(),
        "text": json.dumps(two_steps().as_json()),
        "json file": tmp_path / "flow.json",
        "yaml file": tmp_path / "flow.yaml",
    }

    run = engine.start(engine.push(forms[form]))

    assert_step(run, "a", "STARTING")


def test_a_definition_that_is_refused_says_all_that_is_wrong_with_it(engine: Engine) -> None:
    wrong = {"properties": {"owner": "ann"}, "workflow": {"id": "flow", "steps": [{"step": {"id": "a", "tpe": "x"}}]}}

    with pytest.raises(Refused, match=r"workflow\.steps\[0\]\.step\.tpe"):
        engine.push(wrong)


def test_a_signal_that_is_none_is_refused_with_the_reason(engine: Engine) -> None:
    with pytest.raises(AssertionError, match="strings or integers of 64 bits"):
        engine.announce("orders", {"share": 0.5})  # type: ignore[dict-item] # what a user gets wrong


def test_a_signal_of_a_time_that_is_forgotten_is_too_late(engine: Engine) -> None:
    then_ms = engine.clock.now_ms
    engine.announce("orders", {"day": 1}, happened_at_ms=then_ms)
    for day in (8, 15):
        engine.advance(7 * 86_400_000)
        engine.announce("orders", {"day": day})

    assert engine.announce("orders", {"day": 1}, happened_at_ms=then_ms) == "TOO_LATE"


def test_an_operator_may_be_played_in_words(engine: Engine) -> None:
    engine.push(
        {
            "properties": {"owner": "ann"},
            "workflow": {
                "id": "etl",
                "steps": [{"step": {"id": "load", "type": "NoOp", "signal_dependencies": [{"name": "orders"}]}}],
            },
        }
    )
    run = engine.start("etl")

    run.stop("KILL")
    assert_run(run, "FAILED")
    run.restart("RESTART_FROM_BEGINNING")
    run.act("load", "BYPASS")

    assert_run(run, "SUCCEEDED")
