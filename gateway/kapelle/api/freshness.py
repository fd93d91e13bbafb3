"""The position that the view must reach before a read is answered, and its current position, in one format.

    workflows.events-0:12,runs.events-1:40      in ?min_offset=, made by hand
    {"workflows.events-0":12,"runs.events-1":40}      in the header Kapelle-Watermark, as an answer has told it

Every answer tells in Kapelle-Watermark how far the view is: an answer to a write at least as far as its effect. Whoever
hands that on with a read, be it to another node, sees what was written.
"""

from collections.abc import Mapping
from typing import Annotated, Final

import anyio.to_thread
import msgspec
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kapelle.api.context import WATERMARK, Context, watermark_text
from kapelle.api.problems import BadRequest, Unavailable
from kapelle.topology.journal import Point
from kapelle.views.projection import FOLLOWED
from kapelle.views.projection.news import ANYTHING

CHARS_MAX: Final = 32_768
POINTS_MAX: Final = 4_096

_Offsets = dict[str, Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]]


def offsets_of(text: str, known: Mapping[Point, int]) -> dict[Point, int]:
    """The places in the log that a text names. They must be of streams that the view follows."""
    points = {f"{stream}-{partition}": (stream, partition) for stream, partition in known}
    named = _as_json(text) if text.lstrip().startswith("{") else _as_pairs(text)
    unknown = next((name for name in named if name not in points), None)
    if unknown is not None:
        raise BadRequest(
            f"Expected a partition that the view follows, such as {next(iter(points), 'none')}, "
            f"but found {unknown[:80]!r}"
        )
    return {points[name]: offset for name, offset in named.items()}


def _as_json(text: str) -> dict[str, int]:
    try:
        return msgspec.json.decode(text, type=_Offsets)
    except msgspec.MsgspecError as error:
        raise BadRequest(f"Expected offsets in the form of {WATERMARK}, but {error}") from None


def _as_pairs(text: str) -> dict[str, int]:
    offsets: dict[str, int] = {}
    for pair in text.split(",")[:POINTS_MAX]:
        name, _, offset = pair.strip().rpartition(":")
        if not name or not (offset.isascii() and offset.isdigit()) or len(offset) > 18:
            raise BadRequest(f"Expected min_offset as stream-partition:offset, but found {pair[:80]!r}")
        offsets[name] = int(offset)
    return offsets


async def reached(here: Context, text: str, wait_s: float) -> None:
    """Wait until the view is as far as a text says. If that takes too long, the problem tells how far it is."""
    wanted = offsets_of(text, here.views.watermark)

    def lacking() -> dict[Point, int]:
        now = here.views.watermark
        return {point: offset for point, offset in wanted.items() if now.get(point, 0) < offset}

    if not await here.until([ANYTHING], lambda: not lacking(), wait_s) and (left := lacking()):
        await _refuse_beyond(here, left)
        now = here.views.watermark
        errors = [
            f"{s}-{n}: wanted {offset}, but the view is at {now.get((s, n), 0)}" for (s, n), offset in left.items()
        ]
        raise Unavailable(f"Expected the view to reach the position within {wait_s:g} s, but it has not", errors)


async def _refuse_beyond(here: Context, wanted: Mapping[Point, int]) -> None:
    """Refuse places that the log does not have: no answer can have told of them."""
    names = {name for name, _ in wanted}

    def ends() -> dict[Point, int]:
        known = [stream for stream in FOLLOWED if stream.name in names]
        return {(stream.name, number): end for stream in known for number, end in here.journal.ends(stream).items()}

    log_ends = await anyio.to_thread.run_sync(ends)
    beyond = [(point, at) for point, at in wanted.items() if at > log_ends.get(point, 0)]
    if beyond:
        problems = [f"{s}-{n}: wanted {at}, but the log ends at {log_ends.get((s, n), 0)}" for (s, n), at in beyond]
        raise BadRequest("Expected positions that exist in the log, but they are beyond its end", problems)


class Marking:
    """A middleware that tells with every answer how far the view is, where the route has not told it better."""

    def __init__(self, app: ASGIApp, context: Context, *, below: str) -> None:
        self._app = app
        self._context = context
        self._below = f"{below}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(self._below):
            await self._app(scope, receive, send)
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if WATERMARK not in headers:
                    headers[WATERMARK] = watermark_text(self._context.views.horizon)
            await send(message)

        await self._app(scope, receive, marked)
