"""Offsets are told only when all before them are done, in whatever order that happens."""

from hypothesis import given
from hypothesis import strategies as st

from kapelle.sinks.progress import Progress, Ticket
from kapelle.topology.log import Place

ONE, OTHER = Place("t", 0), Place("t", 1)


@given(st.permutations(range(8)), st.integers(0, 8))
def test_an_offset_is_told_when_all_before_it_are_done(order: list[int], done: int) -> None:
    progress = Progress()
    tickets = [progress.begin(ONE, 10 * number) for number in range(8)]

    for number in order[:done]:
        progress.end(tickets[number])

    first_open = min(set(range(8)) - set(order[:done]), default=8)
    expected = {} if first_open == 0 else {ONE: 10 * (first_open - 1) + 1}
    assert progress.ends() == expected
    assert progress.ends() == {}
    assert progress.count == 8 - done


def test_partitions_do_not_wait_for_each_other() -> None:
    progress = Progress()
    progress.begin(ONE, 1)
    progress.end(progress.begin(OTHER, 5))

    assert progress.ends() == {OTHER: 6}


def test_what_others_read_now_is_forgotten_and_its_end_counts_for_nothing() -> None:
    progress = Progress()
    late = progress.begin(ONE, 1)
    progress.end(progress.begin(ONE, 2))

    progress.forget([ONE])
    again = progress.begin(ONE, 1)
    progress.end(late)

    assert late.is_void
    assert (progress.ends(), progress.count) == ({}, 1)
    progress.end(again)
    assert progress.ends() == {ONE: 2}


def test_ending_twice_is_ending_once() -> None:
    progress = Progress()
    ticket: Ticket = progress.begin(ONE, 1)

    progress.end(ticket)
    progress.end(ticket)

    assert progress.count == 0


def test_waiting_for_room_tells_whether_there_is() -> None:
    progress = Progress()
    progress.begin(ONE, 1)

    assert progress.wait_below(2, 0.0)
    assert not progress.wait_below(1, 0.0)
