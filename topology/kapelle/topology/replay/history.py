"""The sources of history: a topic, the directory of an embedded log, a file. All give the same records.

    for records in history.read(place, start, end): …

Only what is committed is read, from an offset on, in its order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from kapelle.schemas import Framing
from kapelle.schemas.schema_topic import SchemaRecord
from kapelle.topology.build import Topology
from kapelle.topology.embedded.chunks import decode
from kapelle.topology.embedded.layout import about, refuse_other, topics
from kapelle.topology.embedded.partitions import LogRecord, Partition
from kapelle.topology.log import Place
from kapelle.topology.replay.errors import HistoryIncomplete, NoHistory
from kapelle.topology.tables import Store

READ_MAX: Final = 5_000

Records = Sequence[LogRecord]


class History(Protocol):
    """Recorded events, by the place where they stand."""

    topology: Topology
    framing: Framing | None  # how values are framed where a registry has their schemas

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int]:
        """For each place the offset after its last committed record."""
        ...

    def read(self, place: Place, start: int, end: int) -> Iterator[Records]:
        """The records from `start` (included) to `end` (excluded). Raises `HistoryIncomplete` if the first are gone."""
        ...

    def schemas(self) -> Iterable[SchemaRecord]:
        """The schemas that events were written with, for those that this release does not know."""
        ...

    def close(self) -> None: ...


class StoredHistory:
    """The history of an embedded log, read from its store while nobody runs it."""

    def __init__(
        self, topology: Topology, store: Store, *, where: object = "the store", framing: Framing | None = None
    ) -> None:
        directory = about(store)
        if directory is None:
            raise NoHistory(where)
        refuse_other(topology, directory)
        self.topology = topology
        self.framing = framing
        self.store = store
        self._keeps = {name: keep for name, (_, keep) in topics(topology).items()}

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        return {place: self._partition(place).end for place in places}

    def read(self, place: Place, start: int, end: int) -> Iterator[Records]:
        partition = self._partition(place)
        first = partition.chunks.first(0)
        if first is not None and start == 0:
            begins = first[0] + 1 - len(decode(first[1]))
            if begins > 0:
                raise HistoryIncomplete(place, begins)
        while start < end and (records := partition.read(start, min(end - start, READ_MAX))):
            start = records[-1].offset + 1
            yield [record for record in records if record.offset < end]

    def schemas(self) -> list[SchemaRecord]:
        """None: a directory is written by one release at a time, and each knows those before it."""
        return []

    def close(self) -> None:
        self.store.close()

    def _partition(self, place: Place) -> Partition:
        return Partition(place, self._keeps[place.topic], self.store)


def event_place(topology: Topology, processor: str, partition: int) -> Place:
    """Where the history of a shard stands."""
    return Place(topology.topic(topology.processors[processor].events), partition)
