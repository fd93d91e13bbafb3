"""Wrong calls: each gets its status and a problem that says what was expected and what was found."""

from typing import Any

import pytest

from tests.integration.api.places import Place, definition

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NOWHERE = {"upstream_restart_mode": "RESTART_FROM_NOWHERE"}
START = "/workflows/etl/versions/active/actions/start"
TEMPLATE = {"workflow": {"id": "new", "steps": [{"template": {"id": "made", "sub_type": "etl"}}]}}
RESTART = "/workflows/etl/instances/1/actions/restart"

# method, path, what is sent, status, a word of the problem
TABLE: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "/no-such-route", {}, 404, "Not Found"),
    ("PATCH", "/workflows", {}, 405, "Method Not Allowed"),
    # Definitions
    ("POST", "/workflows", {"content": b"", "headers": JSON}, 400, "problem"),
    ("POST", "/workflows", {"content": b"{", "headers": JSON}, 400, "problem"),
    ("POST", "/workflows", {"content": b"\xff\xfe", "headers": JSON}, 400, "UTF-8"),
    ("POST", "/workflows", {"json": []}, 400, "an object"),
    ("POST", "/workflows", {"json": {"workflow": {"id": 7}}}, 400, "workflow.id"),
    ("POST", "/workflows", {"json": {"workflow": {"id": ""}}}, 400, "workflow.id"),
    ("POST", "/workflows", {"json": {"workflow": {"id": "a b", "steps": []}}}, 400, "workflow.id"),
    ("POST", "/workflows", {"json": {"workflow": {"id": "x" * 300, "steps": []}}}, 400, "workflow.id"),
    ("POST", "/workflows", {"json": {"workflow": definition("new")["workflow"]}}, 400, "properties.owner"),
    ("POST", "/workflows", {"json": {**definition("new"), "is_active": "perhaps"}}, 400, "is_active"),
    ("POST", "/workflows", {"content": b"[" * 100_000, "headers": JSON}, 400, "problem"),
    ("POST", "/workflows", {"content": b"x" * 1_000_001, "headers": JSON}, 413, "1,000,000"),
    ("POST", "/workflows/yaml", {"content": b"a: [b"}, 400, "problem"),
    ("PUT", "/workflows/actions/validate", {"content": b"null"}, 400, "an object"),
    ("PUT", "/workflows/actions/validate/yaml", {"content": b"- 1"}, 400, "problem"),
    ("PUT", "/workflows/actions/validate", {"json": TEMPLATE}, 400, "'template', which cannot be run"),
    # Workflows
    ("GET", "/workflows?limit=0", {}, 400, "query.limit"),
    ("GET", "/workflows?limit=201", {}, 400, "query.limit"),
    ("GET", "/workflows?first=1&last=1", {}, 400, "both"),
    ("GET", "/workflows?cursor=nonsense", {}, 400, "cursor"),
    ("GET", "/workflows?cursor=%ff", {}, 400, "cursor"),
    ("GET", "/workflows?cursor=WzFd", {}, 400, "cursor"),
    ("GET", "/workflows/none/overview", {}, 404, "'none'"),
    ("GET", "/workflows/none/timeline", {}, 404, "'none'"),
    ("GET", "/workflows/none/versions/pagination", {}, 404, "'none'"),
    ("GET", "/workflows/none/properties-snapshot/latest", {}, 404, "'none'"),
    ("GET", "/workflows/etl/versions/newest", {}, 400, "'newest'"),
    ("GET", "/workflows/etl/versions/77", {}, 404, "77"),
    ("GET", "/workflows/etl/versions/99999999999999999999", {}, 404, "does not"),
    ("GET", f"/workflows/{'x' * 257}/overview", {}, 400, "path.workflow_id"),
    ("DELETE", "/workflows/none", {}, 404, "'none'"),
    ("PUT", "/workflows/etl/versions/newest/actions/activate", {}, 400, "'newest'"),
    ("PUT", "/workflows/etl/actions/explode", {}, 400, "path.action"),
    ("PUT", "/workflows/none/actions/stop", {}, 404, "'none'"),
    ("PUT", "/workflows/etl/actions/stop", {"json": {"reason": "x" * 20_000}}, 400, "body.reason"),
    ("PUT", "/workflows/etl/actions/stop", {"json": {"why": "because"}}, 400, "body.why"),
    ("POST", "/workflows/etl/properties", {"json": []}, 400, "object"),
    ("POST", "/workflows/etl/properties", {"json": {"colour": "red"}}, 400, "colour"),
    ("POST", "/workflows/etl/properties/tag", {"json": {}}, 400, "name"),
    ("DELETE", "/workflows/etl/properties/tag/none", {}, 404, "'none'"),
    # Starting
    ("POST", START, {"content": b"{", "headers": JSON}, 400, "body"),
    ("POST", START, {"json": []}, 400, "body: Expected an object, but found []"),
    (
        "POST",
        START,
        {"content": b"{}", "headers": FORM},
        400,
        "`Content-Type: application/json`, but found 'application/x-",
    ),
    ("POST", START, {"content": b"{}"}, 400, "`Content-Type: application/json`, but found 'none'"),
    (
        "POST",
        START,
        {"json": {"run_params": [], "priority": 1}},
        400,
        "body.priority: Expected no such member, but found 1",
    ),
    ("POST", START, {"json": {"run_params": []}}, 400, "body.run_params: Expected an object, but found []"),
    ("POST", START, {"json": {"persist_failed_run": "so"}}, 400, 'Expected true or false, but found "so"'),
    (
        "POST",
        START,
        {"json": {"request_id": ""}},
        400,
        'body.request_id: Expected text of at least 1 characters, but found ""',
    ),
    ("POST", START, {"json": {"request_id": 7}}, 400, "body.request_id: Expected text, but found 7"),
    (
        "POST",
        START,
        {"json": {"request_id": "x" * 300}},
        400,
        "body.request_id: Expected text of at most 256 characters",
    ),
    ("POST", START, {"json": {}, "headers": {"Idempotency-Key": "x" * 300}}, 400, "Idempotency-Key"),
    ("POST", START, {"json": {}, "headers": {"user": "x" * 300}}, 400, "user"),
    ("POST", START, {"json": {"initiator": {"type": "WHIM"}}}, 400, "initiator.type"),
    ("POST", START, {"json": {"runtime_tags": [{"colour": 1}]}}, 400, "runtime_tags"),
    ("POST", START, {"json": {"run_params": {"x": {"value": 1, "kind": 2}}}}, 400, "x"),
    ("POST", START, {"json": {"step_run_params": {"none": {}}}}, 400, "'none'"),
    ("POST", START, {"content": b'{"artifacts":{"a":NaN}}', "headers": JSON}, 400, "JSON"),
    ("POST", "/workflows/etl/versions/77/actions/start", {"json": {}}, 404, "77"),
    ("POST", "/workflows/none/versions/active/actions/start", {"json": {}}, 404, "'none'"),
    ("POST", f"{START}?wait_ms=soon", {"json": {}}, 400, "query.wait_ms"),
    # Instances
    ("GET", "/workflows/etl/instances/0", {}, 400, 'path.instance_id: Expected 1 or more, but found "0"'),
    ("GET", "/workflows/etl/instances/one", {}, 400, 'path.instance_id: Expected an integer, but found "one"'),
    ("GET", "/workflows/etl/instances/99999999999999999999", {}, 400, "Expected 9223372036854775807 or less"),
    ("GET", "/workflows/etl/instances/77", {}, 404, "etl/77"),
    ("GET", "/workflows/etl/instances/1/runs/77", {}, 404, "run 77"),
    ("GET", "/workflows/etl/instances/1/runs/first", {}, 400, "'first'"),
    ("GET", "/workflows/etl/instances/77/runs", {}, 404, "etl/77"),
    ("GET", "/workflows/etl/instances/77/timeline", {}, 404, "etl/77"),
    ("GET", "/workflows/none/instances", {}, 404, "'none'"),
    ("GET", "/workflows/etl/instances?status=DREAMING", {}, 400, "query.status"),
    ("GET", "/workflows/instances?cursor=WzFd", {}, 400, "cursor"),
    ("POST", RESTART, {"json": {"restart_policy": "RESTART_FROM_MEMORY"}}, 400, "body.restart_policy: Expected one of"),
    ("POST", RESTART, {"json": {"restart_policy": "RESTART_FROM_SPECIFIC"}}, 400, "step"),
    ("POST", "/workflows/etl/instances/77/actions/restart", {"json": {}}, 404, "77"),
    ("PUT", "/workflows/etl/instances/77/actions/stop", {}, 404, "77"),
    ("PUT", "/workflows/etl/instances/1/actions/stop", {}, 400, "SUCCEEDED"),
    ("PUT", "/workflows/etl/instances/1/actions/unblock", {}, 400, "SUCCEEDED"),
    ("PUT", "/workflows/etl/instances/1/actions/explode", {}, 400, "path.action"),
    ("PUT", "/workflows/etl/instances/1/runs/7/actions/stop", {}, 400, "latest run"),
    # Steps
    ("GET", "/workflows/etl/instances/77/steps", {}, 404, "etl/77"),
    ("GET", "/workflows/etl/instances/1/runs/77/steps", {}, 404, "run 77"),
    ("GET", "/workflows/etl/instances/1/steps/none", {}, 404, "'none'"),
    ("GET", "/workflows/etl/instances/1/runs/1/steps/only/attempts/9", {}, 404, "'only'"),
    ("GET", "/workflows/etl/instances/1/runs/1/steps/only/attempts/-1", {}, 400, "'-1'"),
    ("PUT", "/workflows/etl/instances/1/steps/none/actions/skip", {}, 400, "'none'"),
    ("PUT", "/workflows/etl/instances/1/steps/only/actions/stop", {}, 400, "SUCCEEDED"),
    ("PUT", "/workflows/etl/instances/77/steps/only/actions/stop", {}, 404, "none"),
    ("PUT", "/workflows/etl/instances/1/steps/only/actions/explode", {}, 400, "path.action"),
    ("POST", "/workflows/etl/instances/1/steps/none/actions/restart", {"json": {}}, 400, "'none'"),
    ("POST", "/workflows/etl/instances/1/steps/only/actions/restart", {"json": {"mode": 1}}, 400, "body.mode"),
    ("POST", "/workflows/etl/instances/1/steps/only/actions/restart", {"json": NOWHERE}, 400, "upstream_restart_mode"),
    # Tasks
    ("POST", "/tasks/poll", {"json": {}}, 400, "body.worker: Expected a value, which is required, but found nothing"),
    ("POST", "/tasks/poll", {"json": {"worker": "w", "types": []}}, 400, "body.types: Expected 1 or more of them"),
    ("POST", "/tasks/poll", {"json": {"worker": "w", "types": ["a"], "max": 101}}, 400, "body.max"),
    ("POST", "/tasks/poll", {"json": {"worker": "w", "types": ["a"], "wait_ms": 30_001}}, 400, "body.wait_ms"),
    ("POST", "/tasks/poll", {"json": {"worker": "", "types": ["a"]}}, 400, "body.worker"),
    ("POST", "/tasks/reports", {"json": {"worker": "w", "reports": [{}]}}, 400, "body.reports.0.token"),
    ("POST", "/tasks/reports", {"json": {"worker": "w", "reports": [{"report": "DONE"}]}}, 400, "reports.0.report"),
    ("PUT", "/output-data", {"json": {"params": {}}}, 400, "body.workflow_id"),
    (
        "PUT",
        "/output-data",
        {"json": {"workflow_id": "etl", "workflow_instance_id": 1, "step_id": "only", "params": {}}},
        400,
        "body.token: Expected a value, which is required",
    ),
    (
        "PUT",
        "/output-data",
        {"json": {"workflow_id": "etl", "workflow_instance_id": 1, "step_id": "only", "token": "t", "params": {}}},
        404,
        "running attempt",
    ),
]


@pytest.fixture(scope="module")
def etl(api: Place) -> Place:
    """A workflow `etl` with one instance, which has ended."""
    api.push(workflow_id="etl")
    api.ended("etl", api.start("etl"))
    return api


@pytest.mark.parametrize(("method", "path", "sent", "status", "word"), TABLE)
def test_a_wrong_call_is_told_what_is_wrong_with_it(  # noqa: PLR0913 - the columns of the table
    etl: Place, method: str, path: str, sent: dict[str, Any], *, status: int, word: str
) -> None:
    response = etl.http.request(method, path, **sent)

    assert (response.status_code, response.headers["Content-Type"]) == (status, "application/problem+json")
    problem = response.json()
    assert set(problem) == {"type", "title", "status", "detail", "errors", "request_id"}
    assert problem["status"] == status
    assert word.lower() in f"{problem['detail']} {' '.join(problem['errors'])}".lower()


def test_all_that_is_wrong_with_a_body_is_told_at_once(etl: Place) -> None:
    response = etl.http.post(START, json={"run_params": 1, "artifacts": [], "colour": "red", "persist_failed_run": 7})

    assert len(response.json()["errors"]) == 4


def test_a_body_without_a_length_is_counted_as_it_comes(etl: Place) -> None:
    def endless() -> Any:
        for _ in range(200):
            yield b"x" * 10_000

    response = etl.http.post("/workflows", content=endless())

    assert response.status_code == 413


def test_problems_name_the_request_that_they_answer(etl: Place) -> None:
    response = etl.http.delete("/workflows/none", headers={"Idempotency-Key": "my-request"})

    assert response.json()["request_id"] == "my-request"
