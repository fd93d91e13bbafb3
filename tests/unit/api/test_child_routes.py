"""Every route for instances and steps works with the id of a child: an iteration, a round, or a subworkflow."""

import uuid
from typing import Any

import pytest

from tests.integration.api.places import Json, Place, step, until
from tests.unit.views.trees import foreach, rounds, subworkflow

KINDS = ("foreach", "while", "subworkflow")
INSTANCE = "/workflows/{workflow_id}/instances/{instance_id}"
RUN = INSTANCE + "/runs/{run_id}"
STEP = INSTANCE + "/steps/{step_id}"
WORKFLOW = "/workflows/{workflow_id}"
# By the route: the parameters, and the status of the answer for each kind of child, or for all of them.
Answers = int | dict[str, int]
READS: list[tuple[str, Json, Answers]] = [
    (INSTANCE, {"aggregated": True, "enriched": True}, 200),
    (INSTANCE + "/runs", {}, 200),
    (RUN, {"aggregated": True, "enriched": True}, 200),
    (RUN + "/steps", {}, 200),
    (RUN + "/steps/{step_id}/attempts/{attempt}", {}, 200),
    (INSTANCE + "/timeline", {}, 200),
    (INSTANCE + "/events", {}, 200),
    (INSTANCE + "/steps", {}, 200),
    (INSTANCE + "/lineage", {}, 200),
    (STEP, {}, 200),
    (STEP + "/children", {}, 200),
    (WORKFLOW + "/instances", {"aggregated": True}, 200),
    (WORKFLOW + "/matrix", {}, 200),
]
# While the child runs. What waits for a signal is the step `waits`, which is not the one of the path.
WHILE_IT_RUNS: list[tuple[str, str, Answers]] = [
    ("PUT", INSTANCE + "/actions/stop", 200),
    ("PUT", INSTANCE + "/actions/kill", 200),
    ("PUT", INSTANCE + "/actions/unblock", {"foreach": 200, "while": 200, "subworkflow": 400}),
    ("PUT", RUN + "/actions/stop", 200),
    ("PUT", RUN + "/actions/kill", 200),
    ("PUT", RUN + "/actions/unblock", {"foreach": 200, "while": 200, "subworkflow": 400}),
    ("POST", INSTANCE + "/actions/restart", 400),
    ("PUT", STEP + "/actions/stop", 200),
    ("PUT", STEP + "/actions/kill", 200),
    ("PUT", STEP + "/actions/skip", 200),
    ("PUT", STEP + "/actions/bypass", 400),
    ("PUT", STEP + "/actions/resume", 400),
    ("PUT", INSTANCE + "/steps/waits/actions/bypass", 200),
    ("POST", STEP + "/actions/restart", 400),
    ("PUT", WORKFLOW + "/actions/stop", 200),
    ("PUT", WORKFLOW + "/actions/kill", 200),
    ("PUT", WORKFLOW + "/actions/unblock", 200),
]
WHEN_IT_HAS_FAILED: list[tuple[str, str, Answers]] = [
    ("PUT", INSTANCE + "/actions/stop", 400),
    ("PUT", INSTANCE + "/actions/kill", 200),
    ("PUT", INSTANCE + "/actions/unblock", 200),
    ("PUT", RUN + "/actions/unblock", 200),
    ("POST", INSTANCE + "/actions/restart", 200),
    ("PUT", STEP + "/actions/stop", 400),
    ("PUT", STEP + "/actions/kill", 400),
    ("PUT", STEP + "/actions/resume", 400),
    ("PUT", STEP + "/actions/skip", 200),
    ("PUT", STEP + "/actions/bypass", 400),
    ("POST", STEP + "/actions/restart", 200),
    ("PUT", WORKFLOW + "/actions/stop", 200),
    ("PUT", WORKFLOW + "/actions/kill", 200),
    ("PUT", WORKFLOW + "/actions/unblock", 200),
]


class Child:
    """A child whose step `work` a worker has, and whose step `waits` waits for a signal."""

    def __init__(self, api: Place, kind: str) -> None:
        self.api = api
        self.type = f"by-hand-{uuid.uuid4().hex[:8]}"
        waits = step("waits", signal_dependencies=[{"name": f"never-{self.type}"}])
        block = (step("work", self.type), waits)
        if kind == "foreach":
            self.root = api.push(foreach("loop", [1], *block))
        elif kind == "while":
            self.root = api.push(rounds("loop", 1, *block))
        else:
            self.root = api.push(subworkflow("loop", api.push(*block)))
        api.start(self.root)
        (self.task,) = api.take(self.type)
        self.workflow_id, self.instance_id = self.task["workflow_id"], self.task["instance_id"]

    def fail(self) -> None:
        """The child ends as failed, and with it the root."""
        self.api.report(self.task, "FATAL_ERROR")
        at = f"/workflows/{self.workflow_id}/instances/{self.instance_id}"
        self.api.call("PUT", f"{at}/steps/waits/actions/skip")
        assert self.api.ended(self.root, 1) == "FAILED"

    def path(self, route: str) -> str:
        return route.format(
            workflow_id=self.workflow_id, instance_id=self.instance_id, run_id="latest", step_id="work", attempt=1
        )


def expected(answers: Answers, kind: str) -> int:
    return answers if isinstance(answers, int) else answers[kind]


def names(rows: list[tuple[str, str, Answers]]) -> list[str]:
    return [f"{method} {route}" for method, route, _ in rows]


@pytest.mark.parametrize("kind", KINDS)
def test_every_read_works(api: Place, kind: str) -> None:
    child = Child(api, kind)

    for route, given, answers in READS:
        api.get(child.path(route), expected(answers, kind), **given)

    for path in ("/workflows/instances", "/workflows/instances/counts"):
        assert api.get(path, workflow_id=child.workflow_id)["total_count"] == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "route", "answers"), WHILE_IT_RUNS, ids=names(WHILE_IT_RUNS))
def test_every_write_is_answered_while_the_child_runs(
    api: Place, kind: str, method: str, route: str, answers: Answers
) -> None:
    child = Child(api, kind)

    answer = api.call(method, child.path(route), expected(answers, kind))

    assert answer.get("detail") or answer["workflow_id"] == child.workflow_id


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "route", "answers"), WHEN_IT_HAS_FAILED, ids=names(WHEN_IT_HAS_FAILED))
def test_every_write_is_answered_when_the_child_has_failed(
    api: Place, kind: str, method: str, route: str, answers: Answers
) -> None:
    child = Child(api, kind)
    child.fail()

    answer = api.call(method, child.path(route), expected(answers, kind))

    is_restart = "restart" in route or "skip" in route
    assert answer.get("detail") or answer["workflow_id"] == (child.root if is_restart else child.workflow_id)


def test_the_tables_have_every_route_for_instances_and_steps(api: Place) -> None:
    found = api.http.get(f"{api.url}/openapi.json").json()["paths"]
    routes = {path.removeprefix("/api/v3") for path in found}
    wanted = {one for one in routes if one.startswith(INSTANCE) or one == f"{WORKFLOW}/actions/{{action}}"}

    told = {route for route, *_ in READS} | {generic(route) for _, route, _ in WHILE_IT_RUNS}
    assert wanted - told == set()
    assert told - routes == set()


def generic(route: str) -> str:
    """The route with the name of the action as the server has it."""
    head, _, action = route.rpartition("/")
    if action in ("restart", "resume"):
        return route
    return f"{head.replace('/steps/waits', '/steps/{step_id}')}/{{action}}"


@pytest.mark.parametrize("kind", KINDS)
def test_the_outputs_of_a_step_of_a_child_are_reported_by_another_program(api: Place, kind: str) -> None:
    child = Child(api, kind)
    at = {"workflow_id": child.workflow_id, "workflow_instance_id": child.instance_id, "step_id": "work"}

    api.call("PUT", "/output-data", json={**at, "token": child.task["token"], "params": {}})

    assert api.get(child.path(STEP))["status"] == "SUCCEEDED"


# All iterations of a step at once -------------------------------------------------------------------------------------


def looped(api: Place, count: int, **more: Any) -> tuple[str, str]:
    """A loop whose iterations run: its workflow, and the id of the iterations."""
    kind = f"by-hand-{uuid.uuid4().hex[:8]}"
    root = api.push(foreach("loop", list(range(count)), step("work", kind), **more))
    api.start(root)
    return root, api.take(kind)[0]["workflow_id"]


def counts(api: Place, workflow_id: str) -> Json:
    """The number of instances in each status."""
    found: Json = api.get("/workflows/instances/counts", workflow_id=workflow_id)["counts"]
    return found


@pytest.mark.parametrize(("action", "status"), [("stop", "STOPPED"), ("kill", "FAILED")])
def test_all_iterations_are_ended_by_their_id(api: Place, action: str, status: str) -> None:
    root, inline_id = looped(api, 3)

    answer = api.call("PUT", f"/workflows/{inline_id}/actions/{action}", json={"reason": "enough"})

    assert (answer["status"], answer["count"], answer["workflow_id"]) == ("DONE", 3, inline_id)
    assert api.ended(root, 1) == status
    ended = api.get(f"/workflows/{inline_id}/instances")["elements"]
    assert [one["status"] for one in ended] == [status] * 3
    steps = [api.get(f"/workflows/{inline_id}/instances/{number}/steps/work") for number in (1, 2, 3)]
    assert {one["reason"] for one in steps} == {"enough"}


def test_the_loop_continues_after_the_iterations_that_ran_were_stopped(api: Place) -> None:
    root, inline_id = looped(api, 4, concurrency=2)

    answer = api.call("PUT", f"/workflows/{inline_id}/actions/stop")

    assert answer["count"] == 2
    until(lambda: counts(api, inline_id) == {"IN_PROGRESS": 2, "STOPPED": 2}, "the other iterations to run")
    assert api.get(f"/workflows/{root}/instances/1")["status"] == "IN_PROGRESS"


def test_a_request_that_is_repeated_stops_nothing_more(api: Place) -> None:
    _, inline_id = looped(api, 4, concurrency=2)
    said = {"request_id": f"stop-{inline_id}"}

    first = api.call("PUT", f"/workflows/{inline_id}/actions/stop", json=said)
    until(lambda: counts(api, inline_id) == {"IN_PROGRESS": 2, "STOPPED": 2}, "the other iterations to run")
    second = api.call("PUT", f"/workflows/{inline_id}/actions/stop", json=said)

    assert (first["status"], second["status"]) == ("DONE", "UNCHANGED")
    assert (first["count"], second["count"]) == (2, 2)
    assert counts(api, inline_id) == {"IN_PROGRESS": 2, "STOPPED": 2}


@pytest.mark.parametrize("path", ["/actions/unblock", "/instances/1/actions/unblock"])
def test_unblocking_iterations_changes_nothing_and_says_so(api: Place, path: str) -> None:
    _, inline_id = looped(api, 1)

    answer = api.call("PUT", f"/workflows/{inline_id}{path}")

    assert answer["status"] == "UNCHANGED"
    assert "in no queue" in answer["message"]


@pytest.mark.parametrize("action", ["stop", "kill", "unblock"])
def test_iterations_that_nobody_has_are_not_found(api: Place, action: str) -> None:
    api.call("PUT", f"/workflows/maestro_foreach_nobody/actions/{action}", 404)
    api.call("PUT", f"/workflows/maestro_foreach_nobody/instances/1/actions/{action}", 404)
