"""An engine that is watched: after every command, all that must always be true of runs is looked at."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from kapelle.processors.processor import Processor
from kapelle.processors.runs import context
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, Report, StepStatus
from kapelle.testing.engine import Engine, RunHandle
from kapelle.topology.tables import ShardState
from tests.proof.checks import table_violations

S = StepStatus

OVER: Final = frozenset(
    {
        S.UNSATISFIED,
        S.SKIPPED,
        S.SUCCEEDED,
        S.COMPLETED_WITH_ERROR,
        S.USER_FAILED,
        S.PLATFORM_FAILED,
        S.TIMEOUT_FAILED,
        S.FATALLY_FAILED,
        S.INTERNALLY_FAILED,
        S.STOPPED,
        S.TIMED_OUT,
    }
)
WAITING_AGAIN: Final = frozenset({S.USER_FAILED, S.PLATFORM_FAILED, S.TIMEOUT_FAILED})
FAILED: Final = WAITING_AGAIN | {S.FATALLY_FAILED, S.INTERNALLY_FAILED}
ENDED: Final = frozenset(
    {InstanceStatus.SUCCEEDED, InstanceStatus.FAILED, InstanceStatus.STOPPED, InstanceStatus.TIMED_OUT}
)
BY_PEOPLE: Final = frozenset({S.STOPPED, S.SKIPPED, S.FATALLY_FAILED, S.COMPLETED_WITH_ERROR, S.TIMED_OUT})
ENDS_OF_WORK: Final = OVER - {S.UNSATISFIED, S.SUCCEEDED}
# What may come directly after what, within one attempt. People and time may end whatever is not over.
NEXT: Final[Mapping[StepStatus | None, frozenset[StepStatus] | set[StepStatus]]] = {
    None: {S.CREATED},
    S.CREATED: {S.INITIALIZED, S.UNSATISFIED, S.SKIPPED, S.INTERNALLY_FAILED} | BY_PEOPLE,
    S.INITIALIZED: {S.WAITING_FOR_SIGNALS},
    S.WAITING_FOR_SIGNALS: {S.EVALUATING_PARAMS},
    S.EVALUATING_PARAMS: {S.WAITING_FOR_PERMITS, S.INTERNALLY_FAILED},
    S.WAITING_FOR_PERMITS: {S.STARTING},
    S.STARTING: {S.RUNNING} | ENDS_OF_WORK,
    S.RUNNING: {S.FINISHING} | ENDS_OF_WORK,
    S.FINISHING: {S.SUCCEEDED, S.INTERNALLY_FAILED},
    # Whoever waits for a retry may be ended by people, by the failure of another, or with the run.
    **dict.fromkeys(WAITING_AGAIN, BY_PEOPLE | {S.INTERNALLY_FAILED}),
}


@contextmanager
def changes_max(count: int) -> Iterator[None]:
    """Decisions that are full after so many changes."""
    before = context.CHANGES_MAX
    context.CHANGES_MAX = count  # type: ignore[misc]  # what is final in production is what is tried out here
    try:
        yield
    finally:
        context.CHANGES_MAX = before  # type: ignore[misc]


def check(engine: Engine, run: RunHandle) -> None:
    """All that must be true whenever the engine has nothing left to do."""
    assert not replay_violations(engine)
    events = run.events()
    check_orders(events)
    check_ends(events)
    row = run.row
    if row is None:
        return
    active = [name for name, one in run.step_rows().items() if one.run_id == row.run_id and _is_active(one.status)]
    assert (row.status in ENDED) == (not active), (row.status, active)
    progress = engine.state("runs", run.key).progress.get((run.key,))
    assert row.status in ENDED or progress.active == len(active)


def _is_active(status: StepStatus) -> bool:
    return status not in OVER or status in WAITING_AGAIN


def replay_violations(engine: Engine) -> list[str]:
    """Shards whose tables are not the fold of their history, byte for byte."""
    shards: list[tuple[Processor[Any], int, ShardState[Any]]] = [
        (shard.processor, shard.partition, shard.state) for shard in engine.runtime.member.shards.values()
    ]
    seen = {processor.events.name: {0: list(engine.history(processor.events, 0))} for processor, _, _ in shards}
    return table_violations(shards, seen)


def check_orders(events: list[Any]) -> None:
    """Every attempt passes states in an order that the life cycle allows, and is over once."""
    passed: dict[tuple[int, str, int, int], list[StepStatus]] = defaultdict(list)
    tokens: dict[str, tuple[int, str, int, int]] = {}
    for event in events:
        if isinstance(event, c.StepChanged):
            attempt = (event.run_id, event.step_id, event.iteration, event.attempt)
            passed[attempt] += event.statuses
            if event.token is not None:
                assert tokens.setdefault(event.token, attempt) == attempt
    for attempt, statuses in passed.items():
        before: StepStatus | None = None
        for status in statuses:
            assert status in NEXT[before], (attempt, statuses)
            before = status
        assert sum(status in OVER - WAITING_AGAIN for status in statuses) <= 1, (attempt, statuses)


def check_ends(events: list[Any]) -> None:
    """A run ends as the worst of its steps, and nothing happens in it afterwards."""
    latest: dict[int, dict[str, StepStatus]] = defaultdict(dict)
    ended: set[int] = set()
    for event in events:
        if isinstance(event, c.StepChanged):
            assert event.run_id not in ended
            latest[event.run_id][event.step_id] = event.statuses[-1]
        if isinstance(event, c.RunEnded):
            assert event.run_id not in ended
            ended.add(event.run_id)
            if event.run_id in latest and "took longer" not in event.reason:
                assert event.run_status is expected_end(set(latest[event.run_id].values())), event


def expected_end(statuses: set[StepStatus]) -> InstanceStatus:
    """The state of a run whose steps are in these states."""
    if statuses & FAILED:
        return InstanceStatus.FAILED
    if S.TIMED_OUT in statuses:
        return InstanceStatus.TIMED_OUT
    return InstanceStatus.STOPPED if S.STOPPED in statuses else InstanceStatus.SUCCEEDED


def finish(engine: Engine, run: RunHandle) -> None:
    """Let every worker answer and all time go by: a run must end."""
    for _ in range(200):
        if run.row is None or run.row.status in ENDED:
            return
        for task in engine.tasks(run):
            row = run.step_rows().get(task.task.step_id)
            if row is not None and row.token == task.task.token and row.status in (S.STARTING, S.RUNNING):
                task.say(Report.SUCCEEDED, worker=row.worker or "last")
        engine.advance(3_600_000)
    raise AssertionError(f"Expected {run.key} to end, but it is {run.status}: {run.steps}")
