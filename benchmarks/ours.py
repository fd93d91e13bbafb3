"""Kapelle's side of the benchmarks: how a member is started, what its topics are, what its changelog rows look like.

A member is a program with this command line, and all that the benchmarks know of it:

    python -m tests.proof.member --bootstrap-servers HOST:PORT --prefix P --state-dir DIR
                                 --topology counting|stages [--protocol classic|consumer] [--same-cycle on|off]

`counting` folds `P.ticks` into `P.counting.events` as group `P.counting`, with the changelog `P.counting.changelog`.
`stages` passes `P.stage-1` on through four processors to `P.stage-4.events`. It ends in good order on SIGTERM. Members
with different state directories may run side by side.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.harness import Bench, Place
from benchmarks.routes import COUNTING, Route
from benchmarks.workload import PARTITIONS, Codec, Given, ticks, word
from kapelle.topology.build import partition_of
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.tables.layout import layout
from tests.proof.processors import Count, Counting, topology

SOURCES = 100
FLUSH_EVERY = 100_000
HOP = Codec("Hop")
HOPPED = Codec("Hopped")


def command(
    place: Place, *, protocol: str = "classic", processors: str = "counting", same_cycle: bool = True
) -> list[str]:
    """Start one member."""
    return [
        *(sys.executable, "-m", "tests.proof.member"),
        *place.arguments(),
        *("--topology", processors),
        *("--protocol", protocol),
        *("--same-cycle", "on" if same_cycle else "off"),
    ]


# Routes ---------------------------------------------------------------------------------------------------------------


def _create(processors: str, bootstrap_servers: str, prefix: str) -> None:
    wanted = topology(processors, prefix=prefix, partitions=PARTITIONS)
    Topics(wanted, KafkaSettings(bootstrap_servers=bootstrap_servers)).apply()


@lru_cache(maxsize=16)
def hops(count: int, series: str) -> list[Given]:
    """Numbered commands of a few sources: the four stages must keep their order."""
    found = []
    for index in range(count):
        source, number = f"{series}-{index % SOURCES}", index // SOURCES + 1
        found.append(Given(f"{source}/{number}", source, HOP.encode({"source": source, "number": number}), HOP.type))
    return found


def _hopped(message: Any) -> tuple[str, int]:
    value = HOPPED.decode(message.value())
    return f"{value['source']}/{value['number']}", value["number"] - value["previous"]


def hop_faults(given: Iterable[Given], messages: Iterable[Any]) -> list[str]:
    """Each command once at the end of the four stages, right after the one before it."""
    steps = [_hopped(message) for message in messages]
    expected, seen = {each.id for each in given}, {id for id, _ in steps}  # noqa: A001 - it is the id
    found = {
        "missing": len(expected - seen),
        "unknown": len(seen - expected),
        "doubled": len(steps) - len(seen),
        "out of order": sum(step != 1 for _, step in steps),
    }
    return [f"{number} {kind}" for kind, number in found.items() if number]


TICKS = Route(
    source=COUNTING.source,
    sink=COUNTING.sink,
    group=COUNTING.group,
    create=partial(_create, "counting"),
    records=ticks,
    identify=COUNTING.identify,
    faults=COUNTING.faults,
)
STAGES = Route(
    source="stage-1",
    sink="stage-4.events",
    group="stage-1",
    create=partial(_create, "stages"),
    records=hops,
    identify=lambda message: _hopped(message)[0],
    faults=hop_faults,
)


# Changelogs -----------------------------------------------------------------------------------------------------------


def changelog_rows(keys: int) -> Iterator[tuple[int, bytes, bytes]]:
    """A count of zero for each word, as the runtime writes it: partition, key, value."""
    table = layout(Counting)[0]
    row = table.rows.encode(Count(0))
    for number in range(keys):
        text = word(number)
        yield partition_of(text, PARTITIONS), table.keys.encode(table.prefix, (text,)), row


def fill_changelog(bench: Bench, keys: int) -> None:
    """Write the changelog of a run with this number of words, without the run."""
    settings = {"bootstrap.servers": bench.bootstrap_servers, "compression.type": "lz4", "linger.ms": 20}
    topic = f"{bench.prefix}.counting.changelog"
    with Producer({**settings, "queue.buffering.max.messages": FLUSH_EVERY}) as producer:
        for count, (partition, key, value) in enumerate(changelog_rows(keys)):
            producer.produce(topic, value, key, partition=partition)
            if count % FLUSH_EVERY == 0:
                producer.flush()
        producer.flush()
    # Rows without offsets would be refused: they are committed together.
    places = [TopicPartition(bench.source, partition, 0) for partition in range(PARTITIONS)]
    settings = {"bootstrap.servers": bench.bootstrap_servers, "group.id": bench.group, "enable.auto.commit": False}
    consumer = Consumer(settings)
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()
