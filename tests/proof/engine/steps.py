"""Did every step succeed exactly once, after those before it, by the answer of its own attempt?"""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from tests.proof.engine.history import History, Key
from tests.proof.engine.workload import SUCCESSORS, Workload

PREDECESSORS: Final = {
    step_id: tuple(one for one, after in SUCCESSORS.items() if step_id in after) for step_id in SUCCESSORS
}


def request_violations(work: Workload, history: History) -> list[str]:
    """Requests that have not exactly one instance, and instances that nobody asked for."""
    counts = Counter(event.request_id for event in history.of_workflows(c.InstanceCreated))
    wrong = {one: counts[one] for one in work.requests | counts.keys() if counts[one] != 1 or one not in work.requests}
    return [f"{one}: expected one instance, but found {count}" for one, count in sorted(wrong.items())]


def run_violations(history: History) -> list[str]:
    """What is wrong with the histories of the instances."""
    launched = _counted(history.of_workflows(c.InstanceLaunched))
    ended = {
        (event.workflow_id, event.instance_id): event.status
        for event in history.of_workflows(c.InstanceEnded)
        if event.was_launched
    }
    problems = [f"{_name(key)}: expected one launch, but found {count}" for key, count in launched.items() if count > 1]
    problems += [f"{_name(key)} has run without being launched" for key in history.runs.keys() - launched.keys()]
    for key in launched:
        problems += _of_run(history.runs.get(key, []), ended.get(key), _name(key))
    return problems + task_violations(history)


def _counted(events: Iterable[c.InstanceLaunched]) -> Counter[Key]:
    return Counter((event.workflow_id, event.instance_id) for event in events)


def _name(key: Key) -> str:
    return f"{key[0]}/{key[1]}"


def _of_run(events: list[Any], status: InstanceStatus | None, name: str) -> list[str]:
    problems = []
    starts = sum(isinstance(event, c.RunStarted) for event in events)
    ends = [event for event in events if isinstance(event, c.RunEnded)]
    if starts != 1 or not isinstance(events[0], c.RunStarted):
        problems.append(f"{name}: expected it to begin once, but found {starts} times")
    if [event.status for event in ends] != [status]:
        problems.append(f"{name}: expected it to end as {status}, but found {[event.status for event in ends]}")
    after = events[events.index(ends[0]) + 1 :] if ends else []
    if not all(isinstance(event, c.ReportRefused) for event in after):
        problems.append(f"{name}: expected nothing after its end, but found {after}")
    return problems + _of_steps(events, status, name)


def _of_steps(events: list[Any], status: InstanceStatus | None, name: str) -> list[str]:
    problems = []
    replay = StepReplay(name)
    for event in events:
        if isinstance(event, c.StepChanged):
            replay.see(event)
    for step_id in SUCCESSORS:
        count = replay.succeeded[step_id]
        if count > 1 or (count == 0 and status is InstanceStatus.SUCCEEDED):
            problems.append(f"{name}: expected {step_id!r} to succeed once, but found {count} times")
    return problems + replay.problems


class StepReplay:
    """The steps of one run, change by change."""

    def __init__(self, name: str) -> None:
        self.succeeded = Counter[str]()
        self.problems: list[str] = []
        self._name = name
        self._attempts: dict[str, int] = {}
        self._tokens: dict[str, str | None] = {}

    def see(self, event: c.StepChanged) -> None:
        step_id, before = event.step_id, self._attempts.get(event.step_id, 0)
        if event.attempt not in (before, before + 1):
            self._wrong(f"attempt {before} or {before + 1} of {step_id!r}, but found {event.attempt}")
        if self.succeeded[step_id]:
            self._wrong(f"{step_id!r} to be over, but found {event.statuses}")
        if event.attempt != before:
            self._begin(event)
        self._attempts[step_id] = event.attempt
        if event.token is not None:
            self._tokens[step_id] = event.token
        if StepStatus.SUCCEEDED in event.statuses:
            self._succeed(event)

    def _begin(self, event: c.StepChanged) -> None:
        missing = [one for one in PREDECESSORS[event.step_id] if not self.succeeded[one]]
        if missing:
            self._wrong(f"{event.step_id!r} to wait for {missing}")
        self._tokens[event.step_id] = None

    def _succeed(self, event: c.StepChanged) -> None:
        self.succeeded[event.step_id] += event.statuses.count(StepStatus.SUCCEEDED)
        by = json.loads(event.params or "{}").get("by")
        token = self._tokens[event.step_id]
        if by != token:
            self._wrong(f"the answer of attempt {event.attempt} of {event.step_id!r} ({token}), but found {by}")

    def _wrong(self, text: str) -> None:
        self.problems.append(f"{self._name}: expected {text}")


def task_violations(history: History) -> list[str]:
    """Attempts without exactly one task, and tasks without an attempt."""
    noted = Counter(
        (event.token, key[0], key[1], event.step_id, event.attempt)
        for key, events in history.runs.items()
        for event in events
        if isinstance(event, c.StepChanged) and event.token is not None
    )
    given = Counter((t.token, t.workflow_id, t.instance_id, t.step_id, t.attempt) for t in history.tasks)
    wrong = {one for one in noted | given if (noted[one], given[one]) != (1, 1)}
    problems = [f"{one}: expected one task, but found {given[one]} for {noted[one]} attempts" for one in sorted(wrong)]
    doubled = [token for token, count in Counter(task.token for task in history.tasks).items() if count > 1]
    return problems + [f"expected tokens to differ, but found {token} in several tasks" for token in doubled]
