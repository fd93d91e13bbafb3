"""Schedules and backfills through the client: every method asks what the API documents; the async one the same."""

import asyncio
import inspect
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import httpx
import pytest

from kapelle.client import AsyncClient, Client, Invalid, TimedOut, Workflow
from kapelle.client.backfills import AsyncBackfills, Backfills
from kapelle.client.schedules import AsyncSchedules, Schedules
from tests.unit.client.fake_server import FakeServer, ok, problem

URL = "http://kapelle.test:8080"
ETL = "/api/v3/workflows/etl"
ID = "5c0b3a1f2e4d6978"
SCHEDULE = {
    "trigger_id": ID,
    "type": "CRON",
    "cron": "0 5 * * *",
    "timezone": "Europe/Berlin",
    "state": "PAUSED",
    "paused": {"by": "ann", "at": 7, "reason": "holidays", "scope": "WORKFLOW"},
    "next": [{"scheduled_at": 10, "due_at": 12}],
    "last": [
        {"fate": "STARTED", "scheduled_at": 9, "workflow_instance_id": 3, "status": "FAILED", "late_ms": 4, "count": 1},
        {"fate": "PASSED_OVER", "count": 6, "from": 2, "to": 8, "reason": "LATEST"},
    ],
    "started": 1,
    "passed_over": 6,
}
LIST = ok(workflow_id="etl", schedules=[SCHEDULE])
DONE = ok(request_id="r", workflow_id="etl", status="DONE")
PREVIEW = ok(
    timezone="UTC", times=[{"scheduled_at": 0, "utc": "1970-01-01T00:00:00Z", "local": "1970-01-01T00:00:00Z"}]
)
PAGE = ok(page_info={"has_next_page": False}, total_count=0, elements=[])


def backfill(**more: Any) -> httpx.Response:
    return ok(workflow_id="etl", backfill_id="b1", **{"status": "RUNNING", "total": 4, "from": 1, "to": 9, **more})


# What is called, what the server answers, and the request that it gets.
CALLS: list[tuple[str, Callable[[Any], Any], httpx.Response, str]] = [
    ("list", lambda k: k.schedules.list("etl"), LIST, f"GET {ETL}/schedules"),
    (
        "list all",
        lambda k: k.schedules.list("etl", with_disarmed=True),
        LIST,
        f"GET {ETL}/schedules?with_disarmed=true",
    ),
    ("get", lambda k: k.schedules.get("etl", ID), ok(**SCHEDULE), f"GET {ETL}/schedules/{ID}"),
    (
        "get with more ticks",
        lambda k: k.schedules.get("etl", ID, upcoming=20, last=1),
        ok(**SCHEDULE),
        f"GET {ETL}/schedules/{ID}?next=20&last=1",
    ),
    ("pause", lambda k: k.schedules.pause("etl"), DONE, f"PUT {ETL}/schedules/actions/pause"),
    ("resume", lambda k: k.schedules.resume("etl", ID), DONE, f"PUT {ETL}/schedules/actions/resume"),
    (
        "preview",
        lambda k: k.schedules.preview(cron="@daily", timezone="Europe/Berlin", since=date(2026, 1, 1), count=3),
        PREVIEW,
        "GET /api/v3/schedules/preview?cron=%40daily&timezone=Europe%2FBerlin&count=3&from=2026-01-01",
    ),
    (
        "preview an interval",
        lambda k: k.schedules.preview(every="90m"),
        PREVIEW,
        "GET /api/v3/schedules/preview?interval=90m",
    ),
    ("start", lambda k: k.backfills.start("etl", 1, 9), backfill(), f"POST {ETL}/backfills"),
    (
        "dry run",
        lambda k: k.backfills.dry_run("etl", 1, 9),
        ok(backfill_id="b1", total=1, existing=0, slots=[{"scheduled_at": 1, "local": "1970", "is_existing": False}]),
        f"POST {ETL}/backfills",
    ),
    ("backfills", lambda k: k.backfills.list("etl", limit=5), PAGE, f"GET {ETL}/backfills?limit=5"),
    ("backfill", lambda k: k.backfills.get("etl", "b1"), backfill(), f"GET {ETL}/backfills/b1"),
    ("pause one", lambda k: k.backfills.pause("etl", "b1"), backfill(), f"PUT {ETL}/backfills/b1/actions/pause"),
    ("resume one", lambda k: k.backfills.resume("etl", "b1"), backfill(), f"PUT {ETL}/backfills/b1/actions/resume"),
    ("cancel", lambda k: k.backfills.cancel("etl", "b1"), backfill(), f"PUT {ETL}/backfills/b1/actions/cancel"),
    (
        "wait",
        lambda k: k.backfills.wait("etl", "b1"),
        backfill(status="COMPLETED"),
        f"GET {ETL}/backfills/b1",
    ),
    (
        "instances of a backfill",
        lambda k: k.instances.list("etl", backfill_id="b1"),
        PAGE,
        f"GET {ETL}/instances?backfill_id=b1",
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

    assert methods(Schedules) == methods(AsyncSchedules)
    assert methods(Backfills) == methods(AsyncBackfills)


def test_bodies_say_only_what_was_given() -> None:
    server = FakeServer(DONE, DONE, backfill())

    with Client(URL, transport=server.transport) as client:
        client.schedules.pause("etl", request_id="mine")
        plain, key = server.asked[-1].content, server.asked[-1].headers["Idempotency-Key"]
        client.schedules.pause("etl", ID, reason="holidays")
        reason = server.body
        client.backfills.cancel("etl", "b1", stop_running=True)
        cancelled = server.body

    assert (plain, key) == (b"", "mine")
    assert reason == {"trigger_id": ID, "reason": "holidays"}
    assert cancelled == {"stop_running": True}


def test_a_backfill_is_sent_with_its_options_and_parameters() -> None:
    server = FakeServer(backfill())

    with Client(URL, transport=server.transport) as client:
        client.backfills.start("etl", date(2026, 1, 1), "2026-03-31", every="1d", params={"rows": 3}, concurrency=8)
        first = server.body
        client.backfills.start(
            "etl", datetime(2026, 1, 1, 6, tzinfo=UTC), 99, cron="@daily", order="newest", rerun=True
        )
        second = server.body

    rows = {"rows": {"type": "LONG", "value": 3}}
    assert first == {"from": "2026-01-01", "to": "2026-03-31", "every": "1d", "params": rows, "concurrency": 8}
    assert second == {
        "from": "2026-01-01T06:00:00+00:00",
        "to": 99,
        "cron": "@daily",
        "order": "newest",
        "rerun": True,
    }


def test_a_dry_run_asks_for_nothing_else() -> None:
    server = FakeServer(ok(backfill_id="b1", total=2, existing=1, slots=[{"scheduled_at": 1, "is_existing": True}]))

    with Client(URL, transport=server.transport) as client:
        plan = client.backfills.dry_run("etl", 1, 9, trigger_id=ID)

    assert server.body == {"from": 1, "to": 9, "trigger_id": ID, "dry_run": True}
    assert (plan.total, plan.existing, plan.slots[0].is_existing) == (2, 1, True)


def test_ticks_have_types() -> None:
    with Client(URL, transport=FakeServer(LIST).transport) as client:
        [found] = client.schedules.list("etl").schedules

    started, passed_over = found.last
    assert found.times == "0 5 * * *"
    assert found.paused is not None
    assert found.paused.scope == "WORKFLOW"
    assert (found.next[0].scheduled_at, found.next[0].due_at) == (10, 12)
    assert (started.fate, started.workflow_instance_id, started.status, started.late_ms) == ("STARTED", 3, "FAILED", 4)
    assert (passed_over.count, passed_over.from_, passed_over.to) == (6, 2, 8)


def test_watching_tells_each_change_once_until_the_end() -> None:
    running = backfill(decided=2, started=2, counts={"IN_PROGRESS": 1, "SUCCEEDED": 1})
    ended = backfill(status="COMPLETED", decided=4, existing=1, counts={"SUCCEEDED": 2, "FAILED": 1})
    server = FakeServer(backfill(), running, running, ended)

    with Client(URL, transport=server.transport) as client:
        records = list(client.backfills.watch("etl", "b1"))

    assert [(one.status, one.ended) for one in records] == [("RUNNING", 0), ("RUNNING", 1), ("COMPLETED", 4)]
    assert [one.is_over for one in records] == [False, False, True]
    assert records[-1].unsuccessful == 1
    assert len(server.asked) == 4


def test_waiting_ends_after_the_time_that_was_given() -> None:
    server = FakeServer(backfill())

    with (
        Client(URL, transport=server.transport) as client,
        pytest.raises(TimedOut, match=r"b1 of etl to end within 0\.2 s"),
    ):
        client.backfills.wait("etl", "b1", timeout_s=0.2)


def test_a_backfill_that_is_too_large_is_refused_with_the_reason() -> None:
    server = FakeServer(problem(400, "Expected at most 100,000 scheduled times, but found 10,000,000"))

    with Client(URL, transport=server.transport) as client, pytest.raises(Invalid, match="10,000,000"):
        client.backfills.start("etl", 0, 9, every="2m")


def test_time_triggers_are_written_as_definitions_have_them() -> None:
    flow = Workflow("etl").at("0 5 * * *", timezone="Europe/Berlin", catch_up="ALL").at("@daily", start="2026-01-01")
    flow.every("90m", anchor="2026-01-01T12:00", fuzzy_max_delay="5 min").every(7200)

    assert flow.as_json()["workflow"]["time_triggers"] == [  # type: ignore[index] # JSON
        {"type": "CRON", "cron": "0 5 * * *", "timezone": "Europe/Berlin", "catch_up": "ALL"},
        {"type": "PREDEFINED", "expression": "@daily", "start": "2026-01-01"},
        {"type": "INTERVAL", "interval": "90m", "anchor": "2026-01-01T12:00", "fuzzy_max_delay": "5 min"},
        {"type": "INTERVAL", "interval": 7200},
    ]
