"""Time triggers: what comes next, the outcome of the last ticks, pausing them, and previews of schedules."""

import time
from enum import StrEnum
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query, Response

from kapelle.api.answers.schedules import Preview, SettledSchedules, TimeTrigger, TimeTriggers
from kapelle.api.bodies import PauseBody, ResumeSchedulesBody
from kapelle.api.callers import Reader, WorkflowId, Writer
from kapelle.api.context import Here, json_response
from kapelle.api.plans import bad_times
from kapelle.api.problems import NotFound
from kapelle.api.routes.guards import OPERATOR, READS, VIEWER, WRITES
from kapelle.api.routes.workflows import no_workflow, tell
from kapelle.api.shapes import ok
from kapelle.processors.calendar import Schedule
from kapelle.processors.periods import ZONE_DEFAULT, BadTimes, checked_zone, moment_ms, previewed, schedule_asked
from kapelle.processors.sel.joda.zone import zone_of
from kapelle.schemas import contracts as c
from kapelle.views.queries import schedules as queries
from kapelle.views.queries import workflows

router = APIRouter(tags=["schedules"])

TICKS_MAX: Final = 100
TIMES_DEFAULT: Final = 10
TIMES_MAX: Final = 1_000
OF_WORKFLOW: Final = "/workflows/{workflow_id}/schedules"

TriggerId = Annotated[str, Path(min_length=1, max_length=256, description="The id of a time trigger.")]
ToCome = Annotated[int, Query(alias="next", ge=1, le=TICKS_MAX, description="Return this many ticks to come.")]
Last = Annotated[int, Query(ge=1, le=TICKS_MAX, description="Return this many of the last ticks.")]


def _shown(upcoming: ToCome = queries.SHOWN, last: Last = queries.SHOWN) -> queries.Shown:
    return queries.Shown(upcoming, last)


ShownTicks = Annotated[queries.Shown, Depends(_shown)]


@router.get(OF_WORKFLOW, summary="List time triggers", dependencies=VIEWER, responses=READS | ok(TimeTriggers))
async def list_schedules(
    here: Reader,
    workflow_id: WorkflowId,
    shown: ShownTicks,
    *,
    with_disarmed: Annotated[bool, Query(description="Add the time triggers of earlier versions.")] = False,
) -> Response:
    """The time triggers of the active version, or else of the latest, with the next ticks and the last ones."""
    mark = here.watermark()
    found = await here.read(queries.listed, workflow_id, shown, with_disarmed=with_disarmed)
    if found is None:
        raise no_workflow(workflow_id)
    return json_response(found, mark=mark)


@router.get(
    f"{OF_WORKFLOW}/{{trigger_id}}",
    summary="Get a time trigger",
    dependencies=VIEWER,
    responses=READS | ok(TimeTrigger),
)
async def get_schedule(here: Reader, workflow_id: WorkflowId, trigger_id: TriggerId, shown: ShownTicks) -> Response:
    """A time trigger of this version or an earlier one, with the next ticks and the outcome of the last ones."""
    mark = here.watermark()
    found = await here.read(queries.schedule, workflow_id, trigger_id, shown)
    if found is None:
        if await here.read(workflows.workflow, workflow_id) is None:
            raise no_workflow(workflow_id)
        raise NotFound(f"Expected a time trigger of workflow {workflow_id!r}, but found {trigger_id[:80]!r}")
    return json_response(found, mark=mark)


# Pausing --------------------------------------------------------------------------------------------------------------


@router.put(
    f"{OF_WORKFLOW}/actions/pause",
    summary="Pause time triggers",
    dependencies=OPERATOR,
    responses=WRITES | ok(SettledSchedules),
)
async def pause(here: Here, caller: Writer, workflow_id: WorkflowId, body: PauseBody | None = None) -> Response:
    """Start no ticks of a time trigger, or of all of a workflow with its later versions, until they are resumed.

    Ticks that come until then are not caught up. A backfill can start them.
    """
    said = body or PauseBody()
    caller = caller.named(said.request_id)
    command = c.PauseSchedules(caller.request_id, caller.user, said.trigger_id, said.reason)
    answer = await tell(here, caller, workflow_id, command)
    return json_response({**answer, "trigger_id": said.trigger_id})


@router.put(
    f"{OF_WORKFLOW}/actions/resume",
    summary="Resume time triggers",
    dependencies=OPERATOR,
    responses=WRITES | ok(SettledSchedules),
)
async def resume(
    here: Here, caller: Writer, workflow_id: WorkflowId, body: ResumeSchedulesBody | None = None
) -> Response:
    """Start ticks of a time trigger, or of all of a workflow, from now on.

    To resume all of a workflow includes those that were paused one by one.
    """
    said = body or ResumeSchedulesBody()
    caller = caller.named(said.request_id)
    command = c.ResumeSchedules(caller.request_id, caller.user, said.trigger_id)
    answer = await tell(here, caller, workflow_id, command)
    return json_response({**answer, "trigger_id": said.trigger_id})


# Previews -------------------------------------------------------------------------------------------------------------


class _Asked(StrEnum):
    """Where a preview begins, if nothing is given."""

    NOW = "now"


def _schedule(
    cron: Annotated[str | None, Query(max_length=256, description="A cron text, or a name such as `@daily`.")] = None,
    interval: Annotated[str | None, Query(max_length=64, description="An interval, such as `90m` or `1d`.")] = None,
    timezone: Annotated[str, Query(max_length=64, description="The time zone of the schedule.")] = ZONE_DEFAULT,
    since: Annotated[
        str,
        Query(
            alias="from",
            min_length=1,
            max_length=64,
            description="Return times from here on: an ISO date or date-time of the time zone, milliseconds, or `now`.",
        ),
    ] = _Asked.NOW.value,
) -> tuple[Schedule, int]:
    try:
        zone = zone_of(checked_zone(timezone))
        is_now = since == _Asked.NOW
        from_ms = time.time_ns() // 1_000_000 if is_now else moment_ms(since, zone, "from")
        return schedule_asked(cron, interval, timezone, anchor_ms=None if is_now else from_ms), from_ms
    except BadTimes as error:
        raise bad_times(error) from None


@router.get("/schedules/preview", summary="Preview a schedule", dependencies=VIEWER, responses=READS | ok(Preview))
async def preview(
    here: Here,
    asked: Annotated[tuple[Schedule, int], Depends(_schedule)],
    count: Annotated[int, Query(ge=1, le=TIMES_MAX, description="Return this many times.")] = TIMES_DEFAULT,
) -> Response:
    """The next times of a schedule, in UTC and on the clock of its zone. Times that the clock has moved have a note."""
    schedule, from_ms = asked
    times = await here.checks.run(previewed, schedule, from_ms, count)
    return json_response({**queries.schedule_fields(schedule), "from": from_ms, "times": times})
