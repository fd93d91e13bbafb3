"""`kapelle schedule`: pause and resume time triggers, and preview the times of a schedule."""

from typing import TYPE_CHECKING, Annotated

import typer

from kapelle.cli.options.client import URL, Reason, RequestId, Url, WorkflowId
from kapelle.cli.options.output import Output
from kapelle.cli.options.schedule import Every, TriggerId, Zone
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.output import Form
from kapelle.cli.text.schedules import utc, zoned

if TYPE_CHECKING:
    from kapelle.cli.preview import Preview

group = typer.Typer(
    name="schedule",
    help="Pause and resume time triggers, and preview the times of a schedule.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@group.command()
def pause(
    workflow_id: WorkflowId,
    *,
    trigger_id: TriggerId = None,
    reason: Reason = "",
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Start no ticks of a workflow until its time triggers are resumed. With --trigger, pause one time trigger.

    Without --trigger, later versions of the workflow are paused too. Ticks that come during the pause are not caught
    up. `kapelle backfill` can start them.

    \b
    Examples:
      kapelle schedule pause etl --reason "the source is down"
      kapelle schedule pause etl --trigger 5c0b3a1f2e4d6978
    """
    with connected(url) as client:
        done = client.schedules.pause(workflow_id, trigger_id, reason=reason, request_id=request_id)
    output.show_outcome(done, form, f"{workflow_id}: {_what(trigger_id)} paused")


@group.command()
def resume(
    workflow_id: WorkflowId,
    *,
    trigger_id: TriggerId = None,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Start ticks again, from now on. Without --trigger, resume also the time triggers that were paused one by one.

    \b
    Examples:
      kapelle schedule resume etl
      kapelle schedule resume etl --trigger 5c0b3a1f2e4d6978
    """
    with connected(url) as client:
        done = client.schedules.resume(workflow_id, trigger_id, request_id=request_id)
    output.show_outcome(done, form, f"{workflow_id}: {_what(trigger_id)} resumed")


def _what(trigger_id: str | None) -> str:
    return "all time triggers are" if trigger_id is None else f"time trigger {trigger_id} is"


@group.command()
def preview(
    cron: Annotated[
        str | None,
        typer.Argument(metavar="CRON", help="Cron expression of five, six or seven fields, or a name such as @daily."),
    ] = None,
    *,
    every: Every = None,
    zone: Zone = None,
    since: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Start here: an ISO date or date-time in --tz. Default: now."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=1, max=1000, help="Show N times.")] = 10,
    form: Output = Form.TEXT,
) -> None:
    """Show the next times of a schedule, on the clock of its zone and in UTC. This needs no server.

    A note marks the times that a change of the clock concerns. A time that the clock skips moves to the end of the gap.
    A time that the clock shows twice counts once, the first time, unless the schedule has a time in every hour.

    \b
    Examples:
      kapelle schedule preview '0 5 * * MON-FRI' --tz Europe/Berlin
      kapelle schedule preview '30 2 * * *' --tz Europe/Berlin --from 2026-03-28 --count 3
      kapelle schedule preview --every 90m --from 2026-01-01T12:00 -o json
    """
    from kapelle.cli.preview import preview_of  # noqa: PLC0415 - slow to load

    output.show(preview_of(cron, every, zone, since=since, count=count), form, _show)


def _show(preview: "Preview") -> None:
    zone = preview.timezone
    tables.show(
        ("local time", "UTC", "note"),
        [(zoned(time.scheduled_at, zone), utc(time.scheduled_at), time.note) for time in preview.times],
    )
    if not preview.times:
        output.say("there are no times after that")
