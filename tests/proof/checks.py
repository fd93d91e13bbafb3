"""Checkers: given what was published and what a `read_committed` reader sees, is everything there once, in order?

They return the violations as sentences. An empty list is the proof.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.topology.tables import MemoryStore, ShardState
from tests.proof.contracts import Counted, Hopped, OfferKept, OffersJoined, Pair, Reminded, ReminderSet
from tests.proof.processors import STAGES
from tests.proof.workload import Published, expected_counts, expected_pairs

Seen = Mapping[str, Mapping[int, list[tuple[str, Any]]]]  # stream → partition → (key, value), in order


def violations(published: list[Published], seen: Seen) -> list[str]:
    """All that is missing, doubled or out of order in the outputs."""
    return [
        *_counting(published, seen["counting.events"]),
        *_joining(published, seen["joining.events"], seen["pairs"]),
        *_stages(published, seen),
        *_reminding(published, seen["reminding.events"]),
    ]


def once(what: str, expected: Iterable[Any], found: Iterable[Any]) -> list[str]:
    """Each expected thing exactly once, and nothing else."""
    wanted, got = Counter(expected), Counter(found)
    missing, extra = wanted - got, got - wanted
    return [f"{what}: {_some(missing)} missing"] * bool(missing) + [f"{what}: {_some(extra)} too many"] * bool(extra)


def _some(things: Counter[Any]) -> str:
    shown = ", ".join(str(t) for t in list(things)[:3])
    return f"{things.total()} ({shown}…)"


def _all(partitions: Mapping[int, list[tuple[str, Any]]]) -> list[tuple[str, Any]]:
    return [row for partition in sorted(partitions) for row in partitions[partition]]


def _counting(published: list[Published], events: Mapping[int, list[tuple[str, Any]]]) -> list[str]:
    found = _all(events)
    problems = once("ticks", (v.id for s, _, v in published if s == "ticks"), (e.id for _, e in found))
    counts = defaultdict[str, int](int)
    for key, event in found:
        assert isinstance(event, Counted)
        counts[key] += 1
        if event.count != counts[key]:
            problems.append(f"count of {key}: expected {counts[key]}, found {event.count} at {event.id}")
    if dict(counts) != expected_counts(published):
        problems.append("final counts differ")
    return problems


def _joining(
    published: list[Published],
    events: Mapping[int, list[tuple[str, Any]]],
    pairs: Mapping[int, list[tuple[str, Any]]],
) -> list[str]:
    expected = expected_pairs(published)
    joined = [(k, Pair(e.left_id, e.right_id)) for k, e in _all(events) if isinstance(e, OffersJoined)]
    kept = [e.id for _, e in _all(events) if isinstance(e, OfferKept)]
    finished = [e.right_id if e.left_waited else e.left_id for _, e in _all(events) if isinstance(e, OffersJoined)]
    return [
        *once("pairs", expected, _all(pairs)),
        *once("joins", expected, joined),
        *once("offers", (v.id for s, _, v in published if s == "offers"), kept + finished),
    ]


def _stages(published: list[Published], seen: Seen) -> list[str]:
    sent = [v for s, _, v in published if s == "stage-1"]
    problems: list[str] = []
    for stage in range(1, STAGES + 1):
        found = [e for _, e in _all(seen[f"stage-{stage}.events"])]
        problems += once(f"stage {stage}", ((v.source, v.number) for v in sent), ((e.source, e.number) for e in found))
        for event in found:
            assert isinstance(event, Hopped)
            if event.previous != event.number - 1:
                problems.append(f"stage {stage}: {event.source} saw {event.number} after {event.previous}")
    return problems


def _reminding(published: list[Published], events: Mapping[int, list[tuple[str, Any]]]) -> list[str]:
    wanted = [v.id for s, _, v in published if s == "reminders"]
    found = [e for _, e in _all(events)]
    return [
        *once("reminders set", wanted, (e.id for e in found if isinstance(e, ReminderSet))),
        *once("reminders", wanted, (e.id for e in found if isinstance(e, Reminded))),
    ]


def folded(processor: Processor[Any], partition: int, events: list[tuple[str, Any]]) -> ShardState[Any]:
    """The tables that history alone gives."""
    store = MemoryStore()
    state = ShardState(processor, partition, store)
    for key, event in events:
        processor.appliers[type(event)](Message(key, event, ""), state.writer)
    return state


def table_violations(shards: Iterable[tuple[Processor[Any], int, ShardState[Any]]], seen: Seen) -> list[str]:
    """Shards whose tables are not what their history gives."""
    problems = []
    for processor, partition, state in shards:
        events = seen[processor.events.name].get(partition, [])
        if state.fingerprint() != folded(processor, partition, events).fingerprint():
            problems.append(f"tables of {processor.name}-{partition} are not the fold of its history")
    return problems
