"""The time of one shard, as its owner keeps it (see partition_time.py)."""

from typing import Final

NEVER_MS: Final = -(1 << 62)
LEASE_MS: Final = (
    1_000  # how far a bound lies ahead: it is written that often at most, and time skips that much at most
)
SLOWED_BY: Final = 100  # a shard that is ahead of the wall clock loses one part in so many


class ShardTime:
    """A clock that goes on from where it was.

    now_ms    the time of the shard in this cycle
    bound_ms  as far as is known, no owner has handed out a later time than this
    """

    __slots__ = ("_at_ms", "_since_ms", "bound_ms", "now_ms")

    def __init__(self) -> None:
        self.now_ms = NEVER_MS
        self.bound_ms = NEVER_MS
        self._at_ms = NEVER_MS  # the time of the shard when the steady clock was at `_since_ms`
        self._since_ms = 0

    def move(self, wall_ms: int, steady_ms: int) -> int:
        """Go on to the present, and tell what time it is."""
        passed_ms = steady_ms - self._since_ms
        at_ms = self._at_ms + passed_ms - passed_ms // SLOWED_BY
        if wall_ms >= at_ms:
            at_ms = self._at_ms = wall_ms
            self._since_ms = steady_ms
        self.now_ms = at_ms
        return at_ms

    def resume(self, bound_ms: int | None, steady_ms: int) -> None:
        """Be at the bound that is stored, unless it is later already. One that was given up with its cycle is none."""
        self.bound_ms = NEVER_MS if bound_ms is None else bound_ms
        self.move(self.bound_ms, steady_ms)

    def next_bound_ms(self) -> int | None:
        """The bound to write, if time has come to the present one."""
        if self.now_ms <= self.bound_ms:
            return None
        self.bound_ms = self.now_ms + LEASE_MS
        return self.bound_ms
