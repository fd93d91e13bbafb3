"""Input that vanishes below its reader, and what of it counts as lost."""

import pytest

from kapelle.schemas.contracts import Stage
from kapelle.testing.cluster import Outcome
from kapelle.testing.faults_inputs import delete_below, replace_topic
from kapelle.topology.deadletters import NOWHERE
from kapelle.topology.errors import InputLost, InputReplaced, InputShortened, Unanswered
from kapelle.topology.inputs import Known, judged
from kapelle.topology.kafka.notes import Note
from kapelle.topology.log import Cause, Loss, Place
from kapelle.topology.settings import Limits, MemberSettings, OnLostInput
from tests.unit.topology.world import LIMITS, World, processor_of, tick

INPUT = Place("w.ticks", 0)
KNOWN = Known(first=5, end=9, topic_id="id-1")
SKIPPING = MemberSettings(limits=LIMITS, on_lost_input=OnLostInput.SKIP)


@pytest.mark.parametrize("noted", ["", "id-1", "id"])
@pytest.mark.parametrize("committed", [None, 5, 7, 9])
def test_an_offset_within_its_own_topic_has_lost_nothing(committed: int | None, noted: str) -> None:
    assert judged(INPUT, committed, noted, KNOWN) is None


@pytest.mark.parametrize(
    ("committed", "noted", "expected"),
    [
        (2, "id-1", Loss(INPUT, Cause.DELETED, 2, 5, 5, "id-1")),
        (2, "", Loss(INPUT, Cause.DELETED, 2, 5, 5, "id-1")),
        (12, "id-1", Loss(INPUT, Cause.SHORTENED, 9, 12, 9, "id-1")),
        (7, "id-0", Loss(INPUT, Cause.REPLACED, 7, None, 5, "id-1")),
        (12, "id-0", Loss(INPUT, Cause.REPLACED, 12, None, 5, "id-1")),
        (None, "id-0", Loss(INPUT, Cause.REPLACED, None, None, 5, "id-1")),
    ],
)
def test_what_was_lost_is_told_with_its_cause_and_its_offsets(
    committed: int | None, noted: str, expected: Loss
) -> None:
    assert judged(INPUT, committed, noted, KNOWN) == expected


def test_the_error_names_the_worst_cause_and_every_line_but_not_thousands() -> None:
    deleted = [Loss(Place("t", n), Cause.DELETED, 1, 3, 3, "i") for n in range(12)]
    replaced = Loss(Place("t", 12), Cause.REPLACED, None, None, 0, "i")
    shortened = Loss(Place("t", 13), Cause.SHORTENED, 4, 9, 4, "i")

    assert type(InputLost.of("p", deleted)) is InputLost
    assert type(InputLost.of("p", [*deleted, shortened])) is InputShortened
    assert type(InputLost.of("p", [*deleted, shortened, replaced])) is InputReplaced
    told = str(InputLost.of("p", deleted))
    assert "t-0: offsets 1 to 2 (2 in all) were deleted before they were read" in told
    assert "and 2 more partitions" in told
    assert "kapelle processors run … --on-lost-input skip" in told


def test_a_note_holds_the_ids_of_all_inputs_and_reads_those_of_before() -> None:
    ids = {"w.ticks": "A" * 22, "w.others": "B" * 22}
    note = Note("w.one", "C" * 22).with_inputs(ids)
    position = _Position(str(note))

    assert Note.of(position) == note  # type: ignore[arg-type]
    assert (note.input_id("w.ticks"), note.input_id("w.others"), note.input_id("w.new")) == ("A" * 12, "B" * 12, "")
    assert len(str(note)) < 100
    for text in ("", "w.one", "w.one CCC", "w.one - ticksAAA"):
        assert str(Note.of(_Position(text))) == text  # type: ignore[arg-type]
    adopted = note._replace(changelog_id="")
    assert Note.of(_Position(str(adopted))) == adopted  # type: ignore[arg-type]


class _Position:
    def __init__(self, metadata: str) -> None:
        self.metadata = metadata


def stopped(world: World) -> InputLost:
    """The error that a restarted member stops with, when its brokers have said it twice."""
    world.restart()
    world.step(5)
    world.now_ms += Limits().doubt_ms
    with pytest.raises(InputLost) as caught:
        world.step()
    return caught.value


def folded(world: World, settings: MemberSettings | None = None) -> World:
    world = World(processor_of(), settings=settings)
    world.publish("ticks", "a", tick("1"))
    world.run()
    return world


def test_records_deleted_while_nobody_ran_stop_the_member_and_nothing_is_skipped() -> None:
    world = folded(World(processor_of()))
    for n in range(4):
        world.publish("ticks", "a", tick(f"more-{n}"))
    delete_below(world.cluster, INPUT, 4)

    error = stopped(world)

    assert error.losses == (Loss(INPUT, Cause.DELETED, 1, 4, 4, "w.ticks/0"),)
    assert (world.committed("counting"), len(world.events("counting")), world.letters()) == ({INPUT: 1}, 1, [])


def test_an_operator_who_goes_on_gets_a_letter_about_what_was_lost_with_the_offset_behind_it() -> None:
    world = folded(World(processor_of()), SKIPPING)
    for n in range(4):
        world.publish("ticks", "a", tick(f"more-{n}"))
    delete_below(world.cluster, INPUT, 4)
    world.restart()
    world.step(5)
    assert (world.letters(), world.committed("counting")) == ([], {INPUT: 1})
    world.now_ms += Limits().doubt_ms
    world.log.errors["commit"] = [Unanswered(INPUT, "anything", "-1001")]  # given up once: told once all the same

    world.run()

    (letter,) = world.letters()
    assert (letter.stage, letter.error, letter.processor) == (Stage.READ, "DELETED", "counting")
    assert (letter.topic, letter.partition, letter.offset, letter.end_offset) == (*INPUT, 1, 4)
    assert (world.committed("counting"), len(world.events("counting"))) == ({INPUT: 5}, 2)
    counters = world.member.counters
    assert (counters.lost_inputs >= 1, counters.lost_offsets >= 3) == (True, True)


def test_a_topic_that_was_replaced_is_read_from_its_beginning_once_somebody_says_so() -> None:
    world = folded(World(processor_of()), SKIPPING)
    replace_topic(world.cluster, INPUT.topic)
    for n in range(5):
        world.publish("ticks", "a", tick(f"new-{n}"))
    world.restart()
    world.step(5)
    world.now_ms += Limits().doubt_ms

    world.run()

    (letter,) = world.letters()
    assert (letter.error, letter.offset, letter.end_offset) == ("REPLACED", NOWHERE, None)
    assert [event.id for _, event in world.events("counting")] == ["1", *(f"new-{n}" for n in range(5))]


def test_a_topic_that_is_replaced_under_a_running_member_stops_it() -> None:
    world = folded(World(processor_of()))
    replace_topic(world.cluster, INPUT.topic)
    for n in range(5):
        world.publish("ticks", "a", tick(f"new-{n}"))

    world.step(5)
    world.now_ms += Limits().doubt_ms
    with pytest.raises(InputReplaced):
        world.step()

    assert len(world.events("counting")) == 1


def test_an_input_that_ends_before_what_was_read_stops_the_member() -> None:
    world = folded(World(processor_of()))
    world.cluster.partitions[INPUT].clear()

    assert [loss.cause for loss in stopped(world).losses] == [Cause.SHORTENED]


def test_a_loss_that_is_told_once_and_then_no_more_is_none() -> None:
    world = folded(World(processor_of()))
    kept, world.cluster.partitions[INPUT] = world.cluster.partitions[INPUT], []
    world.restart()
    world.step(5)
    assert not world.member.ready

    world.cluster.partitions[INPUT] = kept
    world.now_ms += Limits().doubt_ms
    world.run()

    assert (world.member.ready, world.letters()) == (True, [])


def test_where_an_input_begins_is_committed_before_its_first_record_comes() -> None:
    world = World(processor_of())
    world.run()
    assert world.committed("counting") == {INPUT: 0}

    world.publish("ticks", "a", tick("1"))
    delete_below(world.cluster, INPUT, 1)

    assert [loss.count for loss in stopped(world).losses] == [1]


def test_offsets_move_behind_the_marks_of_transactions_when_all_was_read() -> None:
    world = folded(World(processor_of()))
    transaction = world.cluster.begin("another", world.cluster.init_producer("another"))
    world.cluster.append(transaction, INPUT, world.entry_in(transaction))
    world.cluster.finish(transaction, Outcome.ABORTED)
    world.run()
    assert (world.committed("counting"), world.cluster.end(INPUT)) == ({INPUT: 1}, 3)
    cycles = world.member.counters.cycles

    world.now_ms += Limits().advance_ms
    world.run()
    assert (world.committed("counting"), world.member.counters.cycles) == ({INPUT: 3}, cycles + 1)

    world.now_ms += Limits().advance_ms
    world.run()
    assert world.member.counters.cycles == cycles + 1  # once, and not again for nothing
    delete_below(world.cluster, INPUT, 3)
    world.restart()
    world.run()
    assert world.letters() == []
