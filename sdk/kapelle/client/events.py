"""Events through the client: the history of an instance, and new events as they happen.

for event in client.events.tail(types=["RunEnded"], workflow_ids=["etl"]):
    print(event.workflow_instance_id, event.event["status"])
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final, Protocol, TypedDict, Unpack

import httpx
import msgspec

from kapelle.client import exchange
from kapelle.client.calls import BASE, Call, QueryValue
from kapelle.client.exchange import absence, refusal
from kapelle.client.results import EventRecord

SILENCE_S: Final = 60.0  # the server sends something every ten seconds
PATH: Final = f"{BASE}/events"


class TailOptions(TypedDict, total=False):
    """A filter of events, and the position to begin at."""

    types: Iterable[str]
    workflow_ids: Iterable[str]
    instance_id: int
    after: str  # the id of an event: continue after this event
    from_start: bool  # begin with the first event of all
    quiet_ms: int  # end when no event has arrived for this long


class StreamArguments(TypedDict):
    """The arguments of `httpx.Client.stream`."""

    method: str
    url: str
    params: dict[str, QueryValue]
    headers: dict[str, str]
    timeout: httpx.Timeout


class Tail:
    """One tail: its request, its position, and the parser of the answer."""

    def __init__(self, options: TailOptions) -> None:
        query: dict[str, QueryValue | None] = {
            "type": list(options.get("types", ())),
            "workflow_id": list(options.get("workflow_ids", ())),
            "instance_id": options.get("instance_id"),
            "from": "earliest" if options.get("from_start") else None,
            "wait_ms": options.get("quiet_ms"),
        }
        self._query = {name: value for name, value in query.items() if value is not None and value != []}
        self._ends = "wait_ms" in self._query
        self._id = options.get("after")
        self._data: str | None = None
        self._failures = 0

    def arguments(self) -> StreamArguments:
        """The arguments of `httpx.Client.stream`."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": self._id} if self._id else {})
        timeout = httpx.Timeout(SILENCE_S, connect=10.0)
        return {"method": "GET", "url": PATH, "params": self._query, "headers": headers, "timeout": timeout}

    def event(self, line: str) -> EventRecord | None:
        """The event that a line completes, if any."""
        name, _, value = line.partition(":")
        if name == "id":
            self._id = value.strip()
            self._failures = 0
        elif name == "data":
            self._data = value.strip()
        elif not line and self._data is not None:
            record = msgspec.json.decode(self._data, type=EventRecord)
            self._data = None
            return msgspec.structs.replace(record, id=self._id)
        return None

    def is_over(self) -> bool:
        """Whether the end of an answer is the end of the tail. Otherwise the tail reconnects."""
        return self._ends

    def pause_s(self, error: httpx.HTTPError | None, url: str) -> float:
        """The delay before the next reconnect. Raises an error after too many failed attempts."""
        self._data = None
        pauses_s = exchange.RETRY_S
        if self._failures >= len(pauses_s):
            call = Call(method="GET", path=PATH, answer=EventRecord)
            raise absence(error or httpx.RemoteProtocolError("the server ends every tail at once"), url, call)
        self._failures += 1
        return pauses_s[self._failures - 1]


class Streaming(Protocol):
    """A client that blocks."""

    url: str
    http: httpx.Client


class AsyncStreaming(Protocol):
    """A client that awaits the answer."""

    url: str
    http: httpx.AsyncClient


class Events:
    """Events as they happen."""

    def __init__(self, client: Streaming) -> None:
        self._client = client

    def tail(self, **options: Unpack[TailOptions]) -> Iterator[EventRecord]:
        """Events as they happen. The tail reconnects after an interruption, without gaps or repetitions."""
        tail = Tail(options)
        while True:
            failed: httpx.HTTPError | None = None
            try:
                with self._client.http.stream(**tail.arguments()) as response:
                    if not response.is_success:
                        response.read()
                        raise refusal(response)
                    for line in response.iter_lines():
                        event = tail.event(line)
                        if event is not None:
                            yield event
                if tail.is_over():
                    return
            except httpx.HTTPError as error:
                failed = error
            time.sleep(tail.pause_s(failed, self._client.url))


class AsyncEvents:
    """Events as they happen."""

    def __init__(self, client: AsyncStreaming) -> None:
        self._client = client

    async def tail(self, **options: Unpack[TailOptions]) -> AsyncIterator[EventRecord]:
        """Events as they happen. The tail reconnects after an interruption, without gaps or repetitions."""
        tail = Tail(options)
        while True:
            failed: httpx.HTTPError | None = None
            try:
                async with self._client.http.stream(**tail.arguments()) as response:
                    if not response.is_success:
                        await response.aread()
                        raise refusal(response)
                    async for line in response.aiter_lines():
                        event = tail.event(line)
                        if event is not None:
                            yield event
                if tail.is_over():
                    return
            except httpx.HTTPError as error:
                failed = error
            await asyncio.sleep(tail.pause_s(failed, self._client.url))
