"""The six run strategies: which runs are queued, which runs they end, and how many may run.

| rule | on arrival | when something may run |
|---|---|---|
| SEQUENTIAL | all are queued | the oldest, one at a time |
| PARALLEL | all are queued | the oldest, as many as `workflow_concurrency` |
| STRICT_SEQUENTIAL | all are queued | the oldest, one at a time, and none while a failed one holds it up |
| FIRST_ONLY | the first is queued if nothing is queued or running; the others are stopped | the oldest, one at a time |
| LAST_ONLY | the last is queued, the others, all that are queued and what is running are stopped | as above |
| SERIAL_LATEST_ONLY | the last is queued, the others and all that are queued are stopped | as above |

The oldest is the one of the lowest instance id, then run id: an old instance that is restarted overtakes newer ones.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kapelle.processors.definitions import Rule, RunStrategy
from kapelle.processors.workflows.tables import Counts

LAUNCHES_MAX: Final = 50

# The index of the one arrival that gets in, of so many, if so many are queued or running. ALL and NONE are as they say.
Chosen = int
ALL: Final = -1
NONE: Final = -2
Choose = Callable[[int, int], Chosen]


def _everyone(_arriving: int, _busy: int) -> Chosen:
    return ALL


def _first_if_idle(_arriving: int, busy: int) -> Chosen:
    return NONE if busy else 0


def _last(arriving: int, _busy: int) -> Chosen:
    return arriving - 1


class Strategy(msgspec.Struct, frozen=True):
    """What sets a rule apart."""

    chooses: Choose
    ends_queued: bool = False
    stops_running: bool = False
    waits_for_failed: bool = False


STRATEGIES: Final[Mapping[Rule, Strategy]] = {
    Rule.SEQUENTIAL: Strategy(_everyone),
    Rule.PARALLEL: Strategy(_everyone),
    Rule.STRICT_SEQUENTIAL: Strategy(_everyone, waits_for_failed=True),
    Rule.FIRST_ONLY: Strategy(_first_if_idle),
    Rule.LAST_ONLY: Strategy(_last, ends_queued=True, stops_running=True),
    Rule.SERIAL_LATEST_ONLY: Strategy(_last, ends_queued=True),
}


def launchable(strategy: RunStrategy, counts: Counts) -> int:
    """How many of the queue may be launched now: none while those are ended that others have displaced."""
    if counts.displaced or (STRATEGIES[strategy.rule].waits_for_failed and counts.failed):
        return 0
    return max(0, min(counts.queued, limit_of(strategy) - counts.running))


def limit_of(strategy: RunStrategy) -> int:
    """How many may run at a time: only one, unless in parallel."""
    return strategy.workflow_concurrency if strategy.rule is Rule.PARALLEL else 1


# What must hold for a workflow to be switched to a rule, and how to say that it does not.
Guard = Callable[[Counts], str | None]


def _at_most_one_alive(counts: Counts) -> str | None:
    alive = counts.queued + counts.running
    return f"at most one instance queued or running, but found {alive}" if alive > 1 else None


def _no_failed(counts: Counts) -> str | None:
    return f"no failed instance that blocks it, but found {counts.failed}" if counts.failed else None


# A rule must hold from the switch on, and it cannot undo what the earlier rule has admitted.
GUARDS: Final[Mapping[Rule, Guard]] = {
    Rule.FIRST_ONLY: _at_most_one_alive,
    Rule.LAST_ONLY: _at_most_one_alive,
    Rule.STRICT_SEQUENTIAL: _no_failed,
}


def refusal_of_switch(before: Rule, after: Rule, counts: Counts) -> str | None:
    """Why a workflow cannot be switched to a rule now; None if it can."""
    if before is after or after not in GUARDS:
        return None
    expected = GUARDS[after](counts)
    return None if expected is None else f"Cannot switch from {before} to {after}: expected {expected}"
