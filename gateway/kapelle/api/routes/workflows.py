"""Reading workflows, and the actions on a workflow as a whole."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from kapelle.api.answers.common import Page as AnswerPage
from kapelle.api.answers.common import Settled
from kapelle.api.answers.workflows import (
    EnrichedVersion,
    SettledAll,
    Version,
    Workflow,
    WorkflowOverview,
    WorkflowTimeline,
)
from kapelle.api.bodies import ActionBody
from kapelle.api.callers import Caller, EndAction, EndActionAt, Page, Reader, Selector, WorkflowId, Writer
from kapelle.api.commands import Question, ask, settled
from kapelle.api.context import Context, Here, json_response
from kapelle.api.problems import BadRequest, NotFound
from kapelle.api.routes.guards import ADMIN, OPERATOR, READS, VIEWER, WRITES
from kapelle.api.shapes import ok
from kapelle.processors.runs.composites.identity import is_inline
from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_COMMANDS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contract import Contract
from kapelle.schemas.contracts import Action
from kapelle.views.queries import instances, schedules
from kapelle.views.queries import workflows as queries

router = APIRouter(prefix="/workflows", tags=["workflows"])


Enriched = Annotated[bool, Query(description="Add the times at which time triggers start the version next.")]


def no_workflow(workflow_id: str) -> NotFound:
    """The workflow does not exist."""
    return NotFound(f"Expected workflow {workflow_id!r} to exist, but it does not")


@router.get("", summary="List workflows", dependencies=VIEWER, responses=READS | ok(AnswerPage[Workflow]))
async def list_workflows(
    here: Reader,
    page: Page,
    prefix: Annotated[
        str, Query(max_length=256, description="Return only workflows whose id begins with this text.")
    ] = "",
) -> Response:
    """All workflows, ordered by id."""
    mark = here.watermark()
    return json_response(await here.read(queries.listed, page, prefix), mark=mark)


@router.get(
    "/{workflow_id}/versions/pagination",
    summary="List versions",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[Version]),
)
async def list_versions(here: Reader, workflow_id: WorkflowId, page: Page) -> Response:
    """The versions of a workflow, latest first."""
    mark = here.watermark()
    versions = await here.read(queries.versions, workflow_id, page)
    if not versions["total_count"]:
        raise no_workflow(workflow_id)
    return json_response(versions, mark=mark)


@router.get(
    "/{workflow_id}/versions/{version}",
    summary="Get a version",
    dependencies=VIEWER,
    responses=READS | ok(EnrichedVersion),
)
async def get_version(
    here: Reader, workflow_id: WorkflowId, version: Selector, *, enriched: Enriched = False
) -> Response:
    """The definition of a version, with the current properties of its workflow."""
    mark = here.watermark()
    selector = version.lower()
    if selector not in ("active", "latest", "default") and not (selector.isascii() and selector.isdigit()):
        raise BadRequest(f"Expected active, latest, default or a number as version, but found {version!r}")
    definition = await here.read(queries.definition, workflow_id, selector)
    if definition is None:
        raise NotFound(f"Expected version {selector} of workflow {workflow_id!r} to exist, but it does not")
    if enriched:
        number = definition["metadata"]["workflow_version_id"]
        definition["enriched_extras"] = await here.read(schedules.enriched, workflow_id, number)
    return json_response(definition, mark=mark)


@router.get(
    "/{workflow_id}/overview",
    summary="Get an overview of a workflow",
    dependencies=VIEWER,
    responses=READS | ok(WorkflowOverview),
)
async def get_overview(here: Reader, workflow_id: WorkflowId) -> Response:
    """The versions and properties of a workflow, and the number of its instances in each status."""
    mark = here.watermark()
    overview = await here.read(queries.overview, workflow_id)
    if overview is None:
        raise no_workflow(workflow_id)
    return json_response(overview, mark=mark)


@router.get(
    "/{workflow_id}/timeline",
    summary="Get the timeline of a workflow",
    dependencies=VIEWER,
    responses=READS | ok(WorkflowTimeline),
)
async def get_timeline(here: Reader, workflow_id: WorkflowId) -> Response:
    """Pushes, activations and changes of properties, latest first."""
    mark = here.watermark()
    if await here.read(queries.workflow, workflow_id) is None:
        raise no_workflow(workflow_id)
    notes = await here.read(queries.notes, workflow_id)
    return json_response({"workflow_id": workflow_id, "timeline_events": notes}, mark=mark)


# What can be done ----------------------------------------------------------------------------------------------------


async def tell(here: Context, caller: Caller, workflow_id: str, command: Contract) -> dict[str, object]:
    """Send a command to a workflow. Gives the answer for the caller."""
    question = Question(WORKFLOW_COMMANDS, workflow_id, command, workflow_id)
    outcome = await ask(here, caller, question)
    more: dict[str, object] = {"workflow_version_id": outcome.body["version"]} if outcome.body.get("version") else {}
    if outcome.instance_id is not None:
        more["workflow_instance_id"] = outcome.instance_id
    return settled(outcome, caller, **more)


@router.delete("/{workflow_id}", summary="Delete a workflow", dependencies=ADMIN, responses=WRITES | ok(Settled))
async def delete_workflow(here: Here, caller: Writer, workflow_id: WorkflowId) -> Response:
    """Delete a workflow that has no queued or running instances."""
    command = c.DeleteWorkflow(caller.request_id, caller.user)
    answer = await tell(here, caller, workflow_id, command)
    return json_response(answer)


@router.put(
    "/{workflow_id}/versions/{version}/actions/activate",
    summary="Activate a version",
    dependencies=ADMIN,
    responses=WRITES | ok(Settled),
)
async def activate(here: Here, caller: Writer, workflow_id: WorkflowId, version: Selector) -> Response:
    """Make a version the active one."""
    command = c.ActivateVersion(caller.request_id, caller.user, version)
    answer = await tell(here, caller, workflow_id, command)
    return json_response(answer)


@router.put(
    "/{workflow_id}/actions/deactivate",
    summary="Deactivate a workflow",
    dependencies=ADMIN,
    responses=WRITES | ok(Settled),
)
async def deactivate(here: Here, caller: Writer, workflow_id: WorkflowId) -> Response:
    """Remove the active version of a workflow. Its triggers are disarmed."""
    command = c.DeactivateWorkflow(caller.request_id, caller.user)
    answer = await tell(here, caller, workflow_id, command)
    return json_response(answer)


@router.put(
    "/{workflow_id}/actions/{action}",
    summary="Stop, kill or unblock all instances",
    dependencies=OPERATOR,
    responses=WRITES | ok(SettledAll),
)
async def act_on_all(
    here: Here, caller: Writer, workflow_id: WorkflowId, action: EndActionAt, body: ActionBody | None = None
) -> Response:
    """Stop or kill every queued or running instance, or unblock all failed ones.

    Killed instances end as FAILED. Unblocking lets the run strategy continue past failed instances. The id of
    iterations or of rounds stands for those that run: a `foreach` launches more unless one has failed. They are in no
    queue, so there is nothing to unblock.
    """
    options = body or ActionBody()
    caller = caller.named(options.request_id)
    if is_inline(workflow_id):
        return json_response(await _act_on_children(here, caller, workflow_id, action, options.reason))
    if action is EndAction.UNBLOCK:
        unblock = c.UnblockInstances(caller.request_id, caller.user, options.reason)
        return json_response(await tell(here, caller, workflow_id, unblock))
    command = c.TerminateInstances(caller.request_id, caller.user, Action[action.name], options.reason)
    answer = await tell(here, caller, workflow_id, command)
    answer["count"] = await here.read(queries.terminated, workflow_id, caller.request_id)
    return json_response(answer)


async def _act_on_children(
    here: Context, caller: Caller, inline_id: str, action: EndAction, reason: str
) -> dict[str, object]:
    """Ask the parent of iterations or rounds: no workflow was pushed under their id."""
    place = await here.read(instances.first_of, inline_id)
    if place is None:
        raise no_workflow(inline_id)
    number, workflow_id, instance_id, step_id = place
    if action is EndAction.UNBLOCK:
        return await unblock_child(here, caller, (inline_id, number), reason)
    command = c.TerminateChildren(caller.request_id, caller.user, step_id, Action[action.name], reason)
    outcome = await ask(here, caller, Question(RUN_COMMANDS, run_key(workflow_id, instance_id), command, workflow_id))
    count = await here.read(queries.terminated, workflow_id, caller.request_id)
    return settled(outcome, caller, workflow_id=inline_id, count=count)


async def unblock_child(here: Context, caller: Caller, at: tuple[str, int], reason: str) -> dict[str, object]:
    """Ask an iteration or a round, which answers that nothing changes."""
    command = c.UnblockInstances(caller.request_id, caller.user, reason)
    outcome = await ask(here, caller, Question(RUN_COMMANDS, run_key(*at), command, at[0]))
    return settled(outcome, caller)
