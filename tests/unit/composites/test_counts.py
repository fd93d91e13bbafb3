"""What the counts of a composite step cost: no decision looks at all of its children."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kapelle.processors.draft import DraftTable
from kapelle.testing.engine import Engine
from tests.unit.composites.trees import child, fan, foreach, push, statuses
from tests.unit.runs.flows import BEGINNING, I, noop, started, step, succeed

MANY = 1_500
WINDOW = 3


@contextmanager
def reads(patch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The keys of children that decisions look up."""
    found, get = [], DraftTable.get

    def noted(table: DraftTable[Any, Any], key: Any, /) -> Any:
        if len(key) == 3:
            found.append(key)
        return get(table, key)

    with patch.context() as context:
        context.setattr(DraftTable, "get", noted)
        yield found


def test_the_end_of_an_early_iteration_that_ran_again_looks_at_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    leaf = [noop("first", {"leaf": f"i >= {MANY} || i == 0"}), step("leaf")]
    push(engine, "flow", foreach("top", *leaf, i=list(range(MANY + 10)), concurrency=WINDOW, strict_ordering=True))
    run = engine.start("flow")
    succeed(child(run, "top", 1), "leaf")
    child(run, "top", 1).restart(BEGINNING)
    before = fan(run, "top")

    with reads(monkeypatch) as found:
        succeed(child(run, "top", 1), "leaf")

    assert (before.next, before.running) == (MANY + WINDOW + 1, WINDOW + 1)
    assert len(found) <= 5


def test_the_last_end_in_a_strict_order_without_a_limit_looks_at_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    run = started(foreach("top", step("leaf"), i=list(range(50)), strict_ordering=True))
    for number in range(2, 50):
        succeed(child(run, "top", number), "leaf")

    with reads(monkeypatch) as found:
        succeed(child(run, "top", 1), "leaf")

    assert statuses(run, "top").count(I.IN_PROGRESS) == 1
    assert len(found) <= 5
