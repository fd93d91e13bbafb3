"""Each table is weighed, in all shards that are ours, by a thread that rests most of the time."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kapelle.topology.metrics import TableSize
from kapelle.topology.table_sizes import RESTS, Weighing
from kapelle.topology.tables import Memory, RocksStore
from tests.proof.contracts import Reminder
from tests.proof.processors import counting, reminding
from tests.unit.topology.world import World, tick

ENOUGH_S = 30.0


class Apart(RocksStore):
    """A store that tells who measures it."""

    def __init__(self, path: Path, memory: Memory) -> None:
        super().__init__(path, memory)
        self.by: set[str] = set()
        self.looked = threading.Event()

    def measure(self, start: bytes, end: bytes, rows_max: int):  # type: ignore[no-untyped-def]  # as of the store
        self.by.add(threading.current_thread().name)
        self.looked.set()
        return super().measure(start, end, rows_max)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Apart]:
    opened = Apart(tmp_path / "tables", Memory(8 * 1024 * 1024))
    yield opened
    opened.close()


@pytest.fixture
def world(store: Apart) -> World:
    made = World(counting, reminding, partitions=3, store=store)
    for number in range(20):
        made.publish("ticks", f"key-{number}", tick(str(number)))
    made.publish("reminders", "r", Reminder("1", 1 << 40))
    made.run()
    return made


def weighing(world: World, store: Apart, slice_rows: int = 500) -> Weighing:
    return Weighing(store, lambda: list(world.member.shards.values()), slice_rows=slice_rows)


def test_each_table_of_each_processor_is_weighed_in_all_shards(world: World, store: Apart) -> None:
    found = weighing(world, store)

    list(found.round())

    assert found.found["counting", "counts"].rows == 20
    assert found.found["counting", "counts"].size_bytes > 20 * len("key-0")
    assert found.found["reminding", "_timers"].rows == 1
    assert found.found["counting", "_timers"] == TableSize(0, 0)


def test_a_large_table_takes_many_slices_and_weighs_the_same(world: World, store: Apart) -> None:
    small, large = weighing(world, store, slice_rows=3), weighing(world, store)

    slices = [len(list(each.round())) for each in (small, large)]

    assert small.found == large.found
    assert slices[0] > slices[1]


def test_tables_that_went_elsewhere_are_no_longer_told(world: World, store: Apart) -> None:
    found = weighing(world, store)
    list(found.round())

    world.member.revoked("counting", [p for name, p in list(world.member.shards) if name == "counting"])
    list(found.round())

    assert {processor for processor, _ in found.found} == {"reminding"}


def test_another_thread_weighs_and_rests_after_every_slice(world: World, store: Apart) -> None:
    with weighing(world, store) as found:
        assert store.looked.wait(ENOUGH_S)

    assert threading.current_thread().name not in store.by
    assert RESTS >= 99, "a hundredth of a core at most"
    assert not any(thread.name in store.by for thread in threading.enumerate()), found.found


def test_a_store_that_closes_first_ends_it(world: World, store: Apart) -> None:
    with weighing(world, store) as found:
        assert store.looked.wait(ENOUGH_S)
        store.close()

    with pytest.raises(Exception, match="closed"):
        list(found.round())
