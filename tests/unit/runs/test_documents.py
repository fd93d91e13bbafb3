"""Commands between processors that hold what cannot be read become dead letters, before anything is decided on them."""

from typing import Any

import pytest
from msgspec.structs import replace

from kapelle.processors.wiring import RUN_INTERNAL, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, InstanceStatus
from kapelle.testing.engine import Engine
from tests.support.trees import ROOT, foreach, task, tree

PARENT = c.Parent(
    key=f"{ROOT}/1",
    run_id=1,
    step_id="call",
    attempt=1,
    iteration=1,
    number=1,
    kind=ChildKind.SUBWORKFLOW,
    root=f"{ROOT}/1",
    home=f"{ROOT}/1",
    depth=1,
)
NOWHERE = replace(PARENT, key="nowhere")
RESTART = '{"policy":"RESTART_FROM_BEGINNING"}'
END = c.RecordChildEnd(run_id=1, step_id="loop", attempt=1, iteration=1, number=1, status=InstanceStatus.SUCCEEDED)
TO_RUNS: dict[str, Any] = {
    "a restart that is no JSON": c.RestartBelow("q", "ann", "loop", 1, "x/1", "x"),
    "a restart with wrong parameters": c.RestartBelow("q", "ann", "loop", 1, "x/1", RESTART[:-1] + ',"params":"[]"}'),
    "a restart of a child without a parent": c.RestartChild("q", "ann", NOWHERE, RESTART, "{}"),
    "parameters that are no definitions": c.RestartChild("q", "ann", PARENT, RESTART, '{"x":1}'),
    "an end that is none": replace(END, status=InstanceStatus.IN_PROGRESS),
    "values that are no object": replace(END, values="[]"),
}
TO_WORKFLOWS: dict[str, Any] = {
    "a child without a parent": c.StartChild("q", "ann", NOWHERE, "active", "{}", "{}", "x"),
    "an end without a parent": c.RecordRunEnd(1, 1, InstanceStatus.SUCCEEDED, "", parent=NOWHERE),
    "a queued run without a parent": c.QueueRun("q", "ann", 1, RESTART, parent=NOWHERE),
}


def engine_with_a_loop() -> Engine:
    engine = Engine()
    engine.push(tree(foreach("loop", 1, task("work"))))
    engine.start(ROOT)
    return engine


@pytest.mark.parametrize("what", [*TO_RUNS, *TO_WORKFLOWS])
def test_what_cannot_be_read_is_a_dead_letter(what: str) -> None:
    engine = engine_with_a_loop()

    if what in TO_RUNS:
        engine.send(RUN_INTERNAL, f"{ROOT}/1", TO_RUNS[what])
    else:
        engine.send(WORKFLOW_INTERNAL, ROOT, TO_WORKFLOWS[what])

    assert engine.runtime.counters.dead_letters == 1
    assert [run.status for run in engine.runs(ROOT)] == ["IN_PROGRESS"]
