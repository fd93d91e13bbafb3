"""Gaps are joined, cut and bounded, and never claim that a key is free which may have a row."""

import hypothesis.strategies as st
from hypothesis import given, settings

from kapelle.topology.tables.gaps import GAPS_MAX, Gaps

DIGITS = st.integers(0, 20)
STEPS = st.lists(st.tuples(st.sampled_from(["add", "cut"]), DIGITS, DIGITS), max_size=30)


def key(number: int) -> bytes:
    return number.to_bytes(4, "big")


def test_a_stretch_that_was_found_empty_is_skipped() -> None:
    gaps = Gaps()

    gaps.add(key(2), key(5))

    assert [gaps.past(key(n)) for n in range(7)] == [key(n) for n in (0, 1, 5, 5, 5, 5, 6)]


def test_stretches_that_touch_become_one() -> None:
    gaps = Gaps()

    gaps.add(key(1), key(3))
    gaps.add(key(5), key(7))
    gaps.add(key(3), key(5))

    assert gaps.past(key(1)) == key(7)


def test_a_put_ends_the_stretch_before_it() -> None:
    gaps = Gaps()
    gaps.add(key(1), key(9))

    gaps.cut(key(4))

    assert gaps.past(key(1)) == key(4)
    assert gaps.past(key(4)) == key(4)


@settings(deadline=None)
@given(STEPS)
def test_no_key_is_skipped_that_may_have_a_row(steps: list[tuple[str, int, int]]) -> None:
    gaps = Gaps()
    empty: set[int] = set()
    for step, number, other in steps:
        if step == "add":
            gaps.add(key(number), key(other))
            empty |= set(range(number, other))
        else:
            gaps.cut(key(number))
            empty -= {number}

        for start in range(21):
            assert set(range(start, int.from_bytes(gaps.past(key(start)), "big"))) <= empty


@settings(deadline=None)
@given(st.lists(st.tuples(DIGITS, DIGITS), max_size=20))
def test_without_puts_nothing_is_forgotten(found: list[tuple[int, int]]) -> None:
    gaps = Gaps()
    empty: set[int] = set()
    for start, end in found:
        gaps.add(key(start), key(end))
        empty |= set(range(start, end))

    for number in range(21):
        assert gaps.past(key(number)) == key(next(n for n in range(number, 22) if n not in empty))


def test_their_number_is_bounded() -> None:
    gaps = Gaps()

    for number in range(3 * GAPS_MAX):
        gaps.add(key(2 * number), key(2 * number + 1))

    kept = [n for n in range(3 * GAPS_MAX) if gaps.past(key(2 * n)) != key(2 * n)]
    assert 0 < len(kept) <= GAPS_MAX
    assert kept[-1] == 3 * GAPS_MAX - 1
