"""Signals and triggers through the client: every method asks what the API documents; the async one the same."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from kapelle.client import AsyncClient, Client, Invalid
from kapelle.client.signals import AsyncSignals, AsyncTriggers, Signals, Triggers
from tests.unit.client.fake_server import FakeServer, ok, problem

URL = "http://kapelle.test:8080"
SIGNAL: dict[str, Any] = {"name": "orders/eu", "sequence": 3, "signal_id": "one", "params": {"day": 1}}
ANNOUNCED = ok(name="orders/eu", signal_id="one", sequence=3, status="ACCEPTED", request_id="r")
VERDICT = {"type": "TRIGGER", "workflow_id": "etl", "verdict": "KEPT", "waiting_for": ["b"], "join_value": [1]}
EXPLAINED = ok(**SIGNAL, status="ACCEPTED", verdicts=[VERDICT], repetitions={"count": 0, "latest": []})
LINEAGE = ok(
    root="signal orders/eu 3",
    direction="both",
    depth=20,
    nodes=[{"id": "signal orders/eu 3", "type": "SIGNAL", "name": "orders/eu", "sequence": 3}],
    edges=[{"from": "signal orders/eu 3", "to": "instance etl 1", "type": "STARTED", "trigger_id": "t"}],
)
PAGE = ok(page_info={"has_next_page": False}, total_count=0, elements=[])
AT = "/api/v3/signals/orders%2Feu/instances"

# What is called, what the server answers, and the request that it gets.
CALLS: list[tuple[str, Callable[[Any], Any], httpx.Response, str]] = [
    ("announce", lambda k: k.signals.announce("orders/eu", {"day": 1}), ANNOUNCED, "POST /api/v3/signals"),
    ("names", lambda k: k.signals.names(prefix="o", limit=5), PAGE, "GET /api/v3/signals?prefix=o&limit=5"),
    ("list", lambda k: k.signals.list("orders/eu"), PAGE, f"GET {AT}"),
    ("get", lambda k: k.signals.get("orders/eu", 3), ok(**SIGNAL), f"GET {AT}/3"),
    ("latest", lambda k: k.signals.get("orders/eu"), ok(**SIGNAL), f"GET {AT}/latest"),
    ("explain", lambda k: k.signals.explain("orders/eu", 3), EXPLAINED, f"GET {AT}/3/explain"),
    (
        "lineage",
        lambda k: k.signals.lineage("orders/eu", 3, direction="forward", depth=2),
        LINEAGE,
        f"GET {AT}/3/lineage?direction=forward&depth=2",
    ),
    (
        "lineage of an instance",
        lambda k: k.signals.instance_lineage("etl", 7),
        LINEAGE,
        "GET /api/v3/workflows/etl/instances/7/lineage?direction=both&depth=20",
    ),
    (
        "refused",
        lambda k: k.signals.refused("orders/eu", signal_id="x"),
        PAGE,
        "GET /api/v3/signals/orders%2Feu/refused?signal_id=x",
    ),
    (
        "triggers",
        lambda k: k.triggers.list("etl", with_disarmed=True),
        ok(workflow_id="etl", triggers=[]),
        "GET /api/v3/workflows/etl/triggers?with_disarmed=true",
    ),
    (
        "why not",
        lambda k: k.triggers.explain("etl"),
        ok(workflow_id="etl", triggers=[], obstacles=["none"]),
        "GET /api/v3/workflows/etl/triggers/explain",
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

    assert methods(Signals) == methods(AsyncSignals)
    assert methods(Triggers) == methods(AsyncTriggers)


def test_an_announcement_says_only_what_was_given() -> None:
    server = FakeServer(ANNOUNCED)

    with Client(URL, transport=server.transport) as client:
        client.signals.announce("a")
        plain = server.body
        client.signals.announce("a", {"n": 1}, signal_id="x", happened_at_ms=5, payload={"p": [1]})

    assert plain == {"name": "a"}
    assert server.body == {"name": "a", "params": {"n": 1}, "request_id": "x", "request_time": 5, "payload": {"p": [1]}}
    assert server.asked[0].headers["Idempotency-Key"] != server.asked[1].headers["Idempotency-Key"]


def test_answers_have_types() -> None:
    with Client(URL, transport=FakeServer(EXPLAINED).transport) as client:
        explained = client.signals.explain("orders/eu", 3)
    with Client(URL, transport=FakeServer(LINEAGE).transport) as client:
        lineage = client.signals.lineage("orders/eu", 3)

    assert (explained.verdicts[0].verdict, explained.verdicts[0].waiting_for) == ("KEPT", ["b"])
    assert (lineage.edges[0].source, lineage.edges[0].target) == ("signal orders/eu 3", "instance etl 1")


def test_a_wrong_announcement_tells_all_that_is_wrong() -> None:
    server = FakeServer(problem(400, "Expected a request as documented", "body.params: Expected strings"))

    with Client(URL, transport=server.transport) as client, pytest.raises(Invalid) as raised:
        client.signals.announce("a", {"n": 1.5})

    assert raised.value.errors == ["body.params: Expected strings"]
