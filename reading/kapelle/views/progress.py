"""The progress of a view that is far behind: records, rate and remaining time."""

import time
from collections.abc import Callable, Mapping
from typing import TypedDict

from kapelle.topology.journal import Journal, Point
from kapelle.views.projection import FOLLOWED


def ends_of(journal: Journal) -> dict[Point, int]:
    """Where everything ends that a view follows. Asks the log."""
    return {(s.name, number): end for s in FOLLOWED for number, end in journal.ends(s).items()}


def folded_of(positions: Mapping[Point, int], ends: Mapping[Point, int]) -> int:
    """How many of the records up to the ends are folded."""
    return sum(min(positions.get(point, 0), end) for point, end in ends.items())


class Fields(TypedDict):
    """The fields of a log line about progress."""

    records: int
    of: int
    records_per_s: int
    seconds_left: int | str


class Progress:
    """Remembers where the fold stood, to tell how fast it is."""

    def __init__(self, folded: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._began_at = folded

    def fields(self, positions: Mapping[Point, int], ends: Mapping[Point, int]) -> Fields:
        """What a line of the log tells."""
        folded, total = folded_of(positions, ends), sum(ends.values())
        took_s = self._clock() - self._began_s
        rate = (folded - self._began_at) / took_s if took_s > 0 else 0.0
        return {
            "records": folded,
            "of": total,
            "records_per_s": round(rate),
            "seconds_left": round((total - folded) / rate) if rate > 0 else "unknown",
        }
