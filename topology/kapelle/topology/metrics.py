"""The counters of a member: plain integers, changed in place, so that reading them never disturbs the loop."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from kapelle.schemas import contracts as c

# The upper bounds of the classes that times are counted in; whatever takes longer is in one more class.
BOUNDS_MS: Final = (2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000)
KINDS_MAX: Final = 50  # of timers; whatever comes after them is another one
OTHER: Final = "other"


class TableSize(NamedTuple):
    """What a table holds, in all shards of a processor that are ours. Bytes are those before compression."""

    rows: int
    size_bytes: int


TableSizes = dict[tuple[str, str], TableSize]  # by processor and table


class Times(msgspec.Struct):
    """How long something took, time after time: how often within which bounds, and in all."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))
    sum_ms: float = 0.0

    def add(self, took_ms: float) -> None:
        self.counts[bisect_left(BOUNDS_MS, took_ms)] += 1
        self.sum_ms += took_ms


class Counters(msgspec.Struct):
    """Totals since the start, and a few present values. Times are in milliseconds."""

    cycles: int = 0
    records: int = 0
    repeats: int = 0  # deliveries of a record that was already folded
    timers: int = 0
    sent: int = 0  # records produced: events, messages to other keys by topic, dead letters
    delivered: int = 0  # messages to other keys, within the cycle
    dead_letters: int = 0
    given_up: int = 0  # decisions that ran out of time, memory or stack
    lost_inputs: int = 0  # partitions of inputs of which something vanished before it was read, and was skipped
    lost_offsets: int = 0  # how many offsets that was, as far as it is known
    aborts: int = 0
    renewals: int = 0
    restored_rows: int = 0
    restores: int = 0
    wipes: int = 0
    swept_rows: int = 0
    early_commits: int = 0  # cycles ended by a limit instead of by running out of input
    settles: int = 0
    commit_ms_max: float = 0.0
    shards: int = 0
    shards_active: int = 0
    shards_restoring: int = 0
    restore_rows_left: int = 0
    groups_joined: int = 0
    clock_jumps: int = 0
    clock_ahead_ms: int = 0  # of the wall clock, the time of the shard that is furthest ahead
    cycle_times: Times = msgspec.field(default_factory=Times)
    commit_times: Times = msgspec.field(default_factory=Times)
    lateness: Times = msgspec.field(default_factory=Times)  # of ticks, from their due times
    kinds: dict[type[object], int] = {}  # events emitted, by contract
    letters: dict[str, int] = {}  # dead letters, by processor
    fired: dict[tuple[str, str], int] = {}  # timers that were folded, by processor and the beginning of their name
    ticks: dict[str, int] = {}  # scheduled times of time triggers, by what became of them

    @property
    def events(self) -> int:
        """Events emitted. From any thread."""
        return sum(self.kinds.copy().values())

    def snapshot(self) -> dict[str, float]:
        """All plain values by name."""
        numbers = {name: getattr(self, name) for name in (*self.__struct_fields__, "events")}
        return {name: value for name, value in numbers.items() if isinstance(value, int | float)}

    def by_kind(self) -> dict[str, int]:
        """Events emitted, by the name of their contract. From any thread."""
        return {kind.__name__: count for kind, count in sorted(self.kinds.copy().items(), key=_name)}

    def emit(self, event: object) -> None:
        """Count an event, and what it tells besides."""
        kind = type(event)
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        measure = MEASURES.get(kind)
        if measure is not None:
            measure(self, event)

    def tick(self, fate: str, count: int) -> None:
        """Count ticks."""
        self.ticks[fate] = self.ticks.get(fate, 0) + count

    def put_aside(self, processor: str) -> None:
        """Count a dead letter."""
        self.dead_letters += 1
        self.letters[processor] = self.letters.get(processor, 0) + 1

    def fire(self, processor: str, timer: str) -> None:
        """Count a timer. What stands before the first slash of its name says what it is for."""
        kind = processor, timer.partition("/")[0]
        if kind not in self.fired and len(self.fired) >= KINDS_MAX:
            kind = processor, OTHER
        self.fired[kind] = self.fired.get(kind, 0) + 1


def _name(counted: tuple[type[object], int]) -> str:
    return counted[0].__name__


# What events tell besides that they happened --------------------------------------------------------------------------


def _schedule_ticked(counters: Counters, event: c.ScheduleTicked) -> None:
    refused = sum(tick.instance_id is None for tick in event.ticks)
    counters.tick("started", len(event.ticks) - refused)
    counters.tick("refused", refused)
    counters.tick("passed_over", event.passed_over)
    for tick in event.ticks:
        counters.lateness.add(tick.late_ms)


def _schedules_armed(counters: Counters, event: c.SchedulesArmed) -> None:
    counters.tick("not_armed", sum(trigger.missed for trigger in event.disarmed))


MEASURES: Final[Mapping[type[object], Callable[[Counters, Any], None]]] = {
    c.ScheduleTicked: _schedule_ticked,
    c.SchedulesArmed: _schedules_armed,
}
