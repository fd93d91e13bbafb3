"""The groups and commands of kapelle, and the one place where errors become a paragraph and an exit code."""

import importlib
import importlib.metadata
from collections.abc import Iterable
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from kapelle.cli.errors import MEANINGS
from kapelle.cli.text import output

# Where each is, in the order of the help. They are loaded when they are asked for: most import a good part of Kapelle.
COMMANDS: Final = {
    "dev": "dev:dev",
    "workflow": "workflow:group",
    "run": "run:group",
    "step": "step:group",
    "breakpoint": "breakpoint:group",
    "permit": "permit:group",
    "signal": "signal:group",
    "trigger": "trigger:group",
    "schedule": "schedule:group",
    "backfill": "backfill:group",
    "event": "event:group",
    "worker": "worker:group",
    "api": "api:group",
    "doctor": "doctor:doctor",
    "topology": "topology:topology",
    "topics": "topics:group",
    "schemas": "schemas:group",
    "processors": "processors:group",
    "replay": "replay:group",
    "verify": "verify:verify",
    "dlq": "dlq:group",
    "sources": "sources:group",
    "outbox": "outbox:group",
    "sinks": "sinks:group",
    "openlineage": "openlineage:group",
    "traces": "traces:group",
    "sel": "sel:app",
}

HELP: Final = """A workflow orchestrator on Apache Kafka.

Results go to stdout, messages go to stderr.

\b
Examples:
  kapelle dev
  kapelle workflow push etl.yaml
  kapelle run start etl --watch
  kapelle worker run steps
  kapelle processors run --bootstrap-servers 127.0.0.1:9092 --state-dir state

\b
Exit codes:
""" + "".join(f"  {code.value}  {meaning}\n" for code, meaning in MEANINGS.items())


class Commands(TyperGroup):
    """Turns whatever a command raises into what the operator needs: a reason and a code, and no traceback."""

    def invoke(self, ctx: Any) -> object:  # Typer does not export the class of its contexts
        try:
            return super().invoke(ctx)
        except (typer.TyperException, typer.Exit, typer.Abort, BrokenPipeError):
            raise  # Typer's own: it has the words and codes for them
        except Exception as error:
            if ctx.params.get("debug"):
                raise
            failures = importlib.import_module("kapelle.cli.failures")  # it knows the errors of every layer
            output.error(failures.paragraph(error))
            raise typer.Exit(failures.exit_code(error)) from error


def command_line(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """kapelle with these commands."""
    cli = typer.Typer(
        name="kapelle",
        cls=Commands,
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode=None,  # panels squeeze the options into a third of a terminal
        pretty_exceptions_enable=False,  # they print local variables, and those may hold secrets
    )
    cli.callback(help=HELP)(root)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(importlib.import_module(f"kapelle.cli.commands.{module}"), attribute)
        if isinstance(command, typer.Typer):
            cli.add_typer(command, name=name)
        else:
            cli.command(name)(command)
    return cli


def _version(asked: bool) -> None:
    if asked:
        output.data(f"kapelle {importlib.metadata.version('kapelle')}")
        raise typer.Exit


def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """A workflow orchestrator on Apache Kafka."""
