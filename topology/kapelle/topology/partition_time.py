"""The time of a partition: it never goes back, it never stands still, and a jump of the wall clock cannot stop it.

A decision is handed the time of its shard, which is the later of

- the wall clock, and
- the last time that the shard was handed, moved on by the time that has passed since then on a clock that nobody sets
  (the time since the machine was started).

So when the wall clock goes back, the shard goes on from where it is, and a timer ends after its duration, whenever it
was set. When the wall clock jumps ahead, the shard follows it, as it would after a long stop; it stays ahead when the
wall clock comes back. A shard that is ahead runs a hundredth slower, so that small differences disappear again.

The next owner of a shard must not begin earlier than the last one ended. The shard therefore has a row that no decision
sees: a *bound*, later than every time that was handed out in a committed cycle. It is written with the other rows of a
cycle once time has come to it, which is once a second at most, and the next owner begins there. History does not give
this row, so it is no part of what is compared with history.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol, runtime_checkable

from kapelle.topology.metrics import Counters
from kapelle.topology.shard import Shard

Clock = Callable[[], int]

JUMP_MS: Final = 1_000  # a larger difference between the two clocks than this is told
_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first counts while the machine is suspended

_log = logging.getLogger("kapelle.clock")


@runtime_checkable
class Steady(Protocol):
    """A clock that can also tell how much time has passed, whatever is done to its hands."""

    def steady_ms(self) -> int:
        """Milliseconds since some moment. They never go back and never jump."""
        ...


class SystemClock:
    """The clock of this machine: what it shows, and the time since the machine was started."""

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000

    @staticmethod
    def steady_ms() -> int:
        return time.clock_gettime_ns(_BOOT) // 1_000_000


SYSTEM_CLOCK: Final = SystemClock()


def steady_of(clock: Clock) -> Clock:
    """How much time has passed by this clock. One that cannot be set tells it by what it shows."""
    return clock.steady_ms if isinstance(clock, Steady) else clock


class PartitionTimes:
    """The clocks of a member, and through them the time of each of its shards."""

    def __init__(self, clock: Clock, counters: Counters) -> None:
        self.wall, self.steady = clock, steady_of(clock)
        self._counters = counters
        self._seen: tuple[int, int] | None = None

    def tick(self, shards: Iterable[Shard]) -> tuple[int, int]:
        """Move the shards to the present. Returns what the wall clock and the steady clock say."""
        wall_ms, steady_ms = self.wall(), self.steady()
        self._look_for_jump(wall_ms, steady_ms)
        latest_ms = wall_ms
        for shard in shards:
            at_ms = shard.time.move(wall_ms, steady_ms)
            shard.state.be_ahead(at_ms - wall_ms)
            latest_ms = max(latest_ms, at_ms)
        self._counters.clock_ahead_ms = latest_ms - wall_ms
        return wall_ms, steady_ms

    def now_ms(self, shard: Shard) -> int:
        """What time it is for a shard."""
        return shard.time.move(self.wall(), self.steady())

    def resume(self, shard: Shard) -> None:
        """Begin with a shard whose tables have just been restored, not before its last owner ended."""
        shard.time.resume(shard.state.time_bound_ms(), self.steady())

    @staticmethod
    def keep(shard: Shard) -> None:
        """Put a later bound among the changed rows of the shard, if its time has come to the present one."""
        bound_ms = shard.time.next_bound_ms()
        if bound_ms is not None:
            shard.state.set_time_bound(bound_ms)

    def _look_for_jump(self, wall_ms: int, steady_ms: int) -> None:
        if self._seen is not None:
            by_ms = (wall_ms - self._seen[0]) - (steady_ms - self._seen[1])
            if abs(by_ms) > JUMP_MS:
                self._counters.clock_jumps += 1
                way = "forward" if by_ms > 0 else "back"
                _log.warning(
                    "The wall clock has jumped %s by %.1f s; the time of partitions continues: check the time "
                    "service of this machine",
                    way,
                    abs(by_ms) / 1000,
                )
        self._seen = wall_ms, steady_ms
