"""`kapelle schemas`: the contracts of public topics in a schema registry."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from kapelle.cli.errors import SchemasDiffer
from kapelle.cli.options.process import RegistryUrl
from kapelle.cli.options.target import TOPOLOGY, Target, takes_target
from kapelle.cli.registry import asking
from kapelle.cli.text import output

if TYPE_CHECKING:
    from kapelle.registry import Standing

group = typer.Typer(
    name="schemas", help="Check and register the contracts of public topics in a registry.", no_args_is_help=True
)


@group.command()
@takes_target("app", "prefix")
def check(
    *,
    registry: RegistryUrl = None,
    target: Target,
) -> None:
    """Compare the contracts of public topics with all versions in the registry. Nothing is changed.

    The exit code is 4 if a contract is not registered, is not FULL_TRANSITIVE, or would break a reader. The command
    reports what would break.

    \b
    Examples:
      kapelle schemas check --registry http://127.0.0.1:8081
      kapelle schemas check --registry http://127.0.0.1:8081 --prefix staging
    """
    from kapelle.registry import PublicSchemas  # noqa: PLC0415 - httpx is slow to import

    topology = target.topology()
    with asking(registry) as client:
        standings = PublicSchemas(topology).check(client)
    _show(standings)
    _refuse_if_any(standings, "To register the schemas: kapelle schemas apply --registry URL")
    output.say("the registry has the current schemas")


@group.command()
@takes_target("app", "prefix")
def apply(
    *,
    registry: RegistryUrl = None,
    target: Target,
) -> None:
    """Register the contracts of public topics, with the compatibility FULL_TRANSITIVE.

    If a contract would break a reader, nothing is registered and the command exits with code 4. Processors never
    register schemas: run this once for each release, before its processors start. It can be repeated safely.

    \b
    Examples:
      kapelle schemas apply --registry http://127.0.0.1:8081
      kapelle schemas apply --registry http://127.0.0.1:8081 --prefix staging
    """
    from kapelle.registry import PublicSchemas  # noqa: PLC0415 - httpx is slow to import

    topology = target.topology()
    with asking(registry) as client:
        standings = PublicSchemas(topology).apply(client)
    _show(standings)
    _refuse_if_any(standings, "Nothing was registered")
    output.say(f"{output.counted(len(standings), 'subject')} registered")


@group.command()
@takes_target(*TOPOLOGY)
def asyncapi(
    *,
    target: Target,
) -> None:
    """Print the public topics as an AsyncAPI 3 document. This does not connect to Kafka.

    \b
    Examples:
      kapelle schemas asyncapi > asyncapi.yaml
      kapelle schemas asyncapi --prefix staging
    """
    from kapelle.cli.asyncapi import as_yaml, document  # noqa: PLC0415 - slow to import

    output.data(as_yaml(document(target.topology())))


def _show(standings: "Sequence[Standing]") -> None:
    for standing in standings:
        output.data(f"{standing.subject}: {standing.state}" + ("" if standing.id is None else f", id {standing.id}"))
        for problem in standing.problems:
            output.data(f"  {problem}")


def _refuse_if_any(standings: "Sequence[Standing]", hint: str) -> None:
    from kapelle.registry.contracts import State  # noqa: PLC0415 - httpx is slow to import

    if left := [standing for standing in standings if standing.state is not State.REGISTERED]:
        raise SchemasDiffer(
            f"Expected the registry to have the schemas of public topics, but {left[0].subject}: {left[0].state}"
            f"{' and ' + str(len(left) - 1) + ' more' if len(left) > 1 else ''}. {hint}"
        )
