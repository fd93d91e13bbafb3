"""Python's collector rests while a cycle is under way, and nobody finds it other than it was."""

import gc
from collections.abc import Iterator

import pytest

from kapelle.topology.collector import at_rest
from kapelle.topology.log import Taken
from tests.proof.processors import counting
from tests.unit.topology.world import World, tick


@pytest.fixture(autouse=True)
def _on() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_the_collector_rests_within_the_block_and_goes_on_after_it() -> None:
    with at_rest():
        rested = not gc.isenabled()

    assert rested
    assert gc.isenabled()


def test_the_collector_goes_on_after_a_block_that_failed() -> None:
    with pytest.raises(ZeroDivisionError), at_rest():
        raise ZeroDivisionError

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()

    with at_rest():
        pass

    assert not gc.isenabled()


def test_the_collector_goes_on_when_two_blocks_overlap() -> None:
    first, second = at_rest(), at_rest()

    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)

    assert gc.isenabled()


class Watch:
    """Notes of each look at the log whether it may wait, and whether the collector is on; and the same of commits."""

    def __init__(self, world: World) -> None:
        self.seen: list[tuple[str, bool]] = []
        self._take, self._commit = world.log.take, world.log.commit
        world.log.take = self.take  # type: ignore[method-assign]
        world.log.commit = self.commit  # type: ignore[method-assign]

    def take(self, records_max: int, wait_s: float) -> Taken:
        self.seen.append(("wait" if wait_s else "look", gc.isenabled()))
        return self._take(records_max, wait_s)

    def commit(self) -> None:
        self.seen.append(("commit", gc.isenabled()))
        self._commit()


def test_the_collector_rests_from_taking_records_to_their_commit_and_goes_on_after_it() -> None:
    world = World(counting)
    world.run()
    world.publish("ticks", "a", tick("1"))
    watch = Watch(world)

    world.member.step()

    assert watch.seen == [("look", False), ("commit", False)]
    assert gc.isenabled()


def test_the_collector_is_on_while_a_member_waits_for_records() -> None:
    world = World(counting)
    world.run()
    watch = Watch(world)

    world.member.step()

    assert watch.seen == [("look", False), ("wait", True)]
    assert gc.isenabled()
