"""The metrics of an API node: requests by route and status, their duration, the view, and the queues.

Instances are counted in the view, not in the engine. Counters of the engine would be spread over all members, and
would begin at zero after each restart.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kapelle.topology.exposition import histogram, lines_of, now, times, total
from kapelle.topology.metrics import Times
from kapelle.views.queries.breakpoints import paused_count
from kapelle.views.queries.instance_lists import counts
from kapelle.views.queries.permits import LimitSum, kind_sums, tag_sums
from kapelle.views.queries.tasks import open_by_type
from kapelle.views.queries.unreadable import unreadable_count

REQUESTS: Final = total("api_requests", "Answered requests, by method, route and status.")
SECONDS: Final = times("api_request", "Duration of requests by route, waiting included.")
OPEN: Final = now("api_requests_open", "Requests in progress.")
VIEW_LAG: Final = now("view_lag_records", "Records of the log that the view has not folded yet.")
UNREADABLE: Final = now("view_unreadable_records", "Records of the log that the view could not read.")
INSTANCES: Final = now("instances", "Instances by status. CREATED: queued. IN_PROGRESS: running.")
TASKS: Final = now("tasks_open", "Unfinished tasks by type, both waiting and running.")
PAUSED: Final = now("steps_paused", "Step attempts that a breakpoint has paused.")
MAX: Final = now("permits_max", "Limits of the first 100 tags by name.")
# By tag, and then of all limits of a kind together: nobody knows how many workflows and trees there are.
HELD: Final = (
    now("permits_held", "Attempts that hold a permit of a tag. The first 100 tags by name."),
    now("limits_held", "Attempts that hold a permit, by kind of limit: tag, workflow or tree."),
)
WAITS: Final = (
    now("permits_waiting", "Attempts that wait for a permit of a tag. The first 100 tags by name."),
    now("limits_waiting", "Attempts that wait for a permit, by kind of limit."),
)
OLDEST: Final = (
    now("permits_oldest_wait_seconds", "How long the first attempt has waited for a permit of a tag.", 0.001),
    now("limits_oldest_wait_seconds", "How long the first attempt has waited for a permit, by kind of limit.", 0.001),
)
ALL: Final = (
    *(REQUESTS, SECONDS, OPEN, VIEW_LAG, UNREADABLE, INSTANCES, TASKS, PAUSED, MAX),
    *(HELD[0], WAITS[0], OLDEST[0], HELD[1], WAITS[1], OLDEST[1]),
)

OTHER: Final = "other"  # requests that match no route, or were refused before the route was resolved
WAITING: Final = ("CREATED", "IN_PROGRESS", "PAUSED")


class Requests:
    """Counts requests. All of it happens in the loop of the server."""

    def __init__(self) -> None:
        self.open = 0
        self.answered: dict[tuple[str, str, int], int] = {}
        self.took: dict[str, Times] = {}

    def add(self, method: str, route: str, *, status: int, took_ms: float) -> None:
        key = method, route, status
        self.answered[key] = self.answered.get(key, 0) + 1
        self.took.setdefault(route, Times()).add(took_ms)

    def lines(self) -> Iterator[str]:
        answered = sorted(self.answered.items())
        labelled = [({"method": m, "route": r, "status": str(s)}, count) for (m, r, s), count in answered]
        yield from lines_of(REQUESTS, labelled)
        for number, (route, took) in enumerate(sorted(self.took.items())):
            yield from histogram(SECONDS, {"route": route}, took, is_first=number == 0)
        yield from lines_of(OPEN, [({}, self.open)])


class Measured:
    """The middleware around all others: it sees what they refuse."""

    def __init__(self, app: ASGIApp, requests: Requests, clock: Callable[[], float] = time.perf_counter) -> None:
        self._app = app
        self._requests = requests
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = self._clock(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._requests.open += 1
        try:
            await self._app(scope, receive, noted)
        finally:
            self._requests.open -= 1
            took_ms = (self._clock() - began) * 1000
            self._requests.add(scope["method"], _route(scope), status=status, took_ms=took_ms)


def _route(scope: Scope) -> str:
    """The route as it is documented, below its base: a path would be another one for each workflow."""
    route: object = scope.get("route")
    return str(getattr(route, "path", OTHER))


def depths(connection: sqlite3.Connection) -> list[str]:
    """How many records it could not read, instances wait and run, and tasks are open, as the view has it."""
    counted = counts(connection)
    unreadable = lines_of(UNREADABLE, [({}, unreadable_count(connection))])
    instances = [({"status": status}, counted.get(status, 0)) for status in WAITING]
    return [
        *unreadable,
        *lines_of(INSTANCES, instances),
        *lines_of(TASKS, [({"type": kind}, count) for kind, count in open_by_type(connection)]),
        *lines_of(PAUSED, [({}, paused_count(connection))]),
        *_permits(connection, time.time_ns() // 1_000_000),
    ]


def _permits(connection: sqlite3.Connection, now_ms: int) -> Iterator[str]:
    """What is limited, what is held and what waits: of some tags, and of each kind of limit."""
    tags, kinds = tag_sums(connection), kind_sums(connection)
    yield from lines_of(MAX, [({"tag": tag.name}, tag.max or 0) for tag in tags])
    for number, (label, sums) in enumerate((("tag", tags), ("kind", kinds))):
        yield from lines_of(HELD[number], [({label: each.name}, each.held) for each in sums])
        yield from lines_of(WAITS[number], [({label: each.name}, each.waiting) for each in sums])
        yield from lines_of(OLDEST[number], [({label: each.name}, _waited_ms(each, now_ms)) for each in sums])


def _waited_ms(of: LimitSum, now_ms: int) -> int:
    return 0 if of.oldest_ms is None else max(now_ms - of.oldest_ms, 0)


def view_lines(lag: int | None) -> Iterator[str]:
    """How far the view is behind; nothing while the log does not say."""
    yield from lines_of(VIEW_LAG, [] if lag is None else [({}, lag)])
