"""How events about signals change the tables."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from kapelle.processors.messages import Message
from kapelle.processors.signals.bounds import params_in
from kapelle.processors.signals.matching import Entry, text_of
from kapelle.processors.signals.processor import signals
from kapelle.processors.signals.tables import (
    Crowd,
    Entered,
    NameRow,
    SeenRow,
    SignalRow,
    Signals,
    SubscriptionRow,
    UsedRow,
)
from kapelle.processors.signals.windows import CLOCK, accepted, kept, moved
from kapelle.schemas import contracts as c

ENTERED = Entered()
NEW = NameRow()
UNUSED = UsedRow()
NOBODY = Crowd()
FEW_MAX: Final = 16


def trigger_subscription(workflow_id: str, trigger_id: str) -> str:
    """The name of a trigger among the subscriptions."""
    return f"trigger/{workflow_id}/{trigger_id}"


def step_subscription(workflow_id: str, instance_id: int, step_id: str, index: int) -> str:
    """The name of a waiting step among the subscriptions."""
    return f"step/{workflow_id}/{instance_id}/{step_id}/{index}"


@signals.applies(c.SignalAccepted)
def signal_accepted(message: Message[c.SignalAccepted], state: Signals) -> None:
    event = message.value
    generation = _move_clock(state, event.happened_at_ms)
    name = state.names.get((event.name,)) or NEW
    state.names.put((event.name,), accepted(name, generation, event.sequence, event.said_at_ms))
    row = SignalRow(event.signal_id, event.params, event.happened_at_ms)
    state.signals.put((event.name, event.sequence), row)
    for param, value in params_in(event.params).items():
        state.by_param.put((event.name, param, text_of(value), event.sequence), ENTERED)
    state.seen.put((generation, event.name, event.signal_id), SeenRow(event.sequence))


def _move_clock(state: Signals, at_ms: int) -> int:
    """Move time to when a signal happened, unless it has come further; tells the generation that this is."""
    clock = state.clock.get((CLOCK,))
    now = moved(clock, at_ms)
    if now is not clock:
        state.clock.put((CLOCK,), now)
        if clock is not None and now.generation > clock.generation:
            state.seen.drop_before(kept(now.generation).start)
    return now.generation


@signals.applies(c.TriggerSubscribed)
def trigger_subscribed(message: Message[c.TriggerSubscribed], state: Signals) -> None:
    event = message.value
    row = SubscriptionRow(
        match=event.match,
        access=list(event.access),
        since=_sequence(state, event.name),
        workflow_id=event.workflow_id,
        trigger_id=event.trigger_id,
        generation=event.generation,
    )
    _enter(state, event.name, trigger_subscription(event.workflow_id, event.trigger_id), row)


@signals.applies(c.TriggerUnsubscribed)
def trigger_unsubscribed(message: Message[c.TriggerUnsubscribed], state: Signals) -> None:
    event = message.value
    _leave(state, event.name, trigger_subscription(event.workflow_id, event.trigger_id))


@signals.applies(c.StepAwaits)
def step_awaits(message: Message[c.StepAwaits], state: Signals) -> None:
    event = message.value
    row = SubscriptionRow(
        match=event.match,
        access=list(event.access),
        since=_sequence(state, event.name),
        workflow_id=event.workflow_id,
        instance_id=event.instance_id,
        run_id=event.run_id,
        step_id=event.step_id,
        attempt=event.attempt,
        iteration=event.iteration,
        index=event.index,
    )
    _enter(state, event.name, step_subscription(row.workflow_id, row.instance_id, row.step_id, row.index), row)


@signals.applies(c.AwaitEnded)
def await_ended(message: Message[c.AwaitEnded], state: Signals) -> None:
    event = message.value
    name = step_subscription(event.workflow_id, event.instance_id, event.step_id, event.index)
    _leave(state, event.name, name)


@signals.applies(c.SignalDuplicated)
def signal_duplicated(message: Message[c.SignalDuplicated], state: Signals) -> None:
    """It is told, and changes nothing."""


@signals.applies(c.SignalTooLate)
def signal_too_late(message: Message[c.SignalTooLate], state: Signals) -> None:
    """It is told, and changes nothing."""


@signals.applies(c.SignalOffered)
def signal_offered(message: Message[c.SignalOffered], state: Signals) -> None:
    """It is told, and changes nothing."""


def _sequence(state: Signals, name: str) -> int:
    return (state.names.get((name,)) or NEW).sequence


def _enter(state: Signals, name: str, subscription: str, row: SubscriptionRow) -> None:
    _leave(state, name, subscription)  # a subscription that is made again is made anew
    state.subscriptions.put((name, subscription), row)
    _count(state, name, (Entry.parse(text) for text in row.access), subscription, by=1)


def _leave(state: Signals, name: str, subscription: str) -> None:
    row = state.subscriptions.get((name, subscription))
    if row is not None:
        state.subscriptions.delete((name, subscription))
        _count(state, name, (Entry.parse(text) for text in row.access), subscription, by=-1)


def _count(state: Signals, name: str, entries: Iterable[Entry], subscription: str, *, by: int) -> None:
    known = state.used.get((name,)) or UNUSED
    used = {param: dict(kinds) for param, kinds in known.kinds.items()}
    for entry in entries:
        at = (name, entry.param, entry.kind, entry.text)
        if by > 0:
            state.index.put((*at, subscription), ENTERED)
        else:
            state.index.delete((*at, subscription))
        _crowd(state, at, subscription, by=by)
        kinds = used.setdefault(entry.param, {})
        kinds[entry.kind] = kinds.get(entry.kind, 0) + by
        if kinds[entry.kind] <= 0:
            del kinds[entry.kind]
        if not kinds:
            del used[entry.param]
    if used:
        state.used.put((name,), UsedRow(used))
    else:
        state.used.delete((name,))


def _crowd(state: Signals, at: tuple[str, str, str, str], subscription: str, *, by: int) -> None:
    """One more or one less at a place of the index, whose rows tell it already."""
    before = state.crowds.get(at) or NOBODY
    count = before.count + by
    if count <= 0:
        state.crowds.delete(at)
    elif count > FEW_MAX:
        state.crowds.put(at, Crowd(count))
    elif before.count > FEW_MAX:
        state.crowds.put(at, Crowd(count, [key[4] for key, _ in islice(state.index.prefix(at), FEW_MAX)]))
    else:
        few = [one for one in before.few if one != subscription] + [subscription] * (by > 0)
        state.crowds.put(at, Crowd(count, sorted(few)))
