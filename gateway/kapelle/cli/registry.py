"""Access to the schema registry that a command names."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kapelle.cli.errors import RegistryMissing, RegistryWrong, SchemasDiffer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kapelle.registry import RegistryClient
    from kapelle.schemas import Framing
    from kapelle.topology.build import Topology


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
