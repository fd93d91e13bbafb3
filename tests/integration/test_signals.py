"""The short form of the proof of signals, on a real broker; and proofs of the proof, on the engine in memory.

The full form is `make prove NAME=signals`.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from kapelle.processors.signals import deciding
from kapelle.processors.signals.search import concerned
from kapelle.processors.triggers import applying, joins
from kapelle.processors.triggers import deciding as joined
from tests.proof.prove import Plan, prove_by
from tests.proof.signals.memory import rehearsed
from tests.proof.signals.prove import ShortProof
from tests.proof.signals.workload import work

SEED = 20_263
WORK = work(SEED, 600, 20)


@pytest.mark.timeout(300)
def test_faults_lose_and_double_no_start() -> None:
    plan = Plan(records=1_000, faults=3, seed=SEED, pause_s=0.5, broker_faults=False, network_faults=False)
    problems, proof = prove_by(ShortProof, plan)

    assert problems == []
    assert proof.fleet.kills > 0
    assert proof.counts["repetitions"] > 1_000
    assert (proof.counts["lost"], proof.counts["doubled"]) == (0, 0)


def test_the_workload_passes_in_memory() -> None:
    assert rehearsed(WORK) == []


def test_a_dedup_that_is_switched_off_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "_known", lambda *_: None)

    problems = rehearsed(WORK)

    assert any(problem.startswith("doubled") for problem in problems)


def test_signals_that_are_used_twice_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applying, "_use", lambda *_: None)

    problems = rehearsed(WORK)

    assert any(problem.startswith("doubled") for problem in problems)


def test_signals_that_are_not_kept_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "partners", lambda *_: {})

    problems = rehearsed(WORK)

    assert any(problem.startswith("lost") for problem in problems)


def test_partners_of_another_join_value_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "join_value", lambda trigger, offer: joins.join_value(trigger, offer) and "[]")

    problems = rehearsed(WORK)

    assert any(problem.startswith("doubled or wrong") for problem in problems)


def test_offers_that_are_left_out_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(name: str, signal: Any, *more: Any, **options: Any) -> Iterator[Any]:
        return iter(()) if signal[0] % 10 == 0 else concerned(name, signal, *more, **options)

    monkeypatch.setattr(deciding, "concerned", some)

    problems = rehearsed(WORK)

    assert any(problem.startswith("lost") for problem in problems)
