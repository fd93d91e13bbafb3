"""`kapelle backfill`: start one instance for each scheduled time of a period, and follow it."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

from kapelle.cli.backfills import Interrupted, follow
from kapelle.cli.errors import BadParam, EndedOtherwise
from kapelle.cli.options.client import URL, Cursor, Limit, Param, Reason, RequestId, Timeout, Url, WorkflowId
from kapelle.cli.options.output import Output
from kapelle.cli.options.schedule import Every, TriggerId, Zone
from kapelle.cli.params import given
from kapelle.cli.server import connected
from kapelle.cli.text import output, tables
from kapelle.cli.text.backfills import counts_text, show_backfill, show_plan, times_text
from kapelle.cli.text.output import Form
from kapelle.cli.text.schedules import zoned

if TYPE_CHECKING:
    from kapelle.client import BackfillRecord, Client
    from kapelle.client.backfills import BackfillOptions

START: Final = "start"
CONCURRENCY_MAX: Final = 100
CTRL_C: Final = 130  # the exit code of shells for it
UNSUCCESSFUL: Final = ("FAILED", "STOPPED", "TIMED_OUT")


class Started(TyperGroup):
    """`kapelle backfill WORKFLOW --from …` is `kapelle backfill start WORKFLOW --from …`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # Typer does not export the classes
        is_period = any(word.partition("=")[0] in ("--from", "--to") for word in args)
        if is_period and args[0] not in self.commands and not args[0].startswith("-"):
            args = [START, *args]
        return super().resolve_command(ctx, args)


group = typer.Typer(
    name="backfill",
    cls=Started,
    help="Start one instance for each scheduled time of a period, and follow it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Order(StrEnum):
    """Which scheduled times come first."""

    OLDEST = "oldest"
    NEWEST = "newest"


BackfillId = Annotated[str, typer.Argument(metavar="ID", help="Backfill id.")]


@group.command(START)
def start(
    workflow_id: WorkflowId,
    *,
    first: Annotated[
        str, typer.Option("--from", metavar="TIME", help="First time: an ISO date, or a date-time, in --tz.")
    ],
    last: Annotated[
        str, typer.Option("--to", metavar="TIME", help="Last time, included. A date includes the whole day.")
    ],
    every: Every = None,
    cron: Annotated[
        str | None, typer.Option("--cron", metavar="CRON", help="Use the times of a cron expression.")
    ] = None,
    trigger_id: TriggerId = None,
    zone: Zone = None,
    param: Param = None,
    concurrency: Annotated[
        int,
        typer.Option("--concurrency", "-c", metavar="N", min=1, max=CONCURRENCY_MAX, help="Run N instances at a time."),
    ] = 1,
    order: Annotated[Order, typer.Option("--order", help="Start with the oldest or the newest time.")] = Order.OLDEST,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Start also the times that the schedule or another backfill has started.")
    ] = False,
    backfill_id: Annotated[
        str | None,
        typer.Option(
            "--id", metavar="ID", help="Give the backfill this id. Default: made of the period and the times."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be started, and start nothing.")] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until the backfill ends.")] = False,
    timeout_s: Timeout = None,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Start one instance for each scheduled time of a period. `kapelle backfill WORKFLOW --from …` does the same.

    The times are those of --every, --cron or --trigger. Without any, they are those of the only time trigger of the
    workflow. A time that has an instance is not started again, so the same command fills gaps, and continues a backfill
    that was paused or cancelled. Ctrl-C does not stop the backfill.

    The exit code is 0 if all instances end as SUCCEEDED, 1 if one ends otherwise, and 5 after --timeout.

    \b
    Examples:
      kapelle backfill start etl --from 2026-01-01 --to 2026-03-31
      kapelle backfill start etl --from 2026-01-01 --to 2026-03-31 --every 1d --concurrency 8 --dry-run
      kapelle backfill start etl --from 2026-01-01T06:00 --to 2026-01-02 --cron '0 * * * *' --tz Europe/Berlin
      kapelle backfill start etl --from 2026-01-01 --to 2026-03-31 -p source=archive --order newest --no-wait
    """
    if sum(one is not None for one in (every, cron, trigger_id)) > 1:
        raise BadParam("Expected at most one of --every, --cron and --trigger, but found several")
    of: BackfillOptions = {"concurrency": concurrency, "order": order.value, "params": given(param or ())}
    named = {"every": every, "cron": cron, "trigger_id": trigger_id, "timezone": zone, "backfill_id": backfill_id}
    for name, value in {**named, "rerun": rerun or None}.items():
        if value is not None:
            of[name] = value  # type: ignore[literal-required] # six of its own names
    with connected(url) as client:
        if dry_run:
            output.show(client.backfills.dry_run(workflow_id, first, last, **of), form, show_plan)
            return
        record = client.backfills.start(workflow_id, first, last, request_id=request_id, **of)
        if no_wait:
            output.show(record, form, _show_started)
            return
        output.say(f"{record.total:,} scheduled times, {record.concurrency} at a time; backfill {record.backfill_id}")
        _follow(client, record, timeout_s, form)


def _show_started(record: "BackfillRecord") -> None:
    output.data(f"{record.workflow_id} {record.backfill_id}")
    output.say(f"{record.total:,} scheduled times; to follow it: {_watching(record)}")


def _follow(client: "Client", record: "BackfillRecord", timeout_s: float | None, form: Form) -> None:
    try:
        ended = follow(client, (record.workflow_id, record.backfill_id), timeout_s)
    except Interrupted as interrupted:
        output.say(f"the backfill continues; to follow it: {_watching(record)}")
        raise typer.Exit(CTRL_C) from interrupted
    output.show(
        ended,
        form,
        lambda found: output.data(f"{found.workflow_id} {found.backfill_id} {found.status}: {counts_text(found)}"),
    )
    if ended.status != "COMPLETED":
        why = f": {ended.reason}" if ended.reason else ""
        raise EndedOtherwise(f"The backfill {ended.backfill_id} is {ended.status}{why}")
    if ended.unsuccessful:
        count = output.counted(ended.unsuccessful, "scheduled time")
        raise EndedOtherwise(f"{count} did not succeed. To list the instances: {_listing(ended)}")


def _listing(record: "BackfillRecord") -> str:
    """The command that lists the instances that did not succeed, or that shows which starts were refused."""
    statuses = [status for status in UNSUCCESSFUL if record.counts.get(status)]
    words = [word for status in statuses for word in ("--status", status)]
    if not words:
        return output.command("backfill", "show", record.workflow_id, record.backfill_id)
    return output.command("run", "list", record.workflow_id, "--backfill", record.backfill_id, *words)


def _watching(record: "BackfillRecord") -> str:
    return output.command("backfill", "show", record.workflow_id, record.backfill_id, "--watch")


@group.command("list")
def list_backfills(
    workflow_id: WorkflowId, *, limit: Limit = 20, cursor: Cursor = None, url: Url = URL, form: Output = Form.TEXT
) -> None:
    """List the backfills of a workflow, latest first.

    \b
    Examples:
      kapelle backfill list etl
      kapelle backfill list etl -o json
    """
    with connected(url) as client:
        page = client.backfills.list(workflow_id, limit=limit, cursor=cursor)
    tables.show_page(
        page,
        form,
        ("backfill", "status", "from", "to", "times", "done", "of", "author", "started"),
        lambda one: (
            one.backfill_id,
            one.status,
            zoned(one.from_, one.timezone),
            zoned(one.to, one.timezone),
            times_text(one),
            one.ended,
            one.total,
            str(one.by or ""),
            tables.at(one.started_at),
        ),
    )


@group.command()
def show(
    workflow_id: WorkflowId,
    backfill_id: BackfillId,
    *,
    watch_it: Annotated[bool, typer.Option("--watch", help="Show the progress until the backfill ends.")] = False,
    timeout_s: Timeout = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show a backfill: its period, its times, and how many of its instances are in each status.

    With --watch, the exit code is that of `kapelle backfill start`.

    \b
    Examples:
      kapelle backfill show etl 3f9c21ab04de
      kapelle backfill show etl 3f9c21ab04de --watch
    """
    with connected(url) as client:
        record = client.backfills.get(workflow_id, backfill_id)
        if watch_it:
            _follow(client, record, timeout_s, form)
            return
    output.show(record, form, show_backfill)


@group.command()
def pause(
    workflow_id: WorkflowId,
    backfill_id: BackfillId,
    *,
    reason: Reason = "",
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Start no more instances until the backfill is resumed. Its running instances continue.

    \b
    Examples:
      kapelle backfill pause etl 3f9c21ab04de --reason "the cluster is full"
    """
    with connected(url) as client:
        record = client.backfills.pause(workflow_id, backfill_id, reason=reason, request_id=request_id)
    _show_change(record, form)


@group.command()
def resume(
    workflow_id: WorkflowId,
    backfill_id: BackfillId,
    *,
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Continue a paused backfill.

    \b
    Examples:
      kapelle backfill resume etl 3f9c21ab04de
    """
    with connected(url) as client:
        record = client.backfills.resume(workflow_id, backfill_id, request_id=request_id)
    _show_change(record, form)


@group.command()
def cancel(
    workflow_id: WorkflowId,
    backfill_id: BackfillId,
    *,
    stop_running: Annotated[bool, typer.Option("--stop-running", help="Stop its running instances too.")] = False,
    reason: Reason = "",
    request_id: RequestId = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """End a backfill before its last scheduled time. Its running instances continue.

    \b
    Examples:
      kapelle backfill cancel etl 3f9c21ab04de
      kapelle backfill cancel etl 3f9c21ab04de --stop-running --reason "wrong source"
    """
    with connected(url) as client:
        record = client.backfills.cancel(
            workflow_id, backfill_id, stop_running=stop_running, reason=reason, request_id=request_id
        )
    _show_change(record, form)


def _show_change(record: "BackfillRecord", form: Form) -> None:
    output.show_outcome(record, form, f"{record.workflow_id} {record.backfill_id} is {record.status}")
