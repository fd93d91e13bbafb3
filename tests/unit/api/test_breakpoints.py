"""Breakpoints by HTTP: set, listed and deleted; paused attempts, resumed one by one or all at once."""

import uuid
from typing import Any

import pytest

from tests.integration.api.places import Place, step, until
from tests.unit.views.trees import foreach

ROUTE = "/workflows/steps/breakpoints"
PAUSED = f"{ROUTE}/paused-step-attempts"


def push(api: Place, *steps: Any) -> str:
    return api.push(*(steps or (step("extract", "NoOp", "load"), step("load"))), run_strategy="PARALLEL")


def set_on(api: Place, name: str, step_id: str = "load", **more: Any) -> Any:
    return api.call("POST", ROUTE, json={"workflow_id": name, "step_id": step_id, **more}, headers={"user": "alice"})


def delete(api: Place, name: str, expected: int = 200, /, **params: Any) -> Any:
    return api.call("DELETE", ROUTE, expected, params={"workflowId": name, "stepId": "load", **params})


def paused(api: Place, name: str, count: int = 1) -> list[Any]:
    """The paused attempts of a workflow, once there are so many."""

    def look() -> Any:
        found = api.get(PAUSED, workflowId=name)["elements"]
        return found if len(found) == count else None

    return list(until(look, f"{count} paused attempts of {name}"))


def resume_path(attempt: dict[str, Any], **other: Any) -> str:
    """The path by which an attempt is resumed, as the list of paused attempts names it."""
    at = {**attempt, **other}
    return (
        f"{ROUTE}/{at['workflow_id']}/instances/{at['workflow_instance_id']}/runs/{at['workflow_run_id']}"
        f"/steps/{at['step_id']}/attempts/{at['step_attempt_id']}/actions/resume"
    )


def test_a_breakpoint_is_set_listed_and_deleted(api: Place) -> None:
    name = push(api)

    set_ = set_on(api, name)
    precise = set_on(api, name, workflow_instance_id=7, workflow_run_id=2, step_attempt_id=3)
    page = api.get(ROUTE, workflowId=name, stepId="load")
    gone = delete(api, name, workflowInstanceId=7, workflowRunId=2, stepAttemptId=3)
    left = api.get(ROUTE, workflowId=name)

    assert (set_["workflow_id"], set_["step_id"], set_["created_by"], set_["status"]) == (name, "load", "alice", "DONE")
    assert set_["create_time"] is not None
    assert precise["workflow_instance_id"] == 7
    assert [one["workflow_run_id"] for one in page["elements"]] == [None, 2]
    assert (gone["workflow_run_id"], gone["resume"], gone["status"]) == (2, True, "DONE")
    assert [one["step_attempt_id"] for one in left["elements"]] == [None]
    assert {one["workflow_id"] for one in api.get(ROUTE, limit=200)["elements"]} >= {name}


def test_unknown_workflows_steps_and_breakpoints_are_not_found(api: Place) -> None:
    name = push(api)

    api.call("POST", ROUTE, 404, json={"workflow_id": "nobody", "step_id": "load"})
    no_step = api.call("POST", ROUTE, 404, json={"workflow_id": name, "step_id": "nobody"})
    none = delete(api, name, 404)
    api.get(ROUTE, 404, workflowId="nobody")
    api.get(PAUSED, 404, workflowId="nobody")

    assert "but found 'nobody'" in no_step["detail"]
    assert none["detail"] == f"Expected a breakpoint of workflow '{name}' on step 'load', but there is none"


@pytest.mark.parametrize(
    "more",
    [
        {"workflow_run_id": 1},
        {"workflow_version_id": 0},
        {"workflow_instance_id": "1"},
        {"step_attempt_id": 2**31},
        {"other": 1},
    ],
)
def test_what_is_no_breakpoint_is_refused(api: Place, more: Any) -> None:
    name = push(api)

    api.call("POST", ROUTE, 400, json={"workflow_id": name, "step_id": "load", **more})

    api.get(ROUTE, 400, stepId="load")
    delete(api, name, 400, workflowRunId=1)


def test_a_request_with_the_same_id_counts_once(api: Place) -> None:
    name, key = push(api), uuid.uuid4().hex

    first = set_on(api, name, request_id=key)
    delete(api, name)
    again = set_on(api, name, request_id=key)

    assert first["request_id"] == again["request_id"] == key
    assert api.get(ROUTE, workflowId=name)["elements"] == []
    assert again["status"] == "UNCHANGED"
    assert again["step_id"] == "load"


def test_a_paused_attempt_is_listed_explained_and_resumed(api: Place) -> None:
    name = push(api)
    set_on(api, name)
    instance_id = api.start(name)

    (one,) = paused(api, name)
    shown = api.get(f"/workflows/{name}/instances/{instance_id}/steps/load")
    wrong_attempt = api.call("PUT", resume_path(one, step_attempt_id=9), 404)
    api.call("PUT", resume_path(one, workflow_run_id=9), 404)
    resumed = api.call("PUT", resume_path(one, workflow_run_id="latest"), headers={"user": "bob"})
    ended = api.ended(name, instance_id)
    api.call("PUT", resume_path(one), 400)

    assert (one["step_id"], one["workflow_version_id"], one["home_workflow_id"]) == ("load", 1, name)
    assert [found["created_by"] for found in one["breakpoints"]] == ["alice"]
    assert shown["status"] == "PAUSED"
    assert shown["pause_time"] == one["create_time"]
    assert shown["waiting_for"].startswith("a person to resume it: paused by a breakpoint of alice since 20")
    assert "which is the present one, but found 9" in wrong_attempt["detail"]
    assert (resumed["status"], resumed["workflow_instance_id"], resumed["workflow_run_id"]) == ("DONE", instance_id, 1)
    assert ended == "SUCCEEDED"
    assert api.get(PAUSED, workflowId=name)["elements"] == []


def test_a_paused_step_is_resumed_with_other_parameters(api: Place) -> None:
    name = push(api, step("load", params={"day": {"type": "LONG", "value": 1, "mode": "MUTABLE"}}))
    set_on(api, name)
    instance_id = api.start(name)
    paused(api, name)

    path = f"/workflows/{name}/instances/{instance_id}/steps/load"
    day = {"type": "LONG", "value": 7}
    api.call("PUT", f"{path}/actions/resume", json={"step_run_params": {"day": day}, "reason": "the shop was closed"})

    assert api.ended(name, instance_id) == "SUCCEEDED"
    assert api.get(path)["params"]["day"] == 7


def test_deleting_a_breakpoint_resumes_what_it_holds_unless_it_is_to_stay(api: Place) -> None:
    name = push(api)
    set_on(api, name)
    first, second = api.start(name), api.start(name)
    paused(api, name, 2)

    delete(api, name, resume=False)
    (one, other) = paused(api, name, 2)
    set_on(api, name)
    delete(api, name)

    assert (one["breakpoints"], other["breakpoints"]) == ([], [])
    assert [api.ended(name, number) for number in (first, second)] == ["SUCCEEDED"] * 2


def test_paused_iterations_are_listed_by_the_workflow_and_resumed_by_their_own_ids(api: Place) -> None:
    name = push(api, foreach("loop", [1, 2], step("load")))
    set_on(api, name)
    instance_id = api.start(name)

    (one, other) = paused(api, name, 2)
    api.call("PUT", resume_path(one))
    delete(api, name)

    assert {found["home_workflow_id"] for found in (one, other)} == {name}
    assert {found["home_instance_id"] for found in (one, other)} == {instance_id}
    assert one["workflow_id"].startswith("maestro_foreach_")
    assert api.ended(name, instance_id) == "SUCCEEDED"


def test_paused_attempts_are_pages_of_a_step_or_of_all(api: Place) -> None:
    name = push(api)
    set_on(api, name)
    for _ in range(3):
        api.start(name)
    paused(api, name, 3)

    page = api.get(PAUSED, workflowId=name, stepId="load", limit=2)
    rest = api.get(PAUSED, workflowId=name, stepId="load", limit=2, cursor=page["page_info"]["end_cursor"])
    of_all = api.get(PAUSED, limit=200)
    delete(api, name)

    found = [*page["elements"], *rest["elements"]]
    assert len({one["workflow_instance_id"] for one in found}) == 3
    assert [one["create_time"] for one in found] == sorted(one["create_time"] for one in found)
    assert (page["total_count"], rest["page_info"]["has_next_page"]) == (3, False)
    assert of_all["total_count"] >= 3
