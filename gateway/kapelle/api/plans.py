"""Backfills as they are asked for: the command that starts one, and what it would start."""

from collections.abc import Mapping
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from kapelle.api.bodies import BackfillBody, Order
from kapelle.api.context import Context
from kapelle.api.problems import BadRequest, NotFound
from kapelle.processors.calendar import Schedule, schedule_of, times_of
from kapelle.processors.periods import ZONE_DEFAULT, BadTimes, local_text, on_the_clock, period_asked, schedule_asked
from kapelle.processors.sel.joda.zone import zone_of
from kapelle.processors.workflows.backfills import SLOTS_MAX
from kapelle.processors.workflows.slots import (
    backfill_id_of,
    count_slots,
    first_position,
    slot_request_id,
    slots_after,
)
from kapelle.schemas import contracts as c
from kapelle.views.queries import backfills as queries
from kapelle.views.queries.schedule_records import PlanRecord, SlotRecord

SHOWN: Final = 10  # of the first slots, and of the last


def bad_times(error: BadTimes, interval: str = "interval") -> BadRequest:
    """What was asked for names no times. `interval` is what the field of an interval is called."""
    errors = [
        f"{interval}:{text.removeprefix('interval:')}" if text.startswith("interval:") else text
        for text in error.errors
    ]
    return BadRequest("; ".join(errors), errors)


def command_of(
    body: BackfillBody, workflow_id: str, triggers: Mapping[str, str], *, params: str, asked: tuple[str, str]
) -> c.StartBackfill:
    """The command that starts a backfill. `triggers` are the schedules of the workflow, `asked` its id and who asks."""
    request_id, author = asked
    try:
        schedule, trigger_id, period = _times(body, workflow_id, triggers)
    except BadTimes as error:
        raise bad_times(error, "every") from None
    command = c.StartBackfill(
        request_id=request_id,
        author=author,
        backfill_id=body.backfill_id or "",
        schedule=schedule.json(),
        trigger_id=trigger_id,
        from_ms=period[0],
        to_ms=period[1],
        is_newest_first=body.order is Order.NEWEST,
        concurrency=body.concurrency,
        is_rerun=body.rerun,
        run_params=params,
    )
    _check_total(command, schedule)
    return command if body.backfill_id else replace(command, backfill_id=backfill_id_of(workflow_id, command))


def _times(
    body: BackfillBody, workflow_id: str, triggers: Mapping[str, str]
) -> tuple[Schedule, str | None, tuple[int, int]]:
    given = [name for name in ("every", "cron", "trigger_id") if getattr(body, name) is not None]
    if len(given) > 1:
        raise BadTimes(f"Expected one of every, cron and trigger_id, but found {' and '.join(given)}")
    if given and body.trigger_id is None:
        zone = body.timezone or ZONE_DEFAULT
        period = period_asked(body.since, body.to, zone)
        return on_the_clock(schedule_asked(body.cron, body.every, zone, anchor_ms=period[0])), None, period
    trigger_id = _trigger(body.trigger_id, workflow_id, triggers)
    schedule = schedule_of(triggers[trigger_id])
    return schedule, trigger_id, period_asked(body.since, body.to, body.timezone or schedule.timezone)


def _trigger(trigger_id: str | None, workflow_id: str, triggers: Mapping[str, str]) -> str:
    names = ", ".join(triggers) or "none"
    if trigger_id is None:
        if len(triggers) != 1:
            raise BadTimes(f"Expected every, cron or trigger_id: workflow {workflow_id!r} has time triggers {names}")
        return next(iter(triggers))
    if trigger_id not in triggers:
        raise NotFound(f"Expected a time trigger of workflow {workflow_id!r} ({names}), but found {trigger_id[:80]!r}")
    return trigger_id


def _check_total(command: c.StartBackfill, schedule: Schedule) -> None:
    """Nothing is sent that would be refused for its size."""
    total = count_slots(command, times_of(schedule))
    if not 1 <= total <= SLOTS_MAX:
        raise BadRequest(f"Expected a period with 1 to {SLOTS_MAX:,} slots, but found {total:,}")


async def plan_of(here: Context, workflow_id: str, command: c.StartBackfill) -> PlanRecord:
    """What a backfill would start. Each of its slots is looked up."""
    slots, request_ids = await here.checks.run(_slots, workflow_id, command)
    instances = await here.read(queries.existing, workflow_id, request_ids)
    zone = zone_of(schedule_of(command.schedule).timezone)
    shown = [*range(min(SHOWN, len(slots))), *range(max(SHOWN, len(slots) - SHOWN), len(slots))]
    return {
        "workflow_id": workflow_id,
        "backfill_id": command.backfill_id,
        "total": len(slots),
        "existing": sum(instance_id is not None for instance_id in instances),
        "slots": [
            SlotRecord(
                scheduled_at=slots[at],
                local=local_text(slots[at], zone),
                is_existing=instances[at] is not None,
                workflow_instance_id=instances[at],
            )
            for at in shown
        ],
    }


def _slots(workflow_id: str, command: c.StartBackfill) -> tuple[list[int], list[str]]:
    """The slots in the order in which they start, and the request ids of their starts."""
    times = times_of(schedule_of(command.schedule))
    slots = list(islice(slots_after(first_position(command), command, times), SLOTS_MAX))
    return slots, [slot_request_id(workflow_id, command.backfill_id, command, slot) for slot in slots]


def params_text(members: Mapping[str, msgspec.Raw]) -> str:
    """The parameters of a body, each as it was written."""
    written = msgspec.json.decode(members.get("params") or b"null", type=dict[str, msgspec.Raw] | None)
    return msgspec.json.encode(written or {}).decode()
