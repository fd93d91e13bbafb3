"""All that must hold of what came out, as one list of violations. An empty one is the proof."""

import json
from collections import Counter, defaultdict
from typing import Any, TypeVar

from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_EVENTS, SIGNAL_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from tests.proof.checks import Seen
from tests.proof.signals.workload import Work

E = TypeVar("E")
DEAD_LETTERS = "dead-letters"
Start = tuple[str, tuple[tuple[str, str], ...]]


def told(seen: Seen, stream: Stream, contract: type[E]) -> list[E]:
    """The events of a type."""
    rows = [event for found in seen.get(stream.name, {}).values() for _, event in found]
    return [event for event in rows if isinstance(event, contract)]


def started(seen: Seen) -> list[Start]:
    """The instances, each by the ids of its signals."""
    ids = {(one.name, one.sequence): one.signal_id for one in told(seen, SIGNAL_EVENTS, c.SignalAccepted)}
    found = []
    for event in told(seen, WORKFLOW_EVENTS, c.InstanceCreated):
        used: dict[str, int] = json.loads(event.initiator)["signal_id_map"]
        found.append((event.workflow_id, tuple(sorted((name, ids[name, number]) for name, number in used.items()))))
    return found


def signal_violations(work: Work, seen: Seen) -> list[str]:
    """What is missing, doubled, out of order or put aside."""
    found, expected = Counter(started(seen)), Counter(work.starts)
    ended = told(seen, RUN_EVENTS, c.RunEnded)
    letters: list[Any] = [letter for rows in seen.get(DEAD_LETTERS, {}).values() for _, letter in rows]
    return [
        *(f"lost: expected {start} to be started, but it was not" for start in expected - found),
        *(f"doubled or wrong: expected no such start as {start}" for start in found - expected),
        *_verdict_violations(work, seen),
        *(f"expected {one.workflow_id}/{one.instance_id} to succeed" for one in ended if one.status is not SUCCEEDED),
        *([f"expected {found.total()} instances to end, but {len(ended)} did"] if found.total() != len(ended) else []),
        *(f"expected no dead letters, but found {letter}" for letter in letters),
    ]


SUCCEEDED = InstanceStatus.SUCCEEDED


def _verdict_violations(work: Work, seen: Seen) -> list[str]:
    """Each id is accepted once, each repetition is told, and the numbers of a name have no gaps."""
    accepted = told(seen, SIGNAL_EVENTS, c.SignalAccepted)
    repeated = told(seen, SIGNAL_EVENTS, c.SignalDuplicated)
    late = told(seen, SIGNAL_EVENTS, c.SignalTooLate)
    times = Counter((one.name, one.signal_id) for one in accepted)
    numbers = defaultdict[str, list[int]](list)
    for one in accepted:
        numbers[one.name].append(one.sequence)
    problems = [
        f"expected {signal} to be accepted once, but it was {count} times"
        for signal, count in times.items()
        if count > 1
    ]
    problems += [f"expected {name} to be numbered without gaps" for name, n in numbers.items() if n != _from_one(n)]
    problems += [f"expected {one.signal_id} to be in time" for one in late]
    if len(times) != work.unique:
        problems.append(f"expected {work.unique} signals to be accepted, but {len(times)} were")
    if len(accepted) + len(repeated) != len(work.announced):
        problems.append(f"expected {len(work.announced)} verdicts, but found {len(accepted) + len(repeated)}")
    return problems


def _from_one(numbers: list[int]) -> list[int]:
    return list(range(1, len(numbers) + 1))


def unfinished(work: Work, seen: Seen) -> dict[str, int]:
    """How much is left to do."""
    verdicts = (c.SignalAccepted, c.SignalDuplicated, c.SignalTooLate)
    created = len(told(seen, WORKFLOW_EVENTS, c.InstanceCreated))
    return {
        "announcements": len(work.announced) - sum(len(told(seen, SIGNAL_EVENTS, kind)) for kind in verdicts),
        "starts": max(len(work.starts) - created, 0),
        "runs": created - len(told(seen, RUN_EVENTS, c.RunEnded)),
    }


def counts_of(work: Work, seen: Seen) -> dict[str, int]:
    """What happened, in figures."""
    found, expected = Counter(started(seen)), Counter(work.starts)
    kinds = Counter(workflow_id.partition("-")[0] for workflow_id, _ in found.elements())
    return {
        "announcements": len(work.announced),
        "signals": len(told(seen, SIGNAL_EVENTS, c.SignalAccepted)),
        "repetitions": len(told(seen, SIGNAL_EVENTS, c.SignalDuplicated)),
        **{f"starts by {kind} triggers": count for kind, count in sorted(kinds.items())},
        "starts": found.total(),
        "starts known as duplicates": len(told(seen, WORKFLOW_EVENTS, c.StartDuplicated)),
        "lost": (expected - found).total(),
        "doubled": (found - expected).total(),
    }
