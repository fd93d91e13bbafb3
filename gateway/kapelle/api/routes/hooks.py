"""Webhooks: signed bodies of other systems become signals. The signature is who they are: they need no token."""

import time
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Request, Response
from pydantic import BaseModel

from kapelle.api.callers import trace_in
from kapelle.api.context import Here, json_response
from kapelle.api.problems import BadRequest, NotFound, Unauthorised
from kapelle.api.routes.guards import WRITES
from kapelle.processors.intake.forms import NotASignal
from kapelle.processors.routes import SIGNALS
from kapelle.sources.hooks import Delivery

router = APIRouter(tags=["signals"])

HEADER_CHARS_MAX: Final = 2_000

HookName = Annotated[str, Path(min_length=1, max_length=100, description="The name of a hook.")]


class AnnouncedBody(BaseModel):
    """The signal that was announced, or that the filter of the hook keeps it out."""

    status: str
    name: str | None = None
    id: str | None = None


ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    202: {"description": "The signal is in the log, or the filter keeps it out.", "model": AnnouncedBody},
    **{status: WRITES[status] for status in (400, 401, 404, 413, 503)},
}


@router.post("/hooks/{name}", summary="Announce a signal by a webhook", status_code=202, responses=ANSWERS)
async def take_delivery(
    name: HookName,
    request: Request,
    here: Here,
    kapelle_signature: Annotated[str, Header(max_length=HEADER_CHARS_MAX, description="`t=<seconds>,v1=<hex>`")] = "",
    kapelle_delivery: Annotated[
        str | None,
        Header(max_length=HEADER_CHARS_MAX, description="The id of the delivery: the same is the same signal."),
    ] = None,
) -> Response:
    """Make a signed JSON object into a signal, as the rule of the hook says."""
    hook = here.settings.hooks.get(name) if here.settings.hooks else None
    if hook is None:
        raise NotFound("Expected a hook that is known here, but found another one")
    sent = Delivery(await request.body(), kapelle_signature, kapelle_delivery)
    if not hook.accepts(sent, time.time()):
        raise Unauthorised("Expected the header `Kapelle-Signature` as a sender of this hook makes it, and lately")
    try:
        signal = hook.signal(sent)
    except NotASignal as error:
        raise BadRequest(str(error)) from None
    if signal is None:
        return json_response({"status": "FILTERED"}, 202)
    await here.publish(SIGNALS, signal.name, signal, trace_in(request))
    return json_response({"status": "ANNOUNCED", "name": signal.name, "id": signal.signal_id}, 202)
