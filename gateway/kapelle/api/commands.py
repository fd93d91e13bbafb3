"""Writing: a request becomes a command in the log, and is answered when the view shows its outcome."""

import sqlite3
import time
from collections.abc import Iterable
from typing import Final

import msgspec
from fastapi import Request

from kapelle.api.callers import Caller
from kapelle.api.context import Context
from kapelle.api.problems import BadRequest, NotSeen, Refused
from kapelle.processors.streams import Stream
from kapelle.schemas.contract import Contract
from kapelle.schemas.contracts import CommandStatus, Refusal
from kapelle.views.projection.news import request_news, run_news
from kapelle.views.queries.requests import Outcome, outcomes

REFUSED: Final = "CommandRefused"


class Question(msgspec.Struct, frozen=True):
    """A command, and where it goes.

    `is_anywhere`: another instance may answer. A restart of a child climbs to the ancestor that runs it again.
    """

    stream: Stream
    key: str
    command: Contract
    workflow_id: str
    instance_id: int | None = None
    is_anywhere: bool = False


async def ask(here: Context, caller: Caller, question: Question) -> Outcome:
    """Put the command into the log, and give what came of it. A refusal is raised as a problem."""
    request_id, workflow_id = caller.request_id, None if question.is_anywhere else question.workflow_id
    # The same request may have been made before: then its old outcomes are not the answer to this one.
    before = [] if caller.is_new else await here.read(outcomes, request_id, workflow_id)
    known = {outcome.place for outcome in before}
    until = time.monotonic() + caller.wait_s
    await here.publish(question.stream, question.key, question.command, caller.trace)

    def look(connection: sqlite3.Connection) -> Outcome | None:
        settled = outcomes(connection, request_id, workflow_id)
        return next((outcome for outcome in settled if outcome.place not in known), None)

    answer = await here.seen(_news(request_id, question), look, until - time.monotonic())
    if answer is None:
        raise NotSeen(request_id)
    if answer.kind == REFUSED:
        body = answer.body
        raise Refused(Refusal(body["refusal"]), body["message"], body["errors"], request_id)
    return answer


def _news(request_id: str, question: Question) -> Iterable[str]:
    yield request_news(request_id)
    if question.instance_id is not None:
        yield run_news(question.workflow_id, question.instance_id)


def settled(outcome: Outcome, caller: Caller, **more: object) -> dict[str, object]:
    """The answer to a write that makes nothing with a number of its own."""
    unchanged = outcome.body.get("status") == CommandStatus.UNCHANGED
    return {
        "request_id": caller.request_id,
        "workflow_id": outcome.workflow_id,
        "status": "UNCHANGED" if unchanged else "DONE",
        **({"message": outcome.body["reason"]} if unchanged else {}),
        **more,
    }


async def members_of(request: Request) -> dict[str, msgspec.Raw]:
    """The members of a body that is an object, as they were written."""
    body = await request.body()
    try:
        body.decode()  # what is handed on as it was written must be text as well
        return msgspec.json.decode(body or b"{}", type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"Expected a JSON object, but {error}") from None


def text_of(members: dict[str, msgspec.Raw], name: str, default: str) -> str:
    """A member as JSON text; what is null counts as absent."""
    text = bytes(members.get(name, b"null")).decode().strip()
    return default if text == "null" else text
