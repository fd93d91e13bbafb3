"""A decision admits a batch. What it leaves over is admitted by a timer, and costs the same however many wait."""

import pytest

from kapelle.processors.messages import TimerDue
from kapelle.processors.permits import permits
from kapelle.processors.permits.admission import ADMITTED_MAX
from kapelle.processors.permits.applying import ADMIT, timer_of
from kapelle.processors.permits.tables import Limit, Permit, Waiting, holder_key
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality
from tests.unit.permits.world import KEY, NOW_MS, World, holder, types

MANY = 3 * ADMITTED_MAX + 7


def crowded(count: int = MANY, most: int = 1) -> World:
    """So many wait."""
    world = World()
    world.limit(most)
    world.ask(*(f"s{number:03}" for number in range(count + most)))
    assert len(world.waiting()) == count
    return world


def test_a_removed_limit_admits_one_batch_and_a_timer_admits_the_others() -> None:
    world = crowded()

    events = world.remove()

    assert types(events).count("PermitGranted") == ADMITTED_MAX
    assert types(events)[-2:] == ["AdmissionsLeft", "CommandSettled"]
    assert world.go_on() == 3
    assert world.waiting() == []
    assert world.granted == [f"s{number:03}" for number in range(MANY + 1)]


def test_a_raised_limit_admits_as_many_as_there_is_room_for() -> None:
    world = crowded()

    world.limit(2 * ADMITTED_MAX + 50)
    world.go_on()

    assert len(world.held()) == 2 * ADMITTED_MAX + 50
    assert not world.row().is_admitting


def test_a_batch_that_is_just_full_leaves_nothing_over() -> None:
    world = crowded()

    events = world.limit(ADMITTED_MAX + 1)

    assert types(events).count("PermitGranted") == ADMITTED_MAX
    assert world.go_on() == 0


def test_no_decision_admits_more_than_a_batch_while_a_timer_admits() -> None:
    world = crowded()
    world.remove()

    assert types(world.give_back("s000")) == ["PermitReturned"]
    assert types(world.ask("late")) == ["PermitQueued"]
    assert types(world.limit(10_000))[-1] == "CommandSettled"

    assert world.go_on() == 3
    assert world.granted[-1] == "late"


def test_a_limit_that_is_lowered_while_a_timer_admits_ends_the_admissions() -> None:
    world = crowded()
    world.remove()

    world.limit(5)

    assert world.go_on() == 0
    assert len(world.held()) == ADMITTED_MAX + 1
    assert not world.row().is_admitting


def test_a_limit_that_is_lowered_and_raised_at_the_same_moment_sets_another_timer() -> None:
    world = crowded()
    world.remove()
    world.limit(5)

    world.remove()

    assert world.go_on() == 2
    assert world.waiting() == []


def test_a_tree_that_is_done_and_begins_again_at_the_same_moment_sets_another_timer() -> None:
    world = World("tree/etl/1")
    for _ in range(2):
        world.ask("s", *(f"s{number:03}" for number in range(2 * ADMITTED_MAX)), max=1)
        world.ask("more", max=10 * ADMITTED_MAX)
        assert world.row().is_admitting

        assert world.go_on() == 2
        assert world.waiting() == []
        world.give_back(*world.held())
        assert world.held() == []


def test_the_timer_ends_when_those_that_wait_give_up() -> None:
    world = crowded()
    world.remove()

    world.give_back(*world.waiting())

    assert world.go_on() == 0
    assert not world.row().is_admitting


def test_the_rest_is_admitted_in_the_background_in_the_turn_of_the_tag_or_workflow() -> None:
    assert ADMIT in permits.background
    assert ADMIT in permits.turns_named
    assert timer_of("tag/gpu", 3) == "admit/gpu/3"
    assert timer_of("workflow/etl", 3) == "admit/etl/3"
    assert timer_of("tree/etl/12", 3) == "admit/etl/3"


def test_history_makes_the_same_tables_whatever_is_left_over() -> None:
    world = crowded()
    world.remove()
    assert world.replayed() == world.state.fingerprint()

    world.fire()
    assert world.replayed() == world.state.fingerprint()


# What a decision reads ----------------------------------------------------------------------------------------------


def deep(count: int) -> World:
    """So many wait for the only permit. The rows are put, because they are many."""
    world = World()
    world.limit(1)
    world.ask("first")
    tables = world.state.writer
    for number in range(count):
        waits = holder(f"s{number}")
        tables.permits.put(holder_key(KEY, waits), Permit("etl", Criticality.MEDIUM, False, number, number + 2))
        tables.queue.put((KEY, 2, number, number + 2), Waiting(waits, "etl", Criticality.MEDIUM))
    row = world.row()
    tables.limits.put(
        (KEY,), Limit(1, sequence=1, held=1, ticket=count + 1, waiting=(0, 0, count, 0), author=row.author)
    )
    return world


FEW, TOO_MANY = 150, 20_000
COMMANDS: list[Contract | TimerDue] = [
    c.RequestPermit(holder("new"), "etl", Criticality.MEDIUM),
    c.ReturnPermit(holder("first")),
    c.ReturnPermit(holder("s120")),
    c.SetLimit("r", "ann", 2),
    c.SetLimit("r", "ann", 100_000),
    c.RemoveLimit("r", "ann"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: type(command).__name__)
def test_a_decision_reads_no_more_rows_if_more_attempts_wait(command: Contract) -> None:
    assert deep(TOO_MANY).reads(command) == deep(FEW).reads(command)


def test_a_batch_reads_each_row_of_the_queue_once() -> None:
    reads = deep(FEW).reads(c.RemoveLimit("r", "ann"))

    assert reads["queue"] == ADMITTED_MAX


def test_the_timer_reads_the_rows_of_one_batch() -> None:
    world = deep(TOO_MANY)
    world.remove()

    reads = world.reads(TimerDue(timer_of(KEY, 1), NOW_MS))

    assert reads["queue"] == ADMITTED_MAX
