"""Who is admitted next: by criticality, then by turns of the workflows, then first come, first served.

1. The class CRITICAL goes before HIGH, HIGH before MEDIUM, and MEDIUM before LOW.
2. Within a class, workflows take turns. An attempt gets the turn after the last one of its workflow, or the current
   turn of the class if that is later. So a workflow that floods the queue takes one place in each turn.
3. Within a turn, the attempt that came first is admitted first.
4. A class that waits is passed over at most `PASSED_OVER_MAX` times in a row: then it gets the next permit. If several
   classes have waited so long, the one that has waited longest comes first, so none waits for more than
   `PASSED_OVER_MAX + 3` admissions.
"""

from typing import Final

from kapelle.processors.permits.tables import CLASSES, ByClass, Limit

PASSED_OVER_MAX: Final = 10


def has_room(limit: Limit) -> bool:
    """Whether one more attempt may hold a permit."""
    return limit.max is None or limit.held < limit.max


def is_waited_for(limit: Limit) -> bool:
    """Whether an attempt waits."""
    return any(limit.waiting)


def turn_of(limit: Limit, number: int, last_turn: int | None) -> int:
    """The turn of an attempt of this class that comes now; `last_turn` is the last one of its workflow, if any."""
    now = limit.turn[number]
    return now if last_turn is None else max(now, last_turn + 1)


def next_class(limit: Limit) -> int:
    """The class that gets the next permit. Somebody waits."""
    waiting = [number for number, count in enumerate(limit.waiting) if count]
    late = [number for number in waiting if limit.passed_over[number] >= PASSED_OVER_MAX]
    if late:
        return max(late, key=lambda number: (limit.passed_over[number], -number))
    return waiting[0]


def passed_over_after(limit: Limit, admitted: int) -> ByClass:
    """How often each class has been passed over, once an attempt of this class is admitted from the queue."""
    critical, high, medium, low = (
        limit.passed_over[number] + 1 if number != admitted and limit.waiting[number] else 0
        for number in range(len(CLASSES))
    )
    return critical, high, medium, low
