"""The proof of publishing would notice: records taken away, doubled, exchanged or changed are found out."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kapelle.processors.publisher.streams import INSTANCE_CHANGES, INSTANCE_STATE, STEP_CHANGES
from kapelle.schemas.contracts import InstanceStatus
from kapelle.testing.engine import Engine
from tests.proof.publishing import publishing_violations

Rows = list[tuple[str, Any]]


def seen() -> dict[str, dict[int, Rows]]:
    """All streams of an engine that has run three instances."""
    engine = Engine()
    steps = [{"step": {"id": "only", "type": "NoOp"}}]
    engine.push({"properties": {"owner": "ann"}, "workflow": {"id": "etl", "steps": steps}})
    for _ in range(3):
        engine.start("etl")
    streams = engine.topology.streams.values()
    return {
        stream.name: {0: list(engine.history(stream, 0))}
        for stream in streams
        if stream.name.endswith(".events") or stream.public
    }


def taken_away(rows: Rows) -> None:
    del rows[1]


def doubled(rows: Rows) -> None:
    rows.insert(1, rows[1])


def exchanged(rows: Rows) -> None:
    rows[0], rows[1] = rows[1], rows[0]


def changed(rows: Rows) -> None:
    key, change = rows[1]
    rows[1] = key, msgspec.structs.replace(change, status=InstanceStatus.FAILED)


def test_what_publishers_write_passes() -> None:
    assert publishing_violations(seen()) == []


@pytest.mark.parametrize("harm", [taken_away, doubled, exchanged, changed])
def test_harm_to_the_changes_of_instances_is_found_out(harm: Callable[[Rows], None]) -> None:
    found = seen()

    harm(found[INSTANCE_CHANGES.name][0])

    assert publishing_violations(found) != []


@pytest.mark.parametrize("harm", [taken_away, doubled])
def test_harm_to_the_changes_of_steps_is_found_out(harm: Callable[[Rows], None]) -> None:
    found = seen()

    harm(found[STEP_CHANGES.name][0])

    assert publishing_violations(found) != []


def test_a_state_that_is_missing_is_found_out() -> None:
    found = seen()

    taken_away(found[INSTANCE_STATE.name][0])

    assert publishing_violations(found) == [
        "public.instances.state: expected the last change of 'etl/2', but found another"
    ]
