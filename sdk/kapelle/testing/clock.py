"""Time for tests: it stands still until it is told to go on.

clock = VirtualClock()
with EmbeddedRuntime(topology, MemoryStore(), clock=clock) as runtime:
    runtime.publish("reminders", "ada", Reminder("call", after_ms=60_000))
    skip_to_next_timer(runtime, clock)                                       # a minute in no time
"""

from kapelle.topology.embedded import EmbeddedRuntime

BEGIN_MS = 1_700_000_000_000


class VirtualClock:
    """A clock to hand to a runtime. It never goes back."""

    __slots__ = ("now_ms",)

    def __init__(self, now_ms: int = BEGIN_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> None:
        """Let so much time go by."""
        if ms < 0:
            raise ValueError(f"Expected time to go forward, but was told to advance by {ms} ms")
        self.now_ms += ms

    def advance_to(self, at_ms: int) -> None:
        """Let time go by until then, unless it is later already."""
        self.now_ms = max(self.now_ms, at_ms)


def skip_to_next_timer(runtime: EmbeddedRuntime, clock: VirtualClock) -> bool:
    """Fold what is there, go to the time of the next timer and fold what comes of it. False: there is no timer."""
    runtime.step_until_idle()
    due_at_ms = runtime.next_due_at_ms()
    if due_at_ms is None:
        return False
    clock.advance_to(due_at_ms)
    runtime.step_until_idle()
    return True


def run_for(runtime: EmbeddedRuntime, clock: VirtualClock, ms: int) -> None:
    """Let so much time go by, stopping at every timer on the way, as real time would."""
    until_ms = clock.now_ms + ms
    runtime.step_until_idle()
    while (due_at_ms := runtime.next_due_at_ms()) is not None and due_at_ms <= until_ms:
        clock.advance_to(due_at_ms)
        runtime.step_until_idle()
    clock.advance_to(until_ms)
    runtime.step_until_idle()
