"""How long did anything stand still that had work to do?

An instance has work from its launch to its end, a step from its creation to its last state, and everything that happens
to them is an event: a pause is the time between two of them. Kills that break into a pause make it longer, so what is
held to a limit is how long it lasts after any one of them: a dead worker is missed after its lease, and what a dead
process had is with another after a failover.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from kapelle.schemas import contracts as c
from tests.proof.engine.history import History
from tests.proof.engine.workload import LEASE_S

WAIT_MS_MAX: Final = 10_000
STARTS: Final = 2  # a process of processors and then a worker: what the one gives out, the other must take


def wait_ms_max(session_s: float, start_s: float) -> int:
    """How long a pause may last after a kill: a lease, the session after which a group misses a member, and the time
    that new processes take to come up, which is the machine's affair and is measured on it. A slow start excuses no
    more than `WAIT_MS_MAX`.
    """
    return min(int((LEASE_S + session_s + STARTS * start_s) * 1000), WAIT_MS_MAX)


class Wait(msgspec.Struct, frozen=True, order=True):
    """A pause of an instance or a step, the longest part of it without a kill, and how many kills broke into it."""

    undisturbed_ms: int
    whole_ms: int
    kills: int
    name: str
    from_ms: int


def waits(history: History, kills_ms: Sequence[int]) -> list[Wait]:
    """All pauses, longest first."""
    kills = sorted(kills_ms)
    found = [
        _wait(name, (begin, end), kills)
        for name, times in _times(history).items()
        for begin, end in pairwise(sorted(times))
    ]
    return sorted(found, reverse=True)


def wait_violations(found: Iterable[Wait], limit_ms: int) -> list[str]:
    """The pauses that are too long."""
    return [
        f"{w.name}: expected to go on within {limit_ms} ms, "
        f"but it stood still for {w.undisturbed_ms} ms from {w.from_ms}"
        for w in found
        if w.undisturbed_ms > limit_ms
    ]


def _wait(name: str, pause: tuple[int, int], kills: Sequence[int]) -> Wait:
    begin, end = pause
    inside = kills[bisect_left(kills, begin) : bisect_left(kills, end)]
    parts = [later - sooner for sooner, later in pairwise((begin, *inside, end))]
    return Wait(max(parts), end - begin, len(inside), name, begin)


def _times(history: History) -> dict[str, list[int]]:
    """When something happened to an instance from its launch to its end, and when to each of its steps."""
    found = defaultdict[str, list[int]](list)
    for event in history.of_workflows(c.InstanceLaunched):
        found[f"{event.workflow_id}/{event.instance_id}"].append(event.at_ms)
    for event in history.of_workflows(c.InstanceEnded):
        if event.was_launched:
            found[f"{event.workflow_id}/{event.instance_id}"].append(event.at_ms)
    for (workflow_id, instance_id), events in history.runs.items():
        name = f"{workflow_id}/{instance_id}"
        for event in events:
            if isinstance(event, c.ReportRefused):
                continue  # it moves nothing, and may come long after the end
            found[name].append(event.at_ms)
            if isinstance(event, c.StepChanged | c.LeaseRenewed):
                found[f"{name}/{event.step_id}"].append(event.at_ms)
    return dict(found)
