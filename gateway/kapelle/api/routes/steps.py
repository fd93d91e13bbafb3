"""Reading steps, and the actions on them."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from kapelle.api.answers.common import Page as AnswerPage
from kapelle.api.answers.instances import Run, SettledRun, Started
from kapelle.api.answers.steps import DetailedStep, Step
from kapelle.api.bodies import ActionBody, ResumeBody, StepRestartBody, UpstreamMode
from kapelle.api.callers import Caller, InstanceAt, Page, Reader, RunSelector, StepActionAt, StepAt, Writer, number_of
from kapelle.api.commands import members_of, text_of
from kapelle.api.context import Context, Here, json_response
from kapelle.api.filters import Status
from kapelle.api.problems import NotFound
from kapelle.api.routes.guards import OPERATOR, READS, VIEWER, WRITES
from kapelle.api.routes.instances import no_instance
from kapelle.api.routes.runs import ask_run
from kapelle.api.shapes import ok
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, RestartPolicy
from kapelle.views.queries import children, instances
from kapelle.views.queries import steps as queries

router = APIRouter(prefix="/workflows/{workflow_id}/instances/{instance_id}", tags=["steps"])


async def _resuming(request: Request, caller: Writer, body: ResumeBody | None = None) -> tuple[Caller, c.ActOnStep]:
    """The caller of a resumption, and what the body says of it."""
    said = body or ResumeBody()
    caller, members = caller.named(said.request_id), await members_of(request)
    params = text_of(members, "step_run_params", "{}")
    return caller, c.ActOnStep(caller.request_id, caller.user, "", Action.RESUME, said.reason, step_run_params=params)


Resuming = Annotated[tuple[Caller, c.ActOnStep], Depends(_resuming)]


def no_step(workflow_id: str, instance_id: int, step_id: str) -> NotFound:
    """The step was not created, or has no such attempt."""
    return NotFound(
        f"Expected this attempt of step {step_id!r} of instance {workflow_id}/{instance_id} to exist, but it does not"
    )


async def _listed(here: Context, at: tuple[str, int], run_id: int | None) -> Response:
    mark = here.watermark()
    if await here.read(instances.run, *at, run_id) is None:
        raise no_instance(*at, run_id)
    return json_response(await here.read(queries.latest_of_each, *at, run_id), mark=mark)


@router.get("/steps", summary="List steps", dependencies=VIEWER, responses=READS | ok(list[Step]))
async def list_steps(here: Reader, at: InstanceAt) -> Response:
    """The latest attempt of each step that was created, over all runs."""
    return await _listed(here, at, None)


@router.get(
    "/runs/{run_id}/steps", summary="List steps of a run", dependencies=VIEWER, responses=READS | ok(list[Step])
)
async def list_steps_of_run(here: Reader, at: InstanceAt, run_id: RunSelector) -> Response:
    """The latest attempt of each step that was created in a run."""
    number = number_of(run_id, "run")
    return await _listed(here, at, await _latest(here, at) if number is None else number)


async def _latest(here: Context, at: tuple[str, int]) -> int | None:
    latest = await here.read(instances.status_of, *at)
    return None if latest is None else latest[0]


@router.get("/steps/{step_id}", summary="Get a step", dependencies=VIEWER, responses=READS | ok(DetailedStep))
async def get_step(here: Reader, at: StepAt) -> Response:
    """The latest attempt of a step, over all runs."""
    return await _shown(here, at)


@router.get(
    "/steps/{step_id}/children",
    summary="List the children of a step",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[Run]),
)
async def list_children(here: Reader, at: StepAt, page: Page, status: Status = []) -> Response:  # noqa: B006 - FastAPI's
    """The iterations of a foreach step, the rounds of a while step, or the child of a subworkflow step, by number.

    Each has its latest run. Children that a restart or the next turn of a cycle has discarded are not listed.
    """
    mark = here.watermark()
    if await here.read(instances.run, *at[:2]) is None:
        raise no_instance(*at[:2])
    statuses = list(dict.fromkeys(each.value for each in status))
    return json_response(await here.read(children.children, at, page, statuses), mark=mark)


@router.get(
    "/runs/{run_id}/steps/{step_id}/attempts/{attempt}",
    summary="Get an attempt",
    dependencies=VIEWER,
    responses=READS | ok(DetailedStep),
)
async def get_attempt(here: Reader, at: StepAt, run_id: RunSelector, attempt: RunSelector) -> Response:
    """One attempt of a step in one run."""
    number = number_of(run_id, "run")
    return await _shown(
        here, at, await _latest(here, at[:2]) if number is None else number, number_of(attempt, "attempt")
    )


async def _shown(
    here: Context, at: tuple[str, int, str], run_id: int | None = None, attempt: int | None = None
) -> Response:
    mark = here.watermark()
    record = await here.read(queries.attempt, at, run_id, attempt)
    if record is None or await here.read(instances.run, *at[:2]) is None:
        raise no_step(*at)
    return json_response(record, mark=mark)


# What can be done ----------------------------------------------------------------------------------------------------


@router.post(
    "/steps/{step_id}/actions/restart",
    summary="Restart a step",
    dependencies=OPERATOR,
    responses=WRITES | ok(Started, SettledRun),
)
async def restart_step(
    request: Request, here: Here, caller: Writer, at: StepAt, body: StepRestartBody | None = None
) -> Response:
    """Restart an ended instance from this step in a new run, or retry a failed step of a running instance.

    The policy says how iterations, rounds and subworkflows restart that run again with it.

    With RESTART_FROM_INLINE_ROOT the nearest ancestor that is no iteration and no round is restarted by the policy
    instead, and the parameters reach the step in every iteration that runs again.
    """
    said = body or StepRestartBody()
    caller, members = caller.named(said.request_id), await members_of(request)
    workflow_id, instance_id, step_id = at
    given = text_of(members, "step_run_params", "")
    asked = None if said.restart_policy is None else RestartPolicy(said.restart_policy)
    from_inline_root = said.upstream_restart_mode is UpstreamMode.RESTART_FROM_INLINE_ROOT
    policy, downstream = RestartPolicy.RESTART_FROM_SPECIFIC, asked
    if from_inline_root:
        policy, downstream = asked or RestartPolicy.RESTART_FROM_INCOMPLETE, None
    command = c.RestartRun(
        caller.request_id,
        caller.user,
        policy,
        step_id,
        step_run_params=_of_step(step_id, given) if given else "{}",
        from_inline_root=from_inline_root,
        downstream_policy=None if downstream is RestartPolicy.RESTART_FROM_SPECIFIC else downstream,
    )
    return await ask_run(here, caller, (workflow_id, instance_id), command)


def _of_step(step_id: str, params: str) -> str:
    """Parameters of one step, as they are given for several."""
    return f"{{{msgspec.json.encode(step_id).decode()}:{params}}}"


@router.put(
    "/steps/{step_id}/actions/resume",
    summary="Resume a step",
    dependencies=OPERATOR,
    responses=WRITES | ok(SettledRun, Started),
)
async def resume_step(here: Here, caller: Resuming, at: StepAt) -> Response:
    """Let a step continue that a breakpoint has paused, with other parameters if there are any."""
    return await resume(here, caller, at, (None, None))


async def resume(
    here: Context, resuming: tuple[Caller, c.ActOnStep], at: tuple[str, int, str], only: tuple[int | None, int | None]
) -> Response:
    """Resume a paused step, if it has this run and this attempt."""
    (caller, command), (workflow_id, instance_id, step_id), (run_id, attempt) = resuming, at, only
    named = msgspec.structs.replace(command, step_id=step_id, run_id=run_id, attempt=attempt)
    return await ask_run(here, caller, (workflow_id, instance_id), named)


@router.put(
    "/steps/{step_id}/actions/{action}",
    summary="Stop, kill, skip or bypass a step",
    dependencies=OPERATOR,
    responses=WRITES | ok(SettledRun, Started),
)
async def act_on_step(
    here: Here, caller: Writer, at: StepAt, action: StepActionAt, body: ActionBody | None = None
) -> Response:
    """Stop, kill or skip a step, or bypass the signals that it waits for.

    After a skip the run continues as if the step had succeeded. Skipping a step of an ended instance starts a new run.
    """
    said = body or ActionBody()
    caller = caller.named(said.request_id)
    workflow_id, instance_id, step_id = at
    command = c.ActOnStep(caller.request_id, caller.user, step_id, Action[action.name], said.reason)
    return await ask_run(here, caller, (workflow_id, instance_id), command)
