"""Dead letters of an embedded log: list them, and publish their records again."""

import asyncio
from typing import Annotated, Final

import anyio.to_thread
from fastapi import APIRouter, Path, Query, Response

from kapelle.api.answers.common import Elements
from kapelle.api.answers.letters import Letter, Redriven
from kapelle.api.context import Context, Here, json_response
from kapelle.api.problems import NotFound, Unprocessable
from kapelle.api.routes.guards import OPERATOR, READS, VIEWER, WRITES
from kapelle.api.shapes import Responses, ok
from kapelle.topology.embedded.errors import UnknownPlace
from kapelle.topology.embedded.letters import EmbeddedLetters
from kapelle.topology.journal import EmbeddedJournal
from kapelle.topology.letters import NotRedrivable

router = APIRouter(tags=["dead letters"])

COUNT: Final = 20
COUNT_MAX: Final = 1_000
OFFSET_MAX: Final = 2**63 - 1

Offset = Annotated[int, Path(ge=0, le=OFFSET_MAX, description="The offset of the dead letter, as the list shows it.")]
REDRIVES: Final[Responses] = {status: WRITES[status] for status in (400, 401, 403, 404, 422, 503)}


def letters_of(here: Context) -> EmbeddedLetters:
    """The letters of the log, if it is one of this process."""
    if not isinstance(here.journal, EmbeddedJournal):
        raise Unprocessable("Expected an embedded log, but this is Kafka: use `kapelle dlq` with --bootstrap-servers")
    return here.journal.letters


def _missing(offset: int) -> NotFound:
    return NotFound(f"Expected a dead letter at offset {offset}, but there is none")


@router.get(
    "/dead-letters",
    summary="List dead letters",
    dependencies=VIEWER,
    responses=READS | {422: WRITES[422]} | ok(Elements[Letter]),
)
async def list_letters(
    here: Here,
    count: Annotated[
        int, Query(ge=1, le=COUNT_MAX, description="Return the last dead letters, at most this many.")
    ] = COUNT,
) -> Response:
    """The last dead letters, oldest first: the record, the stage that failed, the reason, and the position."""
    letters = letters_of(here)
    return json_response({"elements": await anyio.to_thread.run_sync(letters.last, count)})


@router.get(
    "/dead-letters/{offset}",
    summary="Get a dead letter",
    dependencies=VIEWER,
    responses=READS | {422: WRITES[422]} | ok(Letter),
)
async def get_letter(here: Here, offset: Offset) -> Response:
    """One dead letter, by its offset."""
    letter = await anyio.to_thread.run_sync(letters_of(here).get, offset)
    if letter is None:
        raise _missing(offset)
    return json_response(letter)


@router.post(
    "/dead-letters/{offset}/actions/redrive",
    summary="Redrive a dead letter",
    dependencies=OPERATOR,
    responses=REDRIVES | ok(Redriven),
)
async def redrive(here: Here, offset: Offset) -> Response:
    """Publish the record of a dead letter to its topic again, with its key and headers. Each call publishes it once."""
    try:
        sent = await anyio.to_thread.run_sync(letters_of(here).redrive, offset)
    except (NotRedrivable, UnknownPlace) as error:
        raise Unprocessable(str(error)) from None
    if sent is None:
        raise _missing(offset)
    record, answer = sent
    at = await asyncio.wrap_future(answer)
    where = {"topic": record.topic, "partition": record.partition, "offset": at.offset}
    return json_response({"letter": offset, **where, "redriven": record.count})
