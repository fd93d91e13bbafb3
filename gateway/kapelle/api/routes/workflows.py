"""Workflows: what there is of them, and what can be done to all of one."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from kapelle.api.asking import Question, ask, settled
from kapelle.api.bodies import ActionBody
from kapelle.api.callers import Caller, EndAction, Page, Reader, Selector, WorkflowId, Writer
from kapelle.api.context import Context, Here, json_response
from kapelle.api.problems import BadRequest, NotFound
from kapelle.api.routes.guards import ADMIN, OPERATOR, READS, VIEWER, WRITES
from kapelle.processors.routes import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contract import Contract
from kapelle.schemas.contracts import Action
from kapelle.views.queries import workflows as queries

router = APIRouter(prefix="/workflows", tags=["workflows"])


def no_workflow(workflow_id: str) -> NotFound:
    """There is none of this id."""
    return NotFound(f"Expected workflow {workflow_id!r} to exist, but it does not")


@router.get("", summary="List workflows", dependencies=VIEWER, responses=READS)
async def list_workflows(
    here: Reader,
    page: Page,
    prefix: Annotated[str, Query(max_length=256, description="What their ids begin with.")] = "",
) -> Response:
    """All workflows, by id."""
    mark = here.watermark()
    return json_response(await here.read(queries.listed, page, prefix), mark=mark)


@router.get("/{workflow_id}/versions/pagination", summary="List versions", dependencies=VIEWER, responses=READS)
async def list_versions(here: Reader, workflow_id: WorkflowId, page: Page) -> Response:
    """The versions of a workflow, the latest first."""
    mark = here.watermark()
    found = await here.read(queries.versions, workflow_id, page)
    if not found["total_count"]:
        raise no_workflow(workflow_id)
    return json_response(found, mark=mark)


@router.get("/{workflow_id}/versions/{version}", summary="Get a version", dependencies=VIEWER, responses=READS)
async def get_version(here: Reader, workflow_id: WorkflowId, version: Selector) -> Response:
    """The definition of a version, with the properties of its workflow."""
    mark = here.watermark()
    word = version.lower()
    if word not in ("active", "latest", "default") and not (word.isascii() and word.isdigit()):
        raise BadRequest(f"Expected active, latest, default or a number as version, but found {version!r}")
    found = await here.read(queries.definition, workflow_id, word)
    if found is None:
        raise NotFound(f"Expected version {word} of workflow {workflow_id!r} to exist, but it does not")
    return json_response(found, mark=mark)


@router.get("/{workflow_id}/overview", summary="A workflow on one page", dependencies=VIEWER, responses=READS)
async def get_overview(here: Reader, workflow_id: WorkflowId) -> Response:
    """Its versions, properties, and how many instances are in which state."""
    mark = here.watermark()
    found = await here.read(queries.overview, workflow_id)
    if found is None:
        raise no_workflow(workflow_id)
    return json_response(found, mark=mark)


@router.get("/{workflow_id}/timeline", summary="What was changed", dependencies=VIEWER, responses=READS)
async def get_timeline(here: Reader, workflow_id: WorkflowId) -> Response:
    """Pushes, activations and changes of properties, the latest first."""
    mark = here.watermark()
    if await here.read(queries.workflow, workflow_id) is None:
        raise no_workflow(workflow_id)
    found = await here.read(queries.notes, workflow_id)
    return json_response({"workflow_id": workflow_id, "timeline_events": found}, mark=mark)


# What can be done ----------------------------------------------------------------------------------------------------


async def tell(here: Context, caller: Caller, workflow_id: str, command: Contract) -> dict[str, Any]:
    """Send a command to a workflow. Gives the answer for the caller."""
    question = Question(WORKFLOW_COMMANDS, workflow_id, command, workflow_id)
    outcome = await ask(here, caller, question)
    more: dict[str, Any] = {"workflow_version_id": outcome.body["version"]} if outcome.body.get("version") else {}
    if outcome.instance_id is not None:
        more["workflow_instance_id"] = outcome.instance_id
    return settled(outcome, caller, **more)


@router.delete("/{workflow_id}", summary="Delete a workflow", dependencies=ADMIN, responses=WRITES)
async def delete_workflow(here: Here, caller: Writer, workflow_id: WorkflowId) -> Response:
    """Delete a workflow that has nothing queued or running."""
    command = c.DeleteWorkflow(caller.request_id, caller.user)
    answer = await tell(here, caller, workflow_id, command)
    return json_response(answer)


@router.put(
    "/{workflow_id}/versions/{version}/actions/activate",
    summary="Activate a version",
    dependencies=ADMIN,
    responses=WRITES,
)
async def activate(here: Here, caller: Writer, workflow_id: WorkflowId, version: Selector) -> Response:
    """Make a version the active one."""
    command = c.ActivateVersion(caller.request_id, caller.user, version)
    answer = await tell(here, caller, workflow_id, command)
    return json_response(answer)


@router.put("/{workflow_id}/actions/deactivate", summary="Deactivate", dependencies=ADMIN, responses=WRITES)
async def deactivate(here: Here, caller: Writer, workflow_id: WorkflowId) -> Response:
    """Leave a workflow without an active version."""
    command = c.DeactivateWorkflow(caller.request_id, caller.user)
    answer = await tell(here, caller, workflow_id, command)
    return json_response(answer)


@router.put(
    "/{workflow_id}/actions/{action}",
    summary="Stop, kill or unblock all instances",
    dependencies=OPERATOR,
    responses=WRITES,
)
async def act_on_all(
    here: Here, caller: Writer, workflow_id: WorkflowId, action: EndAction, body: ActionBody | None = None
) -> Response:
    """End every instance that is queued or running (killed ones end as failed), or go on past those that failed."""
    said = body or ActionBody()
    caller = caller.named(said.request_id)
    if action is EndAction.UNBLOCK:
        unblock = c.UnblockInstances(caller.request_id, caller.user, said.reason)
        return json_response(await tell(here, caller, workflow_id, unblock))
    command = c.TerminateInstances(caller.request_id, caller.user, Action[action.name], said.reason)
    answer = await tell(here, caller, workflow_id, command)
    answer["count"] = await here.read(queries.terminated, workflow_id, caller.request_id)
    return json_response(answer)
