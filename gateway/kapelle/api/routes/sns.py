"""Amazon SNS: confirms subscriptions, and announces notifications. Messages are signed, and need no token."""

from fastapi import APIRouter, Request, Response

from kapelle.api.context import Here, json_response
from kapelle.api.problems import BadRequest, NotFound, Unauthorised, Unavailable
from kapelle.api.routes.hooks import ANSWERS, HookName
from kapelle.processors.intake.forms import NotASignal
from kapelle.processors.wiring import SIGNALS
from kapelle.sources.errors import NotFetched, NotSigned
from kapelle.sources.sns import CONFIRM, NOTIFY

router = APIRouter(tags=["signals"])


@router.post("/sns/{name}", summary="Announce a signal through Amazon SNS", status_code=202, responses=ANSWERS)
async def take_message(name: HookName, request: Request, here: Here) -> Response:
    """Announce the signal that the rule of the endpoint makes from a notification, or confirm a subscription."""
    sns = here.settings.sns
    if sns is None or not sns.knows(name):
        raise NotFound("Expected the name of a configured endpoint, but found another one")
    try:
        envelope = await sns.received(name, await request.body())
        if envelope["Type"] == CONFIRM:
            await sns.confirm(envelope)
            return json_response({"status": "CONFIRMED"}, 202)
        signal = sns.signal(name, envelope) if envelope["Type"] == NOTIFY else None
    except NotSigned:
        raise Unauthorised("Expected a message that SNS signed for a topic of this endpoint") from None
    except NotFetched as error:
        raise Unavailable(str(error)) from None
    except NotASignal as error:
        raise BadRequest(str(error)) from None
    if signal is None:
        return json_response({"status": "FILTERED"}, 202)
    await here.publish(SIGNALS, signal.name, signal)
    return json_response({"status": "ANNOUNCED", "name": signal.name, "id": signal.signal_id}, 202)
