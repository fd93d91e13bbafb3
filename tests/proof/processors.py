"""The processors that the proof runs: they count, join, pass on, and remember — one for each thing that could go wrong.

counting    one event for each record, a running count in a table
joining     pairs of offers, first in first out within a join value: state that depends on the order
stages      four processors in a row: commands between processors, whose order must hold
reminding   timers: each fires once
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kapelle.processors.effects import Effect, Emit, Send
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.processors.tables import Tables, table
from kapelle.topology.build import Topology
from tests.proof.contracts import (
    Counted,
    Hop,
    Hopped,
    Offer,
    OfferKept,
    OffersJoined,
    Pair,
    Reminded,
    Reminder,
    ReminderSet,
    Side,
    Tick,
)

# Counting -----------------------------------------------------------------------------------------------------------


class Count(msgspec.Struct, frozen=True):
    count: int


class Counting(Tables):
    counts = table("counts", key=tuple[str], row=Count)


ticks = Stream("ticks", (Tick,))
counting = Processor(
    "counting",
    tables=Counting,
    inputs=[ticks],
    events=Stream("counting.events", (Counted,), Keep.FOR_EVER, public=True),
)


@counting.decides(Tick)
def count(message: Message[Tick], state: Counting, now_ms: int) -> tuple[Effect, ...]:
    known = state.counts.get((message.key,))
    return (Emit(Counted(message.value.id, message.value.word, known.count + 1 if known else 1)),)


@counting.applies(Counted)
def counted(message: Message[Counted], state: Counting) -> None:
    state.counts.put((message.key,), Count(message.value.count))


# Joining ------------------------------------------------------------------------------------------------------------


class Waiting(msgspec.Struct, frozen=True):
    id: str


class Last(msgspec.Struct, frozen=True):
    number: int


class Joining(Tables):
    waiting = table("waiting", key=tuple[str, int, int], row=Waiting)  # (join value, left?, number)
    last = table("last", key=tuple[str, int], row=Last)


offers = Stream("offers", (Offer,))
pairs = Stream("pairs", (Pair,), Keep.FOR_EVER)
joining = Processor(
    "joining",
    tables=Joining,
    inputs=[offers],
    events=Stream("joining.events", (OfferKept, OffersJoined), Keep.FOR_EVER),
    outputs=[pairs],
)


@joining.decides(Offer)
def join(message: Message[Offer], state: Joining, now_ms: int) -> Iterator[Effect]:
    name, left = message.value.id, message.value.side is Side.LEFT
    found = state.waiting.first((message.key, int(not left)))
    if found is None:
        last = state.last.get((message.key, int(left)))
        yield Emit(OfferKept(name, left, last.number + 1 if last else 1))
        return
    (_, _, number), other = found
    left_id, right_id = (name, other.id) if left else (other.id, name)
    yield Emit(OffersJoined(left_id, right_id, not left, number))
    yield Send(pairs, message.key, Pair(left_id, right_id))


@joining.applies(OfferKept)
def kept(message: Message[OfferKept], state: Joining) -> None:
    left, number = int(message.value.left), message.value.number
    state.waiting.put((message.key, left, number), Waiting(message.value.id))
    state.last.put((message.key, left), Last(number))


@joining.applies(OffersJoined)
def joined(message: Message[OffersJoined], state: Joining) -> None:
    state.waiting.delete((message.key, int(message.value.left_waited), message.value.number))


# Stages -------------------------------------------------------------------------------------------------------------


class Stage(Tables):
    last = table("last", key=tuple[str], row=Last)


STAGES = 4


def stage(number: int) -> Processor[Stage]:
    """The n-th stage: notes the command and passes it on to the next, under another key."""
    following = Stream(f"stage-{number + 1}", (Hop,))
    processor = Processor(
        f"stage-{number}",
        tables=Stage,
        inputs=[Stream(f"stage-{number}", (Hop,))],
        events=Stream(f"stage-{number}.events", (Hopped,), Keep.FOR_EVER),
        outputs=[following] if number < STAGES else [],
    )

    @processor.decides(Hop)
    def hop(message: Message[Hop], state: Stage, now_ms: int) -> Iterator[Effect]:
        last = state.last.get((message.value.source,))
        yield Emit(Hopped(message.value.source, message.value.number, last.number if last else 0))
        if number < STAGES:
            yield Send(following, f"{number + 1}/{message.value.source}", message.value)

    @processor.applies(Hopped)
    def hopped(message: Message[Hopped], state: Stage) -> None:
        state.last.put((message.value.source,), Last(message.value.number))

    return processor


stages = [stage(n) for n in range(1, STAGES + 1)]


# Reminding ----------------------------------------------------------------------------------------------------------


class Reminding(Tables):
    armed = table("armed", key=tuple[str], row=Last)


reminders = Stream("reminders", (Reminder,))
reminding = Processor(
    "reminding",
    tables=Reminding,
    inputs=[reminders],
    events=Stream("reminding.events", (ReminderSet, Reminded), Keep.FOR_EVER),
)


@reminding.decides(Reminder)
def remind(message: Message[Reminder], state: Reminding, now_ms: int) -> Iterator[Effect]:
    yield Emit(ReminderSet(message.value.id, now_ms + message.value.after_ms))


@reminding.timer_due
def due(message: Message[TimerDue], state: Reminding, now_ms: int) -> Iterator[Effect]:
    yield Emit(Reminded(message.value.name))


@reminding.applies(ReminderSet)
def armed(message: Message[ReminderSet], state: Reminding) -> None:
    state.armed.put((message.value.id,), Last(message.value.due_at_ms))
    state.timers.set(message.key, message.value.id, message.value.due_at_ms)


@reminding.applies(Reminded)
def reminded(message: Message[Reminded], state: Reminding) -> None:
    state.armed.delete((message.value.id,))
    state.timers.cancel(message.key, message.value.id)


# Topologies ---------------------------------------------------------------------------------------------------------

PROCESSORS: dict[str, list[Processor[Any]]] = {
    "counting": [counting],
    "joining": [joining],
    "stages": stages,
    "reminding": [reminding],
    "all": [counting, joining, *stages, reminding],
}


def topology(name: str = "all", *, prefix: str = "proof", partitions: int = 4) -> Topology:
    """One of the proof's topologies."""
    return Topology(PROCESSORS[name], prefix=prefix, partitions=partitions)
