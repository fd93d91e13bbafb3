"""The interface between the runtime and a log.

Three logs speak this: Kafka (`kafka/`), the embedded one (`embedded/`) and the simulated one of the test kit. The
member (`member.py`) holds the protocol; a log only carries it out, so what is proven in simulation is what runs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from kapelle.schemas.schema_topic import SchemaRecord

Headers = Sequence[tuple[str, bytes]]

KEY_BYTES_MAX = 32 * 1024  # outputs, ids and letters repeat a key, and each must still fit where its value fits


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Record(msgspec.Struct, frozen=True, gc=False):
    """A record as it was read."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None = None


class Run(NamedTuple):
    """Records that follow each other in one place, read for one processor."""

    processor: str
    place: Place
    records: list[Record]


class Taken(NamedTuple):
    """What one look at the log brought: runs of records, and the ends that were reached.

    An end is told as (processor, place, offset): all that stood before the offset has been taken, transaction markers
    included, which a record's own offset cannot tell.
    """

    runs: list[Run]
    ends: list[tuple[str, Place, int]]


Out = tuple[Place, bytes, bytes, Headers]  # what is sent: where to, key, value, headers


class Row(NamedTuple):
    """A changelog record."""

    offset: int
    key: bytes
    value: bytes | None


class Cause(StrEnum):
    """How input can vanish before it is read."""

    DELETED = "deleted"  # retention or an operator deleted records that had not been read
    REPLACED = "replaced"  # the topic was deleted and created again
    SHORTENED = "shortened"  # the topic ends before what was read: the brokers have lost its end


class Loss(msgspec.Struct, frozen=True):
    """Input that vanished below its reader.

    The offsets from `first` to before `end` are lost. Nobody knows how far a topic reached that was replaced: `end` is
    None then; and `first` is too where its offset went with it. `start` is where reading can go on.
    """

    place: Place
    cause: Cause
    first: int | None
    end: int | None
    start: int
    topic_id: str = ""  # of the topic as it is now

    @property
    def count(self) -> int | None:
        """How many offsets were lost. Records are at most as many: the marks of transactions have offsets too."""
        return None if self.end is None or self.first is None else self.end - self.first

    def __str__(self) -> str:
        match self.cause:
            case Cause.DELETED:
                span = f"offset {self.first}" if self.count == 1 else f"offsets {self.first} to {self.start - 1}"
                return f"{self.place}: {span} ({self.count} in all) were deleted before they were read"
            case Cause.REPLACED:
                unread = "and was not read" if self.first is None else f"from offset {self.first} on"
                return (
                    f"{self.place}: the topic was deleted and created again (its id is now {self.topic_id}); what the "
                    f"old one held {unread} is lost, and the new one is to be read from offset {self.start}"
                )
            case Cause.SHORTENED:
                return (
                    f"{self.place}: it was read up to offset {self.end}, but it ends at {self.first}: "
                    f"the brokers have lost {self.count} offsets"
                )


class Listener(Protocol):
    """Who is told of partitions coming and going. Called from within `Log.take`, never during a transaction."""

    def assigned(self, processor: str, partitions: Iterable[int]) -> None: ...

    def revoked(self, processor: str, partitions: Iterable[int]) -> None: ...


class Log(Protocol):
    """A partitioned log with transactions, as one process sees it."""

    def join(self, listener: Listener) -> None:
        """Ask for partitions of every hosted processor. Reading a partition waits for `start`."""
        ...

    def take(self, records_max: int, wait_s: float) -> Taken:
        """What is there now, of every processor; waits only while there is nothing."""
        ...

    def start(self, processor: str, offsets: Mapping[Place, int]) -> None:
        """Read these places from these offsets on."""
        ...

    def committed(self, processor: str, places: Sequence[Place]) -> dict[Place, int]:
        """The next offsets to read, once no open transaction can change them."""
        ...

    def losses(self, processor: str, places: Sequence[Place]) -> Sequence[Loss]:
        """Input that vanished before this processor read it, by what `committed` has just told of these places."""
        ...

    def uncommitted(self, processor: str, places: Sequence[Place]) -> Collection[Place]:
        """Those of these places that nobody has committed an offset of, by what `committed` has just told."""
        ...

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        """The ends of the places now, open transactions included."""
        ...

    def identity(self, topic: str) -> str:
        """What tells this topic from another of the same name that was made after it was deleted."""
        ...

    def schemas(self) -> Iterable[SchemaRecord]:
        """The schemas that others have published, for one that we do not know."""
        ...

    # Reading changelogs -------------------------------------------------------------------------------------------

    def watch(self, changelogs: Mapping[Place, int]) -> None:
        """Read these changelogs, from these offsets, and no others."""
        ...

    def rows(self, rows_max: int, wait_s: float) -> tuple[dict[Place, list[Row]], dict[Place, int]]:
        """Committed rows of the watched changelogs, and how far each has been read, markers included."""
        ...

    def free(self, processor: str, places: Sequence[Place]) -> None:
        """End what the last owners of these places may have left open. It costs a live owner one new producer."""
        ...

    # The transaction ----------------------------------------------------------------------------------------------

    def begin(self) -> None: ...

    def send(self, outs: Sequence[Out]) -> None: ...

    def send_rows(self, place: Place, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Changelog rows, at least one. Their last offset is known after the commit, from `row_end`."""
        ...

    def send_offsets(self, processor: str, offsets: Mapping[Place, int]) -> None:
        """Put the offsets into the transaction, as the present member of the processor's group. Fences a zombie."""
        ...

    def commit(self) -> None:
        """Make everything sent visible, all or nothing."""
        ...

    def row_end(self, place: Place) -> int:
        """One past the last changelog row of the committed transaction."""
        ...

    def abort(self) -> None: ...

    def renew(self) -> None:
        """A new producer for a lost one. What became of the old one's transaction is settled when it returns."""
        ...

    def leave(self) -> None:
        """Give up all partitions and close."""
        ...
