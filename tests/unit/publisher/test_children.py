"""What publishers make of iterations, rounds and subworkflows: records like those of others, with their parents."""

from typing import Any

import pytest

from kapelle.processors.publisher.streams import INLINE_CHANGES, INSTANCE_CHANGES, INSTANCE_STATE, STEP_CHANGES
from kapelle.processors.runs.composites.identity import child_key, inline_id
from kapelle.processors.wiring import RUN_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind
from kapelle.testing.engine import Engine, RunHandle
from tests.proof.publishing import publishing_violations
from tests.support.trees import ROOT, foreach, rounds, subworkflow, task, tree

ABOVE = ("parent", "parent_run_id", "parent_step_id", "child_number", "child_kind", "root")


def above(change: c.InstanceStatusChange) -> list[Any]:
    return [getattr(change, name) for name in ABOVE]


def changes_of(engine: Engine, workflow_id: str) -> list[c.InstanceStatusChange]:
    return [one for one in engine.events(INSTANCE_CHANGES, workflow_id) if isinstance(one, c.InstanceStatusChange)]


def passed(engine: Engine, workflow_id: str) -> list[tuple[int, int, str]]:
    return [(one.instance_id, one.run_id, one.status.value) for one in changes_of(engine, workflow_id)]


def violations(engine: Engine) -> list[str]:
    streams = [one for one in engine.topology.streams.values() if one.name.endswith(".events") or one.public]
    count = engine.topology.partitions_default
    seen = {one.name: {number: list(engine.history(one, number)) for number in range(count)} for one in streams}
    return publishing_violations(seen)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("same_cycle", [True, False])
def test_iterations_and_rounds_are_published_in_one_order_for_each_loop(partitions: int, same_cycle: bool) -> None:
    engine = Engine(partitions=partitions, same_cycle=same_cycle)
    engine.push(tree(foreach("loop", 5), rounds("again", 3)))

    engine.start(ROOT)

    for kind, step_id, count in ((ChildKind.FOREACH, "loop", 5), (ChildKind.WHILE, "again", 3)):
        changes = changes_of(engine, inline_id(kind, f"{ROOT}/1", step_id))
        assert [one.sequence for one in changes] == list(range(1, 2 * count + 1))
        for number in range(1, count + 1):
            started, ended = [one for one in changes if one.instance_id == number]
            assert (started.status, started.previous_status) == ("IN_PROGRESS", None)
            assert (ended.status, ended.previous_status) == ("SUCCEEDED", "IN_PROGRESS")
            assert above(started) == above(ended) == [f"{ROOT}/1", 1, step_id, number, kind, f"{ROOT}/1"]
            assert (ended.initiator.value, ended.author, ended.version) == (kind.value, "tester", 1)
            assert ended.created_at_ms == ended.started_at_ms
            assert ended.created_at_ms <= ended.at_ms == ended.ended_at_ms
            assert engine.events(INSTANCE_STATE, child_key(kind, f"{ROOT}/1", step_id, number))[-1] == ended
    assert violations(engine) == []


def test_a_subworkflow_is_published_with_its_parent_from_its_creation_to_its_end() -> None:
    engine = Engine()
    engine.push(tree(subworkflow("call", "below")))
    engine.push(tree(foreach("loop", 1), workflow_id="below"))

    engine.start(ROOT)

    called = changes_of(engine, "below")
    assert [one.status for one in called] == ["CREATED", "IN_PROGRESS", "SUCCEEDED"]
    assert [above(one) for one in called] == [[f"{ROOT}/1", 1, "call", 1, ChildKind.SUBWORKFLOW, f"{ROOT}/1"]] * 3
    inner = changes_of(engine, inline_id(ChildKind.FOREACH, "below/1", "loop"))
    assert [above(one) for one in inner] == [["below/1", 1, "loop", 1, ChildKind.FOREACH, f"{ROOT}/1"]] * 2
    assert violations(engine) == []


def test_an_instance_that_no_step_has_started_has_no_parent() -> None:
    engine = Engine()
    engine.push(tree(foreach("loop", 1)))

    engine.start(ROOT)

    assert [above(one) for one in changes_of(engine, ROOT)] == [[None] * len(ABOVE)] * 3


def test_a_child_that_is_run_again_is_published_again_with_its_parent() -> None:
    engine = Engine()
    engine.push(tree(foreach("loop", 2, task("work")), subworkflow("call", "below")))
    engine.push(tree(task("work"), workflow_id="below"))
    root = engine.start(ROOT)
    loop = inline_id(ChildKind.FOREACH, root.key, "loop")
    first, second, below = RunHandle(engine, loop, 1), RunHandle(engine, loop, 2), RunHandle(engine, "below", 1)
    for run in (first, below):
        engine.task(run, "work").fail("it broke", c.Report.FATAL_ERROR)
    engine.task(second, "work").succeed()

    root.restart()

    statuses = [(1, 1, "IN_PROGRESS"), (2, 1, "IN_PROGRESS"), (1, 1, "FAILED"), (2, 1, "SUCCEEDED")]
    assert passed(engine, loop) == [*statuses, (1, 2, "IN_PROGRESS")]
    assert above(changes_of(engine, loop)[-1])[:2] == [root.key, 2]
    assert passed(engine, "below")[3:] == [(1, 2, "CREATED"), (1, 2, "IN_PROGRESS")]
    assert {tuple(above(one)[:2]) for one in changes_of(engine, "below")[3:]} == {(root.key, 2)}
    assert violations(engine) == []


def test_steps_of_iterations_are_published_like_others() -> None:
    engine = Engine()
    engine.push(tree(foreach("loop", 2)))

    engine.start(ROOT)

    for number in (1, 2):
        key = child_key(ChildKind.FOREACH, f"{ROOT}/1", "loop", number)
        changed = [one for one in engine.events(RUN_EVENTS, key) if isinstance(one, c.StepChanged)]
        told = [one for one in engine.events(STEP_CHANGES, key) if isinstance(one, c.StepStatusChange)]
        assert [(*one.passed, one.status) for one in told] == [one.statuses for one in changed]


def test_ordinary_runs_send_nothing_between_publishers() -> None:
    engine = Engine(same_cycle=False)
    engine.push(tree(subworkflow("call", "below")))
    engine.push(tree(task("work"), workflow_id="below"))

    engine.start(ROOT)

    assert engine.events(INLINE_CHANGES) == []
