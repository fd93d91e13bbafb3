"""What an operation costs does not depend on how many are queued."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from kapelle.processors.messages import Message
from kapelle.processors.workflows import WorkflowTables, workflows
from kapelle.processors.workflows.tables import Instance, Origin, Queued
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Start
from tests.unit.workflows.world import KEY, NOW_MS, World


class CountedTable:
    """A table that counts the rows that are read from it."""

    def __init__(self, table: Any, name: str, reads: Counter[str]) -> None:
        self._table = table
        self._name = name
        self._reads = reads

    def get(self, key: Any) -> Any:
        self._reads[self._name] += 1
        return self._table.get(key)

    def first(self, prefix: Any = ()) -> Any:
        self._reads[self._name] += 1
        return self._table.first(prefix)

    def prefix(self, prefix: Any = (), *, reverse: bool = False) -> Iterator[Any]:
        return self._counted(self._table.prefix(prefix, reverse=reverse))

    def range(self, start: Any, end: Any, *, reverse: bool = False) -> Iterator[Any]:
        return self._counted(self._table.range(start, end, reverse=reverse))

    def _counted(self, rows: Iterator[Any]) -> Iterator[Any]:
        for row in rows:
            self._reads[self._name] += 1
            yield row


def world_with(queued: int, strategy: object) -> World:
    """A workflow with two running, or one, one that has ended, and so many in the queue."""
    world = World()
    world.push(run_strategy=2)
    world.start("ended", "a", "b")
    world.end(1)
    tables = world.state.writer
    origin = Origin("q", 1, 1, '{"type":"MANUAL"}', "{}", "{}", "[]", "x", "{}")
    for number in range(4, 4 + queued):
        tables.queue.put((KEY, number, 1), Queued(f"q{number}", origin=origin))
        tables.instances.put((KEY, number), Instance(1, InstanceStatus.CREATED))
    counts = tables.counts.get((KEY,))
    assert counts is not None
    tables.counts.put((KEY,), type(counts)(latest_instance_id=3 + queued, queued=queued, running=2))
    world.switch(strategy)
    return world


def reads(world: World, command: Contract) -> Counter[str]:
    counter: Counter[str] = Counter()
    counted = WorkflowTables.bind(
        lambda spec: CountedTable(getattr(world.state.reader, spec.attribute), spec.name, counter),  # type: ignore[arg-type]
        world.state.reader.timers,
    )
    effects = list(workflows.deciders[type(command)](Message(KEY, command, "0"), counted, NOW_MS))
    assert effects
    return counter


FEW, A_BATCH_AND_MORE, MANY = 10, 110, 100_000
STRATEGIES: dict[str, object] = {"SEQUENTIAL": "SEQUENTIAL", "STRICT": "STRICT_SEQUENTIAL", "PARALLEL": 2}
COMMANDS: list[Contract] = [
    c.StartInstances("ann", (Start("new"),)),
    c.StartInstances("ann", tuple(Start(f"new{number}") for number in range(10))),
    c.StartInstances("ann", (Start("a"),)),
    c.RecordRunEnd(2, 1, InstanceStatus.SUCCEEDED, ""),
    c.RecordRunEnd(2, 1, InstanceStatus.FAILED, ""),
    c.QueueRun("new", "ann", 1, "{}", "{}"),
    c.TerminateInstance("new", "ann", 9, Action.STOP, ""),
    c.TerminateInstance("new", "ann", 2, Action.KILL, ""),
    c.ActivateVersion("new", "ann", "1"),
]
IN_BATCHES: list[Contract] = [
    c.TerminateInstances("new", "ann", Action.STOP, ""),
    c.ChangeProperties("new", "ann", '{"run_strategy": 1000}'),
]
Worlds = dict[tuple[str, int], World]


@pytest.fixture(scope="module")
def worlds() -> Worlds:
    sizes = (FEW, A_BATCH_AND_MORE, MANY)
    return {(name, size): world_with(size, rule) for name, rule in STRATEGIES.items() for size in sizes}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command)[:50])
def test_an_operation_reads_as_much_with_ten_queued_as_with_a_hundred_thousand(
    worlds: Worlds, strategy: str, command: Contract
) -> None:
    assert reads(worlds[strategy, FEW], command) == reads(worlds[strategy, MANY], command)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("command", IN_BATCHES, ids=lambda command: str(command)[:50])
def test_a_batch_reads_as_much_however_many_are_behind_it(worlds: Worlds, strategy: str, command: Contract) -> None:
    assert reads(worlds[strategy, A_BATCH_AND_MORE], command) == reads(worlds[strategy, MANY], command)


@pytest.mark.parametrize("command", COMMANDS[::3], ids=lambda command: str(command)[:50])
def test_an_operation_reads_a_handful_of_rows(worlds: Worlds, command: Contract) -> None:
    assert reads(worlds["PARALLEL", MANY], command).total() < 25
