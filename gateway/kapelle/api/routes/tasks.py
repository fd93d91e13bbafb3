"""Workers over HTTP: poll for tasks, and report on them."""

from collections.abc import Sequence

import msgspec
from fastapi import APIRouter, Request, Response

from kapelle.api.answers.tasks import ReportResults, Tasks
from kapelle.api.bodies import PollBody, ReportsBody
from kapelle.api.callers import Writer
from kapelle.api.claims import Claims, Poll
from kapelle.api.commands import members_of
from kapelle.api.context import Here, json_response
from kapelle.api.reports import TaskReport, report
from kapelle.api.routes.guards import OPERATOR, WRITES
from kapelle.api.shapes import ok
from kapelle.schemas.contracts import Report

router = APIRouter(prefix="/tasks", tags=["tasks"], dependencies=OPERATOR)


NULL = msgspec.Raw(b"null")


class _Written(msgspec.Struct):
    """The parts of a report that are handed on as they were written."""

    outputs: msgspec.Raw = NULL
    signals: msgspec.Raw = NULL


def _claims(request: Request) -> Claims:
    claims: Claims = request.app.state.claims
    return claims


@router.post("/poll", summary="Poll for tasks", responses=WRITES | ok(Tasks))
async def poll(request: Request, here: Here, body: PollBody) -> Response:  # noqa: ARG001 - named for the schema
    """Assign waiting tasks to a worker under a lease. If there are none, the call waits up to `wait_ms`."""
    wanted = Poll(body.worker, tuple(dict.fromkeys(body.types)), body.max, body.wait_ms / 1000)
    tasks, cancelled = await _claims(request).poll(wanted)
    return json_response({"tasks": [msgspec.structs.asdict(task) for task in tasks], "cancelled": cancelled})


@router.post("/reports", summary="Report on tasks", responses=WRITES | ok(ReportResults))
async def reports(request: Request, here: Here, caller: Writer, body: ReportsBody) -> Response:
    """Send heartbeats and results of tasks. Only the first result of an attempt takes effect."""
    written = _as_written((await members_of(request)).get("reports"))
    sent = [
        TaskReport(
            report.token,
            report.workflow_id,
            report.instance_id,
            report.step_id,
            body.worker,
            Report(report.report),
            report.message,
            outputs,
            signals,
            report.log,
        )
        for report, (outputs, signals) in zip(body.reports, written, strict=True)
    ]
    result = await report(here, sent, caller.wait_s)
    cancelled = await _claims(request).cancelled_of(body.worker, {report.token for report in sent})
    answer: dict[str, object] = {"results": [report.record() for report in result], "cancelled": cancelled}
    return json_response(answer)


def _as_written(raw: msgspec.Raw | None) -> Sequence[tuple[str | None, str | None]]:
    """The outputs and the signals of each report as JSON text."""
    written = msgspec.json.decode(raw or b"[]", type=list[_Written])
    return [(_text(report.outputs), _text(report.signals)) for report in written]


def _text(raw: msgspec.Raw) -> str | None:
    return None if raw == NULL else bytes(raw).decode()
