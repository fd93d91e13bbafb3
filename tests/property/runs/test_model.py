"""An independent model of acyclic graphs says which steps run, are unsatisfied, or are never created."""

from enum import StrEnum
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.schemas.contracts import Report, StepStatus
from kapelle.testing.engine import Engine
from tests.property.runs.flows import SIZES, Edge, forward_edges, name
from tests.property.runs.worlds import check

S = StepStatus


class Outcome(StrEnum):
    """What a step does when it runs."""

    WORKS = "works"
    FAILS = "fails"
    IS_FORGIVEN = "fails, and is ignored"
    BREAKS = "cannot evaluate its parameters"


ENDS = {
    Outcome.WORKS: S.SUCCEEDED,
    Outcome.FAILS: S.FATALLY_FAILED,
    Outcome.IS_FORGIVEN: S.COMPLETED_WITH_ERROR,
    Outcome.BREAKS: S.INTERNALLY_FAILED,
}
GOES_ON = {S.SUCCEEDED, S.COMPLETED_WITH_ERROR, S.UNSATISFIED}


def model(outcomes: list[Outcome], edges: dict[Edge, bool]) -> dict[str, StepStatus]:
    """The states of the steps in the end; those that are never created are left out. Numbers are in order."""
    states: dict[int, StepStatus] = {}
    for number, outcome in enumerate(outcomes):
        before = {one: holds for (one, two), holds in edges.items() if two == number}
        if any(states.get(one) not in GOES_ON for one in before):
            continue
        is_wanted = not before or any(holds and states[one] is not S.UNSATISFIED for one, holds in before.items())
        states[number] = ENDS[outcome] if is_wanted else S.UNSATISFIED
    return {name(number): state for number, state in states.items()}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Outcome], dict[Edge, bool]]:
    size = draw(SIZES) + draw(SIZES)
    outcomes = draw(st.lists(st.sampled_from([Outcome.WORKS, *Outcome]), min_size=size, max_size=size))
    return outcomes, {edge: draw(st.booleans()) for edge in draw(forward_edges(size))}


def pushed(outcomes: list[Outcome], edges: dict[Edge, bool], *, are_workers: list[bool]) -> Engine:
    engine, steps = Engine(), []
    for number, outcome in enumerate(outcomes):
        broken = {"x": {"type": "LONG", "expression": "throw 'broken';"}}
        is_noop = outcome is Outcome.WORKS and not are_workers[number]
        body = {
            "id": name(number),
            "type": "NoOp" if is_noop else "shell",
            "failure_mode": "IGNORE_FAILURE" if outcome is Outcome.IS_FORGIVEN else "FAIL_AFTER_RUNNING",
            "transition": {"successors": {name(v): str(h).lower() for (u, v), h in edges.items() if u == number}},
            "params": broken if outcome is Outcome.BREAKS else {},
        }
        steps.append({"step": body})
    engine.push({"properties": {"owner": "ann"}, "workflow": {"id": "flow", "steps": steps}})
    assert engine.refusals() == []
    return engine


@settings(max_examples=150, deadline=None)
@given(graph=graphs(), are_workers=st.lists(st.booleans(), min_size=12, max_size=12), turns=st.randoms())
def test_the_engine_runs_what_the_model_says_in_whatever_order_workers_answer(
    graph: tuple[list[Outcome], dict[Edge, bool]], are_workers: list[bool], turns: Random
) -> None:
    outcomes, edges = graph
    engine = pushed(outcomes, edges, are_workers=are_workers)
    run = engine.start("flow")

    while waiting := [name_ for name_, status in run.steps.items() if status is S.STARTING]:
        step_id = turns.choice(waiting)
        is_good = outcomes[int(step_id[1:])] is Outcome.WORKS
        engine.task(run, step_id).say(Report.SUCCEEDED if is_good else Report.FATAL_ERROR)

    assert run.steps == model(outcomes, edges)
    check(engine, run)
