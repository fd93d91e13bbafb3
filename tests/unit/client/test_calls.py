"""Every method of the client asks what the API documents, and gives back what it answers; the async one the same."""

import asyncio
import inspect
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest

from kapelle.client import AsyncClient, Client, Param, Workflow
from kapelle.client.asynchronous import Instances as AsyncInstances
from kapelle.client.asynchronous import Steps as AsyncSteps
from kapelle.client.asynchronous import Workflows as AsyncWorkflows
from kapelle.client.sync import Instances, Steps, Workflows
from tests.unit.client.fake_server import FakeServer, ok

URL = "http://kapelle.test:8080"
SECRET = "secret-token"  # noqa: S105 - nobody's
DONE = ok(request_id="r-1", workflow_id="etl", status="DONE")
STARTED = ok(request_id="r-1", workflow_id="etl", workflow_instance_id=7, workflow_run_id=1, status="CREATED")
META = {"workflow_id": "etl", "workflow_version_id": 2}
VERSION = ok(metadata=META, workflow={"id": "etl"}, is_active=True)
PUSHED = ok(metadata=META, request_id="r", workflow_id="etl", workflow_version_id=2, status="CREATED", is_active=True)
PAGE = ok(page_info={"has_next_page": False}, total_count=0, elements=[])
RUN = {"workflow_id": "etl", "workflow_instance_id": 7, "workflow_run_id": 1, "status": "SUCCEEDED"}
STEP = {"step_id": "load", "step_attempt_id": 1, "workflow_run_id": 1, "status": "RUNNING"}
TIMELINE = ok(workflow_id="etl", workflow_instance_id=7, elements=[])
AT = "/api/v3/workflows/etl/instances/7"

# What is called, what the server answers, and the request that it gets.
CALLS: list[tuple[str, Callable[[Any], Any], httpx.Response, str]] = [
    ("push", lambda k: k.workflows.push({"workflow": {"id": "etl"}}), PUSHED, "POST /api/v3/workflows"),
    ("push yaml", lambda k: k.workflows.push("W:", is_yaml=True), PUSHED, "POST /api/v3/workflows/yaml"),
    ("push built", lambda k: k.workflows.push(Workflow("etl")), PUSHED, "POST /api/v3/workflows"),
    ("validate", lambda k: k.workflows.validate("{}"), ok(valid=True), "PUT /api/v3/workflows/actions/validate"),
    (
        "validate yaml",
        lambda k: k.workflows.validate("W:", is_yaml=True),
        ok(valid=True),
        "PUT /api/v3/workflows/actions/validate/yaml",
    ),
    ("get", lambda k: k.workflows.get("etl"), VERSION, "GET /api/v3/workflows/etl/versions/default"),
    ("get odd id", lambda k: k.workflows.get("a/b c", 3), VERSION, "GET /api/v3/workflows/a%2Fb%20c/versions/3"),
    ("versions", lambda k: k.workflows.versions("etl"), PAGE, "GET /api/v3/workflows/etl/versions/pagination"),
    ("list", lambda k: k.workflows.list(prefix="e", limit=5), PAGE, "GET /api/v3/workflows?prefix=e&limit=5"),
    ("overview", lambda k: k.workflows.overview("etl"), ok(workflow_id="etl"), "GET /api/v3/workflows/etl/overview"),
    (
        "activate",
        lambda k: k.workflows.activate("etl", 2),
        DONE,
        "PUT /api/v3/workflows/etl/versions/2/actions/activate",
    ),
    ("deactivate", lambda k: k.workflows.deactivate("etl"), DONE, "PUT /api/v3/workflows/etl/actions/deactivate"),
    ("delete", lambda k: k.workflows.delete("etl"), DONE, "DELETE /api/v3/workflows/etl"),
    ("properties", lambda k: k.workflows.properties("etl", {}), DONE, "POST /api/v3/workflows/etl/properties"),
    ("stop all", lambda k: k.workflows.stop("etl"), DONE, "PUT /api/v3/workflows/etl/actions/stop"),
    ("kill all", lambda k: k.workflows.kill("etl"), DONE, "PUT /api/v3/workflows/etl/actions/kill"),
    ("unblock all", lambda k: k.workflows.unblock("etl"), DONE, "PUT /api/v3/workflows/etl/actions/unblock"),
    ("start", lambda k: k.instances.start("etl"), STARTED, "POST /api/v3/workflows/etl/versions/active/actions/start"),
    ("instance", lambda k: k.instances.get("etl", 7), ok(**RUN), f"GET {AT}"),
    ("a run", lambda k: k.instances.get("etl", 7, run_id=2), ok(**RUN), f"GET {AT}/runs/2"),
    ("instances", lambda k: k.instances.list("etl"), PAGE, "GET /api/v3/workflows/etl/instances"),
    (
        "all instances",
        lambda k: k.instances.list(status="FAILED"),
        PAGE,
        "GET /api/v3/workflows/instances?status=FAILED",
    ),
    (
        "found instances",
        lambda k: k.instances.list(
            "etl", status=["A", "B"], tags=["a"], params={"d": 1, "b": True}, since=5, until="x"
        ),
        PAGE,
        "GET /api/v3/workflows/etl/instances?status=A&status=B&tag=a&param=d%3D1&param=b%3Dtrue&since=5&until=x",
    ),
    (
        "counts",
        lambda k: k.instances.counts("etl"),
        ok(total_count=1, counts={"FAILED": 1}),
        "GET /api/v3/workflows/instances/counts?workflow_id=etl",
    ),
    ("history", lambda k: k.instances.history("etl", 7), TIMELINE, f"GET {AT}/events"),
    (
        "aggregated",
        lambda k: k.instances.get("etl", 7, aggregated=True),
        ok(**RUN),
        f"GET {AT}?aggregated=true&enriched=true",
    ),
    (
        "matrix",
        lambda k: k.workflows.matrix("etl", limit=5),
        ok(workflow_id="etl", steps=[], instances=[]),
        "GET /api/v3/workflows/etl/matrix?limit=5",
    ),
    ("runs", lambda k: k.instances.runs("etl", 7), PAGE, f"GET {AT}/runs"),
    ("timeline", lambda k: k.instances.timeline("etl", 7), TIMELINE, f"GET {AT}/timeline"),
    ("stop", lambda k: k.instances.stop("etl", 7), DONE, f"PUT {AT}/actions/stop"),
    ("kill", lambda k: k.instances.kill("etl", 7), DONE, f"PUT {AT}/actions/kill"),
    ("unblock", lambda k: k.instances.unblock("etl", 7), DONE, f"PUT {AT}/actions/unblock"),
    ("restart", lambda k: k.instances.restart("etl", 7), STARTED, f"POST {AT}/actions/restart"),
    ("steps", lambda k: k.steps.list("etl", 7), httpx.Response(200, json=[STEP]), f"GET {AT}/steps"),
    (
        "steps of a run",
        lambda k: k.steps.list("etl", 7, run_id=2),
        httpx.Response(200, json=[]),
        f"GET {AT}/runs/2/steps",
    ),
    ("step", lambda k: k.steps.get("etl", 7, "load"), ok(**STEP), f"GET {AT}/steps/load"),
    (
        "attempt",
        lambda k: k.steps.get("etl", 7, "load", attempt=2),
        ok(**STEP),
        f"GET {AT}/runs/latest/steps/load/attempts/2",
    ),
    (
        "children",
        lambda k: k.steps.children(("etl", 7, "loop"), status="FAILED", limit=5),
        PAGE,
        f"GET {AT}/steps/loop/children?status=FAILED&limit=5",
    ),
    ("restart step", lambda k: k.steps.restart("etl", 7, "load"), DONE, f"POST {AT}/steps/load/actions/restart"),
    ("stop step", lambda k: k.steps.stop("etl", 7, "load"), DONE, f"PUT {AT}/steps/load/actions/stop"),
    ("kill step", lambda k: k.steps.kill("etl", 7, "load"), DONE, f"PUT {AT}/steps/load/actions/kill"),
    ("bypass step", lambda k: k.steps.bypass("etl", 7, "load"), DONE, f"PUT {AT}/steps/load/actions/bypass"),
    ("skip step", lambda k: k.steps.skip("etl", 7, "load"), DONE, f"PUT {AT}/steps/load/actions/skip"),
    ("health", lambda k: k.health(), ok(status="ok", version="1", mode="embedded"), "GET /health"),
]
NAMES = [name for name, *_ in CALLS]


@pytest.mark.parametrize(("name", "call", "answer", "line"), CALLS, ids=NAMES)
def test_a_method_makes_the_request_that_the_api_documents(
    name: str, call: Callable[[Any], Any], answer: httpx.Response, line: str
) -> None:
    server = FakeServer(answer)
    with Client(URL, transport=server.transport) as client:
        call(client)

    assert server.line == line


@pytest.mark.parametrize(("name", "call", "answer", "line"), CALLS, ids=NAMES)
def test_the_async_client_makes_the_same_request_and_gives_the_same_answer(
    name: str, call: Callable[[Any], Any], answer: httpx.Response, line: str
) -> None:
    server = FakeServer(answer)

    async def asked() -> Any:
        async with AsyncClient(URL, transport=server.transport) as client:
            return await call(client)

    found = asyncio.run(asked())

    assert server.line == line
    with Client(URL, transport=FakeServer(answer).transport) as client:
        assert found == call(client)


@pytest.mark.parametrize(
    ("sync", "other"), [(Workflows, AsyncWorkflows), (Instances, AsyncInstances), (Steps, AsyncSteps)]
)
def test_both_clients_have_the_same_methods_with_the_same_parameters(sync: type, other: type) -> None:
    def shape(kind: type) -> dict[str, list[str]]:
        methods = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(method).parameters) for name, method in methods}

    assert shape(sync) == shape(other)


def test_reads_have_no_key_and_writes_have_one_of_their_own() -> None:
    server = FakeServer(DONE)
    with Client(URL, transport=server.transport) as client:
        client.instances.stop("etl", 1)
        client.instances.stop("etl", 1)
        client.instances.stop("etl", 1, request_id="mine")

    keys = [request.headers["idempotency-key"] for request in server.asked]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


def test_what_is_read_soon_after_a_write_waits_for_it_on_any_node(monkeypatch: pytest.MonkeyPatch) -> None:
    written = httpx.Response(200, content=DONE.content, headers={"Kapelle-Watermark": '{"runs.events-0":7}'})
    server = FakeServer(PAGE, written, PAGE, DONE, PAGE, written, PAGE)
    with Client(URL, transport=server.transport) as client:
        client.workflows.list()
        client.instances.stop("etl", 1)
        client.workflows.list()
        client.instances.stop("etl", 2)  # of this nothing is told
        client.workflows.list()
        monkeypatch.setattr("kapelle.client.exchange.FRESH_S", 0.0)
        client.instances.stop("etl", 3)
        client.workflows.list()

    told = [request.headers.get("kapelle-watermark") for request in server.asked]
    assert told == [None, None, '{"runs.events-0":7}', None, '{"runs.events-0":7}', None, None]


def test_who_asks_and_the_token_go_with_every_request() -> None:
    server = FakeServer(PAGE)
    with Client(URL, token=SECRET, user="ann", transport=server.transport) as client:
        client.workflows.list()

    assert server.asked[0].headers["authorization"] == "Bearer secret-token"
    assert server.asked[0].headers["user"] == "ann"


def test_parameters_of_a_start_are_plain_values_or_definitions() -> None:
    server = FakeServer(STARTED)
    params = {"day": "2026-07-01", "rows": 3, "share": Decimal("0.10"), "limit": Param("LONG", expression="rows * 2")}
    with Client(URL, transport=server.transport) as client:
        client.instances.start("etl", run_params=params, step_run_params={"load": {"fast": True}}, request_id="r-9")

    assert server.body["run_params"] == {
        "day": {"type": "STRING", "value": "2026-07-01"},
        "rows": {"type": "LONG", "value": 3},
        "share": {"type": "DOUBLE", "value": 0.10},
        "limit": {"type": "LONG", "expression": "rows * 2"},
    }
    assert server.body["step_run_params"] == {"load": {"fast": {"type": "BOOLEAN", "value": True}}}
    assert server.asked[0].headers["idempotency-key"] == "r-9"
    assert b'"value":0.10}' in server.asked[0].content


def test_a_restart_of_a_step_says_no_more_than_it_was_given() -> None:
    server = FakeServer(DONE, DONE)
    with Client(URL, transport=server.transport) as client:
        client.steps.restart("etl", 7, "load", params={"rows": 3})
        plain = server.body
        client.steps.restart("etl", 7, "load", policy="RESTART_FROM_BEGINNING", from_inline_root=True)

    assert plain == {"step_run_params": {"rows": {"type": "LONG", "value": 3}}}
    assert server.body == {
        "restart_policy": "RESTART_FROM_BEGINNING",
        "upstream_restart_mode": "RESTART_FROM_INLINE_ROOT",
    }


def test_answers_are_typed_and_may_have_members_that_are_not_known_yet() -> None:
    server = FakeServer(ok(**RUN, reason="because", something_new=1))
    with Client(URL, transport=server.transport) as client:
        found = client.instances.get("etl", 7)

    assert (found.status, found.reason, found.is_terminal) == ("SUCCEEDED", "because", True)
