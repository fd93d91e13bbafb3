"""Breakpoints and limits in the test kit."""

from typing import Any

import pytest

from kapelle.testing import Engine, Refused, RunHandle, assert_run, assert_step


def pushed(engine: Engine, workflow_id: str = "etl", **step: Any) -> str:
    """A workflow with a step `load` for a worker."""
    load = {"id": "load", "type": "load", "params": {"rows": {"type": "LONG", "value": 3}}, **step}
    return engine.push({"properties": {"owner": "ann"}, "workflow": {"id": workflow_id, "steps": [{"step": load}]}})


def fields_of(engine: Engine, workflow_id: str = "etl") -> list[tuple[str, int | None, int | None, int | None]]:
    return [
        (point.step_id, point.version, point.instance_id, point.attempt) for point in engine.breakpoints(workflow_id)
    ]


def test_a_pointpauses_until_it_is_deleted(engine: Engine) -> None:
    point = engine.breakpoint(pushed(engine), "load")
    run = engine.start("etl")
    assert_step(run, "load", "PAUSED")
    assert engine.tasks(run) == []

    point.delete()

    engine.task(run, "load").succeed()
    assert_run(run, "SUCCEEDED")


def test_a_pointon_a_run_is_for_that_instance(engine: Engine) -> None:
    pushed(engine)
    engine.breakpoint("etl", "load", attempt=2)
    run = engine.start("etl")

    engine.breakpoint(run, "load", version=1)

    assert fields_of(engine) == [("load", None, None, 2), ("load", 1, 1, None)]
    assert_step(run, "load", "STARTING")


def test_breakpoints_of_other_workflows_are_not_listed(engine: Engine) -> None:
    engine.breakpoint(pushed(engine), "load")
    engine.breakpoint(pushed(engine, "etl2"), "load")

    assert fields_of(engine, "etl2") == [("load", None, None, None)]


def test_a_listed_pointcan_be_deleted_and_set_again(engine: Engine) -> None:
    engine.breakpoint(pushed(engine), "load", attempt=1)
    [listed] = engine.breakpoints("etl")

    listed.delete()
    assert engine.breakpoints("etl") == []
    listed.set()

    assert fields_of(engine) == [("load", None, None, 1)]


def test_a_deleted_pointmay_leave_its_attempts_paused(engine: Engine) -> None:
    point = engine.breakpoint(pushed(engine), "load")
    run = engine.start("etl")

    point.delete(resume=False)

    assert_step(run, "load", "PAUSED")
    run.resume("load")
    assert_step(run, "load", "STARTING")


def test_a_paused_attempt_has_parameters_and_may_be_resumed_with_others(engine: Engine) -> None:
    engine.breakpoint(pushed(engine), "load")
    run = engine.start("etl")
    assert run.params("load")["rows"] == 3

    run.resume("load", {"rows": 5})

    assert engine.task(run, "load").params["rows"] == 5
    assert run.params("load")["rows"] == 5


def test_wrong_requests_are_refused(engine: Engine) -> None:
    pushed(engine)
    with pytest.raises(Refused, match="Expected a step of version 1"):
        engine.breakpoint("etl", "unload")
    point = engine.breakpoint("etl", "load")
    run = engine.start("etl")
    with pytest.raises(Refused):
        run.resume("load", attempt=2)
    assert_step(run, "load", "PAUSED")
    point.delete()
    with pytest.raises(Refused, match="but there is none"):
        point.delete()
    with pytest.raises(Refused):
        run.resume("load")
    with pytest.raises(Refused, match="Expected tag of at most 256 characters"):
        engine.limit("x" * 257, 1)
    assert len(engine.refusals()) == 5


def test_a_request_that_nobody_can_read_is_an_error(engine: Engine) -> None:
    with pytest.raises(AssertionError, match="Expected an answer to SetLimit"):
        engine.limit("gpu", -1)


def started(engine: Engine) -> list[RunHandle]:
    """Two instances that run, of workflows whose steps have the tag `gpu`."""
    return [engine.start(pushed(engine, workflow_id, tags=["gpu"])) for workflow_id in ("a", "b")]


def test_a_limit_lets_so_many_steps_run_and_each_end_admits_the_next(engine: Engine) -> None:
    engine.limit("gpu", 1)
    first, second = started(engine)
    assert_step(first, "load", "STARTING")
    assert_step(second, "load", "WAITING_FOR_PERMITS")

    engine.task(first, "load").succeed()

    assert_step(second, "load", "STARTING")


@pytest.mark.parametrize("most", [2, None])
def test_a_higher_limit_or_none_admits_those_that_wait(engine: Engine, most: int | None) -> None:
    engine.limit("gpu", 1)
    _, second = started(engine)

    engine.limit("gpu", most)

    assert_step(second, "load", "STARTING")
