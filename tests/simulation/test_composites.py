"""Trees of loops and subworkflows on a simulated cluster, with faults, stops and restarts. A failing seed is printed.

The full form is `make prove NAME=trees`: ten thousand schedules.
"""

import os
from typing import Any

import pytest

from kapelle.processors.fitness import Unfit
from kapelle.processors.runs.composites import counts
from kapelle.processors.runs.context import Ending
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.tables import ChildRow, FanRow, StepRow
from kapelle.processors.streams import Stream
from kapelle.processors.workflows import strategies
from kapelle.topology import shard
from tests.proof.composites.simulate import problems_of

FIRST = int(os.environ.get("KAPELLE_SIMULATION_FIRST", "0"))
SEEDS = range(FIRST, FIRST + 12)
MUTANT_SEEDS_MAX = 20

pytestmark = pytest.mark.usefixtures("quiet")


def problems_of_a_mutant() -> list[str]:
    """What the first seed that finds something finds."""
    return next((found for seed in range(MUTANT_SEEDS_MAX) if (found := problems_of(seed))), [])


def test_every_tree_ends_right_and_nothing_runs_twice_or_is_orphaned() -> None:
    failures = [f"seed {seed}: {problems[:3]}" for seed in SEEDS if (problems := problems_of(seed))]

    assert failures == []


def test_steps_that_end_before_their_children_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    take_back = Flow.take_back

    def hasty(flow: Flow, step_id: str, row: StepRow, ending: Ending) -> bool:
        take_back(flow, step_id, row, ending)
        return True

    monkeypatch.setattr(Flow, "take_back", hasty)

    assert problems_of_a_mutant()  # most often a later answer of a child finds a step that has ended


def test_iterations_that_are_run_again_after_they_have_succeeded_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(_: FanRow, child: ChildRow | None) -> bool:
        return child is not None and child.status is counts.IN_PROGRESS

    monkeypatch.setattr(counts, "is_kept", forgetful)

    assert any("although it had succeeded" in problem for problem in problems_of_a_mutant())


def test_commands_that_are_taken_although_their_topic_cannot_have_their_keys_are_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def anything(stream: Stream, *_: object) -> dict[type[Any], Unfit]:
        return dict.fromkeys(stream.contracts, lambda _key, _value: None)

    monkeypatch.setattr(shard, "checks_of", anything)

    assert problems_of_a_mutant()  # a key without a number is no letter any more, but an error or a refusal


def test_run_strategies_that_let_two_trees_run_at_the_same_time_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "limit_of", lambda _: 2)

    assert any("ran at the same time" in problem for problem in problems_of_a_mutant())
