"""`kapelle event`: show events as they happen."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kapelle.cli.options.client import URL, Url
from kapelle.cli.options.output import Output
from kapelle.cli.server import connected
from kapelle.cli.text import output
from kapelle.cli.text.events import show_event
from kapelle.cli.text.output import Form

if TYPE_CHECKING:
    from kapelle.client.events import TailOptions

group = typer.Typer(name="event", help="Show events as they happen.", no_args_is_help=True, rich_markup_mode=None)


@group.callback()
def _event() -> None:
    """Show events as they happen."""


@group.command()
def tail(
    *,
    kind: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Show only events of this type. Repeatable.")
    ] = None,
    workflow: Annotated[
        list[str] | None,
        typer.Option("--workflow", metavar="WORKFLOW", help="Show only events of this workflow. Repeatable."),
    ] = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="Start with the first event.")] = False,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Start after the event with this id.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", metavar="N", min=1, help="Exit after N events.")] = None,
    quiet_s: Annotated[
        float | None,
        typer.Option("--quiet", metavar="SECONDS", min=0, help="Exit when no event arrives for this long."),
    ] = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show events of workflows, runs, signals and triggers as they happen. Press Ctrl-C to stop.

    If the connection is lost, the command reconnects and misses no event. With -o json, each event is one line. Its id
    can be given to --after.

    \b
    Examples:
      kapelle event tail
      kapelle event tail --type StepChanged --type RunEnded --workflow etl
      kapelle event tail --from-start --quiet 1 -o json
    """
    options: TailOptions = {"types": kind or (), "workflow_ids": workflow or (), "from_start": from_start}
    if after is not None:
        options["after"] = after
    if quiet_s is not None:
        options["quiet_ms"] = round(quiet_s * 1000)
    with connected(url) as client:
        for number, event in enumerate(client.events.tail(**options), 1):
            output.show_line(event, form, partial(show_event, whose=True))
            if number == count:
                return
