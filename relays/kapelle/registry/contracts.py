"""The schemas of public topics in a registry: how they stand there, registering them, and writing by their ids."""

from enum import StrEnum
from typing import Final

import msgspec

from kapelle.processors.streams import Stream
from kapelle.registry.client import RegistryClient
from kapelle.registry.subjects import Level
from kapelle.schemas.codec import ByRegistry
from kapelle.schemas.compatibility import compatible
from kapelle.schemas.contract import Contract
from kapelle.sources.errors import RegistryRefused
from kapelle.topology.build import DEAD_LETTERS, Topology

LEVEL: Final = Level.FULL_TRANSITIVE  # whoever reads public topics may be older or newer than what is written there


class State(StrEnum):
    """How a subject stands to the contract of its topic."""

    REGISTERED = "registered"
    LOOSE = "registered, but free to change so that readers notice"
    NEW = "not registered"
    NEWER = "an earlier version is registered"
    BREAKS = "breaks earlier versions"


class Standing(msgspec.Struct, frozen=True):
    """One subject: its state, the id of its schema if it has one, and what breaks."""

    subject: str
    state: State
    id: int | None = None
    problems: tuple[str, ...] = ()


class PublicSchemas:
    """The contracts of a topology's public topics, one for each, by their subjects (`topic-value`)."""

    def __init__(self, topology: Topology) -> None:
        self.subjects: dict[str, type[Contract]] = {
            f"{topology.topic(stream)}-value": stream.ours[0] for stream in public_streams(topology)
        }

    def check(self, registry: RegistryClient) -> list[Standing]:
        """How every subject stands. Changes nothing."""
        return [self._standing(registry, subject, contract) for subject, contract in self.subjects.items()]

    def apply(self, registry: RegistryClient) -> list[Standing]:
        """Register what is not. Nothing is, if anything would break a reader."""
        standings = self.check(registry)
        if any(standing.state is State.BREAKS for standing in standings):
            return standings
        for standing in standings:
            if standing.state is not State.REGISTERED:
                registry.set_level(standing.subject, LEVEL)
                registry.register(standing.subject, self.subjects[standing.subject].SCHEMA)
        return self.check(registry)

    def framing(self, registry: RegistryClient) -> ByRegistry:
        """How records of public topics are written by the ids of their schemas, and read by those of all versions.

        Nothing is registered for that.
        """
        ids: dict[type[Contract], int] = {}
        earlier: dict[int, str] = {}
        for subject, contract in self.subjects.items():
            schema_id = registry.id_of(subject, contract.SCHEMA)
            if schema_id is None:
                raise RegistryRefused(
                    f"Expected the schema of {subject} in the registry, but it does not exist. "
                    "To register it: kapelle schemas apply --registry URL"
                )
            ids[contract] = schema_id
            earlier |= {version.id: version.schema for version in registry.versions(subject)}
        return ByRegistry(ids, earlier)

    def _standing(self, registry: RegistryClient, subject: str, contract: type[Contract]) -> Standing:
        versions = registry.versions(subject)
        problems = tuple(
            f"version {version.version}: {problem}"
            for version in versions
            for problem in compatible(version.schema, contract.SCHEMA)
        )
        if problems:
            return Standing(subject, State.BREAKS, problems=problems)
        schema_id = registry.id_of(subject, contract.SCHEMA) if versions else None
        if schema_id is not None:
            return Standing(subject, State.REGISTERED if registry.level(subject) == LEVEL else State.LOOSE, schema_id)
        return Standing(subject, State.NEWER if versions else State.NEW)


def public_streams(topology: Topology) -> list[Stream]:
    """The public streams of one type, those of the runtime itself left out: their records are for our own tools."""
    public = [stream for stream in topology.streams.values() if stream.public and stream.name != DEAD_LETTERS.name]
    return [stream for stream in public if len(stream.contracts) == 1]
