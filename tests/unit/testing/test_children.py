"""The test kit knows the children of composite steps: their status, parameters and steps."""

import pytest

from kapelle.client import Workflow
from kapelle.testing import Engine, RunHandle, assert_run, assert_step


@pytest.fixture
def run(engine: Engine) -> RunHandle:
    child = Workflow("load", owner="ann")
    child.step("copy", "work")
    flow = Workflow("flow", owner="ann", params={"day": 20260701})
    loop = flow.foreach("regions", {"region": ["eu", "us"]})
    loop.step("fetch", "work", params={"rows": 0})
    rounds = flow.repeat_while("again", "n < 2", values={"n": 0})
    rounds.step("count", "NoOp", params={"n": 2})
    flow.subworkflow("sub", engine.push(child))
    return engine.start(engine.push(flow))


def test_iterations_have_a_status_parameters_and_steps(engine: Engine, run: RunHandle) -> None:
    first, second = run.iterations("regions")
    engine.task(first, "fetch").succeed(rows=3)
    engine.task(second, "fetch").fail()

    assert (first.params()["region"], first.params()["day"], second.params()["region"]) == ("eu", 20260701, "us")
    assert first.params("fetch")["rows"] == 3
    assert_run(first, "SUCCEEDED")
    assert_step(second, "fetch", "USER_FAILED")


def test_an_iteration_is_stopped_by_its_handle(run: RunHandle) -> None:
    _, second = run.iterations("regions")

    second.stop(reason="enough")

    assert_run(second, "STOPPED")
    assert_run(run, "IN_PROGRESS")


def test_rounds_of_a_while_step_are_iterations_too(run: RunHandle) -> None:
    (only,) = run.iterations("again")

    assert_run(only, "SUCCEEDED")
    assert only.params()["loop_index"] == 0


def test_the_child_of_a_subworkflow_step_is_a_run_like_any_other(engine: Engine, run: RunHandle) -> None:
    child = run.child("sub")
    engine.task(child, "copy").succeed()

    assert child.key == "load/1"
    assert_run(child, "SUCCEEDED")
    assert_step(run, "sub", "SUCCEEDED")


def test_a_step_without_children_has_none(run: RunHandle) -> None:
    first, _ = run.iterations("regions")

    assert first.iterations("fetch") == []
    with pytest.raises(AssertionError, match=r"Expected step 'fetch' of .* to have started a subworkflow"):
        first.child("fetch")


def test_a_step_of_an_iteration_is_restarted_from_the_inline_root(engine: Engine, run: RunHandle) -> None:
    _, second = run.iterations("regions")
    run.stop()

    second.restart(
        step_id="fetch", step_run_params={"fetch": {"rows": {"type": "LONG", "value": 9}}}, from_inline_root=True
    )

    assert [engine.task(one, "fetch").params["rows"] for one in run.iterations("regions")] == [9, 9]
