"""Whatever comes when, and whatever clocks say: no signal is accepted twice, and one that is new always is."""

from collections import defaultdict
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kapelle.processors.signals.windows import NEAR_MS, RANGES_MAX, WINDOW_MS, extended, merged
from kapelle.schemas import contracts as c
from tests.unit.signals.world import NOW_MS, World

# Times in quarters of a window, so that signals fall into generations, between them and far away.
QUARTERS = 24
announced = st.tuples(st.sampled_from("abc"), st.integers(0, QUARTERS))

DAY_MS = 86_400_000
YEARS_MS = 10 * 365 * DAY_MS
AHEAD_MS = (0, 40 * DAY_MS, -50 * DAY_MS, 300 * 365 * DAY_MS)  # clocks of announcers: one is right, the others are not


@given(st.lists(announced, max_size=60))
def test_a_signal_is_accepted_once_and_never_refused_for_being_new(stream: list[tuple[str, int]]) -> None:
    world = World()
    world.now_ms = NOW_MS + QUARTERS * WINDOW_MS
    accepted: dict[str, list[int]] = defaultdict(list)

    for name, quarter in stream:
        [event] = world.announce(f"{quarter}", name, at_ms=NOW_MS + quarter * WINDOW_MS // 4)
        if isinstance(event, c.SignalAccepted):
            assert quarter not in accepted[name]
            accepted[name].append(quarter)
        else:
            assert quarter <= max(accepted[name])

    assert world.replayed() == world.state.fingerprint()


# What happens: time goes by, the clock of the partition jumps ahead (it never goes back), a signal with a time is
# announced by one of the clocks, or one of those that were is announced again.
happening = st.one_of(
    st.tuples(st.just("pass"), st.integers(1, 9 * DAY_MS)),
    st.tuples(st.just("jump"), st.integers(1, YEARS_MS)),
    st.tuples(st.just("announce"), st.integers(0, len(AHEAD_MS) - 1)),
    st.tuples(st.just("untimed"), st.just(0)),
    st.tuples(st.just("again"), st.integers(0, 99)),
)


@given(st.lists(happening, max_size=60))
def test_whatever_clocks_do_a_signal_that_gives_its_time_is_accepted_once(stream: list[tuple[str, int]]) -> None:
    world, true_ms = World(), NOW_MS
    given_before: list[tuple[str, int]] = []

    for number, (what, by) in enumerate(stream):
        if what in ("pass", "jump"):
            world.now_ms += by
            true_ms += by if what == "pass" else 0
        elif what == "announce":
            signal = f"{number}", true_ms + AHEAD_MS[by]
            [event] = world.announce(signal[0], at_ms=signal[1])
            if isinstance(event, c.SignalAccepted):
                given_before.append(signal)
        elif what == "untimed":
            [event] = world.announce(f"{number}")
            assert isinstance(event, c.SignalAccepted)
        elif given_before:
            signal_id, at_ms = given_before[by % len(given_before)]
            [event] = world.announce(signal_id, at_ms=at_ms)
            assert not isinstance(event, c.SignalAccepted)

    assert world.replayed() == world.state.fingerprint()


@given(
    st.lists(st.tuples(st.integers(0, len(AHEAD_MS) - 1), st.booleans(), st.integers(1, DAY_MS // 2)), max_size=60),
    st.integers(0, 60),
    st.integers(WINDOW_MS, YEARS_MS),
)
def test_one_jump_of_the_clock_and_wrong_announcers_keep_nothing_new_out_and_let_nothing_in_twice(
    stream: list[tuple[int, bool, int]], jump_at: int, jump_ms: int
) -> None:
    world, true_ms = World(), NOW_MS

    for number, (who, is_timed, passed_ms) in enumerate(stream):
        true_ms += passed_ms
        world.now_ms += passed_ms + (jump_ms if number == jump_at else 0)
        at_ms = true_ms + AHEAD_MS[who] if is_timed else None
        [event] = world.announce(f"{number}", at_ms=at_ms)
        if who == 0 or not is_timed:
            assert isinstance(event, c.SignalAccepted)
        [again] = world.announce(f"{number}", at_ms=at_ms)
        assert not isinstance(again, c.SignalAccepted)


times = st.integers(0, 50 * NEAR_MS)


@given(st.lists(times, max_size=40), st.lists(times, max_size=40))
def test_ranges_cover_all_that_was_put_in_and_stay_few(some: list[int], others: list[int]) -> None:
    left: tuple[tuple[int, int], ...] = ()
    right: tuple[tuple[int, int], ...] = ()
    for at_ms in some:
        left = extended(left, at_ms)
    for at_ms in others:
        right = extended(right, at_ms)

    both = merged(left, right)

    assert all(any(first <= at_ms <= last for first, last in both) for at_ms in some + others)
    assert all(before[1] < after[0] for before, after in pairwise(both))
    assert len(both) <= RANGES_MAX
