"""The properties of a workflow, which change without a new version."""

from typing import Annotated, Final

from fastapi import APIRouter, Path, Request, Response

from kapelle.api.answers.common import Settled
from kapelle.api.answers.workflows import PropertiesSnapshot, SettledProperties
from kapelle.api.callers import Reader, WorkflowId, Writer
from kapelle.api.commands import members_of
from kapelle.api.context import Here, json_response
from kapelle.api.routes.guards import ADMIN, READS, VIEWER, WRITES
from kapelle.api.routes.workflows import no_workflow, tell
from kapelle.api.shapes import ok
from kapelle.schemas import contracts as c
from kapelle.views.queries import workflows as queries

router = APIRouter(prefix="/workflows/{workflow_id}", tags=["properties"])

OBJECT: Final[dict[str, object]] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
}
TagName = Annotated[str, Path(min_length=1, max_length=256, description="The name of a tag.")]


@router.post(
    "/properties",
    summary="Change properties",
    dependencies=ADMIN,
    responses=WRITES | ok(SettledProperties),
    openapi_extra=OBJECT,
)
async def change_properties(request: Request, here: Here, caller: Writer, workflow_id: WorkflowId) -> Response:
    """Change or reset properties. Properties that the request does not name stay as they are."""
    await members_of(request)
    text = (await request.body()).decode()
    command = c.ChangeProperties(caller.request_id, caller.user, text)
    answer = await tell(here, caller, workflow_id, command)
    answer["properties_snapshot"] = await here.read(queries.properties, workflow_id)
    return json_response(answer)


@router.post(
    "/properties/tag", summary="Add a tag", dependencies=ADMIN, responses=WRITES | ok(Settled), openapi_extra=OBJECT
)
async def add_tag(request: Request, here: Here, caller: Writer, workflow_id: WorkflowId) -> Response:
    """Add a tag, or replace the tag with the same name."""
    await members_of(request)
    command = c.TagWorkflow(caller.request_id, caller.user, (await request.body()).decode())
    answer = await tell(here, caller, workflow_id, command)
    return json_response(answer)


@router.delete("/properties/tag/{name}", summary="Remove a tag", dependencies=ADMIN, responses=WRITES | ok(Settled))
async def remove_tag(here: Here, caller: Writer, workflow_id: WorkflowId, name: TagName) -> Response:
    """Remove the tag with this name."""
    command = c.UntagWorkflow(caller.request_id, caller.user, name)
    answer = await tell(here, caller, workflow_id, command)
    return json_response(answer)


@router.get(
    "/properties-snapshot/latest",
    summary="Get the properties",
    dependencies=VIEWER,
    responses=READS | ok(PropertiesSnapshot),
)
async def get_properties(here: Reader, workflow_id: WorkflowId) -> Response:
    """The current properties of a workflow."""
    mark = here.watermark()
    properties = await here.read(queries.properties, workflow_id)
    if properties is None:
        raise no_workflow(workflow_id)
    return json_response(properties, mark=mark)
