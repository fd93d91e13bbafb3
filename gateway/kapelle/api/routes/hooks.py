"""Webhooks: signed requests of other systems become signals. The signature replaces the token."""

import time
from typing import Annotated, Final

from fastapi import APIRouter, Header, Path, Request, Response

from kapelle.api.answers.signals import Delivered
from kapelle.api.callers import trace_in
from kapelle.api.context import Here, json_response
from kapelle.api.problems import BadRequest, NotFound, Unauthorised
from kapelle.api.routes.guards import WRITES
from kapelle.api.shapes import Responses, answer
from kapelle.processors.intake.forms import NotASignal
from kapelle.processors.wiring import SIGNALS
from kapelle.sources.hooks import Delivery

router = APIRouter(tags=["signals"])

HEADER_CHARS_MAX: Final = 2_000

HookName = Annotated[str, Path(min_length=1, max_length=100, description="The name of a hook or endpoint.")]


ANSWERS: Final[Responses] = {
    202: answer(Delivered, description="The signal is in the log, or the filter excluded it."),
    **{status: WRITES[status] for status in (400, 401, 404, 413, 503)},
}


@router.post("/hooks/{name}", summary="Announce a signal through a webhook", status_code=202, responses=ANSWERS)
async def take_delivery(
    name: HookName,
    request: Request,
    here: Here,
    kapelle_signature: Annotated[
        str, Header(max_length=HEADER_CHARS_MAX, description="The signature: `t=<seconds>,v1=<hex>`.")
    ] = "",
    kapelle_delivery: Annotated[
        str | None,
        Header(
            max_length=HEADER_CHARS_MAX,
            description="The id of the delivery. Deliveries with the same id are the same signal.",
        ),
    ] = None,
) -> Response:
    """Announce the signal that the rule of the hook makes from a signed JSON object."""
    hook = here.settings.hooks.get(name) if here.settings.hooks else None
    if hook is None:
        raise NotFound("Expected the name of a configured hook, but found another one")
    sent = Delivery(await request.body(), kapelle_signature, kapelle_delivery)
    if not hook.accepts(sent, time.time()):
        raise Unauthorised("Expected a valid and recent signature in the header `Kapelle-Signature`, but found none")
    try:
        signal = hook.signal(sent)
    except NotASignal as error:
        raise BadRequest(str(error)) from None
    if signal is None:
        return json_response({"status": "FILTERED"}, 202)
    await here.publish(SIGNALS, signal.name, signal, trace_in(request))
    return json_response({"status": "ANNOUNCED", "name": signal.name, "id": signal.signal_id}, 202)
