"""Composite steps by HTTP: iterations and children have addresses, by which they are read, ended and restarted."""

import uuid
from typing import Any

import pytest

from tests.integration.api.places import Json, Place, step, until
from tests.unit.views.trees import foreach, subworkflow

KIND = "by-hand"


class Loop:
    """A loop of three iterations that wait for workers."""

    def __init__(self, api: Place, **more: Any) -> None:
        self.api = api
        self.kind = f"{KIND}-{uuid.uuid4().hex[:8]}"
        self.workflow_id = api.push(foreach("loop", [10, 20, 30], step("work", self.kind), **more))
        self.instance_id = api.start(self.workflow_id)
        self.at = f"/workflows/{self.workflow_id}/instances/{self.instance_id}"
        self.tasks = {task["instance_id"]: task for task in self.take(3)}
        self.inline_id = self.tasks[1]["workflow_id"]

    def take(self, count: int) -> list[Json]:
        found: list[Json] = []
        while len(found) < count:
            found += self.api.take(self.kind, most=count)
        return found

    def inline(self, number: int, path: str = "") -> str:
        return f"/workflows/{self.inline_id}/instances/{number}{path}"

    def report(self, **reports: str) -> None:
        for number, report in reports.items():
            self.api.report(self.tasks[int(number.removeprefix("of_"))], report)


@pytest.fixture
def loop(api: Place) -> Loop:
    return Loop(api)


def test_an_iteration_is_read_by_its_own_id(api: Place, loop: Loop) -> None:
    loop.report(of_2="SUCCEEDED")
    assert api.ended(loop.inline_id, 2) == "SUCCEEDED"

    found = api.get(loop.inline(2), enriched=True, aggregated=True)

    assert found["params"]["loop_i"] == 20
    assert (found["parent"]["workflow_id"], found["parent"]["number"]) == (loop.workflow_id, 2)
    assert found["aggregated_info"]["step_aggregated_views"]["work"]["status"] == "SUCCEEDED"
    assert [one["step_id"] for one in api.get(loop.inline(2, "/steps"))] == ["work"]
    assert api.get(loop.inline(2, "/steps/work"))["status"] == "SUCCEEDED"
    assert api.get(loop.inline(2, "/timeline"))["elements"]
    assert api.get(loop.inline(2, "/events"))["elements"]
    assert api.get(loop.inline(2, "/runs"))["total_count"] == 1
    assert api.get(loop.inline(2, "/runs/latest/steps/work/attempts/1"))["status"] == "SUCCEEDED"


def test_iterations_are_listed_by_their_id_and_by_their_step(api: Place, loop: Loop) -> None:
    loop.report(of_1="SUCCEEDED")
    assert api.ended(loop.inline_id, 1) == "SUCCEEDED"

    by_id = api.get(f"/workflows/{loop.inline_id}/instances")
    by_step = api.get(f"{loop.at}/steps/loop/children", status="IN_PROGRESS", first=1)

    assert by_id["total_count"] == 3
    assert [one["workflow_instance_id"] for one in by_step["elements"]] == [2]
    assert (by_step["total_count"], by_step["page_info"]["has_next_page"]) == (2, True)
    assert api.get(f"/workflows/{loop.inline_id}/matrix")["steps"] == ["work"]
    assert api.get("/workflows/instances", workflow_id=loop.workflow_id)["total_count"] == 1


def test_an_id_of_iterations_that_nobody_has_is_not_found(api: Place) -> None:
    api.get("/workflows/maestro_foreach_nobody/instances", 404)
    api.get("/workflows/maestro_foreach_nobody/instances/1", 404)
    api.get("/workflows/nobody/instances/1/steps/loop/children", 404)


@pytest.mark.parametrize(("action", "status"), [("stop", "STOPPED"), ("kill", "FAILED")])
def test_an_iteration_is_ended_by_its_own_address(api: Place, loop: Loop, action: str, status: str) -> None:
    answer = api.call("PUT", loop.inline(2, f"/actions/{action}"), json={"reason": "enough"})

    assert (answer["status"], answer["workflow_status"], answer["workflow_instance_id"]) == ("DONE", status, 2)
    assert api.get(loop.at)["status"] == "IN_PROGRESS"


def test_another_end_of_an_iteration_that_has_ended_is_refused(api: Place, loop: Loop) -> None:
    api.call("PUT", loop.inline(2, "/actions/stop"))

    same = api.call("PUT", loop.inline(2, "/actions/stop"))
    problem = api.call("PUT", loop.inline(2, "/actions/kill"), 400)

    assert (same["status"], same["message"]) == ("UNCHANGED", "The run is STOPPED already")
    assert "STOPPED" in problem["detail"]


def test_a_restart_of_an_iteration_in_a_loop_that_runs_is_answered_by_its_parent(api: Place, loop: Loop) -> None:
    loop.report(of_2="FATAL_ERROR")
    assert api.ended(loop.inline_id, 2) == "FAILED"

    answer = api.call("POST", loop.inline(2, "/actions/restart"))

    assert (answer["workflow_id"], answer["workflow_instance_id"]) == (loop.workflow_id, loop.instance_id)
    assert loop.take(1)[0]["instance_id"] == 2
    assert api.get(loop.inline(2))["workflow_run_id"] == 2


def test_a_restart_of_a_step_in_an_iteration_that_has_ended_makes_a_run_of_the_root(api: Place, loop: Loop) -> None:
    loop.report(of_1="SUCCEEDED", of_2="FATAL_ERROR", of_3="SUCCEEDED")
    assert api.ended(loop.workflow_id, loop.instance_id) == "FAILED"

    answer = api.call("POST", loop.inline(2, "/steps/work/actions/restart"))
    task = loop.take(1)[0]
    api.report(task, "SUCCEEDED")

    assert (answer["workflow_id"], answer["workflow_run_id"]) == (loop.workflow_id, 2)
    assert api.ended(loop.workflow_id, loop.instance_id, 2) == "SUCCEEDED"
    assert api.get(f"{loop.at}/steps/loop")["artifacts"]["maestro_foreach"]["foreach_overview"]["details"] == {
        "SUCCEEDED": [[1, 3]]
    }


def test_a_restart_of_the_child_of_a_subworkflow_step_makes_a_run_of_the_root(api: Place) -> None:
    kind = f"{KIND}-{uuid.uuid4().hex[:8]}"
    child = api.push(step("work", kind))
    workflow_id = api.push(subworkflow("sub", child))
    instance_id = api.start(workflow_id)
    api.report(api.take(kind)[0], "FATAL_ERROR")
    assert api.ended(workflow_id, instance_id) == "FAILED"

    answer = api.call("POST", f"/workflows/{child}/instances/1/actions/restart")
    api.report(api.take(kind)[0], "SUCCEEDED")

    assert (answer["workflow_id"], answer["workflow_run_id"]) == (workflow_id, 2)
    assert api.ended(workflow_id, instance_id, 2) == "SUCCEEDED"
    found = api.get(f"/workflows/{workflow_id}/instances/{instance_id}/steps/sub")["artifacts"]["maestro_subworkflow"]
    assert (found["subworkflow_id"], found["subworkflow_instance_id"], found["subworkflow_run_id"]) == (child, 1, 2)


def test_a_step_of_an_iteration_is_skipped_by_its_own_address(api: Place, loop: Loop) -> None:
    api.call("PUT", loop.inline(3, "/steps/work/actions/skip"))

    assert api.ended(loop.inline_id, 3) == "SUCCEEDED"


def test_the_overview_of_an_instance_counts_the_leaves_of_its_loops(api: Place, loop: Loop) -> None:
    loop.report(of_1="SUCCEEDED", of_2="FATAL_ERROR")
    assert api.ended(loop.inline_id, 2) == "FAILED"

    def seen() -> Json | None:
        found: Json = api.get(loop.at, enriched=True)["runtime_overview"]["rollup_overview"]
        return found if len(found["overview"]) == 3 else None

    rollup = until(seen, "all leaves to be counted")
    assert rollup["total_leaf_count"] == 3
    assert rollup["overview"]["FATALLY_FAILED"] == {"cnt": 1, "ref": {f"{loop.inline_id}:1": ["2:work:1"]}}
