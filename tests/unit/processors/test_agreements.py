"""Laws between processors: who holds a permit by `permits` is an attempt that knows it by `runs`."""

from typing import Any

import pytest

from kapelle.processors.agreements import permits_are_those_of_attempts
from kapelle.processors.wiring import run_key, tag_key
from kapelle.testing import Engine

FLOW = {
    "properties": {"owner": "ann", "run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 10}},
    "workflow": {"id": "etl", "steps": [{"step": {"id": "load", "type": "shell", "tags": ["gpu", "disk"]}}]},
}


@pytest.fixture
def engine() -> Engine:
    """Two attempts hold a permit of each of two tags, and two wait."""
    engine = Engine()
    engine.push(FLOW)
    engine.limit("gpu", 3)
    engine.limit("disk", 2)
    for _ in range(4):
        engine.start("etl")
    return engine


def states(engine: Engine) -> tuple[Any, Any]:
    return engine.state("permits", tag_key("gpu")), engine.state("runs", run_key("etl", 1))


def problems(engine: Engine) -> list[str]:
    permits, runs = states(engine)
    return list(permits_are_those_of_attempts([permits], [runs]))


def test_attempts_that_hold_and_wait_agree_with_permits(engine: Engine) -> None:
    assert problems(engine) == []

    engine.task(engine.runs("etl")[0], "load").succeed()
    engine.runs("etl")[1].stop()
    engine.limit("disk", None)

    assert problems(engine) == []


def test_a_permit_that_nobody_holds_any_more_is_found(engine: Engine) -> None:
    permits, _ = states(engine)

    found = list(permits_are_those_of_attempts([permits], []))

    assert len(found) == len(list(permits.permits.prefix(())))
    assert "tag/disk: step 'load' of etl/1/run 1, attempt 1 holds a permit by permits" in found[0]


def test_an_attempt_that_permits_does_not_know_is_found(engine: Engine) -> None:
    _, runs = states(engine)

    found = list(permits_are_those_of_attempts([], [runs]))

    assert found[0].endswith("holds a permit, but by permits it is not there")
    assert any(text.endswith("waits for a permit, but by permits it is not there") for text in found)
