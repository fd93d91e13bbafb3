"""The spans of iterations, rounds and subworkflows: in the trace of the top, under the attempt that started them."""

from typing import Any

import pytest

from kapelle.processors.runs.composites.identity import inline_id
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind
from kapelle.testing import Engine
from kapelle.testing.engine import RunHandle
from kapelle.tracing.spans import Span
from tests.support.trees import ROOT, foreach, rounds, subworkflow, task, tree
from tests.unit.tracing.test_folding import OUTSIDE, TRACE_ID, UNSAMPLED, announce, named, told

ON_ORDERS: list[Any] = [{"definitions": {"orders": {}}}]


def all_kinds(**more: Any) -> Engine:
    """An engine that knows a tree of three levels."""
    engine = Engine()
    engine.push(tree(foreach("inner", 2), workflow_id="below"))
    engine.push(tree(foreach("loop", 3), rounds("again", 2), subworkflow("call", "below"), **more))
    return engine


def by_name(spans: list[Span], name: str) -> list[Span]:
    return [span for span in spans if span.name == name]


def start(engine: Engine, trace: str) -> None:
    command = c.StartInstances("ann", (c.Start("mine"),))
    engine.runtime.publish(WORKFLOW_COMMANDS, ROOT, command, headers=[("traceparent", trace.encode())])
    engine.runtime.step_until_idle()


def check_nesting(spans: list[Span]) -> None:
    for name, above, count in (
        ("iteration loop", "step loop", 3),
        ("round again", "step again", 2),
        ("run below", "step call", 1),
        ("queue below", "step call", 1),
        ("iteration inner", "step inner", 2),
        ("step inner", "run below", 1),
    ):
        found, parent = by_name(spans, name), named(spans, above)
        assert [span.parent_id for span in found] == [parent.span_id] * count, name
        assert not any(span.is_parent_remote for span in found)
    assert len({span.span_id for span in spans}) == len(spans)


def test_children_are_under_the_attempt_that_has_started_them() -> None:
    engine = all_kinds()
    engine.start(ROOT)

    spans = told(engine)

    check_nesting(spans)
    assert {span.trace_id for span in spans} == {named(spans, f"run {ROOT}").trace_id}


def test_children_are_in_the_trace_of_the_signal_that_has_started_the_top() -> None:
    engine = all_kinds(signal_triggers=ON_ORDERS)
    announce(engine, "orders")

    spans = told(engine)

    check_nesting(spans)
    assert {span.trace_id for span in spans} == {named(spans, "signal orders").trace_id}


@pytest.mark.parametrize("trace", [OUTSIDE, UNSAMPLED])
def test_children_are_in_the_trace_that_the_top_came_with(trace: str) -> None:
    engine = all_kinds()
    start(engine, trace)

    spans = told(engine)

    if trace == UNSAMPLED:
        assert spans == []
        return
    check_nesting(spans)
    assert {span.trace_id for span in spans} == {TRACE_ID}


def test_a_child_that_starts_late_and_after_a_report_with_a_trace_is_in_the_trace_of_the_top() -> None:
    engine = Engine()
    engine.push(tree(task("work"), workflow_id="below"))
    first = {"step": {"id": "first", "type": "shell", "transition": {"successors": {"call": "true", "loop": "true"}}}}
    engine.push(tree(first, subworkflow("call", "below"), foreach("loop", 2, task("inner"), concurrency=1)))
    start(engine, OUTSIDE)
    engine.advance(3_600_000)
    engine.tasks()[-1].succeed()
    engine.advance(3_600_000)
    loop = inline_id(ChildKind.FOREACH, f"{ROOT}/1", "loop")
    engine.task(RunHandle(engine, loop, 1), "inner").succeed()
    engine.task(RunHandle(engine, loop, 2), "inner").succeed()
    engine.task(RunHandle(engine, "below", 1), "work").succeed()

    spans = told(engine)

    assert {span.trace_id for span in spans} == {TRACE_ID}
    assert {span.parent_id for span in by_name(spans, "iteration loop")} == {named(spans, "step loop").span_id}
    assert named(spans, "run below").parent_id == named(spans, "step call").span_id


def test_a_child_that_is_run_again_is_under_the_new_attempt() -> None:
    engine = Engine()
    engine.push(tree(foreach("loop", 1, task("work"))))
    root = engine.start(ROOT)
    inner = RunHandle(engine, inline_id(ChildKind.FOREACH, root.key, "loop"), 1)
    engine.task(inner, "work").fail("it broke", c.Report.FATAL_ERROR)
    root.restart()
    engine.task(inner, "work").succeed()

    spans = told(engine)

    steps, iterations = by_name(spans, "step loop"), by_name(spans, "iteration loop")
    assert [span.parent_id for span in iterations] == [span.span_id for span in steps]
    assert len({span.span_id for span in steps}) == 2
    assert len({span.trace_id for span in spans}) == 1


def test_the_run_of_a_child_names_its_parent() -> None:
    engine = all_kinds()
    engine.start(ROOT)

    inner = by_name(told(engine), "iteration inner")[1]

    assert {name: value for name, value in inner.attributes.items() if "parent" in name} == {
        "kapelle.parent": "below/1",
        "kapelle.parent.run": 1,
        "kapelle.parent.step": "inner",
    }
    assert (inner.attributes["kapelle.child"], inner.attributes["kapelle.root"]) == (2, f"{ROOT}/1")


@pytest.mark.parametrize("has_signal", [False, True])
def test_a_signal_that_a_step_of_a_child_announces_is_linked_to_that_step(has_signal: bool) -> None:
    engine = Engine()
    says = {"step": {"id": "says", "type": "NoOp", "signal_outputs": [{"name": "told"}]}}
    engine.push(tree(foreach("loop", 1, says), signal_triggers=ON_ORDERS))
    if has_signal:
        announce(engine, "orders")
    else:
        engine.start(ROOT)

    spans = told(engine)

    [link], step = named(spans, "signal told").links, named(spans, "step says")
    assert (link.trace_id, link.span_id) == (step.trace_id, step.span_id)
    assert step.trace_id == named(spans, f"run {ROOT}").trace_id


def test_a_start_cannot_claim_the_cause_of_a_child() -> None:
    engine = Engine()
    engine.push(tree(foreach("loop", 1)))
    forged = {"type": "MANUAL", "cause": {"traceparent": OUTSIDE}}
    engine.start(ROOT, initiator=forged)

    assert TRACE_ID not in {span.trace_id for span in told(engine)}
