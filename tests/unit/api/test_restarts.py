"""Restarts from inside loops by HTTP: where they begin, and how what is below them restarts."""

import uuid
from typing import Any

import pytest

from tests.integration.api.places import Json, Place, step
from tests.unit.api.test_trees import Loop
from tests.unit.views.trees import foreach

INLINE_ROOT = "RESTART_FROM_INLINE_ROOT"
X = {"x": {"type": "LONG", "value": 7}}


@pytest.fixture
def failed(api: Place) -> Loop:
    """A loop that has ended: its second iteration has failed."""
    loop = Loop(api)
    loop.report(of_1="SUCCEEDED", of_2="FATAL_ERROR", of_3="SUCCEEDED")
    assert api.ended(loop.workflow_id, loop.instance_id) == "FAILED"
    return loop


def restart(loop: Loop, number: int, expected: int = 200, **body: Any) -> Json:
    """Restart the step of an iteration."""
    path = loop.inline(number, "/steps/work/actions/restart")
    answer: Json = loop.api.call("POST", path, expected, json=body)
    return answer


def again(loop: Loop, count: int) -> dict[int, object]:
    """The parameter of the tasks that are there now, by iteration."""
    found = {task["instance_id"]: task for task in loop.take(count)}
    loop.tasks.update(found)
    return {number: task["params"].get("x") for number, task in sorted(found.items())}


def test_a_restart_from_the_inline_root_gives_parameters_to_every_iteration(failed: Loop) -> None:
    answer = restart(
        failed,
        2,
        restart_policy="RESTART_FROM_BEGINNING",
        upstream_restart_mode=INLINE_ROOT,
        step_run_params=X,
    )

    assert (answer["workflow_id"], answer["workflow_run_id"]) == (failed.workflow_id, 2)
    assert again(failed, 3) == {1: 7, 2: 7, 3: 7}


def test_without_a_policy_the_inline_root_continues_with_what_is_incomplete(api: Place, failed: Loop) -> None:
    restart(failed, 1, upstream_restart_mode=INLINE_ROOT.lower(), step_run_params=X)

    assert again(failed, 1) == {2: 7}
    failed.report(of_2="SUCCEEDED")
    assert api.ended(failed.workflow_id, failed.instance_id, 2) == "SUCCEEDED"


def test_a_restart_from_the_inline_root_that_is_repeated_gives_the_same_run(failed: Loop) -> None:
    said: Json = {"upstream_restart_mode": INLINE_ROOT, "request_id": f"again-{failed.workflow_id}"}

    first, second = restart(failed, 2, **said), restart(failed, 2, **said)

    assert (first["status"], second["status"]) == ("CREATED", "DUPLICATED")
    assert (first["workflow_id"], first["workflow_run_id"]) == (second["workflow_id"], second["workflow_run_id"])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"restart_policy": "RESTART_FROM_SPECIFIC", "upstream_restart_mode": INLINE_ROOT}, "RESTART_FROM_INCOMPLETE"),
        ({"upstream_restart_mode": "RESTART_FROM_NOWHERE"}, "RESTART_FROM_INLINE_ROOT"),
        ({"upstream_restart_mode": INLINE_ROOT, "step_run_params": {"x": 1}}, "x"),
    ],
)
def test_a_wrong_combination_is_refused_with_the_reason(failed: Loop, body: Json, reason: str) -> None:
    problem = restart(failed, 2, 400, **body)

    assert reason in f"{problem['detail']} {problem['errors']}"
    assert failed.api.get(failed.at)["workflow_run_id"] == 1


def test_an_inline_root_that_runs_is_not_restarted(api: Place) -> None:
    loop = Loop(api)

    problem = restart(loop, 2, 400, upstream_restart_mode=INLINE_ROOT)

    assert "Expected the instance to have ended" in problem["detail"]


# How children restart -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "begins_with"),
    [
        (None, "second"),
        ("RESTART_FROM_SPECIFIC", "second"),
        ("RESTART_FROM_INCOMPLETE", "second"),
        ("RESTART_FROM_BEGINNING", "first"),
    ],
)
def test_the_policy_says_with_which_step_an_iteration_begins(api: Place, policy: str | None, begins_with: str) -> None:
    kind = f"by-hand-{uuid.uuid4().hex[:8]}"
    workflow_id = api.push(foreach("loop", [1], step("first", kind, "second"), step("second", kind)))
    instance_id = api.start(workflow_id)
    api.report(api.take(kind)[0], "SUCCEEDED")
    api.report(api.take(kind)[0], "FATAL_ERROR")
    assert api.ended(workflow_id, instance_id) == "FAILED"

    at = f"/workflows/{workflow_id}/instances/{instance_id}/steps/loop/actions/restart"
    api.call("POST", at, json={"restart_policy": policy})

    assert api.take(kind)[0]["step_id"] == begins_with
    config = api.get(f"/workflows/{workflow_id}/instances/{instance_id}")["run_config"]["restart_config"]
    said = None if policy == "RESTART_FROM_SPECIFIC" else policy
    assert (config["policy"], config.get("downstream_policy")) == ("RESTART_FROM_SPECIFIC", said)


def test_a_policy_that_nothing_can_come_of_is_refused(api: Place) -> None:
    workflow_id = api.push(step("plain"))
    instance_id = api.start(workflow_id)
    assert api.ended(workflow_id, instance_id) == "SUCCEEDED"

    at = f"/workflows/{workflow_id}/instances/{instance_id}/steps/plain/actions/restart"
    problem = api.call("POST", at, 400, json={"restart_policy": "RESTART_FROM_BEGINNING"})

    assert "Expected RESTART_FROM_SPECIFIC for step 'plain'" in problem["detail"]
    assert api.get(f"/workflows/{workflow_id}/instances/{instance_id}")["workflow_run_id"] == 1
