"""Decisions of a trigger on the signals that it is offered.

1. A signal whose partners are all there fires the trigger, once, and all of them are used up.
2. A signal whose partners are not all there is kept until they are, or until it expires.
3. The id of the start is made from the trigger and its signals, or from the value of `dedup_expr`. So the same signals
   start one instance, even if the trigger fires twice.
4. `params`, `condition` and `dedup_expr` are evaluated with the parameters of the signals. If the condition is false or
   one of them cannot be evaluated nothing is started; that is recorded, and the signals are used up.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from kapelle.processors.effects import Effect, Emit, Send, SetAside
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.signals.matching import conditions_json
from kapelle.processors.triggers.applying import generation_after, place_of, places
from kapelle.processors.triggers.definition import Trigger, trigger_of
from kapelle.processors.triggers.joins import join_value, partners
from kapelle.processors.triggers.processor import triggers
from kapelle.processors.triggers.starts import Joined, NotStarted, start_of
from kapelle.processors.triggers.tables import TriggerRow, Triggers
from kapelle.processors.wiring import SIGNAL_INTERNAL, TRIGGER_INTERNAL, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c

DROPS_MAX: Final = 500
AUTHOR: Final = "signal"


@triggers.decides(c.SetTrigger)
def set_trigger(message: Message[c.SetTrigger], state: Triggers, now_ms: int) -> Iterator[Effect]:
    """Arm a trigger: it is offered matching signals from now on."""
    command = message.value
    before = state.triggers.get((message.key,))
    event = c.TriggerSet(
        workflow_id=command.workflow_id,
        trigger_id=command.trigger_id,
        version=command.version,
        definition=command.definition,
        at_ms=now_ms,
    )
    if before is None or not before.is_armed:
        yield Emit(event)
        trigger = trigger_of(command.definition)
        for name, signal in trigger.names.items():
            match = conditions_json(signal.match)
            subscribe = c.SubscribeTrigger(
                workflow_id=command.workflow_id,
                trigger_id=command.trigger_id,
                match=match,
                since_at_ms=trigger.since_at_ms,
                generation=generation_after(before),
            )
            yield Send(SIGNAL_INTERNAL, name, subscribe)
    elif before.version != command.version:
        yield Emit(event)  # the same trigger in another version: it goes on with what it has


@triggers.decides(c.RemoveTrigger)
def remove_trigger(message: Message[c.RemoveTrigger], state: Triggers, now_ms: int) -> Iterator[Effect]:
    """Disarm a trigger, and forget what it has kept, a part at a time."""
    row = state.triggers.get((message.key,))
    if row is None:
        return
    if row.is_armed:
        yield Emit(c.TriggerRemoved(row.workflow_id, row.trigger_id, now_ms))
        for name in trigger_of(row.definition).names:
            yield Send(SIGNAL_INTERNAL, name, c.UnsubscribeTrigger(row.workflow_id, row.trigger_id))
        yield from _drop(message.key, row.generation, state, now_ms)


@triggers.decides(c.DropKept)
def drop_kept(message: Message[c.DropKept], state: Triggers, now_ms: int) -> Iterator[Effect]:
    """Go on forgetting."""
    yield from _drop(message.key, message.value.generation, state, now_ms)


def _drop(key: str, generation: int, state: Triggers, now_ms: int) -> Iterator[Effect]:
    count = sum(1 for _ in islice(places(state, key, generation), DROPS_MAX))
    if count:
        yield Emit(c.KeptDropped(generation, count, now_ms))
    if count == DROPS_MAX:
        yield Send(TRIGGER_INTERNAL, key, c.DropKept(generation))


Fire = Callable[[TriggerRow, Trigger, Joined, int], Iterator[Effect]]


@triggers.decides(c.OfferSignal)
def offer_signal(message: Message[c.OfferSignal], state: Triggers, now_ms: int) -> Iterator[Effect]:
    """Fire with a signal, or keep it."""
    return _offered(message, state, now_ms, _fire)


@triggers.gives_up(c.OfferSignal)
def offer_given_up(message: Message[c.OfferSignal], reason: str, state: Triggers, now_ms: int) -> Iterator[Effect]:
    """Evaluating took too long: nothing is started, and the signals are used up. All else is as it would be."""

    def skip(row: TriggerRow, _: Trigger, joined: Joined, now_ms: int) -> Iterator[Effect]:
        yield Emit(
            c.FiringSkipped(
                workflow_id=row.workflow_id,
                trigger_id=row.trigger_id,
                join_value=joined.value,
                signals=joined.signals,
                reason=reason,
                at_ms=now_ms,
            )
        )

    return _offered(message, state, now_ms, skip)


def _offered(message: Message[c.OfferSignal], state: Triggers, now_ms: int, fire: Fire) -> Iterator[Effect]:
    key, offer = message.key, message.value
    row = state.triggers.get((key,))
    if row is None or not row.is_armed or row.generation != offer.generation:
        return  # it was disarmed while the offer was on its way
    trigger = trigger_of(row.definition)
    if offer.name not in trigger.names:
        yield SetAside(f"Expected a signal that the trigger subscribes to, but found {offer.name!r:.80}")
        return
    value = join_value(trigger, offer)
    if value is None:
        keys = ", ".join(trigger.names[offer.name].join_keys)
        reason = f"A parameter for a join key is missing: the trigger joins by {keys}"
        yield Emit(
            c.SignalPassedOver(
                name=offer.name, signal_id=offer.signal_id, sequence=offer.sequence, reason=reason, at_ms=now_ms
            )
        )
        return
    signals = partners(key, row, trigger, value, state)
    older = signals.get(offer.name)
    if older is not None and trigger.names[offer.name].is_latest:
        newest = max(older.sequence, offer.sequence)
        reason = f"Expected the latest signal, but signal {newest} is newer"
        if newest == older.sequence:  # one of the past came behind one of now
            yield Emit(
                c.SignalPassedOver(
                    name=offer.name, signal_id=offer.signal_id, sequence=offer.sequence, reason=reason, at_ms=now_ms
                )
            )
            return
        yield Emit(
            c.SignalPassedOver(
                name=older.name,
                signal_id=older.signal_id,
                sequence=older.sequence,
                reason=reason,
                at_ms=now_ms,
                join_value=value,
            )
        )
        older = None
    if older is None:  # else it waits behind one of its own name, whose partners are not there either
        signals[offer.name] = c.JoinedSignal(
            name=offer.name, signal_id=offer.signal_id, sequence=offer.sequence, params=offer.params
        )
    if older is None and len(signals) == len(trigger.names):
        names = list(trigger.names)
        joined = Joined(value, tuple(signals[name] for name in names), names.index(offer.name))
        yield from fire(row, trigger, joined, now_ms)
    else:
        expires = None if trigger.expires_after_ms is None else now_ms + trigger.expires_after_ms
        yield Emit(
            c.SignalKept(
                name=offer.name,
                signal_id=offer.signal_id,
                sequence=offer.sequence,
                params=offer.params,
                join_value=value,
                at_ms=now_ms,
                expires_at_ms=expires,
            )
        )


def _fire(row: TriggerRow, trigger: Trigger, joined: Joined, now_ms: int) -> Iterator[Effect]:
    value, used = joined.value, joined.signals
    try:
        start = start_of(row, trigger, joined, now_ms)
    except NotStarted as error:
        yield Emit(
            c.FiringSkipped(
                workflow_id=row.workflow_id,
                trigger_id=row.trigger_id,
                join_value=value,
                signals=used,
                reason=str(error),
                at_ms=now_ms,
            )
        )
        return
    yield Emit(
        c.TriggerFired(
            workflow_id=row.workflow_id,
            trigger_id=row.trigger_id,
            request_id=start.request_id,
            join_value=value,
            signals=used,
            at_ms=now_ms,
            last=joined.last,
        )
    )
    yield Send(WORKFLOW_INTERNAL, row.workflow_id, c.StartTriggered(AUTHOR, (start,)))


@triggers.timer_due
def give_up(message: Message[TimerDue], _: Triggers, now_ms: int) -> Iterator[Effect]:
    """A signal has waited for its partners for too long."""
    generation, value, name, sequence = place_of(message.value.name)
    yield Emit(c.SignalExpired(generation=generation, name=name, sequence=sequence, join_value=value, at_ms=now_ms))
