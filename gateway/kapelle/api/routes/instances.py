"""Reading instances. The actions on them are in `runs`."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from msgspec import structs

from kapelle.api.answers.common import Page as AnswerPage
from kapelle.api.answers.instances import DetailedRun, InstanceCounts, InstanceTimeline, Matrix, Run
from kapelle.api.callers import InstanceAt, InstanceId, Page, Reader, RunSelector, WorkflowId, number_of
from kapelle.api.context import Context, json_response
from kapelle.api.filters import InstanceFilters
from kapelle.api.problems import NotFound
from kapelle.api.routes.guards import READS, VIEWER
from kapelle.api.routes.workflows import no_workflow
from kapelle.api.shapes import ok
from kapelle.processors.runs.composites.identity import is_inline
from kapelle.processors.runs.states import INSTANCE_ACTIONS, STEP_ACTIONS
from kapelle.schemas.contracts import Action
from kapelle.views.queries import aggregates, instance_lists, workflows
from kapelle.views.queries import instances as queries

router = APIRouter(prefix="/workflows", tags=["instances"])

ActionMap = dict[str, list[Action]]  # by status
MATRIX_DEFAULT: Final = 20
MATRIX_MAX: Final = 100

Aggregated = Annotated[bool, Query(description="Add the state of each step after all runs up to this one.")]
Enriched = Annotated[bool, Query(description="Add the progress of the run: the number of steps in each status.")]
OneWorkflow = Annotated[str | None, Query(max_length=256, description="Return only instances of this workflow.")]


def no_instance(workflow_id: str, instance_id: int, run_id: int | None = None) -> NotFound:
    """The instance does not exist."""
    what = f"instance {workflow_id}/{instance_id}"
    return NotFound(f"Expected {what if run_id is None else f'run {run_id} of {what}'} to exist, but it does not")


async def _must_exist(here: Context, workflow_id: str) -> None:
    """Refuse an id that nobody pushed, unless there are iterations or rounds under it."""
    if is_inline(workflow_id):
        is_known = bool(await here.read(instance_lists.counts, workflow_id))
    else:
        is_known = await here.read(workflows.workflow, workflow_id) is not None
    if not is_known:
        raise no_workflow(workflow_id)


@router.get(
    "/instances/action-map",
    summary="List the actions on instances",
    dependencies=VIEWER,
    responses=READS | ok(ActionMap),
)
async def instance_actions() -> Response:
    """The actions that each status of an instance allows."""
    return json_response({status.value: sorted(actions) for status, actions in INSTANCE_ACTIONS.items()})


@router.get(
    "/steps/instances/action-map",
    summary="List the actions on steps",
    dependencies=VIEWER,
    responses=READS | ok(ActionMap),
)
async def step_actions() -> Response:
    """The actions that each status of a step allows."""
    return json_response({status.value: sorted(actions) for status, actions in STEP_ACTIONS.items()})


@router.get(
    "/instances", summary="List instances of all workflows", dependencies=VIEWER, responses=READS | ok(AnswerPage[Run])
)
async def list_all(here: Reader, page: Page, filters: InstanceFilters, workflow_id: OneWorkflow = None) -> Response:
    """The latest run of each instance, newest instance first."""
    mark = here.watermark()
    instances = await here.read(instance_lists.browse, page, structs.replace(filters, workflow_id=workflow_id))
    return json_response(instances, mark=mark)


@router.get("/instances/counts", summary="Count instances", dependencies=VIEWER, responses=READS | ok(InstanceCounts))
async def count_all(here: Reader, workflow_id: OneWorkflow = None) -> Response:
    """The number of instances in each status, of one workflow or of all."""
    mark = here.watermark()
    counts = await here.read(instance_lists.counts, workflow_id)
    return json_response({"total_count": sum(counts.values()), "counts": counts}, mark=mark)


@router.get(
    "/{workflow_id}/instances",
    summary="List instances",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[DetailedRun]),
)
async def list_instances(
    here: Reader, workflow_id: WorkflowId, page: Page, filters: InstanceFilters, *, aggregated: Aggregated = False
) -> Response:
    """The latest run of each instance of a workflow, newest instance first."""
    mark = here.watermark()
    await _must_exist(here, workflow_id)
    instances = await here.read(instance_lists.browse, page, structs.replace(filters, workflow_id=workflow_id))
    if aggregated:
        instances["elements"] = await here.read(
            aggregates.told_more, instances["elements"], aggregated=True, enriched=False
        )
    return json_response(instances, mark=mark)


@router.get(
    "/{workflow_id}/matrix",
    summary="List instances with their steps",
    dependencies=VIEWER,
    responses=READS | ok(Matrix),
)
async def get_matrix(
    here: Reader,
    workflow_id: WorkflowId,
    limit: Annotated[
        int, Query(ge=1, le=MATRIX_MAX, description="Return the last instances, at most this many.")
    ] = MATRIX_DEFAULT,
) -> Response:
    """The state of each step of the newest instances of a workflow, after all their runs. One row per instance."""
    mark = here.watermark()
    await _must_exist(here, workflow_id)
    matrix = await here.read(aggregates.matrix, workflow_id, limit)
    return json_response(matrix, mark=mark)


@router.get(
    "/{workflow_id}/instances/{instance_id}",
    summary="Get an instance",
    dependencies=VIEWER,
    responses=READS | ok(DetailedRun),
)
async def get_instance(
    here: Reader, at: InstanceAt, *, aggregated: Aggregated = False, enriched: Enriched = False
) -> Response:
    """The latest run of an instance."""
    return await _one_run(here, at, None, aggregated=aggregated, enriched=enriched)


async def _one_run(
    here: Context, at: tuple[str, int], run_id: int | None, *, aggregated: bool, enriched: bool
) -> Response:
    mark = here.watermark()
    run = await here.read(queries.run, *at, run_id)
    if run is None:
        raise no_instance(*at, run_id)
    if aggregated or enriched:
        (run,) = await here.read(aggregates.told_more, [run], aggregated=aggregated, enriched=enriched)
    return json_response(run, mark=mark)


@router.get(
    "/{workflow_id}/instances/{instance_id}/runs",
    summary="List runs",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[Run]),
)
async def list_runs(here: Reader, workflow_id: WorkflowId, instance_id: InstanceId, page: Page) -> Response:
    """The runs of an instance, latest first."""
    mark = here.watermark()
    if await here.read(queries.run, workflow_id, instance_id) is None:
        raise no_instance(workflow_id, instance_id)
    runs = await here.read(queries.runs, workflow_id, instance_id, page)
    return json_response(runs, mark=mark)


@router.get(
    "/{workflow_id}/instances/{instance_id}/runs/{run_id}",
    summary="Get a run",
    dependencies=VIEWER,
    responses=READS | ok(DetailedRun),
)
async def get_run(
    here: Reader, at: InstanceAt, run_id: RunSelector, *, aggregated: Aggregated = False, enriched: Enriched = False
) -> Response:
    """One run of an instance."""
    return await _one_run(here, at, number_of(run_id, "run"), aggregated=aggregated, enriched=enriched)


@router.get(
    "/{workflow_id}/instances/{instance_id}/timeline",
    summary="Get the timeline of an instance",
    dependencies=VIEWER,
    responses=READS | ok(InstanceTimeline),
)
async def get_timeline(here: Reader, workflow_id: WorkflowId, instance_id: InstanceId) -> Response:
    """The status changes, actions and messages of an instance and its steps, in order."""
    mark = here.watermark()
    if await here.read(queries.run, workflow_id, instance_id) is None:
        raise no_instance(workflow_id, instance_id)
    entries = await here.read(queries.timeline, workflow_id, instance_id)
    body = {"workflow_id": workflow_id, "workflow_instance_id": instance_id, "elements": entries}
    return json_response(body, mark=mark)
