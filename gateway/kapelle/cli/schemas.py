"""`kapelle schemas`: the contracts of public topics in a schema registry."""

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from kapelle.cli import output
from kapelle.cli.errors import RegistryMissing, RegistryWrong, SchemasDiffer
from kapelle.cli.loading import DEFAULT_APP
from kapelle.cli.options import App, Partitions, Prefix, Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kapelle.registry import RegistryClient, Standing
    from kapelle.schemas import Framing
    from kapelle.topology.build import Topology

group = typer.Typer(
    name="schemas", help="Check and register the contracts of public topics in a registry.", no_args_is_help=True
)

Url = Annotated[
    str | None,
    typer.Option(
        "--registry",
        metavar="URL",
        envvar="KAPELLE_REGISTRY",
        help="The schema registry. User and password are taken from KAPELLE_REGISTRY_AUTH.",
    ),
]


@group.command()
def check(*, registry: Url = None, app: App = DEFAULT_APP, prefix: Prefix = None) -> None:
    """Compare the contracts of public topics with every version in the registry. Changes nothing.

    Ends with code 4 if one is not registered, is free to change (not FULL_TRANSITIVE), or would break a reader: then it
    is said what breaks.

    \b
    Examples:
      kapelle schemas check --registry http://127.0.0.1:8081
      kapelle schemas check --registry http://127.0.0.1:8081 --prefix staging
    """
    from kapelle.registry import PublicSchemas  # noqa: PLC0415 - httpx is slow to import

    topology = Target(app=app, prefix=prefix).topology()
    with asking(registry) as client:
        found = PublicSchemas(topology).check(client)
    _show(found)
    _refuse_if_any(found, "To mend what can be mended: kapelle schemas apply --registry URL")
    output.say("the registry has the schemas as they are")


@group.command()
def apply(*, registry: Url = None, app: App = DEFAULT_APP, prefix: Prefix = None) -> None:
    """Register the contracts of public topics, for changes that no reader notices (FULL_TRANSITIVE).

    If one would break a reader, nothing is registered, and the command ends with code 4. Processors never register
    anything: this is done once for a release, before it runs. Doing it again does no harm.

    \b
    Examples:
      kapelle schemas apply --registry http://127.0.0.1:8081
      kapelle schemas apply --registry http://127.0.0.1:8081 --prefix staging
    """
    from kapelle.registry import PublicSchemas  # noqa: PLC0415 - httpx is slow to import

    topology = Target(app=app, prefix=prefix).topology()
    with asking(registry) as client:
        found = PublicSchemas(topology).apply(client)
    _show(found)
    _refuse_if_any(found, "Nothing was registered")
    output.say(f"{output.counted(len(found), 'subject')} registered")


@group.command()
def asyncapi(*, app: App = DEFAULT_APP, prefix: Prefix = None, partitions: Partitions = None) -> None:
    """Show the public topics as an AsyncAPI 3 document. Nothing is asked of Kafka.

    \b
    Examples:
      kapelle schemas asyncapi > asyncapi.yaml
      kapelle schemas asyncapi --prefix staging
    """
    from kapelle.cli.asyncapi import as_yaml, document  # noqa: PLC0415 - slow to import

    output.data(as_yaml(document(Target(app=app, prefix=prefix, partitions=partitions).topology())))


def framing(topology: "Topology", registry: str | None) -> "Framing | None":
    """How a process writes values: by the ids of a registry, if one is named."""
    if registry is None:
        return None
    from kapelle.registry import PublicSchemas  # noqa: PLC0415 - httpx is slow to import

    with asking(registry) as client:
        return PublicSchemas(topology).framing(client)


@contextmanager
def asking(registry: str | None) -> "Iterator[RegistryClient]":
    """A registry to ask. What it does not answer, or refuses, ends the command with its own code."""
    from kapelle.registry import RegistryClient  # noqa: PLC0415 - httpx is slow to import
    from kapelle.sources.errors import RegistryAway, RegistryRefused  # noqa: PLC0415 - and so are the processors

    if not registry:
        raise RegistryMissing("Expected the address of a registry, with --registry or in KAPELLE_REGISTRY")
    try:
        with RegistryClient(registry) as client:
            yield client
    except RegistryRefused as error:
        raise SchemasDiffer(str(error)) from error
    except RegistryAway as error:
        raise RegistryWrong(str(error)) from error


def _show(found: "Sequence[Standing]") -> None:
    for one in found:
        output.data(f"{one.subject}: {one.state}" + ("" if one.id is None else f", id {one.id}"))
        for problem in one.problems:
            output.data(f"  {problem}")


def _refuse_if_any(found: "Sequence[Standing]", hint: str) -> None:
    from kapelle.registry.contracts import State  # noqa: PLC0415 - httpx is slow to import

    if left := [one for one in found if one.state is not State.REGISTERED]:
        raise SchemasDiffer(
            f"Expected the registry to have the schemas of public topics, but {left[0].subject}: {left[0].state}"
            f"{' and ' + str(len(left) - 1) + ' more' if len(left) > 1 else ''}. {hint}"
        )
