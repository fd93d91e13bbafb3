"""Output data from other systems: a system that did the work of a step reports its outputs."""

from fastapi import APIRouter, Request, Response

from kapelle.api.answers.tasks import OutputTaken
from kapelle.api.bodies import OutputBody
from kapelle.api.callers import Writer
from kapelle.api.commands import members_of, text_of
from kapelle.api.context import Here, json_response
from kapelle.api.problems import NotFound, NotSeen, Refused
from kapelle.api.reports import TaskReport, report
from kapelle.api.routes.guards import OPERATOR, WRITES
from kapelle.api.shapes import ok
from kapelle.schemas.contracts import Refusal, Report
from kapelle.views.queries import tasks as queries

router = APIRouter(tags=["tasks"], dependencies=OPERATOR)


@router.put("/output-data", summary="Report the outputs of a step", responses=WRITES | ok(OutputTaken))
async def put_output(request: Request, here: Here, caller: Writer, body: OutputBody) -> Response:
    """End the attempt that has this token as succeeded, with these parameters as its outputs."""
    at = (body.workflow_id, body.workflow_instance_id, body.step_id)
    attempt = (await here.read(queries.attempts_by, [body.token])).get(body.token)
    if attempt is None or at != (attempt.workflow_id, attempt.instance_id, attempt.step_id):
        where = f"step {body.step_id!r} of instance {body.workflow_id}/{body.workflow_instance_id}"
        raise NotFound(f"Expected a running attempt of {where} with this token, but found none")
    sent = TaskReport(
        attempt.token,
        body.workflow_id,
        body.workflow_instance_id,
        body.step_id,
        attempt.worker or caller.user,
        Report.SUCCEEDED,
        outputs=text_of(await members_of(request), "params", "{}"),
    )
    result = (await report(here, [sent], caller.wait_s))[0]
    if result.accepted is None:
        raise NotSeen(caller.request_id)
    if not result.accepted:
        raise Refused(Refusal.CONFLICT, result.reason or "", (), caller.request_id)
    answer = {"request_id": caller.request_id, "status": "DONE", "token": attempt.token, "message": result.reason}
    return json_response({name: value for name, value in answer.items() if value is not None})
