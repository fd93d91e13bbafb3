"""The embedded log: one write makes a cycle true, and nothing else does."""

import threading

import pytest

from kapelle.topology.embedded import LogDamaged, Stopped, UnknownPlace
from kapelle.topology.embedded.layout import Chunks
from kapelle.topology.log import Place
from kapelle.topology.tables import Batch, StoreFailed
from tests.unit.embedded.fakes import EVENTS, TICKS, FullDisk, LogCase


@pytest.fixture
def case() -> LogCase:
    made = LogCase()
    made.start()
    return made


def commit(case: LogCase, *events: str, offsets: dict[Place, int] | None = None) -> None:
    """A transaction up to its commit, without the write that makes it true."""
    case.log.begin()
    case.log.send([(EVENTS[0], b"k", event.encode(), ()) for event in events])
    case.log.send_offsets("counting", offsets or {})
    case.log.commit()


def test_the_member_is_given_every_partition_at_once() -> None:
    assert LogCase().listener.partitions == {"counting": [0, 1]}


def test_nothing_of_a_commit_is_there_before_the_write(case: LogCase) -> None:
    commit(case, "counted", offsets={TICKS[0]: 1})

    assert case.read(EVENTS[0]) == []
    assert case.log.committed("counting", TICKS[:1]) == {TICKS[0]: 0}
    assert LogCase(case.store).read(EVENTS[0]) == []


def test_the_write_stores_records_offsets_and_rows_together(case: LogCase) -> None:
    receipt = case.publish(TICKS[0], "tick")[0]
    assert case.taken() == [(0, 0, "tick")]
    commit(case, "counted", offsets={TICKS[0]: 1})
    batch = Batch()
    batch.put(b"counting", b"row")
    before = len(case.store)

    case.log.write(batch)

    again = LogCase(case.store)
    assert len(case.store) - before == 5  # two records, an offset, a row, and the number of the write
    assert again.read(TICKS[0]) == [(0, "tick")]
    assert again.read(EVENTS[0]) == [(0, "counted")]
    assert again.log.committed("counting", TICKS[:1]) == {TICKS[0]: 1}
    assert again.log.get(b"counting") == b"row"
    assert receipt.future.result(0) == (TICKS[0], 0)


def test_what_is_published_is_not_acknowledged_before_it_is_written(case: LogCase) -> None:
    receipt = case.publish(TICKS[0], "tick")[0]
    case.taken()
    assert not receipt.future.done()

    case.log.flush()

    assert receipt.future.result(0) == (TICKS[0], 0)
    assert case.read(TICKS[0]) == [(0, "tick")]


def test_an_aborted_cycle_leaves_what_was_published_at_its_offsets(case: LogCase) -> None:
    case.publish(TICKS[0], "a", "b")
    first = case.taken()
    case.log.begin()
    case.log.send([(EVENTS[0], b"k", b"given up", ())])
    case.log.send_offsets("counting", {TICKS[0]: 2})
    case.log.abort()
    case.start()

    assert case.taken() == first == [(0, 0, "a"), (0, 1, "b")]
    commit(case, "counted", offsets={TICKS[0]: 2})
    case.log.write(Batch())
    assert case.read(TICKS[0]) == [(0, "a"), (1, "b")]
    assert case.read(EVENTS[0]) == [(0, "counted")]


def test_what_was_sent_follows_what_was_published_at_the_same_place(case: LogCase) -> None:
    case.publish(TICKS[0], "published")
    case.taken()
    case.log.begin()
    case.log.send([(TICKS[0], b"k", b"sent", ())])
    case.log.commit()
    assert case.log.ends([TICKS[0]]) == {TICKS[0]: 2}
    case.log.write(Batch())
    case.publish(TICKS[0], "later")

    assert case.taken() == [(0, 1, "sent"), (0, 2, "later")]


def test_the_end_of_a_place_is_told_when_all_of_it_was_taken(case: LogCase) -> None:
    case.write(TICKS[0], "a", "b", "c")

    assert case.log.take(2, 0).ends == []
    assert case.log.take(2, 0).ends == [("counting", TICKS[0], 3)]


def test_a_backlog_is_shared_out_between_partitions(case: LogCase) -> None:
    case.write(TICKS[0], *[f"a{n}" for n in range(6)])
    case.write(TICKS[1], *[f"b{n}" for n in range(3)])

    assert case.taken(4) == [(0, 0, "a0"), (0, 1, "a1"), (1, 0, "b0"), (1, 1, "b1")]
    assert case.taken(4) == [(0, 2, "a2"), (0, 3, "a3"), (1, 2, "b2")]
    assert case.taken(4) == [(0, 4, "a4"), (0, 5, "a5")]
    assert case.taken(4) == []


def test_a_restarted_reader_goes_back_within_a_chunk(case: LogCase) -> None:
    case.write(TICKS[0], *"abcdef")
    case.log.start("counting", {TICKS[0]: 3})
    assert case.taken(2) == [(0, 3, "d"), (0, 4, "e")]

    case.log.start("counting", {TICKS[0]: 1})

    assert case.taken(3) == [(0, 1, "b"), (0, 2, "c"), (0, 3, "d")]


def test_reading_begins_anywhere_and_ends_at_the_limit(case: LogCase) -> None:
    for chunk in ("ab", "cde", "f"):
        case.write(TICKS[0], *chunk)

    assert case.read(TICKS[0], 1, 3) == [(1, "b"), (2, "c"), (3, "d")]
    assert case.read(TICKS[0], 5) == [(5, "f")]
    assert case.read(TICKS[0], 6) == []
    assert case.read(TICKS[0], 0, 0) == []


def test_a_place_that_is_not_there_is_named(case: LogCase) -> None:
    with pytest.raises(UnknownPlace, match=r"Expected a partition of the topology, but found proof\.ticks-7"):
        case.log.read(Place("proof.ticks", 7), 0, 1)


def test_records_missing_in_the_middle_are_not_passed_over(case: LogCase) -> None:
    case.write(TICKS[0], "a", "b")
    batch = Batch()
    Chunks(TICKS[0], case.store).trim(batch, 10)
    case.store.write(batch)

    with pytest.raises(LogDamaged, match=r"offset 0 to 2 of proof\.ticks-0, but found none"):
        case.taken()


def test_nothing_is_written_after_a_write_whose_outcome_is_unknown() -> None:
    store = FullDisk()
    case = LogCase(store)
    case.start()
    receipt = case.publish(TICKS[0], "tick")[0]
    case.taken()
    commit(case, "counted")
    store.full = True
    with pytest.raises(StoreFailed, match="no space"):
        case.log.write(Batch())
    store.full = False
    case.log.leave()

    case.log.drain()

    with pytest.raises(AssertionError, match="a write has failed"):
        case.log.flush()
    assert not receipt.future.done()
    assert case.read(TICKS[0]) == []


def test_a_committed_transaction_must_be_written_before_anything_else(case: LogCase) -> None:
    commit(case, "counted")

    with pytest.raises(AssertionError, match="the transaction is committed"):
        case.log.take(1, 0)
    with pytest.raises(AssertionError, match="the transaction is committed"):
        case.log.begin()


def test_whoever_waits_for_records_is_woken_by_the_write(case: LogCase) -> None:
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(case.log.wait({EVENTS[0]: 0, EVENTS[1]: 0}, 60.0)))
    waiting.start()
    commit(case, "counted")
    case.log.write(Batch())
    waiting.join(10.0)

    assert found == [True]
    assert not case.log.wait({EVENTS[0]: 1}, 0.0)


def test_whoever_waits_for_records_is_sent_home_at_the_end(case: LogCase) -> None:
    found: list[bool] = []
    waiting = threading.Thread(target=lambda: found.append(case.log.wait({EVENTS[0]: 0})))
    waiting.start()
    case.log.give_up(Stopped())
    waiting.join(10.0)

    assert found == [False]


def test_whoever_published_what_will_not_be_written_is_told(case: LogCase) -> None:
    taken = case.publish(TICKS[0], "taken")[0]
    case.taken()
    waiting = case.publish(TICKS[0], "waiting")[0]
    case.log.give_up(Stopped())
    later = case.publish(TICKS[0], "later")[0]
    case.log.give_up(Stopped())

    for receipt in (taken, waiting, later):
        with pytest.raises(Stopped):
            receipt.future.result(0)
