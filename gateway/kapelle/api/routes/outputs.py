"""Output data from outside: whoever did the work of a step can say what it made."""

from fastapi import APIRouter, Request, Response

from kapelle.api.asking import members_of, text_of
from kapelle.api.bodies import OutputBody
from kapelle.api.callers import Writer
from kapelle.api.context import Here, json_response
from kapelle.api.problems import NotFound, NotSeen, Refused
from kapelle.api.reports import Said, report
from kapelle.api.routes.guards import OPERATOR, WRITES
from kapelle.schemas.contracts import Refusal, Report
from kapelle.views.queries import tasks as queries

router = APIRouter(tags=["tasks"], dependencies=OPERATOR)


@router.put("/output-data", summary="Report the outputs of a step", responses=WRITES)
async def put_output(request: Request, here: Here, caller: Writer, body: OutputBody) -> Response:
    """End the attempt that has this token as succeeded, with these parameters as its outputs."""
    at = (body.workflow_id, body.workflow_instance_id, body.step_id)
    attempt = (await here.read(queries.attempts_by, [body.token])).get(body.token)
    if attempt is None or at != (attempt.workflow_id, attempt.instance_id, attempt.step_id):
        where = f"step {body.step_id!r} of instance {body.workflow_id}/{body.workflow_instance_id}"
        raise NotFound(f"Expected a running attempt of {where} with this token, but found none")
    said = Said(
        attempt.token,
        body.workflow_id,
        body.workflow_instance_id,
        body.step_id,
        attempt.worker or caller.user,
        Report.SUCCEEDED,
        outputs=text_of(await members_of(request), "params", "{}"),
    )
    heard = (await report(here, [said], caller.wait_s))[0]
    if heard.accepted is None:
        raise NotSeen(caller.request_id)
    if not heard.accepted:
        refusal = {"message": heard.reason or "", "errors": [], "refusal": Refusal.CONFLICT.value}
        raise Refused(refusal, caller.request_id)
    answer = {"request_id": caller.request_id, "status": "DONE", "token": attempt.token, "message": heard.reason}
    return json_response({name: value for name, value in answer.items() if value is not None})
