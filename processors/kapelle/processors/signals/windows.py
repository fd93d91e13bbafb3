"""How long the id of a signal is remembered, and from when a signal is too late because it may be a duplicate.

Time is what the signals say, as far as it has come for the partition: the latest of them moves it, so a replay forgets
what the first run forgot. Ids are kept by generation. A new generation begins with the first signal that happened a
window after the present one began; ids of it and of the one before are known, and older ones are forgotten at once for
all names. However far time jumps, that is one generation and not more: an id is known for a window after a jump.

What is left of forgotten ids are the times that their announcements gave, as a few ranges for each name. An
announcement that gives a time within them could be one of those: it is refused, which is recorded, and never silent.
All else is new. So a signal is not too late because others are far ahead of it, be it that a clock was wrong or that it
is one of a year of old signals.

Why no signal is accepted twice: a repetition has the same time as the first announcement. While the id is known, the id
identifies it; afterwards its time is within the ranges, which only grow. An announcement without a time is identified
by its id alone.
"""

from itertools import pairwise
from typing import Final

from kapelle.processors.signals.tables import ClockRow, NameRow, Ranges

WINDOW_MS: Final = 7 * 24 * 60 * 60 * 1000
BUCKET_MS: Final = WINDOW_MS  # shorter ones would forget sooner, and be more to look into for every signal
KEPT: Final = 2
CLOCK: Final = "clock"
NEAR_MS: Final = 60 * 60 * 1000  # times that are no further apart are one range
RANGES_MAX: Final = 8  # then the two that are nearest become one


def moved(clock: ClockRow | None, happened_at_ms: int) -> ClockRow:
    """The time of a partition after a signal was accepted."""
    if clock is None:
        return ClockRow(happened_at_ms, 0, happened_at_ms)
    if happened_at_ms <= clock.at_ms:
        return clock
    if happened_at_ms >= clock.began_ms + BUCKET_MS:
        return ClockRow(happened_at_ms, clock.generation + 1, happened_at_ms)
    return ClockRow(happened_at_ms, clock.generation, clock.began_ms)


def kept(generation: int) -> range:
    """The generations whose ids are known in this one."""
    return range(generation - KEPT + 1, generation + 1)


def aged(name: NameRow, generation: int) -> NameRow:
    """What is known of a name in a generation."""
    if generation == name.generation:
        return name
    before, forgotten = name.times, merged(name.forgotten, name.before)
    if generation > name.generation + 1:
        before, forgotten = (), merged(forgotten, before)
    return NameRow(name.sequence, generation, (), before, forgotten)


def accepted(name: NameRow, generation: int, sequence: int, said_at_ms: int | None) -> NameRow:
    """A name that has one more signal, which gave this time."""
    now = aged(name, generation)
    times = now.times if said_at_ms is None else extended(now.times, said_at_ms)
    return NameRow(sequence, generation, times, now.before, now.forgotten)


def floor_ms(name: NameRow, generation: int, said_at_ms: int | None) -> int | None:
    """The first time that is not too late, if this one is."""
    if said_at_ms is None:
        return None
    for first_ms, last_ms in aged(name, generation).forgotten:
        if first_ms <= said_at_ms <= last_ms:
            return last_ms + 1
    return None


def extended(ranges: Ranges, at_ms: int) -> Ranges:
    """Ranges that cover one more time."""
    if ranges:
        first_ms, last_ms = ranges[-1]
        if first_ms <= at_ms <= last_ms:
            return ranges
        if last_ms < at_ms <= last_ms + NEAR_MS:  # as it nearly always is
            return (*ranges[:-1], (first_ms, at_ms))
    return merged(ranges, ((at_ms, at_ms),))


def merged(some: Ranges, others: Ranges) -> Ranges:
    """Ranges that cover both, in order. Where they are too many, they cover what is between the nearest as well."""
    if not some or not others:
        return some or others
    ranges: list[tuple[int, int]] = []
    for first_ms, last_ms in sorted((*some, *others)):
        if ranges and first_ms <= ranges[-1][1] + NEAR_MS:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last_ms))
        else:
            ranges.append((first_ms, last_ms))
    while len(ranges) > RANGES_MAX:
        gaps = [after[0] - before[1] for before, after in pairwise(ranges)]
        at = gaps.index(min(gaps))
        ranges[at : at + 2] = [(ranges[at][0], ranges[at + 1][1])]
    return tuple(ranges)
