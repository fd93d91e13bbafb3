"""How much one decision sends to children, whatever the number of composite steps that it touches."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kapelle.processors.draft import Draft
from kapelle.processors.runs.context import SENT_MAX
from kapelle.processors.streams import Stream
from kapelle.schemas import contracts as c
from kapelle.testing.engine import Engine
from tests.unit.composites.trees import foreach, loop_while, push, settle, slow, statuses
from tests.unit.runs.flows import I, S, noop, param, step

LOOPS = 12
EACH = 30
CHILDREN = (c.StartRun, c.TerminateRun, c.StartChild, c.EndChild)


@contextmanager
def sent(patch: pytest.MonkeyPatch) -> Iterator[list[tuple[Draft[Any], Any]]]:
    """What decisions send to children, with the draft of each decision."""
    found: list[tuple[Draft[Any], Any]] = []
    send = Draft.send

    def noted(draft: Draft[Any], stream: Stream, key: str, value: Any) -> None:
        if isinstance(value, CHILDREN):
            found.append((draft, value))
        send(draft, stream, key, value)

    with patch.context() as context:
        context.setattr(Draft, "send", noted)
        yield found


def counts(found: list[tuple[Draft[Any], Any]]) -> list[int]:
    """How much each decision has sent."""
    return list(Counter(id(draft) for draft, _ in found).values())


def loops(engine: Engine, **more: Any) -> None:
    push(
        engine, "flow", *(foreach(f"loop{n}", step("leaf" + str(n)), i=list(range(EACH)), **more) for n in range(LOOPS))
    )


def test_a_decision_that_begins_many_loops_launches_a_bounded_number_of_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = slow()
    loops(engine)

    with sent(monkeypatch) as found:
        run = engine.start("flow")

    assert max(counts(found)) <= SENT_MAX
    assert all(statuses(run, f"loop{n}") == [I.IN_PROGRESS] * EACH for n in range(LOOPS))


def test_a_decision_that_ends_many_loops_tells_a_bounded_number_of_children(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = slow()
    loops(engine)
    run = engine.start("flow")

    with sent(monkeypatch) as found:
        run.stop()

    stops = [(draft, one) for draft, one in found if one.is_from_above]
    assert max(counts(stops)) <= SENT_MAX
    assert len(stops) == LOOPS * EACH
    assert set(run.steps.values()) == {S.STOPPED}
    assert run.status is I.STOPPED


def test_a_run_is_stopped_while_its_loops_still_launch() -> None:
    engine = slow()
    rounds = [loop_while(f"while{n}", "true", step(f"in{n}"), first={"n": 0}) for n in range(120)]
    push(engine, "flow", *rounds, foreach("loop", step("leaf"), i=list(range(150))))
    run = engine.start("flow")

    run.stop()
    settle(engine)

    assert set(run.steps.values()) == {S.STOPPED}
    assert run.status is I.STOPPED


def test_starts_that_are_large_are_sent_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = slow()
    push(engine, "flow", foreach("loop", noop("leaf"), i=list(range(30))), params={"big": ""})

    with sent(monkeypatch) as found:
        run = engine.start("flow", run_params={"big": param("x" * 400_000)})

    starts = [(draft, one) for draft, one in found if isinstance(one, c.StartRun) and one.layers]
    assert len(starts) == 30
    assert max(counts(starts)) * 400_000 <= 4_500_000
    assert run.status is I.SUCCEEDED
