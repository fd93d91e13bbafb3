"""Loops with more iterations than one decision launches."""

from typing import Any

from kapelle.processors.runs.composites.counts import LAUNCHED_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from kapelle.testing.engine import RunHandle
from tests.unit.runs.flows import S, noop, started
from tests.unit.runs.flows import step as work

MANY = LAUNCHED_MAX * 3 + 7


def loop(count: int, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    values = {"i": {"type": "LONG_ARRAY", "value": list(range(count))}}
    return {
        "foreach": {
            "id": "loop",
            "params": {"loop_params": {"type": "MAP", "value": values}},
            "steps": list(steps),
            **more,
        }
    }


def launched(run: RunHandle) -> list[int]:
    return [number for one in run.events() if isinstance(one, c.ChildrenLaunched) for number in one.numbers]


def test_a_loop_of_more_iterations_than_a_decision_launches_runs_them_all_without_advancing_the_clock() -> None:
    run = started(loop(MANY, noop("inner")))

    assert run.status is InstanceStatus.SUCCEEDED
    assert launched(run) == list(range(1, MANY + 1))


def test_more_running_iterations_than_a_decision_tells_are_all_stopped() -> None:
    run = started(loop(MANY, work("inner")))
    assert launched(run) == list(range(1, MANY + 1))

    run.stop()

    assert (run.status, run.steps["loop"]) == (InstanceStatus.STOPPED, S.STOPPED)
    ended = [one.status for one in run.events() if isinstance(one, c.ChildEnded)]
    assert ended == [InstanceStatus.STOPPED] * MANY


def test_a_loop_that_fails_while_more_is_to_be_launched_ends_once() -> None:
    broken = {"v": {"type": "LONG", "expression": "1 / (i - 1)"}}
    run = started(loop(9, noop("inner", **broken), concurrency=3))

    assert (run.status, run.steps["loop"]) == (InstanceStatus.FAILED, S.FATALLY_FAILED)
    assert len(launched(run)) < 9
    assert run.engine.state("runs", run.key).fans.get((run.key, "loop")).due_at_ms is None
