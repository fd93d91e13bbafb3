"""The context of every route: the journal, the view and the settings, and the two operations on them.

Routes are coroutines and never block: the view is read in threads, and waiting for it costs no thread at all, so that
thousands of workers can wait for tasks at a time.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Concatenate, Final, ParamSpec, TypeVar

import anyio.to_thread
import msgspec
from anyio import CapacityLimiter
from fastapi import Depends, Request, Response

from kapelle.api.checks import Checks
from kapelle.api.problems import Unavailable
from kapelle.api.settings import ApiSettings
from kapelle.processors.streams import Stream
from kapelle.schemas.contract import Contract
from kapelle.topology.journal import Journal, Point
from kapelle.views import ViewFailed, Views

P = ParamSpec("P")
T = TypeVar("T")

READERS_MAX: Final = 8
LAG_S: Final = 1.0
WATERMARK: Final = "Kapelle-Watermark"
JSON: Final = "application/json"


class Context:
    """The journal and the view of one API node."""

    def __init__(self, journal: Journal, views: Views, settings: ApiSettings) -> None:
        self.journal = journal
        self.views = views
        self.settings = settings
        self.checks = Checks()
        self.is_stopping = False
        self._readers = CapacityLimiter(READERS_MAX)
        self._lag: tuple[float, int] = (-LAG_S, 0)

    def stop(self) -> None:
        """Let everyone who waits go. May be called from any thread, or from a signal handler."""
        self.is_stopping = True
        self.views.board.tell_all()

    async def read(
        self, query: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Ask a query of the view."""
        return await anyio.to_thread.run_sync(lambda: self.views.read(query, *args, **kwargs), limiter=self._readers)

    async def publish(self, stream: Stream, key: str, command: Contract, trace: str | None = None) -> None:
        """Put a command into the log, with the trace of whoever asks, and wait until it is durable."""
        await asyncio.wrap_future(self.journal.publish(stream, key, command, trace))

    async def seen(
        self, news: Iterable[str], query: Callable[[sqlite3.Connection], T | None], wait_s: float
    ) -> T | None:
        """What a query finds in the view, as soon as it finds something; None if that takes too long."""
        until = time.monotonic() + wait_s
        with self.hearing(news) as event:
            while True:
                event.clear()
                value = await self.read(query)
                if value is not None or not await self.heard(event, until):
                    return value

    async def until(self, news: Iterable[str], is_so: Callable[[], bool], wait_s: float) -> bool:
        """Whether something has become so in time. It is asked whenever one of the news is told."""
        until_s = time.monotonic() + wait_s
        with self.hearing(news) as event:
            while not is_so():
                event.clear()
                if is_so():
                    break
                if not await self.heard(event, until_s):
                    return False
        return True

    @contextmanager
    def hearing(self, news: Iterable[str]) -> Iterator[asyncio.Event]:
        """Within the block, an event that is set whenever one of the news is told."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended: nobody waits any more
                loop.call_soon_threadsafe(event.set)

        with self.views.board.subscribed(news, wake):
            yield event

    async def heard(self, event: asyncio.Event, until_s: float) -> bool:
        """Wait for news. False: there is no time left, or the server stops."""
        if self.views.failure is not None:
            raise Unavailable(str(ViewFailed(self.views.failure)))
        left_s = until_s - time.monotonic()
        if left_s <= 0 or self.is_stopping:
            return False
        with suppress(TimeoutError):
            await asyncio.wait_for(event.wait(), left_s)
        return True

    async def lag(self) -> int:
        """How far the view is behind. The log is asked at most once a second, whoever asks us."""
        measured_s, lag_ms = self._lag
        if time.monotonic() - measured_s >= LAG_S:
            lag_ms = await anyio.to_thread.run_sync(self.views.lag)
            self._lag = time.monotonic(), lag_ms
        return lag_ms

    def watermark(self) -> str:
        """How far the view is, as a header says it."""
        return watermark_text(self.views.watermark)


def watermark_text(offsets: Mapping[Point, int]) -> str:
    """Places in the log as headers have them."""
    return msgspec.json.encode({f"{stream}-{number}": at for (stream, number), at in offsets.items() if at}).decode()


def context_of(request: Request) -> Context:
    """The context of the app that serves a request."""
    context: Context = request.app.state.context
    return context


Here = Annotated[Context, Depends(context_of)]


def json_response(
    value: object, status: int = 200, headers: dict[str, str] | None = None, *, mark: str | None = None
) -> Response:
    """A value as JSON. `mark` is the watermark that it was read at."""
    if mark is not None:
        headers = {**(headers or {}), WATERMARK: mark}
    return Response(msgspec.json.encode(value), status, headers, JSON)
