"""The short form of the engine's proof, on a real broker; and proofs of the proof, on the engine in memory.

The full form is `make prove NAME=engine`.
"""

import msgspec
import pytest

from kapelle.processors.runs import dispatch, tasks
from kapelle.processors.runs.tables import RunRow, StepRow
from kapelle.processors.workflows import queue, starts
from kapelle.schemas import contracts as c
from tests.proof.engine.memory import Rehearsal
from tests.proof.engine.prove import Plan, prove_on
from tests.proof.engine.workload import workload
from tests.support.broker import Broker

SEED = 20_262
INSTANCES = 60
KILLS_S = 15.0


def rehearsed() -> list[str]:
    """The violations of the workload on the engine in memory."""
    return Rehearsal(workload(SEED, INSTANCES, KILLS_S)).run()


@pytest.mark.alone
@pytest.mark.timeout(300)
def test_workflows_end_as_they_must_while_all_processes_are_killed(own_broker: Broker) -> None:
    problems, proof = prove_on(own_broker, Plan(instances=INSTANCES, kills_s=KILLS_S, seed=SEED, verbose=False))

    assert problems == []
    assert proof.killed.total() > 0
    assert proof.counts["instances"] == INSTANCES
    assert proof.counts["starts known as duplicates"] > 0


def test_the_workload_passes_in_memory() -> None:
    assert rehearsed() == []


def test_results_taken_without_their_token_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal_of = tasks.refusal_of

    def believing(report: c.ReportTask, run: RunRow | None, row: StepRow | None) -> str | None:
        token = row.token if row is not None and row.token is not None else report.token
        return refusal_of(msgspec.structs.replace(report, token=token), run, row)

    monkeypatch.setattr(tasks, "refusal_of", believing)

    problems = rehearsed()

    assert any("expected the answer of attempt" in problem for problem in problems)


def test_starts_without_dedup_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts.Batch, "_duplicate", lambda *_: None)

    problems = rehearsed()

    assert any("expected one instance" in problem for problem in problems)


def test_launches_past_the_run_strategy_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "launchable", lambda _, counts: counts.queued)

    problems = rehearsed()

    assert any("expected at most 1 to run" in problem for problem in problems)


def test_leases_that_last_too_long_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "lease_ms", lambda _: 60_000)
    monkeypatch.setattr(tasks, "lease_ms", lambda _: 60_000)

    problems = rehearsed()

    assert any("it stood still for 60000 ms" in problem for problem in problems)


def test_a_queue_that_is_not_gone_on_with_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "launchable", lambda _, counts: int(not counts.running and counts.queued == 1))

    problems = rehearsed()

    assert any("to be launched" in problem for problem in problems)
