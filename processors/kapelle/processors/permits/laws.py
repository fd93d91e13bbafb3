"""What holds of the tables of permits after every event. `kapelle verify` checks it."""

from collections import Counter
from collections.abc import Iterator

from kapelle.processors.permits.processor import permits
from kapelle.processors.permits.tables import CLASSES, NONE_OF_EACH, Limit, PermitTables, class_of

NO_LIMIT = Limit()


@permits.law
def counts_are_those_of_the_rows(state: PermitTables) -> Iterator[str]:
    """A limit counts as held what attempts hold, and as waiting those that are in its queue."""
    held: Counter[str] = Counter()
    waiting: Counter[tuple[str, int]] = Counter()
    for (key, *_), row in state.permits.prefix(()):
        if row.is_held:
            held[key] += 1
        else:
            waiting[key, class_of(row.criticality)] += 1
    queued = Counter((key, number) for (key, number, _, _), _row in state.queue.prefix(()))
    counted = {key: limit for (key,), limit in state.limits.prefix(())}
    for key in sorted({*counted, *held, *(key for key, _ in (*waiting, *queued))}):
        limit = counted.get(key, NO_LIMIT)
        if limit.held != held[key]:
            yield f"{key}: {limit.held} permits are counted as held, but {held[key]} attempts hold one"
        numbers = range(len(CLASSES))
        rows = tuple(waiting[key, number] for number in numbers)
        places = tuple(queued[key, number] for number in numbers)
        if not limit.waiting == rows == places:
            yield f"{key}: {limit.waiting} are counted as waiting by criticality, but {rows} wait, in {places} places"


@permits.law
def nobody_waits_while_there_is_room(state: PermitTables) -> Iterator[str]:
    """Unless a timer is about to admit those that wait."""
    for (key,), limit in state.limits.prefix(()):
        has_room = limit.max is None or limit.held < limit.max
        if has_room and limit.waiting != NONE_OF_EACH and not limit.is_admitting:
            yield f"{key}: attempts wait although {limit.held} of {limit.max} permits are held"
