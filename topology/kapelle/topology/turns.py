"""Turns, for when a cycle cannot do all that waits: due timers, and records that are left over.

Background timers take turns by group: the part of a timer's key before the first slash, which is the workflow, or what
the timer's name tells, if its processor says so. A workflow with a thousand runs that go on gets as many turns as one
with a single run. Within a group the timer that was due first is taken first.

Records keep their order within a partition; partitions take turns, a cycle each.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kapelle.processors.messages import Message, TimerDue, timer_id
from kapelle.topology.fold import Entry, Root
from kapelle.topology.log import Run
from kapelle.topology.shard import Shard

BACKGROUND_FACTOR: Final = 5  # so many times the limit of timers are looked at, to find others behind those that wait
GROUPS_MAX: Final = 10_000  # remembered


class Timer(NamedTuple):
    """A timer that is due."""

    shard: Shard
    key: str
    name: str
    due_at_ms: int

    def group(self) -> str:
        """Whose turn it is when the timer fires."""
        kind, _, rest = self.name.partition("/")
        named = kind in self.shard.processor.turns_named
        return rest.partition("/")[0] if named else self.key.partition("/")[0]

    def entry(self) -> Entry:
        """The message that its processor gets."""
        shard, key, name, due_at_ms = self
        root = Root(timer_id(str(shard), key, name, due_at_ms))
        return shard, Message(key, TimerDue(name, due_at_ms), root.id), root, None, shard.forms


def all_due(shards: Iterable[Shard], limit: int) -> tuple[list[Timer], list[Timer]]:
    """The timers that are due, up to a limit for each shard, and those of them that are in the background."""
    timers: list[Timer] = []
    background: list[Timer] = []
    for shard in shards:
        due_at_ms = shard.state.next_due_at_ms() if shard.active else None
        if due_at_ms is not None and due_at_ms <= shard.time.now_ms:
            some, others = _due(shard, limit)
            timers += some
            background += others
    return timers, background


def _due(shard: Shard, limit: int) -> tuple[list[Timer], list[Timer]]:
    kinds = shard.processor.background
    due = shard.state.due(shard.time.now_ms, limit * BACKGROUND_FACTOR if kinds else limit)
    timers: list[Timer] = []
    background: list[Timer] = []
    for key, name, due_at_ms in due:
        if (key, name, due_at_ms) not in shard.parked:
            is_last = bool(kinds) and name.partition("/")[0] in kinds
            (background if is_last else timers).append(Timer(shard, key, name, due_at_ms))
    return timers[:limit], background


def left_over(runs: Sequence[Run], next_offset: int) -> list[Run]:
    """What is left of runs of which the first was folded up to an offset. Others come before the rest of it.

    What was read later from the same partition stays behind that rest.
    """
    first, others = runs[0], runs[1:]
    rest = [record for record in first.records if record.offset >= next_offset]
    if not rest:
        return list(others)
    same = [run for run in others if run[:2] == first[:2]]
    return [*(run for run in others if run[:2] != first[:2]), first._replace(records=rest), *same]


class Turns:
    """Remembers which group had its turn when. Forgetting is harmless: a group is then served as a new one."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}  # by group: the number of its last turn
        self._count = 0

    def taken(self, waiting: Iterable[Timer]) -> Iterator[Timer]:
        """What waits, in turns: first the group whose last turn is longest ago. A turn counts when it is asked for."""
        groups: dict[str, deque[Timer]] = {}
        for timer in sorted(waiting, key=lambda timer: timer.due_at_ms):
            groups.setdefault(timer.group(), deque()).append(timer)
        order = deque(sorted(groups, key=lambda group: self._last.get(group, 0)))
        if len(self._last) > GROUPS_MAX:
            self._last.clear()
        while order:
            group = order.popleft()
            self._count += 1
            self._last[group] = self._count
            yield groups[group].popleft()
            if groups[group]:
                order.append(group)
