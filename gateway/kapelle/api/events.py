"""Events as they are in the log: the events of an instance, and a stream of new events.

The view knows where the events of an instance stand, and the log has them: so a history is read from the log itself,
by its offsets. Whoever tails has a reader of their own, and an id with each event that says how far they are.
"""

import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import anyio.to_thread
import msgspec
from anyio import CancelScope, CapacityLimiter

from kapelle.api.context import Context
from kapelle.api.problems import BadRequest, Unavailable
from kapelle.processors.keys import OF_WORKFLOW, ids_in
from kapelle.processors.wiring import PERMIT_EVENTS, RUN_EVENTS, SIGNAL_EVENTS, TRIGGER_EVENTS, WORKFLOW_EVENTS
from kapelle.topology.journal import Entry, Journal, JournalError, Point
from kapelle.views.queries.histories import Place

TAILED: Final = {
    "w": WORKFLOW_EVENTS,
    "r": RUN_EVENTS,
    "s": SIGNAL_EVENTS,
    "t": TRIGGER_EVENTS,
    "p": PERMIT_EVENTS,
}
LETTERS: Final = {stream.name: letter for letter, stream in TAILED.items()}
TYPES: Final = sorted({kind.__name__ for stream in TAILED.values() for kind in stream.contracts})
OF_INSTANCES: Final = (WORKFLOW_EVENTS, RUN_EVENTS)

GAP_MAX: Final = 5_000  # to read over so many records is quicker than to begin anew
READ_S: Final = 20.0
TAKEN_MAX: Final = 500
WAIT_S: Final = 0.25
HEARTBEAT_S: Final = 10.0
RETRY_MS: Final = 1_000
TAILS_MAX: Final = 64

_PART: Final = re.compile(r"([wrstp])(\d{1,6})\.(\d{1,18})")


def event_record(entry: Entry) -> dict[str, object]:
    """An event with its place. Its own fields are as the contract has them."""
    workflow_id, instance_id = _whose(entry)
    return {
        "type": type(entry.value).__name__,
        "time": getattr(entry.value, "at_ms", entry.at_ms),
        "stream": entry.stream,
        "partition": entry.partition,
        "offset": entry.offset,
        "key": entry.key,
        **({"workflow_id": workflow_id} if workflow_id else {}),
        **({"workflow_instance_id": instance_id} if instance_id else {}),
        "event": entry.value,
    }


def _whose(entry: Entry) -> tuple[str | None, int | None]:
    """The workflow and the instance that an event is about; None where it is about none, or about more."""
    workflow_id, _, rest = entry.key.partition("/")
    if entry.stream == SIGNAL_EVENTS.name:
        return getattr(entry.value, "workflow_id", None), getattr(entry.value, "instance_id", None)
    if entry.stream == PERMIT_EVENTS.name:
        return _who_asks(entry)
    if entry.stream == RUN_EVENTS.name and rest.isdigit():
        return workflow_id, int(rest)
    return workflow_id, getattr(entry.value, "instance_id", None)


def _who_asks(entry: Entry) -> tuple[str | None, int | None]:
    """The instance that has asked for a permit; of a change, the workflow that is limited."""
    holder = getattr(entry.value, "holder", None)
    if holder is not None:
        return ids_in(holder.key) or (None, None)
    return (entry.key.removeprefix(OF_WORKFLOW) if entry.key.startswith(OF_WORKFLOW) else None), None


# Histories ------------------------------------------------------------------------------------------------------------


def history(journal: Journal, places: Sequence[Place]) -> list[Entry]:
    """The events at these places, in this order. Blocks: it reads the log."""
    left = set(places)
    events: dict[Place, Entry] = {}
    until_s = time.monotonic() + READ_S
    ends = {(s.name, number): end for s in OF_INSTANCES for number, end in journal.ends(s).items()} if left else {}
    for stretch in _stretches(places):
        follower = journal.follow(OF_INSTANCES, {**ends, **{point: first for point, (first, _) in stretch.items()}})
        try:
            while any(follower.positions[point] <= last for point, (_, last) in stretch.items()):
                if time.monotonic() > until_s:
                    raise Unavailable(
                        f"Expected to read {len(places)} events within {READ_S:g} s, but found {len(events)}"
                    )
                for entry in follower.take(TAKEN_MAX, WAIT_S):
                    place = (entry.stream, entry.partition, entry.offset)
                    if place in left:
                        events[place] = entry
        finally:
            follower.close()
    return [events[place] for place in places if place in events and events[place].value is not None]


def _stretches(places: Sequence[Place]) -> Iterator[dict[Point, tuple[int, int]]]:
    """What to read at a time: of each partition one stretch, from the first place of it to the last."""
    by_point: dict[Point, list[int]] = {}
    for stream, partition, offset in places:
        by_point.setdefault((stream, partition), []).append(offset)
    cut = {point: _cut(sorted(offsets)) for point, offsets in by_point.items()}
    for number in range(max((len(offsets) for offsets in cut.values()), default=0)):
        yield {point: offsets[number] for point, offsets in cut.items() if number < len(offsets)}


def _cut(offsets: Sequence[int]) -> list[tuple[int, int]]:
    stretches = [(offsets[0], offsets[0])]
    for offset in offsets[1:]:
        first, last = stretches[-1]
        if offset - last > GAP_MAX:
            stretches.append((offset, offset))
        else:
            stretches[-1] = (first, offset)
    return stretches


# Tailing --------------------------------------------------------------------------------------------------------------


class EventFilter(msgspec.Struct, frozen=True):
    """Which events somebody wants to hear of: all, unless something is said."""

    types: frozenset[str] = frozenset()
    workflow_ids: frozenset[str] = frozenset()
    instance_id: int | None = None

    def has(self, entry: Entry) -> bool:
        """Whether an event is one of them. One that cannot be read is none."""
        if entry.value is None or (self.types and type(entry.value).__name__ not in self.types):
            return False
        if not self.workflow_ids and self.instance_id is None:
            return True
        workflow_id, instance_id = _whose(entry)
        of_workflow = not self.workflow_ids or workflow_id in self.workflow_ids
        return of_workflow and self.instance_id in (None, instance_id)


def id_of(positions: Mapping[Point, int]) -> str:
    """How far somebody is, as the id of an event: letters for streams, partitions, offsets."""
    return (
        "-".join(f"{LETTERS[stream]}{number}.{at}" for (stream, number), at in sorted(positions.items()) if at) or "0"
    )


def positions_of(event_id: str, ends: Mapping[Point, int]) -> dict[Point, int]:
    """The places that an id of an event stands for. It must be one of this log."""
    parts = [] if event_id == "0" else [_PART.fullmatch(part) for part in event_id.split("-")]
    positions = {(TAILED[part[1]].name, int(part[2])): int(part[3]) for part in parts if part is not None}
    if None in parts or any(at > ends.get(point, -1) for point, at in positions.items()):
        raise BadRequest(f"Expected the id of an event of this log as Last-Event-ID, but found {event_id[:80]!r}")
    return {point: positions.get(point, 0) for point in ends}


class Begin(msgspec.Struct, frozen=True):
    """Where a tail begins, and where the log ended then."""

    starts: Mapping[Point, int]
    ends: Mapping[Point, int]

    def has_read_all(self, positions: Mapping[Point, int]) -> bool:
        """Whether whoever is there has read all that was there at the beginning."""
        return all(positions.get(point, 0) >= end for point, end in self.ends.items())


class Tails:
    """All who tail on this node. Each has a reader and, while it waits, a thread."""

    def __init__(self, here: Context) -> None:
        self._here = here
        self._count = 0
        self._threads = CapacityLimiter(TAILS_MAX)

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of the places that there are, for as long as the block. It is taken before anything is waited for."""
        if self._count >= TAILS_MAX:
            raise Unavailable(
                f"Expected at most {TAILS_MAX} tails of events on this node, but all are in use: try another node"
            )
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1

    async def begin(self, event_id: str | None, *, from_start: bool) -> Begin:
        """Where to begin: after an event, with the first of all, or with what comes now."""
        ends = await anyio.to_thread.run_sync(self._ends)
        if event_id:
            return Begin(positions_of(event_id, ends), ends)
        return Begin(dict.fromkeys(ends, 0) if from_start else ends, ends)

    def _ends(self) -> dict[Point, int]:
        journal = self._here.journal
        return {(s.name, number): end for s in TAILED.values() for number, end in journal.ends(s).items()}

    async def blocks(self, selected: EventFilter, begin: Begin, quiet_s: float | None = None) -> AsyncIterator[bytes]:
        """Events as server-sent events, until the server stops or nobody listens.

        With `quiet_s` also until all that was there has been told, and nothing has come for so long.
        """
        try:
            async for block in self._followed(selected, begin, float("inf") if quiet_s is None else quiet_s):
                yield block
        except JournalError:
            return  # the log is away: they come again with the id of the last event, and miss nothing

    async def _followed(self, selected: EventFilter, begin: Begin, quiet_s: float) -> AsyncIterator[bytes]:
        positions = dict(begin.starts)
        follower = await anyio.to_thread.run_sync(self._here.journal.follow, tuple(TAILED.values()), positions)
        try:
            yield f"retry: {RETRY_MS}\n{_mark(positions)}".encode()
            told_s = heard_s = time.monotonic()
            while not self._here.is_stopping:
                entries = await anyio.to_thread.run_sync(follower.take, TAKEN_MAX, WAIT_S, limiter=self._threads)
                for entry in entries:
                    positions[entry.stream, entry.partition] = entry.offset + 1
                    if selected.has(entry):
                        yield _block(entry, positions)
                        told_s = time.monotonic()
                if entries or not begin.has_read_all(follower.positions):
                    heard_s = time.monotonic()
                elif time.monotonic() - heard_s >= quiet_s:
                    return
                if time.monotonic() - told_s >= HEARTBEAT_S:
                    yield _mark(positions).encode()
                    told_s = time.monotonic()
        finally:
            with CancelScope(shield=True):
                await anyio.to_thread.run_sync(follower.close)


def _block(entry: Entry, positions: Mapping[Point, int]) -> bytes:
    data = msgspec.json.encode(event_record(entry))
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (id_of(positions).encode(), type(entry.value).__name__.encode(), data)


def _mark(positions: Mapping[Point, int]) -> str:
    """A sign of life that is no event, but tells how far we are: what was not wanted need not be read again."""
    return f": \nid: {id_of(positions)}\n\n"
