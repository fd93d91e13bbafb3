"""Decisions on announcements and on subscriptions.

0. A record that is not a valid signal, or is too large, is set aside.
1. An announcement with an id that is known under its name is a duplicate: it is recorded, without another effect.
2. An announcement is too late if ids of signals with its time are already forgotten: it is recorded, without another
   effect.
3. Any other announcement is accepted, gets the next number of its name, and is offered to each subscription that it
   matches, once.
4. A subscription receives signals that are accepted after it began; a waiting step also takes an earlier one.
5. A decision makes `OFFERS_MAX` offers and reads `LOOKS_MAX` rows; a command to itself continues with the rest.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from kapelle.processors.effects import Effect, Emit, Send, SetAside
from kapelle.processors.messages import Message
from kapelle.processors.signals.applying import NEW, step_subscription, trigger_subscription
from kapelle.processors.signals.bounds import unfit
from kapelle.processors.signals.matching import Entry, conditions_of, entries_of
from kapelle.processors.signals.processor import signals
from kapelle.processors.signals.search import Cursor, Past, Span, Subscriber, bounded, by_value, concerned, past
from kapelle.processors.signals.tables import SignalRow, Signals, SubscriptionRow
from kapelle.processors.signals.windows import CLOCK, floor_ms, kept
from kapelle.processors.wiring import RUN_INTERNAL, SIGNAL_INTERNAL, TRIGGER_INTERNAL, run_key, trigger_key
from kapelle.schemas import contracts as c

OFFERS_MAX: Final = 500


@signals.decides(c.AnnounceSignal)
def announce(message: Message[c.AnnounceSignal], state: Signals, now_ms: int) -> Iterator[Effect]:
    """Accept a signal, unless it is a repetition or too old to tell."""
    announced = message.value
    if (reason := unfit(announced)) is not None:
        yield SetAside(reason)
        return
    # Nothing happens in the future: a clock that is ahead must not move the time of all others.
    happened_ms = min(announced.happened_at_ms if announced.happened_at_ms is not None else now_ms, now_ms)
    clock = state.clock.get((CLOCK,))
    generation = clock.generation if clock else 0
    first = _known(announced, state, generation)
    if first is not None:
        yield Emit(
            c.SignalDuplicated(
                name=announced.name,
                signal_id=announced.signal_id,
                first_sequence=first,
                source=announced.source,
                at_ms=now_ms,
            )
        )
        return
    name = state.names.get((announced.name,)) or NEW
    if (floor := floor_ms(name, generation, announced.happened_at_ms)) is not None:
        yield Emit(
            c.SignalTooLate(
                name=announced.name,
                signal_id=announced.signal_id,
                happened_at_ms=happened_ms,
                floor_at_ms=floor,
                source=announced.source,
                at_ms=now_ms,
            )
        )
        return
    sequence = name.sequence + 1
    row = SignalRow(announced.signal_id, announced.params, happened_ms)
    subscribers, rest = bounded(concerned(announced.name, (sequence, row), state, after=None), OFFERS_MAX)
    yield Emit(
        c.SignalAccepted(
            name=announced.name,
            signal_id=announced.signal_id,
            sequence=sequence,
            params=announced.params,
            payload=announced.payload,
            happened_at_ms=happened_ms,
            source=announced.source,
            offered=tuple(at.subscription for at, _ in subscribers),
            at_ms=now_ms,
            said_at_ms=announced.happened_at_ms,
        )
    )
    if subscribers:
        yield from _offer(announced.name, (sequence, row), subscribers, now_ms)
    yield from _go_on(announced.name, sequence, rest)


def _go_on(name: str, sequence: int, rest: Cursor | None) -> Iterator[Effect]:
    if rest is not None:
        yield Send(SIGNAL_INTERNAL, name, c.ContinueOffers(sequence, rest.json()))


def _known(announced: c.AnnounceSignal, state: Signals, generation: int) -> int | None:
    for kept_generation in reversed(kept(generation)):
        row = state.seen.get((kept_generation, announced.name, announced.signal_id))
        if row is not None:
            return row.sequence
    return None


def _offer(name: str, signal: Past, subscribers: list[Subscriber], now_ms: int) -> Iterator[Effect]:
    """Offer a signal to those whom it concerns."""
    for _, subscription in subscribers:
        if subscription.trigger_id:
            key = trigger_key(subscription.workflow_id, subscription.trigger_id)
            yield Send(TRIGGER_INTERNAL, key, _offer_of(name, signal, subscription))
        else:
            yield from _matched(name, signal, subscription, now_ms)


def _offer_of(name: str, signal: Past, to: SubscriptionRow) -> c.OfferSignal:
    sequence, row = signal
    return c.OfferSignal(
        name=name,
        signal_id=row.signal_id,
        sequence=sequence,
        params=row.params,
        happened_at_ms=row.happened_at_ms,
        generation=to.generation,
    )


def _matched(name: str, signal: Past, waiting: SubscriptionRow, now_ms: int) -> Iterator[Effect]:
    """A step has what it waits for: it waits no more."""
    (sequence, row), w = signal, waiting
    yield Emit(
        c.AwaitEnded(
            name=name,
            workflow_id=w.workflow_id,
            instance_id=w.instance_id,
            step_id=w.step_id,
            index=w.index,
            at_ms=now_ms,
            sequence=sequence,
        )
    )
    answer = c.MatchDependency(
        run_id=w.run_id,
        step_id=w.step_id,
        attempt=w.attempt,
        iteration=w.iteration,
        index=w.index,
        name=name,
        signal_id=row.signal_id,
        sequence=sequence,
        params=row.params,
    )
    yield Send(RUN_INTERNAL, run_key(w.workflow_id, w.instance_id), answer)


@signals.decides(c.ContinueOffers)
def continue_offers(message: Message[c.ContinueOffers], state: Signals, now_ms: int) -> Iterator[Effect]:
    """Offer a signal to the subscriptions that the last decision did not reach."""
    name, command = message.key, message.value
    signal_row = state.signals.get((name, command.sequence))
    if signal_row is None:
        return
    signal = (command.sequence, signal_row)
    subscribers, rest = bounded(concerned(name, signal, state, after=Cursor.parse(command.after)), OFFERS_MAX)
    if subscribers:
        offered = tuple(at.subscription for at, _ in subscribers)
        yield Emit(c.SignalOffered(name=name, sequence=command.sequence, offered=offered, at_ms=now_ms))
        yield from _offer(name, signal, subscribers, now_ms)
    yield from _go_on(name, command.sequence, rest)


@signals.decides(c.SubscribeTrigger)
def subscribe(message: Message[c.SubscribeTrigger], state: Signals, now_ms: int) -> Iterator[Effect]:
    """A trigger hears of matching signals from now on, and of those of the past if it asks for them."""
    name, command = message.key, message.value
    access = _access(name, command.match, state)
    yield Emit(
        c.TriggerSubscribed(
            name=name,
            workflow_id=command.workflow_id,
            trigger_id=command.trigger_id,
            match=command.match,
            access=access,
            at_ms=now_ms,
            generation=command.generation,
        )
    )
    if command.since_at_ms is not None:
        begin = c.OfferPastSignals(
            workflow_id=command.workflow_id,
            trigger_id=command.trigger_id,
            generation=command.generation,
            since_at_ms=command.since_at_ms,
            sequence=0,
        )
        yield Send(SIGNAL_INTERNAL, name, begin)


@signals.decides(c.OfferPastSignals)
def offer_past_signals(message: Message[c.OfferPastSignals], state: Signals, now_ms: int) -> Iterator[Effect]:
    """Offer signals of the past to one trigger, oldest first, up to where it hears of them anyway."""
    name, command = message.key, message.value
    subscription = trigger_subscription(command.workflow_id, command.trigger_id)
    row = state.subscriptions.get((name, subscription))
    if row is None or command.generation != row.generation:
        return  # it was disarmed; or armed anew, and then it asks for the past itself
    matching = past(name, conditions_of(row.match), state, Span(command.sequence, row.since + 1))
    recent = ((at, row if row and row.happened_at_ms >= command.since_at_ms else None) for at, row in matching)
    signals_to_offer, rest = bounded(recent, OFFERS_MAX)
    for signal in signals_to_offer:
        yield Emit(c.SignalOffered(name=name, sequence=signal[0], offered=(subscription,), at_ms=now_ms))
        yield Send(TRIGGER_INTERNAL, trigger_key(row.workflow_id, row.trigger_id), _offer_of(name, signal, row))
    if rest is not None:
        yield Send(SIGNAL_INTERNAL, name, msgspec.structs.replace(command, sequence=rest))


@signals.decides(c.SearchPastSignals)
def search_past_signals(message: Message[c.SearchPastSignals], state: Signals, now_ms: int) -> Iterator[Effect]:
    """Go on searching for a signal of the past that a waiting step can have."""
    name, command = message.key, message.value
    subscription = step_subscription(command.workflow_id, command.instance_id, command.step_id, command.index)
    row = state.subscriptions.get((name, subscription))
    if row is None or command.since != row.since:
        return  # it waits no more; or it waits anew, and then it has searched again
    span = Span(0, command.sequence, newest_first=True) if command.is_latest else Span(command.sequence, row.since + 1)
    matches, rest = bounded(past(name, conditions_of(row.match), state, span), 1)
    if matches:
        yield from _matched(name, matches[0], row, now_ms)
    elif rest is not None:
        yield Send(SIGNAL_INTERNAL, name, msgspec.structs.replace(command, sequence=rest))


@signals.decides(c.UnsubscribeTrigger)
def unsubscribe(message: Message[c.UnsubscribeTrigger], state: Signals, now_ms: int) -> Iterator[Effect]:
    """A trigger hears of nothing any more."""
    name, command = message.key, message.value
    if state.subscriptions.get((name, trigger_subscription(command.workflow_id, command.trigger_id))) is not None:
        yield Emit(
            c.TriggerUnsubscribed(
                name=name, workflow_id=command.workflow_id, trigger_id=command.trigger_id, at_ms=now_ms
            )
        )


@signals.decides(c.AwaitSignal)
def await_signal(message: Message[c.AwaitSignal], state: Signals, now_ms: int) -> Iterator[Effect]:
    """A step is told of a signal of the past that matches, or waits for the next one."""
    name, command = message.key, message.value
    matches, rest = _first_of_the_past(name, command, state)
    waiting = SubscriptionRow(
        match=command.match,
        access=[],
        since=0,
        workflow_id=command.workflow_id,
        instance_id=command.instance_id,
        run_id=command.run_id,
        step_id=command.step_id,
        attempt=command.attempt,
        iteration=command.iteration,
        index=command.index,
    )
    if matches:
        yield from _matched(name, matches[0], waiting, now_ms)
        return
    yield Emit(
        c.StepAwaits(
            name=name,
            workflow_id=command.workflow_id,
            instance_id=command.instance_id,
            run_id=command.run_id,
            step_id=command.step_id,
            attempt=command.attempt,
            iteration=command.iteration,
            index=command.index,
            match=command.match,
            access=_access(name, command.match, state),
            at_ms=now_ms,
        )
    )
    if rest is not None:
        search = c.SearchPastSignals(
            workflow_id=command.workflow_id,
            instance_id=command.instance_id,
            step_id=command.step_id,
            index=command.index,
            since=(state.names.get((name,)) or NEW).sequence,
            is_latest=command.is_latest,
            sequence=rest,
        )
        yield Send(SIGNAL_INTERNAL, name, search)


def _first_of_the_past(name: str, command: c.AwaitSignal, state: Signals) -> tuple[list[Past], int | None]:
    """A signal that a step can have at once; if there was too much to look at, where to go on."""
    conditions = conditions_of(command.match)
    values = None if command.is_latest else by_value(name, conditions, state)
    if values is None:
        return bounded(past(name, conditions, state, Span(newest_first=command.is_latest)), 1)
    matches, rest = bounded(values, 1)
    return matches, None if rest is None else 0


@signals.decides(c.ForgetAwait)
def forget_await(message: Message[c.ForgetAwait], state: Signals, now_ms: int) -> Iterator[Effect]:
    """A step does not wait any more."""
    name, command = message.key, message.value
    subscription = step_subscription(command.workflow_id, command.instance_id, command.step_id, command.index)
    if state.subscriptions.get((name, subscription)) is not None:
        yield Emit(
            c.AwaitEnded(
                name=name,
                workflow_id=command.workflow_id,
                instance_id=command.instance_id,
                step_id=command.step_id,
                index=command.index,
                at_ms=now_ms,
                sequence=None,
            )
        )


def _access(name: str, match: str, state: Signals) -> tuple[str, ...]:
    def crowd(entry: Entry) -> int:
        row = state.crowds.get((name, entry.param, entry.kind, entry.text))
        return row.count if row else 0

    return tuple(str(entry) for entry in entries_of(conditions_of(match), crowd))
