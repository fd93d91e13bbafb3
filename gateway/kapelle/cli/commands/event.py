"""`kapelle event`: see what happens, as it happens."""

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

group = typer.Typer(name="event", help="See events as they happen.", no_args_is_help=True, rich_markup_mode=None)


@group.callback()
def _event() -> None:
    """See events as they happen."""


@group.command()
def tail(
    *,
    kind: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only events of this type; again for more.")
    ] = None,
    workflow: Annotated[
        list[str] | None, typer.Option("--workflow", metavar="WORKFLOW", help="Only of this workflow; again for more.")
    ] = None,
    from_start: Annotated[bool, typer.Option("--from-start", help="Begin with the first event of all.")] = False,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Go on after the event with this id.")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", metavar="N", min=1, help="End after so many.")] = None,
    quiet_s: Annotated[
        float | None, typer.Option("--quiet", metavar="SECONDS", min=0, help="End when nothing has come for so long.")
    ] = None,
    url: Url = URL,
    form: Output = Form.TEXT,
) -> None:
    """Show events of workflows, runs, signals and triggers as they happen, until Ctrl-C.

    A server that is away for a moment is asked again, and nothing is missed. With -o json each event is one line, with
    the id to go on after it.

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
