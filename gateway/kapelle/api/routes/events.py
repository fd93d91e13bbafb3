"""Events: the history of an instance, and new events as server-sent events."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from enum import StrEnum
from typing import Annotated, Final

import anyio.to_thread
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from kapelle.api.answers.events import History
from kapelle.api.callers import INT_MAX, InstanceAt, Reader
from kapelle.api.context import json_response
from kapelle.api.events import TYPES, EventFilter, Tails, event_record, history
from kapelle.api.problems import BadRequest
from kapelle.api.routes.guards import READS, VIEWER
from kapelle.api.routes.instances import no_instance
from kapelle.api.shapes import answer, ok
from kapelle.views.queries import histories, instances

router = APIRouter(tags=["events"])

EVENT_STREAM: Final = "text/event-stream"
EACH_MAX: Final = 64


class From(StrEnum):
    """Where a stream of events begins."""

    LATEST = "latest"
    EARLIEST = "earliest"


Types = Annotated[
    list[str], Query(alias="type", max_length=EACH_MAX, description="Return only events of this type. Repeatable.")
]
WorkflowIds = Annotated[
    list[str],
    Query(alias="workflow_id", max_length=EACH_MAX, description="Return only events of this workflow. Repeatable."),
]
OneInstance = Annotated[int | None, Query(ge=1, le=INT_MAX, description="Return only events of this instance.")]


def _event_filter(types: Types = [], workflow_ids: WorkflowIds = [], instance_id: OneInstance = None) -> EventFilter:  # noqa: B006 - FastAPI's
    unknown = next((type_ for type_ in types if type_ not in TYPES), None)
    if unknown is not None:
        raise BadRequest(f"Expected a type of events ({', '.join(TYPES)}), but found {unknown[:80]!r}")
    return EventFilter(frozenset(types), frozenset(workflow_ids), instance_id)


@router.get(
    "/workflows/{workflow_id}/instances/{instance_id}/events",
    summary="List the events of an instance",
    dependencies=VIEWER,
    responses=READS | ok(History),
)
async def get_history(here: Reader, at: InstanceAt) -> Response:
    """The events of an instance in the order of the log, each as it was written, with its partition and offset."""
    mark = here.watermark()
    if await here.read(instances.run, *at) is None:
        raise no_instance(*at)
    places = await here.read(histories.places, *at)
    entries = await anyio.to_thread.run_sync(history, here.journal, places)
    body = {
        "workflow_id": at[0],
        "workflow_instance_id": at[1],
        "is_cut": len(places) == histories.PLACES_MAX,
        "elements": [event_record(entry) for entry in entries],
    }
    return json_response(body, mark=mark)


@router.get(
    "/events",
    summary="Tail events",
    dependencies=VIEWER,
    responses=READS | {200: answer(str, description="A stream of events.", media_type=EVENT_STREAM)},
    response_class=StreamingResponse,
)
async def tail(
    request: Request,
    selected: Annotated[EventFilter, Depends(_event_filter)],
    begin: Annotated[
        From, Query(alias="from", description="Begin at new events, or at the first event.")
    ] = From.LATEST,
    last_event_id: Annotated[str | None, Header(max_length=8_192, description="Continue after this event.")] = None,
    wait_ms: Annotated[
        int | None,
        Query(
            ge=0,
            le=INT_MAX,
            description="End the stream when no event arrives for this long. Default: the stream does not end.",
        ),
    ] = None,
) -> Response:
    """Stream events of workflows, runs, signals and triggers as server-sent events.

    To continue after an event, send its id in the header `Last-Event-ID`.
    """
    tails: Tails = request.app.state.tails
    with ExitStack() as held:
        held.enter_context(tails.place())
        where = await tails.begin(last_event_id, from_start=begin is From.EARLIEST)
        blocks = tails.blocks(selected, where, None if wait_ms is None else wait_ms / 1000)
        return Tail(blocks, held.pop_all())


class Tail(StreamingResponse):
    """A stream of events. Its place is free again when it ends, however that is: also if it was never begun."""

    def __init__(self, blocks: AsyncIterator[bytes], held: ExitStack) -> None:
        super().__init__(blocks, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store"})
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await super().__call__(scope, receive, send)
