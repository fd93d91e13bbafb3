"""All that must hold of what came out, as one list of violations. An empty one is the proof."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from tests.proof.checks import Seen
from tests.proof.engine.history import history_of
from tests.proof.engine.steps import request_violations, run_violations
from tests.proof.engine.strategies import noted_ms, overlap_violations, strategy_violations
from tests.proof.engine.waits import wait_violations, waits
from tests.proof.engine.workload import LEASE_S, Workload

DEAD_LETTERS = "dead-letters"


def engine_violations(
    work: Workload,
    seen: Seen,
    kills_ms: Sequence[int] = (),
    *,
    wait_ms_max: int = LEASE_S * 1000,
    runs_ms: Mapping[int, list[int]] | None = None,
) -> list[str]:
    """What is missing, doubled, out of order, against a run strategy, too late or put aside.

    `runs_ms` are the wall-clock times of the events of `runs`, by partition. Without them all partitions share a clock.
    """
    if not any(seen[WORKFLOW_EVENTS.name].values()):
        return ["expected a history of workflows, but it is empty"]
    history = history_of(seen)
    letters = [letter for rows in seen.get(DEAD_LETTERS, {}).values() for _, letter in rows]
    return [
        *request_violations(work, history),
        *strategy_violations(work, history.workflows),
        *overlap_violations(work, _timed(seen[RUN_EVENTS.name], runs_ms)),
        *run_violations(history),
        *wait_violations(waits(history, kills_ms), wait_ms_max),
        *(f"expected no dead letters, but found {letter}" for letter in letters),
    ]


def _timed(
    partitions: Mapping[int, list[tuple[str, Any]]], at_ms: Mapping[int, list[int]] | None
) -> Iterator[tuple[tuple[str, Any], int]]:
    for partition, rows in partitions.items():
        yield from zip(rows, noted_ms(rows) if at_ms is None else at_ms[partition], strict=True)


def counts_of(work: Workload, seen: Seen, kills_ms: Sequence[int] = ()) -> dict[str, int]:
    """What happened, in figures."""
    history = history_of(seen)
    launched = history.of_workflows(c.InstanceLaunched)
    ended = [event.status for event in history.of_workflows(c.InstanceEnded) if event.was_launched]
    last = [event.statuses[-1] for event in history.of_runs(c.StepChanged)]
    found = waits(history, kills_ms)
    longest = max(found, key=lambda wait: wait.whole_ms)
    return {
        "starts published": sum(len(one.command.starts) for one in work.asked),
        "instances": len(history.of_workflows(c.InstanceCreated)),
        "starts known as duplicates": len(history.of_workflows(c.StartDuplicated)),
        "instances that ran": len(launched),
        "instances that succeeded": ended.count(InstanceStatus.SUCCEEDED),
        "instances stopped by their strategy as they ran": ended.count(InstanceStatus.STOPPED),
        "instances that failed, on purpose": ended.count(InstanceStatus.FAILED),
        "tasks given out": len(history.tasks),
        "steps that succeeded": last.count(StepStatus.SUCCEEDED),
        "leases lost": last.count(StepStatus.PLATFORM_FAILED),
        "errors tried again": last.count(StepStatus.USER_FAILED),
        "leases renewed": len(history.of_runs(c.LeaseRenewed)),
        "words of workers refused": len(history.of_runs(c.ReportRefused)),
        "longest wait without a kill (ms)": found[0].undisturbed_ms,
        "longest wait in all (ms)": longest.whole_ms,
        "kills that broke into it": longest.kills,
    }
