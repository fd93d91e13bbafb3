"""Tailing through the client: what the lines mean, and that a server that was away is asked again."""

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from kapelle.client import AsyncClient, Client, EventRecord, Invalid, Unavailable
from tests.unit.client.fake_server import FakeServer

URL = "http://kapelle.test:8080"


def block(number: int, **more: Any) -> str:
    record = {"type": "RunEnded", "time": number, "stream": "runs.events", "partition": 0, "offset": number}
    body = msgspec.json.encode({**record, "key": "etl/1", "event": {"status": "SUCCEEDED"}, **more}).decode()
    return f"id: r0.{number + 1}\nevent: RunEnded\ndata: {body}\n\n"


def answer(*blocks: str) -> httpx.Response:
    text = "retry: 1000\n: \nid: 0\n\n" + "".join(blocks)
    return httpx.Response(200, text=text, headers={"Content-Type": "text/event-stream"})


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.client.exchange.RETRY_S", (0.0, 0.0, 0.0))


def test_events_come_as_they_were_sent_and_ask_for_what_was_wanted() -> None:
    server = FakeServer(answer(block(0), ": \nid: r0.9\n\n", block(9)))
    with Client(URL, transport=server.transport) as client:
        found = list(client.events.tail(types=["RunEnded"], workflow_ids=["etl"], quiet_ms=5))

    assert server.line == "GET /api/v3/events?type=RunEnded&workflow_id=etl&wait_ms=5"
    assert [(one.offset, one.id) for one in found] == [(0, "r0.1"), (9, "r0.10")]
    assert found[0].event == {"status": "SUCCEEDED"}


def test_a_server_that_was_away_is_asked_again_after_the_last_event() -> None:
    server = FakeServer(answer(block(0)), httpx.ConnectError("away"), answer(block(1)), answer(block(2)))
    with Client(URL, transport=server.transport) as client:
        tail = client.events.tail()
        found = [next(tail) for _ in range(3)]

    assert [one.offset for one in found] == [0, 1, 2]
    asked = [request.headers.get("last-event-id") for request in server.asked]
    assert asked == [None, "r0.1", "r0.1", "r0.2"]


def test_a_server_that_stays_away_is_an_error() -> None:
    server = FakeServer(httpx.ConnectError("away"))
    with (
        Client(URL, transport=server.transport) as client,
        pytest.raises(Unavailable, match="there is no answer: away"),
    ):
        next(iter(client.events.tail()))

    assert len(server.asked) == 4


def test_what_the_server_refuses_is_told_at_once() -> None:
    server = FakeServer(httpx.Response(400, json={"status": 400, "detail": "Expected a type of events"}))
    with Client(URL, transport=server.transport) as client, pytest.raises(Invalid, match="a type of events"):
        next(iter(client.events.tail(types=["Nonsense"])))

    assert len(server.asked) == 1


def test_the_async_client_gives_the_same_events() -> None:
    server = FakeServer(answer(block(0)), answer(block(1)))

    async def tailed() -> list[EventRecord]:
        found: list[EventRecord] = []
        async with AsyncClient(URL, transport=server.transport) as client:
            async for event in client.events.tail(after="r0.0"):
                found.append(event)
                if len(found) == 2:
                    break
        return found

    found = asyncio.run(tailed())

    assert [one.offset for one in found] == [0, 1]
    assert [request.headers.get("last-event-id") for request in server.asked] == ["r0.0", "r0.1"]
