"""Watching gives each thing that happens once, until the instance has ended."""

import asyncio
from typing import Any

import httpx
import pytest

from kapelle.client import AsyncClient, Client, TimedOut, TimelineEntry, watch
from tests.unit.client.fake_server import FakeServer, ok

URL = "http://kapelle.test:8080"


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between two looks."""
    monkeypatch.setattr(watch, "PAUSE_MIN_S", 0.0)
    monkeypatch.setattr(watch, "PAUSE_MAX_S", 0.0)


def record(status: str, run_id: int = 1) -> httpx.Response:
    return ok(workflow_id="etl", workflow_instance_id=7, workflow_run_id=run_id, status=status)


def timeline(*entries: dict[str, Any]) -> httpx.Response:
    return ok(workflow_id="etl", workflow_instance_id=7, elements=list(entries))


def entry(status: str, at: int = 1, run_id: int = 1, **more: Any) -> dict[str, Any]:
    return {"timestamp": at, "type": "STATUS", "workflow_run_id": run_id, "status": status, **more}


A, B, C = entry("CREATED"), entry("IN_PROGRESS", 2), entry("SUCCEEDED", 5)
LATE = entry("RUNNING", 3, step_id="load")
LOOKS = [
    *(record("CREATED"), timeline(A)),
    *(record("IN_PROGRESS"), timeline(A, B, C)),
    *(record("SUCCEEDED"), timeline(A, B, LATE, C)),
]


def statuses(found: list[TimelineEntry]) -> list[str | None]:
    return [one.status for one in found]


def test_each_entry_is_given_once_also_one_that_comes_late_and_stands_before_others() -> None:
    with Client(URL, transport=FakeServer(*LOOKS).transport) as client:
        found = list(client.instances.watch("etl", 7))

    assert statuses(found) == ["CREATED", "IN_PROGRESS", "SUCCEEDED", "RUNNING"]


def test_the_async_client_watches_the_same() -> None:
    async def watched() -> list[TimelineEntry]:
        async with AsyncClient(URL, transport=FakeServer(*LOOKS).transport) as client:
            return [one async for one in client.instances.watch("etl", 7)]

    assert statuses(asyncio.run(watched())) == ["CREATED", "IN_PROGRESS", "SUCCEEDED", "RUNNING"]


def test_two_entries_that_are_the_same_are_two() -> None:
    with Client(URL, transport=FakeServer(record("SUCCEEDED"), timeline(A, A)).transport) as client:
        assert statuses(list(client.instances.watch("etl", 7))) == ["CREATED", "CREATED"]


def test_runs_before_the_latest_are_not_told_again() -> None:
    looks = (record("SUCCEEDED", 2), timeline(entry("FAILED"), entry("SUCCEEDED", 9, 2)))
    with Client(URL, transport=FakeServer(*looks).transport) as client:
        assert statuses(list(client.instances.watch("etl", 7))) == ["SUCCEEDED"]


def test_waiting_gives_the_record_of_the_end() -> None:
    looks = (record("CREATED"), record("IN_PROGRESS"), record("SUCCEEDED"))
    with Client(URL, transport=FakeServer(*looks).transport) as client:
        assert client.instances.wait("etl", 7).status == "SUCCEEDED"


def test_watching_longer_than_asked_for_is_timed_out_with_the_status() -> None:
    def answers(request: httpx.Request) -> httpx.Response:
        return timeline(A) if request.url.path.endswith("timeline") else record("IN_PROGRESS")

    with Client(URL, transport=FakeServer(answers).transport) as client, pytest.raises(TimedOut) as raised:
        list(client.instances.watch("etl", 7, timeout_s=0.01))

    assert str(raised.value) == "Expected etl/7 to end within 0.01 s, but it is IN_PROGRESS"
