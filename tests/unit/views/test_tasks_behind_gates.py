"""Tasks of attempts that have waited: whatever they waited for, workers find them."""

import pytest

from kapelle.schemas.contracts import StepStatus
from kapelle.testing.engine import Engine, RunHandle
from kapelle.views import Views
from kapelle.views.queries import tasks
from tests.unit.views.histories import TYPE, definition, dump, fold, view_of

GATES = ("signal", "breakpoint", "permit")


def behind(*gates: str) -> tuple[Engine, RunHandle, Views]:
    """A step of a worker has passed all these gates, and has waited at each. The view has seen each wait."""
    engine = Engine()
    step: dict[str, object] = {"id": "a", "type": TYPE}
    if "signal" in gates:
        step["signal_dependencies"] = [{"name": "go"}]
    if "permit" in gates:
        step["tags"] = ["gpu"]
        engine.limit("gpu", 0)
    engine.push(definition("etl", {"step": step}))
    if "breakpoint" in gates:
        engine.breakpoint("etl", "a")
    run = engine.start("etl")
    views = view_of(engine)
    for gate in gates:
        if gate == "signal":
            engine.announce("go")
        elif gate == "breakpoint":
            run.resume("a")
        else:
            assert run.steps["a"] is StepStatus.WAITING_FOR_PERMITS
            engine.limit("gpu", 1)
        fold(views)
    return engine, run, views


@pytest.mark.parametrize("gates", [GATES[:2], GATES[1:], GATES[::2], GATES, *((gate,) for gate in GATES)], ids="-".join)
def test_a_task_is_found_whatever_its_attempt_has_waited_for(gates: tuple[str, ...]) -> None:
    engine, run, views = behind(*gates)
    before = views.read(tasks.waiting, [TYPE], 10)

    engine.task(run, "a").begin("w1")
    fold(views)

    assert [(task.workflow_id, task.step_id) for task in before] == [("etl", "a")]
    assert views.read(tasks.waiting, [TYPE], 10) == []
    assert dump(views.database)["tasks"] == dump(view_of(engine).database)["tasks"]
