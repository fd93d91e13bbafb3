"""Signals: announcements, explanations and lineage. Names may contain slashes."""

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Response

from kapelle.api import convertors  # noqa: F401 - routes say `{name:name}`
from kapelle.api.announcements import REQUEST_BODY, Announced
from kapelle.api.answers.common import Page as AnswerPage
from kapelle.api.answers.lineage import Lineage
from kapelle.api.answers.signals import (
    AnnouncedSignal,
    ExplainedSignal,
    ExplainedTriggers,
    RefusedSignal,
    Signal,
    SignalName,
    Triggers,
)
from kapelle.api.callers import InstanceAt, Page, Reader, RunSelector, WorkflowId, Writer, number_of
from kapelle.api.commands import Question, ask
from kapelle.api.context import Context, Here, json_response
from kapelle.api.problems import NotFound
from kapelle.api.routes.guards import OPERATOR, READS, VIEWER, WRITES
from kapelle.api.routes.instances import no_instance
from kapelle.api.routes.workflows import no_workflow
from kapelle.api.shapes import ok
from kapelle.processors.signals.bounds import NAME_CHARS_MAX
from kapelle.processors.wiring import SIGNALS
from kapelle.views.projection.signals import announcer
from kapelle.views.queries import explanations, instances, lineage, triggers, workflows
from kapelle.views.queries import signals as queries
from kapelle.views.queries.lineage import DEPTH_MAX, Direction
from kapelle.views.queries.requests import Outcome

router = APIRouter(tags=["signals"])

STATUSES: Final = {"SignalAccepted": "ACCEPTED", "SignalDuplicated": "DUPLICATED", "SignalTooLate": "TOO_LATE"}
ONE: Final = "/signals/{name:name}/instances/{sequence}"

Name = Annotated[str, Path(min_length=1, max_length=NAME_CHARS_MAX, description="The name of a signal.")]
DirectionQuery = Annotated[
    Direction, Query(description="Follow the effects (`forward`), the causes (`backward`), or `both`.")
]
Depth = Annotated[int, Query(ge=1, le=DEPTH_MAX, description="Follow at most this many edges.")]


def no_signal(name: str, sequence: int | None) -> NotFound:
    """The signal does not exist."""
    what = f"a signal {name!r}" if sequence is None else f"signal {sequence} of {name!r}"
    return NotFound(f"Expected {what} to exist, but it does not")


@router.post(
    "/signals",
    summary="Announce a signal",
    dependencies=OPERATOR,
    responses=WRITES | ok(AnnouncedSignal),
    openapi_extra=REQUEST_BODY,
)
async def announce(here: Here, caller: Writer, body: Announced) -> Response:
    """Announce that something has happened. Announcements with the same name and id are the same signal.

    The body may be a CloudEvent. Its type is the name, its source and id form the id, its data holds the parameters.
    """
    question = Question(SIGNALS, body.name, body, announcer(body.name))
    outcome = await ask(here, caller, question)
    return json_response({"name": body.name, **_answer(outcome), "request_id": caller.request_id})


def _answer(outcome: Outcome) -> dict[str, object]:
    members = outcome.body
    first = members.get("first_sequence")
    more = {
        "duplicate_of": first,
        "happened_time": members.get("happened_at_ms"),
        "floor_time": members.get("floor_at_ms"),
    }
    return {
        "signal_id": members["signal_id"],
        "sequence": members.get("sequence", first),
        "status": STATUSES[outcome.kind],
        **{name: value for name, value in more.items() if value is not None},
    }


@router.get("/signals", summary="List signal names", dependencies=VIEWER, responses=READS | ok(AnswerPage[SignalName]))
async def list_names(
    here: Reader,
    page: Page,
    prefix: Annotated[
        str, Query(max_length=NAME_CHARS_MAX, description="Return only names that begin with this text.")
    ] = "",
) -> Response:
    """All signal names, with the number of signals, subscribed triggers and waiting steps of each."""
    mark = here.watermark()
    return json_response(await here.read(queries.names, page, prefix), mark=mark)


@router.get(
    "/signals/{name:name}/instances",
    summary="List signals",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[Signal]),
)
async def list_signals(here: Reader, name: Name, page: Page) -> Response:
    """The signals of a name, latest first."""
    mark = here.watermark()
    await _known(here, name)
    return json_response(await here.read(queries.of_name, name, page), mark=mark)


@router.get(
    "/signals/{name:name}/refused",
    summary="List duplicate and late announcements",
    dependencies=VIEWER,
    responses=READS | ok(AnswerPage[RefusedSignal]),
)
async def list_refused(
    here: Reader,
    name: Name,
    page: Page,
    signal_id: Annotated[
        str | None, Query(max_length=1_024, description="Return only announcements with this signal id.")
    ] = None,
) -> Response:
    """Announcements that were refused as duplicates or as too late, latest first."""
    mark = here.watermark()
    await _known(here, name)
    return json_response(await here.read(queries.refused, name, page, signal_id), mark=mark)


async def _known(here: Context, name: str) -> None:
    if not await here.read(queries.is_known, name):
        raise no_signal(name, None)


@router.get(ONE, summary="Get a signal", dependencies=VIEWER, responses=READS | ok(Signal))
async def get_signal(here: Reader, name: Name, sequence: RunSelector) -> Response:
    """One signal, by its sequence number, or the latest."""
    mark, number = here.watermark(), number_of(sequence, "signal")
    signal = await here.read(queries.signal, name, number)
    if signal is None:
        raise no_signal(name, number)
    return json_response(signal, mark=mark)


@router.get(
    f"{ONE}/explain",
    summary="Explain the effects of a signal",
    dependencies=VIEWER,
    responses=READS | ok(ExplainedSignal),
)
async def explain_signal(here: Reader, name: Name, sequence: RunSelector) -> Response:
    """The verdict of each trigger and step that was subscribed to the signal when it arrived, with the reason."""
    mark, number = here.watermark(), number_of(sequence, "signal")
    explanation = await here.read(explanations.explained, name, number)
    if explanation is None:
        raise no_signal(name, number)
    return json_response(explanation, mark=mark)


@router.get(f"{ONE}/lineage", summary="Get the lineage of a signal", dependencies=VIEWER, responses=READS | ok(Lineage))
async def signal_lineage(
    here: Reader,
    name: Name,
    sequence: RunSelector,
    direction: DirectionQuery = Direction.BOTH,
    depth: Depth = DEPTH_MAX,
) -> Response:
    """The instances that the signal started or that waited for it, the signals they announced, and so on.

    In the direction `backward`: the step that announced the signal, and the causes of its instance.
    """
    mark, number = here.watermark(), number_of(sequence, "signal")
    signal = await here.read(queries.signal, name, number)
    if signal is None:
        raise no_signal(name, number)
    graph = await here.read(lineage.of_signal, (name, signal["sequence"]), direction, depth)
    return json_response(graph, mark=mark)


@router.get(
    "/workflows/{workflow_id}/instances/{instance_id}/lineage",
    summary="Get the lineage of an instance",
    dependencies=VIEWER,
    responses=READS | ok(Lineage),
)
async def instance_lineage(
    here: Reader, at: InstanceAt, direction: DirectionQuery = Direction.BOTH, depth: Depth = DEPTH_MAX
) -> Response:
    """The signals that started the instance or that it waited for, the signals it announced, and so on."""
    mark = here.watermark()
    if await here.read(instances.run, *at) is None:
        raise no_instance(*at)
    return json_response(await here.read(lineage.of_instance, at, direction, depth), mark=mark)


# Triggers -------------------------------------------------------------------------------------------------------------


@router.get(
    "/workflows/{workflow_id}/triggers", summary="List triggers", dependencies=VIEWER, responses=READS | ok(Triggers)
)
async def list_triggers(
    here: Reader,
    workflow_id: WorkflowId,
    with_disarmed: Annotated[bool, Query(description="Include triggers that are no longer armed.")] = False,
) -> Response:
    """The armed signal triggers of a workflow: their definitions, and the signals that wait for others to join."""
    mark = here.watermark()
    if await here.read(workflows.workflow, workflow_id) is None:
        raise no_workflow(workflow_id)
    listed = await here.read(triggers.listed, workflow_id, with_disarmed=with_disarmed)
    return json_response({"workflow_id": workflow_id, "triggers": listed}, mark=mark)


@router.get(
    "/workflows/{workflow_id}/triggers/explain",
    summary="Explain why a workflow did not start",
    dependencies=VIEWER,
    responses=READS | ok(ExplainedTriggers),
)
async def explain_triggers(here: Reader, workflow_id: WorkflowId) -> Response:
    """For each trigger, its latest signals, the verdict on each, and the signals that are missing."""
    mark = here.watermark()
    explanation = await here.read(triggers.explained, workflow_id)
    if explanation is None:
        raise no_workflow(workflow_id)
    return json_response(explanation, mark=mark)
