"""A topology: which processors there are and how streams join them, checked once, readable on one page.

    topology = Topology([counting, joining], partitions=12)

Everything that depends on the topology alone is worked out here: topic names, who reads what, which streams are
commands between processors (those may be delivered within one cycle), and that co-partitioned inputs really are.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from confluent_kafka import murmur2

from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.schemas import Catalog
from kapelle.schemas.contracts import DeadLetter
from kapelle.topology.errors import BadTopology

PARTITIONS = 12
PARTITIONS_MAX = 10_000
KEYS_CACHED = 65_536

DEAD_LETTERS = Stream("dead-letters", (DeadLetter,), Keep.FOR_EVER, partitions=1, public=True)
SCHEMAS = "schemas"

_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")


@lru_cache(maxsize=KEYS_CACHED)
def partition_of(key: str, partitions: int) -> int:
    """The partition that Java's default partitioner, Connect and ksqlDB give this key."""
    return int(murmur2(key.encode(), partitions))


AnyProcessor = Processor[Any]  # whatever its tables are


class Topic(msgspec.Struct, frozen=True):
    """A topic that the topology needs."""

    name: str
    partitions: int
    keep: Keep


class Topology:
    """Processors and the streams between them."""

    def __init__(
        self, processors: Iterable[AnyProcessor], *, prefix: str = "kapelle", partitions: int = PARTITIONS
    ) -> None:
        self.processors = {p.name: p for p in _checked(processors)}
        self.prefix = prefix
        self.partitions_default = partitions
        self.streams = _streams(self.processors.values())
        self.readers = {
            name: tuple(p.name for p in self.processors.values() if any(s.name == name for s in p.inputs))
            for name in self.streams
        }
        self.writers = {
            name: tuple(p.name for p in self.processors.values() if any(s.name == name for s in _written(p)))
            for name in self.streams
        }
        self._check_names()
        self._check_partitions()
        self._check_writers()
        self._check_topics()

    def topic(self, stream: Stream) -> str:
        return f"{self.prefix}.{stream.name}"

    def group(self, processor: str) -> str:
        return f"{self.prefix}.{processor}"

    def changelog(self, processor: str) -> str:
        return f"{self.prefix}.{processor}.changelog"

    @property
    def dead_letters(self) -> str:
        return self.topic(DEAD_LETTERS)

    @property
    def schemas(self) -> str:
        return f"{self.prefix}.{SCHEMAS}"

    def partitions(self, stream: Stream) -> int:
        return self.partitions_default if stream.partitions is None else stream.partitions

    def processor_partitions(self, processor: str) -> int:
        """How many partitions a processor has: those of its inputs, which agree."""
        return self.partitions(self.processors[processor].inputs[0])

    def commands(self) -> dict[str, str]:
        """The streams that one processor of this topology reads and another writes, with their one reader.

        Only these may be delivered without their topic, because nobody else can be waiting for them there.
        """
        return {
            name: self.readers[name][0]
            for name, stream in self.streams.items()
            if len(self.readers[name]) == 1 and self.writers[name] and stream.keep is Keep.A_WEEK
        }

    def topics(self) -> list[Topic]:
        """Every topic that this topology needs, in a readable order."""
        topics = [Topic(self.topic(s), self.partitions(s), s.keep) for s in self.streams.values() if s != DEAD_LETTERS]
        topics += [Topic(self.changelog(p), self.processor_partitions(p), Keep.LATEST) for p in self.processors]
        topics.append(Topic(self.dead_letters, 1, DEAD_LETTERS.keep))
        topics.append(Topic(self.schemas, 1, Keep.LATEST))
        return topics

    def catalog(self) -> Catalog:
        """Every contract that travels on the streams, and our own."""
        contracts = {c for s in self.streams.values() for c in s.ours}
        contracts |= set(DEAD_LETTERS.ours)
        return Catalog.of(*sorted(contracts, key=lambda c: c.__name__))

    def _check_names(self) -> None:
        for name in (self.prefix, *self.processors, *self.streams):
            if not _NAME.fullmatch(name):
                raise BadTopology(
                    f"Expected a name of lower-case letters, digits, dots and dashes, at most 100, but found {name!r}"
                )

    def _check_partitions(self) -> None:
        for processor in self.processors.values():
            counts = {s.name: self.partitions(s) for s in (*processor.inputs, processor.events)}
            if len(set(counts.values())) > 1:
                listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
                raise BadTopology(
                    f"Expected the inputs and events of {processor.name!r} to be co-partitioned, but {listed}"
                )
        for name, stream in self.streams.items():
            if not 1 <= self.partitions(stream) <= PARTITIONS_MAX:
                raise BadTopology(f"Expected 1 to {PARTITIONS_MAX} partitions for {name!r}, found {stream.partitions}")

    def _check_writers(self) -> None:
        for processor in self.processors.values():
            others = set(self.writers[processor.events.name]) - {processor.name}
            if others:
                raise BadTopology(
                    f"Expected {processor.name!r} to be the only writer of its history {processor.events.name!r}, "
                    f"but {', '.join(sorted(others))} write to it too"
                )

    def _check_topics(self) -> None:
        names = [t.name for t in self.topics()]
        for name in sorted({n for n in names if names.count(n) > 1}):
            raise BadTopology(f"Expected {name!r} to be one topic, but a stream has a name reserved for Kapelle")


def _checked(processors: Iterable[AnyProcessor]) -> Sequence[AnyProcessor]:
    checked = tuple(processors)
    names = [p.name for p in checked]
    if len(set(names)) != len(names):
        raise BadTopology(f"Expected each processor once, but found {', '.join(sorted(names))}")
    for processor in checked:
        processor.check()
        inputs = [s.name for s in processor.inputs]
        for name in sorted({n for n in inputs if inputs.count(n) > 1}):
            raise BadTopology(f"Expected {processor.name!r} to read {name!r} once, but it is among its inputs twice")
    return checked


def _written(processor: AnyProcessor) -> tuple[Stream, ...]:
    return (processor.events, *processor.outputs)


def _streams(processors: Iterable[AnyProcessor]) -> dict[str, Stream]:
    streams: dict[str, Stream] = {}
    for processor in processors:
        for stream in (*processor.inputs, *_written(processor)):
            known = streams.setdefault(stream.name, stream)
            if known != stream:
                raise BadTopology(f"Expected one declaration of stream {stream.name!r}, but found two that differ")
    return streams
