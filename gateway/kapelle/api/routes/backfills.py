"""Backfills: started, shown, paused, resumed and cancelled."""

from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response

from kapelle.api.answers.common import Page as AnswerPage
from kapelle.api.answers.schedules import Backfill, BackfillAnswer, BackfillPlan, ChangedBackfill, UnchangedBackfill
from kapelle.api.bodies import BackfillActionBody, BackfillBody
from kapelle.api.callers import Caller, Page, Reader, WorkflowId, Writer
from kapelle.api.commands import members_of
from kapelle.api.context import Context, Here, json_response
from kapelle.api.plans import command_of, params_text, plan_of
from kapelle.api.problems import BadRequest, NotFound, NotSeen
from kapelle.api.routes.guards import OPERATOR, READS, VIEWER, WRITES
from kapelle.api.routes.workflows import no_workflow, tell
from kapelle.api.shapes import Responses, answer, ok
from kapelle.schemas import contracts as c
from kapelle.views.queries import backfills as queries
from kapelle.views.queries import schedules, workflows

router = APIRouter(prefix="/workflows/{workflow_id}/backfills", tags=["backfills"])

BackfillId = Annotated[str, Path(min_length=1, max_length=64, description="The id of a backfill.")]
STARTS: Responses = {
    **WRITES,
    200: answer(
        BackfillPlan, UnchangedBackfill, description="What a dry run found, or a backfill that was running already."
    ),
    201: answer(ChangedBackfill, description="The backfill was started or continued."),
}


class BackfillAction(StrEnum):
    """What is done with a backfill."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


def _backfill_at(workflow_id: WorkflowId, backfill_id: BackfillId) -> tuple[str, str]:
    return workflow_id, backfill_id


BackfillAt = Annotated[tuple[str, str], Depends(_backfill_at)]
BackfillActionAt = Annotated[BackfillAction, Path(description="The action: `pause`, `resume` or `cancel`.")]


def no_backfill(workflow_id: str, backfill_id: str) -> NotFound:
    """The backfill does not exist."""
    return NotFound(f"Expected a backfill of workflow {workflow_id!r}, but found {backfill_id[:80]!r}")


@router.post("", summary="Start a backfill", dependencies=OPERATOR, responses=STARTS, status_code=201)
async def start(request: Request, here: Here, caller: Writer, workflow_id: WorkflowId, body: BackfillBody) -> Response:
    """Start one instance for each scheduled time of a period, a few at a time. Times that have an instance get none.

    The same request has the same `backfill_id`, so a request that is made again continues the backfill. A dry run only
    shows what would be started.
    """
    caller, members = caller.named(body.request_id), await members_of(request)
    triggers = await here.read(schedules.triggers_of, workflow_id)
    if triggers is None:
        raise no_workflow(workflow_id)
    asked = (caller.request_id, caller.user)
    params = params_text(members)
    command = await here.checks.run(command_of, body, workflow_id, triggers, params=params, asked=asked)
    if body.dry_run:
        return json_response(await plan_of(here, workflow_id, command))
    done = await tell(here, caller, workflow_id, command)
    return await _shown(here, caller, (workflow_id, command.backfill_id), done, status=201)


async def _shown(
    here: Context, caller: Caller, at: tuple[str, str], done: dict[str, object], *, status: int = 200
) -> Response:
    """The backfill as it is now, with the outcome of the request."""
    known = await here.read(queries.backfill, *at)
    if known is None:
        raise NotSeen(caller.request_id)
    is_unchanged = done["status"] == "UNCHANGED"
    about: dict[str, object] = {"request_id": caller.request_id, "outcome": done["status"]}
    if is_unchanged:
        about["message"] = done.get("message")
    return json_response({**known, **about}, 200 if is_unchanged else status)


@router.get("", summary="List backfills", dependencies=VIEWER, responses=READS | ok(AnswerPage[Backfill]))
async def list_backfills(here: Reader, workflow_id: WorkflowId, page: Page) -> Response:
    """The backfills of a workflow, the latest first, with the number of their instances in each status."""
    mark = here.watermark()
    if await here.read(workflows.workflow, workflow_id) is None:
        raise no_workflow(workflow_id)
    return json_response(await here.read(queries.listed, workflow_id, page), mark=mark)


@router.get("/{backfill_id}", summary="Get a backfill", dependencies=VIEWER, responses=READS | ok(Backfill))
async def get_backfill(here: Reader, at: BackfillAt) -> Response:
    """A backfill: what was asked for, how far it is, and the number of its instances in each status."""
    mark = here.watermark()
    found = await here.read(queries.backfill, *at)
    if found is None:
        if await here.read(workflows.workflow, at[0]) is None:
            raise no_workflow(at[0])
        raise no_backfill(*at)
    return json_response(found, mark=mark)


@router.put(
    "/{backfill_id}/actions/{action}",
    summary="Pause, resume or cancel a backfill",
    dependencies=OPERATOR,
    responses=WRITES | ok(BackfillAnswer),
)
async def act(
    here: Here, caller: Writer, at: BackfillAt, action: BackfillActionAt, body: BackfillActionBody | None = None
) -> Response:
    """Start no more instances, or continue. Those that run continue, unless a cancelled backfill is to stop them."""
    said = body or BackfillActionBody()
    if said.stop_running and action is not BackfillAction.CANCEL:
        raise BadRequest(f"Expected `stop_running` only with the action cancel, but found it with {action.value}")
    caller, (workflow_id, backfill_id) = caller.named(said.request_id), at
    command = c.ActOnBackfill(
        caller.request_id,
        caller.user,
        backfill_id,
        action=c.BackfillAction[action.name],
        is_stopping=said.stop_running,
        reason=said.reason,
    )
    done = await tell(here, caller, workflow_id, command)
    return await _shown(here, caller, at, done)
