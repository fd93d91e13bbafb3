"""The law between `permits` and `runs`, checked in the directory of an embedded log that nobody runs."""

from itertools import islice
from typing import Final

from kapelle.processors.agreements import permits_are_those_of_attempts
from kapelle.processors.permits.processor import permits
from kapelle.processors.runs.processor import runs
from kapelle.topology.embedded.layout import Chunks, stored_offset
from kapelle.topology.log import Place
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.verification import BROKEN_MAX, Verdict
from kapelle.topology.tables import ShardState

BOTH: Final = (permits.name, runs.name)


def verify_agreement(history: StoredHistory) -> Verdict:
    """Whether the tables of both say the same. Messages that are on their way leave it open."""
    pending = sum(_pending(history, name) for name in BOTH)
    partitions = history.topology.processor_partitions
    holders = [ShardState(permits, n, history.store).reader for n in range(partitions(permits.name))]
    attempts = [ShardState(runs, n, history.store).reader for n in range(partitions(runs.name))]
    broken = () if pending else tuple(islice(permits_are_those_of_attempts(holders, attempts), BROKEN_MAX))
    skipped = f"{pending} messages are on their way" if pending else ""
    return Verdict(processor=" and ".join(BOTH), partition=0, events=0, rows=0, broken=broken, skipped=skipped)


def _pending(history: StoredHistory, name: str) -> int:
    """How many messages a processor has not decided on."""
    topology, store = history.topology, history.store
    places = [
        Place(topology.topic(stream), n)
        for stream in topology.processors[name].inputs
        for n in range(topology.processor_partitions(name))
    ]
    return sum(max(Chunks(place, store).end() - stored_offset(store, name, place), 0) for place in places)
