"""Old commands go, history stays, and nothing goes that a processor has not folded."""

import pytest

from kapelle.processors.streams import DAY_MS
from kapelle.topology.embedded.retention import EVERY_MS, WEEK_MS, Retention
from kapelle.topology.tables import Batch
from tests.unit.embedded.fakes import EVENTS, TICKS, LogCase


@pytest.fixture
def case() -> LogCase:
    """Ten days of two ticks and an event each, all folded."""
    made = LogCase()
    made.start()
    for day in range(10):
        made.publish(TICKS[0], f"a{day}", f"b{day}")
        made.taken()
        made.log.begin()
        made.log.send([(EVENTS[0], b"k", b"%d" % day, ())])
        made.log.send_offsets("counting", {TICKS[0]: 2 * day + 2})
        made.log.commit()
        made.log.write(Batch())
        made.clock.advance(DAY_MS)
    return made


def test_commands_older_than_a_week_are_removed(case: LogCase) -> None:
    Retention(case.log).tick(case.clock(), case.clock())

    assert case.read(TICKS[0])[0] == (6, "a3")
    assert len(case.read(TICKS[0])) == 14


def test_history_is_never_removed(case: LogCase) -> None:
    Retention(case.log).trim(case.clock())

    assert len(case.read(EVENTS[0])) == 10


def test_the_last_record_stays_and_tells_the_end(case: LogCase) -> None:
    Retention(case.log).trim(case.clock())

    assert case.read(TICKS[0]) == [(18, "a9"), (19, "b9")]
    assert LogCase(case.store).log.end(TICKS[0]) == 20


def test_what_was_not_folded_stays(case: LogCase) -> None:
    case.log.begin()
    case.log.send_offsets("counting", {TICKS[0]: 5})
    case.log.commit()
    case.log.write(Batch())

    Retention(case.log).trim(case.clock())

    assert case.read(TICKS[0])[0] == (4, "a2")


def test_trimming_twice_changes_nothing(case: LogCase) -> None:
    Retention(case.log).trim(case.clock() - WEEK_MS)
    once = case.read(TICKS[0])

    Retention(case.log).trim(case.clock() - WEEK_MS)

    assert case.read(TICKS[0]) == once


def test_an_hour_is_an_hour_whatever_the_wall_clock_was_set_to(case: LogCase) -> None:
    retention = Retention(case.log)
    retention.tick(case.clock() - WEEK_MS, 0)

    retention.tick(case.clock(), EVERY_MS - 1)
    assert len(case.read(TICKS[0])) == 20
    retention.tick(case.clock(), EVERY_MS)
    assert len(case.read(TICKS[0])) == 14


def test_it_is_done_once_an_hour(case: LogCase) -> None:
    retention = Retention(case.log)
    retention.tick(case.clock() - WEEK_MS, case.clock() - WEEK_MS)
    assert len(case.read(TICKS[0])) == 20

    retention.tick(case.clock() - WEEK_MS + 1, case.clock() - WEEK_MS + 1)
    assert len(case.read(TICKS[0])) == 20
    retention.tick(case.clock(), case.clock())
    assert len(case.read(TICKS[0])) == 14


def test_a_reader_behind_the_first_record_goes_on_with_that(case: LogCase) -> None:
    Retention(case.log).trim(case.clock() - WEEK_MS)

    case.log.start("counting", {TICKS[0]: 0})

    assert case.taken(2) == [(0, 6, "a3"), (0, 7, "b3")]
