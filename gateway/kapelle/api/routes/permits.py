"""Limits of tags, and who holds a permit or waits for one. Names of tags may contain slashes."""

import time
from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response

from kapelle.api import convertors  # noqa: F401 - routes say `{name:name}`
from kapelle.api.answers.common import Page as AnswerPage
from kapelle.api.answers.permits import (
    ChangedLimit,
    DetailedLimit,
    Kind,
    Limit,
    PermitHolder,
    PermitWaiter,
    RemovedLimit,
)
from kapelle.api.bodies import LimitBody
from kapelle.api.callers import Caller, Page, Reader, Writer
from kapelle.api.commands import Question, ask, members_of, settled
from kapelle.api.context import Context, Here, json_response
from kapelle.api.problems import BadRequest, NotFound
from kapelle.api.routes.guards import ADMIN, READS, VIEWER, WRITES
from kapelle.api.shapes import ok
from kapelle.processors.wiring import PERMIT_COMMANDS, tag_key
from kapelle.schemas import contracts as c
from kapelle.views.queries import permits as queries

router = APIRouter(tags=["permits"])

NAME_CHARS_MAX: Final = 512
OWN: Final = ("tag", "max_allowed", "request_id")
ONE: Final = "/permits/{kind}/{name:name}"


Tag = Annotated[str, Path(min_length=1, max_length=256, description="The name of a tag.")]
KindAt = Annotated[Kind, Path(description="What is limited: `tag`, `workflow` or `tree`.")]
Name = Annotated[
    str,
    Path(
        min_length=1,
        max_length=NAME_CHARS_MAX,
        description="The tag, the id of the workflow, or the root of the tree: `workflow_id/instance_id`.",
    ),
]
Prefix = Annotated[str, Query(max_length=NAME_CHARS_MAX, description="Return only names that begin with this text.")]


def no_limit(limited: str) -> NotFound:
    """Nobody has set a limit."""
    return NotFound(f"Expected a limit of {limited}, but there is none")


# Limits of tags -------------------------------------------------------------------------------------------------------


@router.post("/tag-permits", summary="Limit a tag", dependencies=ADMIN, responses=WRITES | ok(ChangedLimit))
async def set_limit(request: Request, here: Here, caller: Writer, body: LimitBody) -> Response:
    """Limit how many steps with a tag run at the same time, or change the limit. 0 admits none.

    A lower limit stops nothing that runs. A higher one admits at once. Other members of the body are kept.
    """
    caller, members = caller.named(body.request_id), await members_of(request)
    extra = {name: value for name, value in members.items() if name not in OWN}
    text = msgspec.json.encode(extra).decode()
    command = c.SetLimit(caller.request_id, caller.user, body.max_allowed, text)
    answer = await _change(here, caller, body.tag, command)
    return json_response({**answer, "max_allowed": body.max_allowed})


async def _change(here: Context, caller: Caller, tag: str, command: c.SetLimit | c.RemoveLimit) -> dict[str, object]:
    key = tag_key(tag)
    outcome = await ask(here, caller, Question(PERMIT_COMMANDS, key, command, key))
    answer = settled(outcome, caller, tag=tag)
    del answer["workflow_id"]  # where outcomes of limits have what is limited
    return answer


@router.get("/tag-permits", summary="List limits of tags", dependencies=VIEWER, responses=READS | ok(AnswerPage[Limit]))
async def list_tags(here: Reader, page: Page, prefix: Prefix = "") -> Response:
    """Tags with a limit, by name, with the number of attempts that hold a permit and that wait for one."""
    mark = here.watermark()
    return json_response(await here.read(queries.limits, page, Kind.TAG.value, prefix), mark=mark)


@router.get(
    "/tag-permits/{tag:name}",
    summary="Get the limit of a tag",
    dependencies=VIEWER,
    responses=READS | ok(DetailedLimit),
)
async def get_tag(here: Reader, tag: Tag) -> Response:
    """The limit of a tag, with its last changes and their authors."""
    return await _shown(here, tag_key(tag))


@router.delete(
    "/tag-permits/{tag:name}",
    summary="Remove the limit of a tag",
    dependencies=ADMIN,
    responses=WRITES | ok(RemovedLimit),
)
async def remove_limit(here: Here, caller: Writer, tag: Tag) -> Response:
    """Limit a tag no longer. Every attempt that waits for it is admitted."""
    command = c.RemoveLimit(caller.request_id, caller.user)
    return json_response(await _change(here, caller, tag, command))


async def _shown(here: Context, limited: str) -> Response:
    mark = here.watermark()
    limit = await here.read(queries.limit, limited)
    if limit is None:
        raise no_limit(limited)
    return json_response(limit, mark=mark)


# All limits -----------------------------------------------------------------------------------------------------------


@router.get("/permits", summary="List limits", dependencies=VIEWER, responses=READS | ok(AnswerPage[Limit]))
async def list_limits(
    here: Reader,
    page: Page,
    kind: Annotated[Kind | None, Query(description="Return only limits of `tag`, `workflow` or `tree`.")] = None,
    prefix: Annotated[
        str,
        Query(max_length=NAME_CHARS_MAX, description="Return only names that begin with this text. It needs a `kind`."),
    ] = "",
) -> Response:
    """Limits of tags, workflows and trees, with the number of attempts that hold a permit and that wait for one.

    Trees are listed as long as an attempt holds a permit or waits for one.
    """
    mark = here.watermark()
    if kind is None and prefix:
        raise BadRequest("Expected `kind` beside `prefix`, but found only `prefix`")
    limits = await here.read(queries.limits, page, None if kind is None else kind.value, prefix)
    return json_response(limits, mark=mark)


@router.get(
    f"{ONE}/holders",
    summary="List the holders of permits",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[PermitHolder]),
)
async def list_holders(here: Reader, kind: KindAt, name: Name, page: Page) -> Response:
    """The attempts that hold a permit, in the order in which they asked for it."""
    mark, limited = here.watermark(), f"{kind.value}/{name}"
    holders = await here.read(queries.holders, limited, page)
    if holders is None:
        raise no_limit(limited)
    return json_response(holders, mark=mark)


@router.get(
    f"{ONE}/waiting",
    summary="List the attempts that wait for a permit",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[PermitWaiter]),
)
async def list_waiting(here: Reader, kind: KindAt, name: Name, page: Page) -> Response:
    """The attempts that wait for a permit, in the order of the queue, with their places and how long they have waited.

    By criticality, then turns of workflows, then first come. None waits for ever behind a higher one.
    """
    mark, limited = here.watermark(), f"{kind.value}/{name}"
    queue = await here.read(queries.waiting, limited, page, time.time_ns() // 1_000_000)
    if queue is None:
        raise no_limit(limited)
    return json_response(queue, mark=mark)


@router.get(ONE, summary="Get a limit", dependencies=VIEWER, responses=READS | ok(DetailedLimit))
async def get_limit(here: Reader, kind: KindAt, name: Name) -> Response:
    """The limit of a tag, a workflow or a tree."""
    return await _shown(here, f"{kind.value}/{name}")
