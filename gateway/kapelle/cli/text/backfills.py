"""Backfills for people. Times are in the zone of the backfill."""

from typing import TYPE_CHECKING

import msgspec

from kapelle.cli.text import output, tables
from kapelle.cli.text.schedules import local, utc, zoned

if TYPE_CHECKING:
    from kapelle.client import BackfillPlan, BackfillRecord


def show_plan(plan: "BackfillPlan") -> None:
    """What a backfill would start: its first and its last scheduled times."""
    tables.show(
        ("scheduled time", "UTC", "instance"),
        [
            (local(slot.local), utc(slot.scheduled_at), _instance(slot.is_existing, slot.workflow_instance_id))
            for slot in plan.slots
        ],
    )
    hidden = plan.total - len(plan.slots)
    if hidden > 0:
        output.say(f"{hidden:,} scheduled times between them are not shown")
    if plan.existing is None:
        output.say(f"nothing was started: there are {plan.total:,} scheduled times; backfill {plan.backfill_id}")
        return
    wanted, rest = plan.total - plan.existing, f"{plan.existing:,} have an instance" if plan.existing else ""
    would = f"nothing was started: {wanted:,} of {plan.total:,} scheduled times would be started"
    output.say(f"{', '.join(part for part in (would, rest) if part)}; backfill {plan.backfill_id}")


def _instance(is_existing: bool, instance_id: int | None) -> str:
    if not is_existing:
        return "would be started"
    return "exists" if instance_id is None else f"exists: {instance_id}"


def show_backfill(backfill: "BackfillRecord") -> None:
    """A backfill on a page."""
    zone = backfill.timezone
    tables.pairs(
        [
            ("workflow", backfill.workflow_id),
            ("backfill", backfill.backfill_id),
            ("status", backfill.status),
            ("reason", backfill.reason),
            ("from", zoned(backfill.from_, zone)),
            ("to", zoned(backfill.to, zone)),
            ("times", times_text(backfill)),
            ("time trigger", backfill.trigger_id),
            ("order", f"{backfill.order} first, {backfill.concurrency} at a time"),
            ("rerun", "yes" if backfill.rerun else None),
            ("params", msgspec.json.encode(backfill.params).decode() if backfill.params else None),
            ("author", str(backfill.by or "")),
            ("started", tables.at(backfill.started_at)),
            ("ended", tables.at(backfill.ended_at)),
            ("progress", f"{backfill.ended:,} of {backfill.total:,} done, {backfill.slots_left:,} not started"),
            ("instances", counts_text(backfill)),
        ]
    )
    if backfill.refusals:
        tables.stdout().print()
        tables.show(("refused", "reason"), [(zoned(one.scheduled_at, zone), one.reason) for one in backfill.refusals])


def counts_text(backfill: "BackfillRecord") -> str:
    """How many scheduled times are in each state: `3 IN_PROGRESS, 40 SUCCEEDED, 2 existing`."""
    counts = [f"{count:,} {status}" for status, count in sorted(backfill.counts.items()) if count]
    others = (("existing", backfill.existing), ("refused", backfill.refused))
    return ", ".join([*counts, *(f"{count:,} {name}" for name, count in others if count)]) or "none started"


def times_text(backfill: "BackfillRecord") -> str:
    """The times of a backfill: a cron expression or an interval."""
    schedule = backfill.schedule
    return str(schedule.get("cron") or f"every {schedule.get('interval')}")
