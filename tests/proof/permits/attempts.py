"""What must hold of the attempts in `runs`, and of what both histories say of them once everything is at rest.

1. A leaf step that reaches its gate asks for the permits of all its tags that its partition does not know to be free,
   of its workflow and of its trees: of trees by key with the root last, then of the workflow, then of tags by name.
2. An attempt starts when it has received each of them, in this order, and not before.
3. At rest each attempt that is over has returned all that it had asked for, once. Each other one holds what it has
   received, and waits for the next. Nobody else holds anything, by events and by tables.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from kapelle.processors.keys import tree_key, workflow_limit_key
from kapelle.processors.processor import Processor
from kapelle.processors.wiring import PERMIT_EVENTS, RUN_EVENTS, tag_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import StepStatus
from kapelle.topology.tables import ShardState
from tests.proof.checks import Seen
from tests.proof.permits.histories import Ancestry, Holder, all_of, attempt_of, holder_of
from tests.proof.permits.workload import Work

S = StepStatus
OVER: Final = frozenset(
    {S.SUCCEEDED, S.SKIPPED, S.COMPLETED_WITH_ERROR, S.DISABLED, S.UNSATISFIED, S.STOPPED, S.TIMED_OUT}
    | {S.FATALLY_FAILED, S.INTERNALLY_FAILED, S.USER_FAILED, S.PLATFORM_FAILED, S.TIMEOUT_FAILED}
)
Shards = Iterable[tuple[Processor[Any], int, ShardState[Any]]]
Claim = tuple[str, Holder]  # of an attempt, on what is limited


class Attempt(msgspec.Struct):
    """What the history of `runs` tells of an attempt."""

    needs: tuple[str, ...] = ()
    received: int = 0
    status: StepStatus = S.NOT_CREATED

    @property
    def asked(self) -> tuple[str, ...]:
        return self.needs[: self.received + 1]


class Attempts:
    """All attempts of all runs."""

    def __init__(self, seen: Seen, ancestry: Ancestry, work: Work) -> None:
        self.problems: list[str] = []
        self.found = defaultdict[Holder, Attempt](Attempt)
        self._ancestry = ancestry
        self._work = work
        self._leaves = {leaf.step_id for flow in work.flows.values() for leaf in flow.leaves}
        for rows in seen[RUN_EVENTS.name].values():
            limited = dict[str, bool]()  # what the partition knows
            for key, event in rows:
                match event:
                    case c.LimitLearned():
                        limited[event.limited] = event.is_limited
                    case c.PermitReceived():
                        self._receive(key, event)
                    case c.StepChanged():
                        self._change(key, event, limited)

    def _receive(self, key: str, event: c.PermitReceived) -> None:
        holder = attempt_of(key, event)
        attempt = self.found[holder]
        expected = attempt.needs[attempt.received : attempt.received + 1]
        if attempt.status is not S.WAITING_FOR_PERMITS or expected != (event.limited,):
            self.problems.append(f"{holder} received {event.limited} as {attempt.status}, but waited for {expected}")
        attempt.received += 1
        if event.held != attempt.received:
            self.problems.append(f"{holder} counts {event.held} permits, but received {attempt.received}")

    def _change(self, key: str, event: c.StepChanged, limited: dict[str, bool]) -> None:
        holder = attempt_of(key, event)
        attempt = self.found[holder]
        is_asking = event.statuses[-1] is S.WAITING_FOR_PERMITS
        passes = S.WAITING_FOR_PERMITS in event.statuses and S.INTERNALLY_FAILED not in event.statuses
        if passes and event.step_id in self._leaves:
            needs = self._needs(holder, limited)
            if event.permits != needs:
                self.problems.append(f"{holder} asked for {event.permits}, but needs {needs}")
        if is_asking:
            attempt.needs = event.permits
        if S.STARTING in event.statuses and attempt.received != len(attempt.needs):
            self.problems.append(f"{holder} started with {attempt.received} of {attempt.needs}")
        attempt.status = event.statuses[-1]

    def _needs(self, holder: Holder, limited: dict[str, bool]) -> tuple[str, ...]:
        run = holder.key, holder.run_id
        tags = {tag_key(tag) for tag in self._ancestry.tags(*run, holder.step_id, self._work)}
        root = self._ancestry.root(*run)
        trees = sorted(self._ancestry.trees(*run, self._work), key=lambda tree: (tree == root, tree))
        keys = [tree_key(tree) for tree in trees]
        if self._ancestry.has_step_concurrency(*run):
            keys.append(workflow_limit_key(self._ancestry.home(*run).workflow_id))
        return (*keys, *sorted(key for key in tags if limited.get(key, True)))

    def active(self, *statuses: StepStatus) -> list[tuple[str, str]]:
        """The steps with an attempt that is not over, or is in one of these states, with the keys of instances."""
        return [
            (holder.key, holder.step_id)
            for holder, attempt in self.found.items()
            if (attempt.status in statuses if statuses else attempt.status not in OVER)
        ]

    def claims(self) -> Iterator[tuple[Claim, bool, bool]]:
        """Each permit that an attempt has asked for, whether it received it, and whether the attempt is over."""
        for holder, attempt in self.found.items():
            for number, limited in enumerate(attempt.asked):
                yield (limited, holder), number < attempt.received, attempt.status in OVER


def exchange_violations(seen: Seen, attempts: Attempts) -> Iterator[str]:
    """At rest: what `runs` and `permits` say differently of the same attempts."""
    granted, queued, returned = (_claims_of(seen, kind) for kind in (c.PermitGranted, c.PermitQueued, c.PermitReturned))
    known = set[Claim]()
    for claim, was_received, is_over in attempts.claims():
        known.add(claim)
        asked = granted[claim], queued[claim]
        if max(asked) != 1:
            yield f"{claim} was granted {asked[0]} times and queued {asked[1]} times"
        if returned[claim] != is_over:
            state = "over" if is_over else "not over"
            yield f"{claim} was returned {returned[claim]} times, but its attempt is {state}"
        if (was_received and not granted[claim]) or (granted[claim] and not was_received and not is_over):
            yield f"{claim} was granted {asked[0]} times, but its attempt received it {was_received:d} times"
    for claim in (granted | queued | returned).keys() - known:
        yield f"{claim} is known to permits, but no attempt has asked for it"


def _claims_of(seen: Seen, kind: type[Any]) -> Counter[Claim]:
    events = all_of(seen, PERMIT_EVENTS.name)
    return Counter((limited, holder_of(event.holder)) for limited, event in events if isinstance(event, kind))


def table_claims(shards: Shards) -> tuple[dict[Claim, bool], dict[Claim, bool]]:
    """By the tables of `runs` and by those of `permits`: each claim at rest, and whether the permit is held."""
    of_runs, of_permits = dict[Claim, bool](), dict[Claim, bool]()
    for processor, _, state in shards:
        if processor.name == "runs":
            for (key, step_id), row in state.reader.steps.prefix():
                holder = Holder(key, step_id, row.run_id, row.iteration, row.attempt)
                is_waiting = row.status is S.WAITING_FOR_PERMITS
                for number, limited in enumerate(row.permits[: row.held + is_waiting]):
                    of_runs[limited, holder] = number < row.held
        elif processor.name == "permits":
            for (limited, key, step_id, run_id, iteration, attempt), row in state.reader.permits.prefix():
                of_permits[limited, Holder(key, step_id, run_id, iteration, attempt)] = row.is_held
    return of_runs, of_permits


def table_claim_violations(shards: Shards) -> Iterator[str]:
    """At rest: rows of `permits` without the row of an attempt that says the same, and the other way round."""
    all_shards = list(shards)
    of_runs, of_permits = table_claims(all_shards)
    for claim, is_held in sorted(of_runs.items() ^ of_permits.items()):
        yield f"{claim} (held: {is_held}) is only in the table of {'runs' if claim in of_runs else 'permits'}"
    counts = Counter(limited for (limited, _), is_held in of_permits.items() if is_held)
    for processor, _, state in all_shards:
        if processor.name == "permits":
            for (limited,), row in state.reader.limits.prefix():
                if row.held != counts[limited]:
                    yield f"{limited} counts {row.held} permits, but {counts[limited]} attempts hold one"
