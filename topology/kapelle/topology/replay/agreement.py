"""The laws between processors, checked in the directory of an embedded log that nobody runs."""

from collections.abc import Collection, Iterator
from itertools import islice

from kapelle.processors.agreements import AGREEMENTS, broken_between
from kapelle.processors.tables import Tables
from kapelle.topology.embedded.layout import Chunks, stored_offset
from kapelle.topology.log import Place
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.verification import BROKEN_MAX, Verdict
from kapelle.topology.tables import ShardState


def verify_agreements(history: StoredHistory, names: Collection[str]) -> Iterator[Verdict]:
    """A verdict for each law whose processors are all among these. Messages that are on their way leave it open."""
    for agreement in AGREEMENTS:
        both = (agreement.first, agreement.second)
        if not set(both) <= set(names):
            continue
        pending = sum(_pending(history, name) for name in both)
        broken = () if pending else tuple(islice(broken_between(agreement, _tables(history, both)), BROKEN_MAX))
        yield Verdict(
            processor=" and ".join(both),
            partition=0,
            events=0,
            rows=0,
            broken=broken,
            skipped=f"{pending} messages are on their way" if pending else "",
        )


def _tables(history: StoredHistory, names: Collection[str]) -> dict[str, list[Tables]]:
    processors = history.topology.processors
    return {
        name: [
            ShardState(processors[name], n, history.store).reader
            for n in range(history.topology.processor_partitions(name))
        ]
        for name in names
    }


def _pending(history: StoredHistory, name: str) -> int:
    """How many messages a processor has not decided on."""
    topology = history.topology
    places = [
        Place(topology.topic(stream), n)
        for stream in topology.processors[name].inputs
        for n in range(topology.processor_partitions(name))
    ]
    return sum(
        max(Chunks(place, history.store).end() - stored_offset(history.store, name, place), 0) for place in places
    )
