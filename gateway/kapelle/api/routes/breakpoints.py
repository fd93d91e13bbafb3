"""Breakpoints, and the attempts that they have paused."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Response

from kapelle.api.answers.breakpoints import DeletedBreakpoint, PausedAttempt, SetBreakpoint, WorkflowBreakpoint
from kapelle.api.answers.common import Page as AnswerPage
from kapelle.api.answers.instances import SettledRun, Started
from kapelle.api.bodies import BreakpointBody
from kapelle.api.callers import INT_MAX, Page, Reader, RunSelector, StepAt, Writer, number_of
from kapelle.api.context import Context, Here, json_response
from kapelle.api.problems import BadRequest
from kapelle.api.routes.guards import OPERATOR, READS, VIEWER, WRITES
from kapelle.api.routes.steps import Resuming, resume
from kapelle.api.routes.workflows import no_workflow, tell
from kapelle.api.shapes import ok
from kapelle.schemas import contracts as c
from kapelle.views.projection.breakpoints import breakpoint_key
from kapelle.views.queries import breakpoints as queries
from kapelle.views.queries import workflows

router = APIRouter(prefix="/workflows/steps/breakpoints", tags=["breakpoints"])

ATTEMPT_MAX: Final = 2**31 - 1
ID_CHARS_MAX: Final = 256

Only = dict[str, int | None]  # the version, the instance, the run and the attempt of a breakpoint

WorkflowQuery = Annotated[
    str, Query(alias="workflowId", min_length=1, max_length=ID_CHARS_MAX, description="The id of the workflow.")
]
StepQuery = Annotated[
    str, Query(alias="stepId", min_length=1, max_length=ID_CHARS_MAX, description="The id of the step.")
]
OnlyWorkflow = Annotated[
    str | None,
    Query(alias="workflowId", min_length=1, max_length=ID_CHARS_MAX, description="Return only those of this workflow."),
]
OnlyStep = Annotated[
    str | None,
    Query(
        alias="stepId",
        min_length=1,
        max_length=ID_CHARS_MAX,
        description="Return only those of this step. Expects `workflowId`.",
    ),
]


def _number(name: str, what: str, most: int = INT_MAX) -> object:
    return Query(alias=name, ge=1, le=most, description=f"The {what} of the breakpoint, if it was set with one.")


def _precision(
    version: Annotated[int | None, _number("workflowVersionId", "version")] = None,
    instance_id: Annotated[int | None, _number("workflowInstanceId", "instance")] = None,
    run_id: Annotated[int | None, _number("workflowRunId", "run")] = None,
    attempt: Annotated[int | None, _number("stepAttemptId", "attempt", ATTEMPT_MAX)] = None,
) -> Only:
    return {"version": version, "instance_id": instance_id, "run_id": run_id, "attempt": attempt}


def _breakpoint_at(
    workflow_id: WorkflowQuery, step_id: StepQuery, only: Annotated[Only, Depends(_precision)]
) -> tuple[str, str, Only]:
    return workflow_id, step_id, only


def _attempt_at(run_id: RunSelector, attempt: RunSelector) -> tuple[int | None, int | None]:
    number = number_of(attempt, "attempt")
    if number is not None and number > ATTEMPT_MAX:
        raise BadRequest(f"Expected an attempt of at most {ATTEMPT_MAX}, but found {number}")
    return number_of(run_id, "run"), number


BreakpointAt = Annotated[tuple[str, str, Only], Depends(_breakpoint_at)]
AttemptAt = Annotated[tuple[int | None, int | None], Depends(_attempt_at)]


@router.post("", summary="Set a breakpoint", dependencies=OPERATOR, responses=WRITES | ok(SetBreakpoint))
async def set_breakpoint(here: Here, caller: Writer, body: BreakpointBody) -> Response:
    """Pause the attempts of a step before they start. The same breakpoint again gets a new author and a new time.

    The step is one of the default version, or of `workflow_version_id`, at any depth. In a loop each iteration pauses.
    """
    caller = caller.named(body.request_id)
    only = {
        "version": body.workflow_version_id,
        "instance_id": body.workflow_instance_id,
        "run_id": body.workflow_run_id,
        "attempt": body.step_attempt_id,
    }
    command = c.SetBreakpoint(caller.request_id, caller.user, body.step_id, **only)
    answer = await tell(here, caller, body.workflow_id, command)
    shown = _named(body.workflow_id, body.step_id, only)
    return json_response({**shown, **(await _known(here, body.workflow_id, command) or {}), **_outcome(answer)})


async def _known(here: Context, workflow_id: str, command: c.SetBreakpoint) -> dict[str, object] | None:
    """The breakpoint as it is now: somebody may have deleted it since."""
    fields = {name: getattr(command, name) for name in ("version", "instance_id", "run_id", "attempt")}
    set_ = c.Breakpoint(step_id=command.step_id, author=command.author, at_ms=0, **fields)
    return await here.read(queries.breakpoint_at, breakpoint_key(workflow_id, set_))


def _named(workflow_id: str, step_id: str, only: Only) -> dict[str, object]:
    return {
        "workflow_id": workflow_id,
        "step_id": step_id,
        "workflow_version_id": only["version"],
        "workflow_instance_id": only["instance_id"],
        "workflow_run_id": only["run_id"],
        "step_attempt_id": only["attempt"],
    }


def _outcome(answer: dict[str, object]) -> dict[str, object]:
    return {name: answer[name] for name in ("request_id", "status", "message") if name in answer}


@router.delete("", summary="Delete a breakpoint", dependencies=OPERATOR, responses=WRITES | ok(DeletedBreakpoint))
async def delete_breakpoint(
    here: Here,
    caller: Writer,
    at: BreakpointAt,
    resume: Annotated[
        bool, Query(description="Resume the attempts that no other breakpoint holds. Else they stay paused.")
    ] = True,
) -> Response:
    """Delete the breakpoint that was set with exactly these fields."""
    workflow_id, step_id, only = at
    command = c.DeleteBreakpoint(caller.request_id, caller.user, step_id, **only, resume=resume)
    answer = await tell(here, caller, workflow_id, command)
    return json_response({**_named(workflow_id, step_id, only), "resume": resume, **_outcome(answer)})


@router.get("", summary="List breakpoints", dependencies=VIEWER, responses=READS | ok(AnswerPage[WorkflowBreakpoint]))
async def list_breakpoints(
    here: Reader, page: Page, workflow_id: OnlyWorkflow = None, step_id: OnlyStep = None
) -> Response:
    """Breakpoints with their authors, by workflow and step."""
    mark = here.watermark()
    await _check(here, workflow_id, step_id)
    return json_response(await here.read(queries.listed, page, workflow_id, step_id), mark=mark)


@router.get(
    "/paused-step-attempts",
    summary="List paused attempts",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[PausedAttempt]),
)
async def list_paused(here: Reader, page: Page, workflow_id: OnlyWorkflow = None, step_id: OnlyStep = None) -> Response:
    """Attempts that are paused, the one that has been paused for longest first, with the breakpoints that match them.

    Those of a workflow include its iterations and rounds.
    """
    mark = here.watermark()
    await _check(here, workflow_id, step_id)
    return json_response(await here.read(queries.paused, page, workflow_id, step_id), mark=mark)


async def _check(here: Context, workflow_id: str | None, step_id: str | None) -> None:
    if workflow_id is None and step_id is not None:
        raise BadRequest("Expected `workflowId` beside `stepId`, but found only `stepId`")
    if workflow_id is not None and await here.read(workflows.workflow, workflow_id) is None:
        raise no_workflow(workflow_id)


@router.put(
    "/{workflow_id}/instances/{instance_id}/runs/{run_id}/steps/{step_id}/attempts/{attempt}/actions/resume",
    summary="Resume a paused attempt",
    dependencies=OPERATOR,
    responses=WRITES | ok(SettledRun, Started),
)
async def resume_attempt(here: Here, caller: Resuming, at: StepAt, only: AttemptAt) -> Response:
    """Let one paused attempt continue, with other parameters if there are any. No breakpoint pauses it again."""
    return await resume(here, caller, at, only)
