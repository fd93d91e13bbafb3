"""Whatever comes when: no signal is accepted twice, and one that is later than all of its name always is."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from kapelle.processors.signals.windows import WINDOW_MS
from kapelle.schemas import contracts as c
from tests.unit.signals.world import NOW_MS, World

# Times in quarters of a window, so that signals fall into buckets, between them and far away.
QUARTERS = 24
announced = st.tuples(st.sampled_from("abc"), st.integers(0, QUARTERS))


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
