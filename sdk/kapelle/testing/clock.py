"""A clock for tests. It stands still until a test advances it.

clock = VirtualClock()
with EmbeddedRuntime(topology, MemoryStore(), clock=clock) as runtime:
    runtime.publish("reminders", "ada", Reminder("call", after_ms=60_000))
    skip_to_next_timer(runtime, clock)                                       # a minute, without waiting
"""

from kapelle.topology.embedded import EmbeddedRuntime

BEGIN_MS = 1_700_000_000_000


class VirtualClock:
    """A clock to hand to a runtime. It goes back, or jumps ahead, when `jump` says so; time only goes by."""

    __slots__ = ("_passed_ms", "now_ms")

    def __init__(self, now_ms: int = BEGIN_MS) -> None:
        self.now_ms = now_ms
        self._passed_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> None:
        """Advance the clock."""
        if ms < 0:
            raise ValueError(f"Expected time to go forward, but was told to advance by {ms} ms")
        self.now_ms += ms
        self._passed_ms += ms

    def steady_ms(self) -> int:
        """The elapsed time, independent of jumps of the clock."""
        return self._passed_ms

    def jump(self, ms: int) -> None:
        """Set the clock ahead or back, without elapsed time."""
        self.now_ms += ms

    def advance_to(self, at_ms: int) -> None:
        """Advance the clock to a time, unless it is later already."""
        self.advance(max(at_ms - self.now_ms, 0))


def skip_to_next_timer(runtime: EmbeddedRuntime, clock: VirtualClock) -> bool:
    """Fold all messages, advance to the next timer and fold the resulting messages. False if there is no timer."""
    runtime.step_until_idle()
    before_ms = runtime.next_due_at_ms()
    while (wait_ms := runtime.next_due_in_ms()) is not None:
        clock.advance(wait_ms)
        runtime.step_until_idle()
        if runtime.next_due_at_ms() != before_ms:
            break  # a shard that is ahead of the clock runs a little slower, and may need a little more
    return before_ms is not None


def run_for(runtime: EmbeddedRuntime, clock: VirtualClock, ms: int) -> None:
    """Advance the clock, and stop at every timer on the way, as real time would."""
    left_ms = ms
    runtime.step_until_idle()
    while (wait_ms := runtime.next_due_in_ms()) is not None and wait_ms <= left_ms:
        clock.advance(wait_ms)
        left_ms -= wait_ms
        runtime.step_until_idle()
    clock.advance(left_ms)
    runtime.step_until_idle()
