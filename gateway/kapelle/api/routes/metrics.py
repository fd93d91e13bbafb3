"""The metrics route, for Prometheus."""

from typing import Final

from fastapi import APIRouter, Request, Response

from kapelle.api.context import Here
from kapelle.api.metrics import Requests, depths, view_lines
from kapelle.api.routes.guards import READS, VIEWER
from kapelle.api.routes.health import lag_of
from kapelle.api.shapes import Responses, answer
from kapelle.topology.exposition import CONTENT_TYPE, member_exposition
from kapelle.topology.journal import EmbeddedJournal

router = APIRouter(tags=["health"])

METRICS: Final[Responses] = {
    **{status: READS[status] for status in (401, 403, 503)},
    200: answer(str, description="The metrics, as text.", media_type=CONTENT_TYPE),
}


@router.get("/metrics", summary="Get metrics", dependencies=VIEWER, responses=METRICS, response_class=Response)
async def metrics(here: Here, request: Request) -> Response:
    """The metrics of this node in the Prometheus text format. With an embedded log, the metrics of the engine too."""
    requests: Requests = request.app.state.requests
    lines = [*requests.lines(), *view_lines(await lag_of(here)), *await here.read(depths)]
    text = "\n".join(lines) + "\n"
    if isinstance(here.journal, EmbeddedJournal):
        text += member_exposition(here.journal.counters)
    return Response(text, media_type=CONTENT_TYPE)
