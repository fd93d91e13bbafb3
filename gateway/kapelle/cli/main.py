"""The kapelle command: its groups, and the one place where errors become a paragraph and an exit code."""

import importlib.metadata
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kapelle.cli import (
    api,
    dead_letters,
    dev,
    dlq,
    doctor,
    event,
    openlineage,
    outbox,
    output,
    processors,
    replay,
    run,
    schemas,
    sel,
    signal,
    sinks,
    sources,
    step,
    topics,
    topology,
    traces,
    trigger,
    verify,
    worker,
    workflow,
)
from kapelle.cli.errors import MEANINGS, exit_code, paragraph


class Commands(TyperGroup):
    """Turns whatever a command raises into what the operator needs: a reason and a code, and no traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.TyperException, typer.Exit, typer.Abort, BrokenPipeError):
            raise  # Typer's own: it has the words and codes for them
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            output.error(paragraph(error))
            raise typer.Exit(exit_code(error)) from error


HELP = """A workflow orchestrator that lives in Kafka.

Data goes to stdout, everything said about it to stderr.

\b
Examples:
  kapelle dev
  kapelle workflow push etl.yaml
  kapelle run start etl --watch
  kapelle worker run steps
  kapelle processors run --bootstrap-servers 127.0.0.1:9092 --state-dir state

\b
Exit codes:
"""
HELP += "".join(f"  {code.value}  {meaning}\n" for code, meaning in MEANINGS.items())

cli = typer.Typer(
    name="kapelle",
    cls=Commands,
    help=HELP,
    no_args_is_help=True,
    rich_markup_mode=None,  # panels squeeze the options into a third of a terminal
    pretty_exceptions_enable=False,  # they print local variables, and those may hold secrets
)
app = cli  # the name that documentation tests and Typer's own tools look for

cli.command("dev")(dev.dev)
cli.add_typer(workflow.group, name="workflow")
cli.add_typer(run.group, name="run")
cli.add_typer(step.group, name="step")
cli.add_typer(signal.group, name="signal")
cli.add_typer(trigger.group, name="trigger")
cli.add_typer(event.group, name="event")
cli.add_typer(worker.group, name="worker")
cli.add_typer(api.group, name="api")
cli.command("doctor")(doctor.doctor)
cli.command("topology")(topology.topology)
cli.add_typer(topics.group, name="topics")
cli.add_typer(schemas.group, name="schemas")
cli.add_typer(processors.group, name="processors")
cli.add_typer(replay.group, name="replay")
cli.command("verify")(verify.verify)
cli.add_typer(dlq.group, name="dlq")
cli.add_typer(dead_letters.group, name="dead-letters")
cli.add_typer(sources.group, name="sources")
cli.add_typer(outbox.group, name="outbox")
cli.add_typer(sinks.group, name="sinks")
cli.add_typer(openlineage.group, name="openlineage")
cli.add_typer(traces.group, name="traces")
cli.add_typer(sel.app, name="sel")


def _version(asked: bool) -> None:
    if asked:
        output.data(f"kapelle {importlib.metadata.version('kapelle')}")
        raise typer.Exit


@cli.callback(help=HELP)
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """A workflow orchestrator that lives in Kafka."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    cli(arguments, prog_name="kapelle")


if __name__ == "__main__":
    main()
