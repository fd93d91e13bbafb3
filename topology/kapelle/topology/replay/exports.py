"""History in a file: Avro's object container files, which any Avro tool reads.

The records are events, by shard and in their order; if a recording made the file, the inputs come first, in the order
in which they were consumed (`kapelle.testing.replay`). The metadata says what they are: the topology, the ends, the
schemas of all values, and for each shard the fingerprint of its fold.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import fastavro
import msgspec

from kapelle.schemas import Catalog, Framing
from kapelle.schemas.codec import Confluent
from kapelle.schemas.learner import Learner
from kapelle.schemas.schema_topic import SchemaRecord, to_records
from kapelle.topology.build import Topology
from kapelle.topology.embedded.partitions import LogRecord
from kapelle.topology.log import Place
from kapelle.topology.replay.errors import BadExport
from kapelle.topology.replay.fold import Folding, decoder
from kapelle.topology.replay.history import History, Records, event_place
from kapelle.topology.replay.moments import Moment
from kapelle.topology.tables import MemoryStore, Store

FORMAT: Final = 1
METADATA: Final = "kapelle.export"
SYNC_BYTES: Final = 64 * 1024
READ_MAX: Final = 5_000
# What reading raises where a file is not what it should be.
DAMAGE: Final = (EOFError, IndexError, KeyError, TypeError, ValueError, struct.error, zlib.error)

SCHEMA: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "kapelle.replay.Recorded",
        "doc": "A record of a stream, as it stood in the log.",
        "fields": [
            {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["EVENT", "INPUT"]}},
            {"name": "stream", "type": "string"},
            {"name": "partition", "type": "int"},
            {"name": "offset", "type": "long"},
            {"name": "at_ms", "type": "long"},
            {"name": "key", "type": ["null", "bytes"]},
            {"name": "value", "type": ["null", "bytes"]},
            {
                "name": "headers",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "Header",
                        "fields": [{"name": "name", "type": "string"}, {"name": "value", "type": "bytes"}],
                    },
                },
            },
        ],
    }
)


class ShardFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One shard of an export: where its history ends, and what its fold comes to."""

    processor: str
    stream: str
    partition: int
    end: int
    events: int
    fingerprint: str


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds."""

    format: int = FORMAT
    version: str  # the release that wrote it
    prefix: str
    partitions: int
    shards: list[ShardFacts]
    schemas: dict[str, str]  # by fingerprint, of all values that may be in it
    schema_ids: dict[int, str] = {}  # fingerprints by the ids that a registry gave them
    inputs: int = 0  # recorded inputs, in the order in which they were consumed
    ended_at_ms: int = 0  # the time at which a recording ended


class Input(msgspec.Struct, frozen=True):
    """What came from outside."""

    stream: str
    partition: int
    record: LogRecord


def folded_facts(
    history: History, moment: Moment, store: Store | None = None, tell: Callable[[Folding], None] = lambda _: None
) -> Iterator[ShardFacts]:
    """The facts of every shard, one after the other, at a moment."""
    decode = decoder(history)
    for name, processor in history.topology.processors.items():
        for partition in range(history.topology.processor_partitions(name)):
            fold = Folding(history.topology, (name, partition), decode=decode, store=store or MemoryStore())
            for _ in moment.fold(fold, history, (name, partition)):
                tell(fold)
            fold.settle()
            yield ShardFacts(
                processor=name,
                stream=processor.events.name,
                partition=partition,
                end=fold.position,
                events=fold.events,
                fingerprint=fold.state.fingerprint(),
            )
            fold.wipe()


def about(history: History, shards: Sequence[ShardFacts], version: str) -> About:
    """What a file of this history is to say of itself."""
    catalog = history.topology.catalog()
    if history.framing is not None:
        history.framing.heads(catalog)  # it learns the ids
    known = {key.decode(): schema.decode() for key, schema in to_records(catalog)}
    published = Catalog()
    Learner(published, history.schemas).learn_all()
    schemas = {key.decode(): schema.decode() for key, schema in to_records(published)}
    return About(
        version=version,
        prefix=history.topology.prefix,
        partitions=history.topology.partitions_default,
        shards=list(shards),
        schemas=schemas | known,
        schema_ids={number: f"{fingerprint:016x}" for number, fingerprint in catalog.known_ids().items()},
    )


def write_export(path: Path, history: History, facts: About, inputs: Iterable[Input] = ()) -> int:
    """Write a file. Returns how many events it holds. What is at `path` is replaced when all is written."""
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("wb") as file:
        fastavro.writer(
            file,
            SCHEMA,
            _written(history, facts, inputs),
            codec="deflate",
            sync_interval=SYNC_BYTES,
            metadata={METADATA: msgspec.json.encode(facts).decode()},
        )
    partial.replace(path)
    return sum(shard.events for shard in facts.shards)


def _written(history: History, facts: About, inputs: Iterable[Input]) -> Iterator[dict[str, object]]:
    for each in inputs:
        yield _as_avro("INPUT", each.stream, each.partition, each.record)
    for shard in facts.shards:
        place = event_place(history.topology, shard.processor, shard.partition)
        for records in history.read(place, 0, shard.end):
            for record in records:
                yield _as_avro("EVENT", shard.stream, shard.partition, record)


def _as_avro(kind: str, stream: str, partition: int, record: LogRecord) -> dict[str, object]:
    return {
        "kind": kind,
        "stream": stream,
        "partition": partition,
        "offset": record.offset,
        "at_ms": record.at_ms,
        "key": record.key,
        "value": record.value,
        "headers": [{"name": name, "value": value} for name, value in record.headers or ()],
    }


def read_about(path: Path) -> About:
    """What a file says of itself."""
    with _opened(path) as file:
        return _about(path, file)[0]


class ExportedHistory:
    """The history in a file, read into memory. The topology must have the partitions that the file was made with."""

    def __init__(self, path: Path, topology: Topology) -> None:
        self.path = path
        self.topology = topology
        self.framing: Framing | None = None
        self.inputs: list[Input] = []
        self._records: dict[tuple[str, int], list[LogRecord]] = {}
        with _opened(path) as file:
            self.about, records = _about(path, file)
            self._refuse_other()
            ids = {number: self.about.schemas[fingerprint] for number, fingerprint in self.about.schema_ids.items()}
            self.framing = Confluent(ids) if ids else None
            try:
                for entry in records:
                    self._add(entry)
            except DAMAGE as error:
                raise BadExport(path, f"it is damaged: {error}") from error
        self._refuse_cut()
        self._streams = {topology.topic(p.events): p.events.name for p in topology.processors.values()}

    def ends(self, places: Sequence[Place]) -> Mapping[Place, int]:
        ends = {(shard.stream, shard.partition): shard.end for shard in self.about.shards}
        return {place: ends.get((self._streams[place.topic], place.partition), 0) for place in places}

    def read(self, place: Place, start: int, end: int) -> Iterator[Records]:
        records = self._records.get((self._streams[place.topic], place.partition), [])
        window = [record for record in records if start <= record.offset < end]
        for at in range(0, len(window), READ_MAX):
            yield window[at : at + READ_MAX]

    def schemas(self) -> list[SchemaRecord]:
        return [
            SchemaRecord(key.encode(), schema.encode(), f"schema {key} of the export")
            for key, schema in self.about.schemas.items()
        ]

    def close(self) -> None:
        """Nothing: the file was read whole."""

    def _add(self, entry: dict[str, Any]) -> None:
        headers = tuple((each["name"], each["value"]) for each in entry["headers"])
        record = LogRecord(entry["offset"], entry["at_ms"], entry["key"], entry["value"], headers)
        if entry["kind"] == "INPUT":
            self.inputs.append(Input(entry["stream"], entry["partition"], record))
        else:
            self._records.setdefault((entry["stream"], entry["partition"]), []).append(record)

    def _refuse_other(self) -> None:
        unknown = {shard.processor for shard in self.about.shards} - set(self.topology.processors)
        if unknown:
            raise BadExport(self.path, f"its topology has processors that are not here: {', '.join(sorted(unknown))}")
        for shard in self.about.shards:
            count = self.topology.processor_partitions(shard.processor)
            if shard.partition >= count:
                raise BadExport(self.path, f"it has more partitions of {shard.processor} than the {count} here")

    def _refuse_cut(self) -> None:
        for shard in self.about.shards:
            count = len(self._records.get((shard.stream, shard.partition), []))
            if count != shard.events:
                raise BadExport(
                    self.path,
                    f"it has {count} events of {shard.processor}-{shard.partition} and says that there are "
                    f"{shard.events}",
                )


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise BadExport(path, f"it cannot be read: {error.strerror}") from error


def _about(path: Path, file: BinaryIO) -> tuple[About, Any]:
    try:
        records = fastavro.reader(file)
        text = records.metadata[METADATA]
    except DAMAGE as error:
        raise BadExport(path, "it is not a Kapelle export file") from error
    try:
        facts = msgspec.json.decode(text, type=About)
    except msgspec.MsgspecError as error:
        raise BadExport(path, f"its metadata cannot be read: {error}") from error
    if facts.format != FORMAT:
        raise BadExport(path, f"it is of format {facts.format} and this release reads {FORMAT}")
    return facts, records
