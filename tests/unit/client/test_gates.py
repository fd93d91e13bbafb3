"""Breakpoints and permits through the client: every method asks what the API documents; the async one the same."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from kapelle.client import AsyncClient, Client, Invalid, NotFound
from kapelle.client.breakpoints import AsyncBreakpoints, Breakpoints
from kapelle.client.permits import AsyncPermits, Permits
from tests.unit.client.fake_server import FakeServer, ok, problem

URL = "http://kapelle.test:8080"
BREAKPOINTS = "/api/v3/workflows/steps/breakpoints"
PRECISE = (
    "workflowId=etl&stepId=load&workflowVersionId=1&workflowInstanceId=2&workflowRunId=3&stepAttemptId=4&resume=false"
)
PAGE = ok(page_info={"has_next_page": False}, total_count=0, elements=[])
SET = ok(workflow_id="etl", step_id="load", created_by="ann", create_time=5, request_id="r", status="DONE")
DONE = ok(request_id="r", workflow_id="etl", status="DONE")
CHANGED = ok(tag="a/b", request_id="r", status="DONE", max_allowed=4)
LIMIT = ok(limited="tag/a/b", kind="tag", tag="a/b", max_allowed=4, held=1, waiting=0, extra_info={"team": "ml"})

# What is called, what the server answers, and the request that it gets.
CALLS: list[tuple[str, Callable[[Any], Any], httpx.Response, str]] = [
    ("set", lambda k: k.breakpoints.set("etl", "load"), SET, f"POST {BREAKPOINTS}"),
    (
        "delete",
        lambda k: k.breakpoints.delete("etl", "load"),
        SET,
        f"DELETE {BREAKPOINTS}?workflowId=etl&stepId=load",
    ),
    (
        "delete one that is precise",
        lambda k: k.breakpoints.delete("etl", "load", resume=False, version=1, instance_id=2, run_id=3, attempt=4),
        SET,
        f"DELETE {BREAKPOINTS}?{PRECISE}",
    ),
    ("list", lambda k: k.breakpoints.list(), PAGE, f"GET {BREAKPOINTS}"),
    (
        "list those of a step",
        lambda k: k.breakpoints.list("etl", "load", limit=5, cursor="c"),
        PAGE,
        f"GET {BREAKPOINTS}?workflowId=etl&stepId=load&limit=5&cursor=c",
    ),
    (
        "paused",
        lambda k: k.breakpoints.paused("etl"),
        PAGE,
        f"GET {BREAKPOINTS}/paused-step-attempts?workflowId=etl",
    ),
    (
        "resume",
        lambda k: k.steps.resume("etl", 12, "load"),
        DONE,
        "PUT /api/v3/workflows/etl/instances/12/steps/load/actions/resume",
    ),
    (
        "resume an attempt",
        lambda k: k.steps.resume("etl", 12, "load", attempt=2),
        DONE,
        f"PUT {BREAKPOINTS}/etl/instances/12/runs/latest/steps/load/attempts/2/actions/resume",
    ),
    ("limit", lambda k: k.permits.set("a/b", 4), CHANGED, "POST /api/v3/tag-permits"),
    ("remove", lambda k: k.permits.remove("a/b"), CHANGED, "DELETE /api/v3/tag-permits/a%2Fb"),
    ("limits", lambda k: k.permits.list(), PAGE, "GET /api/v3/permits"),
    (
        "limits of tags",
        lambda k: k.permits.list("tag", prefix="a/", limit=5),
        PAGE,
        "GET /api/v3/permits?kind=tag&prefix=a%2F&limit=5",
    ),
    ("get", lambda k: k.permits.get("a/b"), LIMIT, "GET /api/v3/tag-permits/a%2Fb"),
    ("get a tree", lambda k: k.permits.get("etl/12", "tree"), LIMIT, "GET /api/v3/permits/tree/etl%2F12"),
    ("holders", lambda k: k.permits.holders("a/b"), PAGE, "GET /api/v3/permits/tag/a%2Fb/holders"),
    (
        "waiting",
        lambda k: k.permits.waiting("etl", "workflow", limit=5),
        PAGE,
        "GET /api/v3/permits/workflow/etl/waiting?limit=5",
    ),
]


@pytest.mark.parametrize(("name", "call", "response", "line"), CALLS, ids=[one[0] for one in CALLS])
def test_each_method_asks_what_is_documented_and_so_does_the_async_one(
    name: str, call: Callable[[Any], Any], response: httpx.Response, line: str
) -> None:
    server, other = FakeServer(response), FakeServer(response)

    with Client(URL, transport=server.transport) as client:
        found = call(client)

    async def ask() -> Any:
        async with AsyncClient(URL, transport=other.transport) as asynchronous:
            return await call(asynchronous)

    assert asyncio.run(ask()) == found
    assert server.line == other.line == line


def test_both_clients_have_the_same_methods() -> None:
    def methods(kind: type[Any]) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(one).parameters) for name, one in found if not name.startswith("_")}

    assert methods(Breakpoints) == methods(AsyncBreakpoints)
    assert methods(Permits) == methods(AsyncPermits)


def test_bodies_say_only_what_was_given() -> None:
    server = FakeServer(SET)

    with Client(URL, transport=server.transport) as client:
        client.breakpoints.set("etl", "load", request_id="mine")
        plain, key = server.body, server.asked[-1].headers["Idempotency-Key"]
        client.breakpoints.set("etl", "load", version=1, instance_id=2, run_id=3, attempt=4)
        precise = server.body

    assert (plain, key) == ({"workflow_id": "etl", "step_id": "load"}, "mine")
    assert precise == {
        "workflow_id": "etl",
        "step_id": "load",
        "workflow_version_id": 1,
        "workflow_instance_id": 2,
        "workflow_run_id": 3,
        "step_attempt_id": 4,
    }


def test_other_parameters_and_the_reason_of_a_resumption_are_sent() -> None:
    server = FakeServer(DONE)

    with Client(URL, transport=server.transport) as client:
        client.steps.resume("etl", 12, "load", params={"rows": 10}, reason="smaller")

    assert server.body == {"step_run_params": {"rows": {"type": "LONG", "value": 10}}, "reason": "smaller"}


def test_other_keys_of_a_limit_are_sent_beside_it_and_answers_have_types() -> None:
    server = FakeServer(CHANGED, LIMIT)

    with Client(URL, transport=server.transport) as client:
        changed = client.permits.set("a/b", 4, extra={"team": "ml", "tag": "other"})
        sent = server.body
        found = client.permits.get("a/b")

    assert sent == {"team": "ml", "tag": "a/b", "max_allowed": 4}
    assert (changed.tag, changed.max_allowed, changed.status) == ("a/b", 4, "DONE")
    assert (found.name, found.held, found.extra_info) == ("a/b", 1, {"team": "ml"})


@pytest.mark.parametrize(("status", "error"), [(400, Invalid), (404, NotFound)])
def test_errors_have_types(status: int, error: type[Exception]) -> None:
    server = FakeServer(problem(status, "Expected a limit of at least 0", "body.max_allowed: Expected at least 0"))

    with Client(URL, transport=server.transport) as client, pytest.raises(error):
        client.permits.set("a", -1)
