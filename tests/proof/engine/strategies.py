"""Did every run strategy hold at every event? A replay of its own, which shares nothing with the engine but contracts.

It knows of a workflow who is queued, who runs, who was told to stop and who has failed, and looks at each event before
it believes it. A place that stays free while somebody waits for it is a violation too, but within a decision.
"""

from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any, Final

from kapelle.processors.definitions import Rule
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from tests.proof.engine.workload import PARALLEL_MAX, Workload

REPLACING: Final = frozenset({Rule.LAST_ONLY, Rule.SERIAL_LATEST_ONLY})
DROPPING: Final = REPLACING | {Rule.FIRST_ONLY}
ENDS: Final = frozenset({InstanceStatus.SUCCEEDED, InstanceStatus.STOPPED, InstanceStatus.FAILED})


def strategy_violations(work: Workload, workflows: dict[str, list[Any]]) -> list[str]:
    """What is wrong with the histories of the workflows."""
    problems: list[str] = []
    for workflow_id, rule in work.rules.items():
        replay = Replay(workflow_id, rule, work.doomed)
        for event in workflows.get(workflow_id, []):
            replay.see(event)
        replay.end()
        problems += replay.problems
    return problems


def noted_ms(rows: Iterable[tuple[str, Any]]) -> list[int]:
    """The times of events as events tell them: of the partition's own clock, which may be ahead after a kill."""
    return [event.at_ms for _, event in rows]


def overlap_violations(work: Workload, runs: Iterable[tuple[tuple[str, Any], int]]) -> list[str]:
    """Workflows of which more ran at a time than may, by events of `runs` with times that can be compared."""
    moments: dict[str, list[tuple[int, int]]] = {one: [] for one in work.rules}
    for (key, event), at_ms in runs:
        # At the same millisecond an end comes before a beginning.
        if isinstance(event, c.RunStarted | c.RunEnded):
            moments[key.rpartition("/")[0]].append((at_ms, 1 if isinstance(event, c.RunStarted) else -1))
    most = {one: max(accumulate((change for _, change in sorted(found)), initial=0)) for one, found in moments.items()}
    return [
        f"{one}: expected at most {limit_of(work.rules[one])} runs at a time, but found {count}"
        for one, count in most.items()
        if count > limit_of(work.rules[one])
    ]


def limit_of(rule: Rule) -> int:
    """How many may run at a time."""
    return PARALLEL_MAX if rule is Rule.PARALLEL else 1


class Replay:
    """One workflow, event by event."""

    def __init__(self, workflow_id: str, rule: Rule, doomed: frozenset[str]) -> None:
        self.rule = rule
        self.limit = limit_of(rule)
        self.requests: dict[str, int] = {}
        self.queued: list[int] = []
        self.running: set[int] = set()
        self.stopping: set[int] = set()
        self.failed: set[int] = set()
        self.problems: list[str] = []
        self._workflow_id = workflow_id
        self._doomed = doomed
        self._displaced = 0  # arrivals that were stopped for one that is still to come
        self._at_ms = 0
        self._sees: dict[type[Any], Callable[[Any], None]] = {
            c.InstanceCreated: self._created,
            c.StartDuplicated: self._duplicated,
            c.InstanceLaunched: self._launched,
            c.TerminationRequested: self._stop_requested,
            c.InstanceEnded: self._ended,
            c.InstanceUnblocked: lambda event: self.failed.discard(event.instance_id),
            c.CommandRefused: lambda event: self._expect(False, f"no refusal, but found {event.message!r}"),
        }

    def see(self, event: Any) -> None:
        if self._may_launch() and event.at_ms > self._at_ms:
            self._expect(False, f"{self.queued[0]} to be launched at {self._at_ms}, but it was not")
        self._at_ms = event.at_ms
        self._sees.get(type(event), lambda _: None)(event)
        self._expect(len(self.running) <= self.limit, f"at most {self.limit} to run, but found {sorted(self.running)}")

    def end(self) -> None:
        self._expect(not self.queued, f"nothing queued at the end, but found {self.queued}")
        self._expect(not self.running, f"nothing running at the end, but found {sorted(self.running)}")
        self._expect(not self._displaced, "someone to arrive after those who were stopped for it")

    def _may_launch(self) -> bool:
        is_blocked = self.rule is Rule.STRICT_SEQUENTIAL and bool(self.failed)
        return bool(self.queued) and len(self.running) < self.limit and not is_blocked

    def _expect(self, holds: object, text: str) -> None:
        if not holds:
            self.problems.append(f"{self._workflow_id} ({self.rule}): expected {text}")

    def _created(self, event: c.InstanceCreated) -> None:
        number = event.instance_id
        self._expect(
            event.request_id not in self.requests, f"one instance for {event.request_id!r}, found {number} too"
        )
        self._expect(number == len(self.requests) + 1, f"instance {len(self.requests) + 1}, but found {number}")
        self.requests[event.request_id] = number
        if event.status is not InstanceStatus.CREATED:
            self._dropped(event)
            return
        if self.rule is Rule.FIRST_ONLY:
            busy = sorted({*self.queued, *self.running})
            self._expect(not busy, f"{number} to be stopped because of {busy}, but it was queued")
        if self.rule in REPLACING:
            self._expect(not self.queued, f"{self.queued} to be ended before {number} is queued")
        if self.rule is Rule.LAST_ONLY:
            left = self.running - self.stopping
            self._expect(not left, f"{sorted(left)} to be told to stop before {number} is queued")
        self._displaced = 0
        self.queued.append(number)

    def _dropped(self, event: c.InstanceCreated) -> None:
        number = event.instance_id
        self._expect(event.status is InstanceStatus.STOPPED, f"{number} to be queued or stopped, found {event.status}")
        self._expect(self.rule in DROPPING, f"{number} to be queued, but it was stopped on arrival")
        if self.rule is Rule.FIRST_ONLY:
            self._expect(self.queued or self.running, f"{number} to be queued, because nothing runs")
        self._displaced += self.rule in REPLACING

    def _duplicated(self, event: c.StartDuplicated) -> None:
        known = self.requests.get(event.request_id)
        self._expect(known == event.instance_id, f"{event.request_id!r} to be {known}, but found {event.instance_id}")

    def _launched(self, event: c.InstanceLaunched) -> None:
        number = event.instance_id
        self._expect(number in self.queued, f"{number} to be queued when it is launched")
        self._expect(number == min(self.queued, default=0), f"the oldest of {self.queued} to be launched, not {number}")
        blocked = self.failed if self.rule is Rule.STRICT_SEQUENTIAL else set()
        self._expect(not blocked, f"{number} to wait for the failed {sorted(blocked)}")
        self.queued = [one for one in self.queued if one != number]
        self.running.add(number)

    def _stop_requested(self, event: c.TerminationRequested) -> None:
        number = event.instance_id
        self._expect(self.rule is Rule.LAST_ONLY, f"nobody to stop {number}")
        self._expect(number in self.running - self.stopping, f"{number} to run when it is told, once, to stop")
        self.stopping.add(number)

    def _ended(self, event: c.InstanceEnded) -> None:
        number, status = event.instance_id, event.status
        self._expect(status in ENDS, f"{number} to end, but found {status}")
        if event.was_launched:
            self._expect(number in self.running, f"{number} to run when it ends")
            if status is InstanceStatus.STOPPED:
                self._expect(number in self.stopping, f"{number} to be stopped only if told to")
            self.running.discard(number)
        else:
            self._expect(self.rule in REPLACING, f"{number} to stay in the queue")
            self._expect(number in self.queued and status is InstanceStatus.STOPPED, f"{number} to be stopped there")
            self.queued = [one for one in self.queued if one != number]
        if status is InstanceStatus.FAILED:
            by_number = {found: request_id for request_id, found in self.requests.items()}
            self._expect(by_number.get(number) in self._doomed, f"{number} not to fail")
            self.failed.add(number)
