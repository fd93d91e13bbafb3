"""Clocks that are set while members run: each process has its own, and no two agree.

A jump is seeded like everything else, by a chance of its own, so that the histories of other seeds stay what they were.
What must hold, whatever is set to what:

- the time that a shard is handed in committed cycles never goes back, also when another member owns it;
- no timer waits longer than the duration that it was set for.
"""

import random
from typing import Final

from kapelle.topology.member import Member
from kapelle.topology.partition_time import Clock
from kapelle.topology.tables.timers import TIMERS

SECOND_MS: Final = 1_000
WEEK_MS: Final = 7 * 24 * 60 * 60 * SECOND_MS
JUMP_CHANCE: Final = 0.08
BACK_CHANCE: Final = 0.3  # of a jump that puts the clock right again
SIZES_MS: Final = (SECOND_MS, 60 * SECOND_MS, 3_600 * SECOND_MS, WEEK_MS, 3 * WEEK_MS)


class SetClock:
    """The clock of one process. What it shows can be set; the time since its machine was started cannot."""

    def __init__(self, passed: Clock, booted_ms: int) -> None:
        self.ahead_ms = 0  # of the true time
        self._passed = passed
        self._booted_ms = booted_ms

    def __call__(self) -> int:
        return self._passed() + self.ahead_ms

    def steady_ms(self) -> int:
        return self._passed() + self._booted_ms


class Jumping:
    """Sets the clocks of processes, and watches the time of shards."""

    def __init__(self, seed: int, longest_timer_ms: int) -> None:
        self.problems: list[str] = []
        self.jumps = 0
        self._chance = random.Random(f"jumping {seed}")  # noqa: S311 - it must be repeatable
        self._longest_timer_ms = longest_timer_ms
        self._latest: dict[tuple[str, int], int] = {}
        self._clocks: list[SetClock] = []

    def clock(self, passed: Clock) -> SetClock:
        """A clock for one more process."""
        made = SetClock(passed, self._chance.randrange(10**9))
        self._clocks.append(made)
        return made

    def turn(self) -> None:
        """Set one of the clocks, or none."""
        if self._chance.random() < JUMP_CHANCE:
            clock = self._chance.choice(self._clocks)
            by_ms = self._chance.choice(SIZES_MS) * self._chance.choice((-1, 1)) + self._chance.randrange(SECOND_MS)
            clock.ahead_ms = 0 if self._chance.random() < BACK_CHANCE else by_ms
            self.jumps += 1

    def watched(self, member: type[Member]) -> type[Member]:
        """A member whose committed cycles are checked."""
        look = self._look

        class Watched(member):  # type: ignore[misc, valid-type] # as it is, or with a step broken on purpose
            def _send_offsets(self) -> None:
                super()._send_offsets()
                commit = self._log.commit

                def committed() -> None:
                    # At this moment, not after the tables are written: others may have gone on by then.
                    self._log.commit = commit
                    commit()
                    look(self)

                self._log.commit = committed

        return Watched

    def _look(self, member: Member) -> None:
        for shard in member._fold.touched:
            at = shard.processor.name, shard.partition
            now_ms, latest_ms = shard.time.now_ms, self._latest.get(at, shard.time.now_ms)
            if now_ms < latest_ms:
                self.problems.append(f"the time of {shard} went back by {latest_ms - now_ms} ms")
            self._latest[at] = max(now_ms, latest_ms)
            for name, key, row in shard.state.rows():
                if name == TIMERS.name and row.due_at_ms - now_ms > self._longest_timer_ms:  # type: ignore[attr-defined]
                    late_ms = row.due_at_ms - now_ms  # type: ignore[attr-defined]
                    self.problems.append(f"the timer {key} of {shard} is due in {late_ms} ms only")
