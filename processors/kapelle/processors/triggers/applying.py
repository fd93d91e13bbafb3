"""How events about triggers change the tables."""

from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from kapelle.processors.messages import Message
from kapelle.processors.triggers.processor import triggers
from kapelle.processors.triggers.tables import First, KeptRow, TriggerRow, Triggers, WaitingRow
from kapelle.schemas import contracts as c

Place = tuple[int, str, str, int]  # generation, join value, name, sequence
NOTHING = WaitingRow()


def expiry_of(at: Place) -> str:
    """The name of the timer that gives up on a signal that waits."""
    return msgspec.json.encode(at).decode()


def place_of(timer: str) -> Place:
    """The signal that a timer is about."""
    place: Place = msgspec.json.decode(timer, type=Place)
    return place


def generation_after(before: TriggerRow | None) -> int:
    """The number of the next arming."""
    return before.generation + 1 if before else 1


@triggers.applies(c.TriggerSet)
def trigger_set(message: Message[c.TriggerSet], state: Triggers) -> None:
    event = message.value
    before = state.triggers.get((message.key,))
    if before is not None and before.is_armed:
        state.triggers.put((message.key,), msgspec.structs.replace(before, version=event.version))
        return
    row = TriggerRow(event.workflow_id, event.trigger_id, event.version, event.definition, generation_after(before))
    state.triggers.put((message.key,), row)


@triggers.applies(c.TriggerRemoved)
def trigger_removed(message: Message[c.TriggerRemoved], state: Triggers) -> None:
    before = state.triggers.get((message.key,))
    if before is not None:
        state.triggers.put((message.key,), msgspec.structs.replace(before, is_armed=False))


@triggers.applies(c.KeptDropped)
def kept_dropped(message: Message[c.KeptDropped], state: Triggers) -> None:
    event = message.value
    for generation, value, name, sequence in list(islice(places(state, message.key, event.generation), event.count)):
        _forget(state, (message.key, generation, value), [(name, sequence)])


def places(state: Triggers, key: str, generation: int) -> Iterator[Place]:
    """All signals that wait, those behind others before the first ones."""
    for at, _ in state.kept.prefix((key, generation)):
        yield at[1:]
    for (_, _, value), row in state.waiting.prefix((key, generation)):
        for name, one in row.first.items():
            yield generation, value, name, one.sequence


@triggers.applies(c.SignalKept)
def signal_kept(message: Message[c.SignalKept], state: Triggers) -> None:
    event, row = message.value, state.triggers.get((message.key,))
    if row is None:
        return
    at = (message.key, row.generation, event.join_value)
    waiting = dict((state.waiting.get(at) or NOTHING).first)
    one = First(event.sequence, event.signal_id, event.params, event.expires_at_ms)
    first = waiting.get(event.name)
    waiting[event.name] = one if first is None else _queued(state, (*at, event.name), first, one)
    state.waiting.put(at, WaitingRow(waiting))
    if event.expires_at_ms is not None:
        expiry = expiry_of((row.generation, event.join_value, event.name, event.sequence))
        state.timers.set(message.key, expiry, event.expires_at_ms)


@triggers.applies(c.SignalPassedOver)
def signal_passed_over(message: Message[c.SignalPassedOver], state: Triggers) -> None:
    """A signal that was kept may be passed over for a newer one."""
    event, row = message.value, state.triggers.get((message.key,))
    if row is not None and event.join_value is not None:
        _forget(state, (message.key, row.generation, event.join_value), [(event.name, event.sequence)])


@triggers.applies(c.SignalExpired)
def signal_expired(message: Message[c.SignalExpired], state: Triggers) -> None:
    event = message.value
    _forget(state, (message.key, event.generation, event.join_value), [(event.name, event.sequence)])


@triggers.applies(c.TriggerFired)
def trigger_fired(message: Message[c.TriggerFired], state: Triggers) -> None:
    _use(state, message.key, message.value.join_value, message.value.signals)


@triggers.applies(c.FiringSkipped)
def firing_skipped(message: Message[c.FiringSkipped], state: Triggers) -> None:
    _use(state, message.key, message.value.join_value, message.value.signals)


def _use(state: Triggers, key: str, join_value: str, used: tuple[c.JoinedSignal, ...]) -> None:
    """A signal is used at most once."""
    if len(used) == 1:
        return  # it came and was used at once
    row = state.triggers.get((key,))
    if row is not None:
        _forget(state, (key, row.generation, join_value), [(one.name, one.sequence) for one in used])


def _queued(state: Triggers, at: tuple[str, int, str, str], first: First, one: First) -> First:
    """Each at the place of its number, whichever came before the other, and once. Returns who is first."""
    if one.sequence == first.sequence:
        return first
    one, last = (one, first) if one.sequence < first.sequence else (first, one)
    place = (*at, last.sequence)
    behind = first.behind + (state.kept.get(place) is None)
    state.kept.put(place, KeptRow(last.signal_id, last.params, last.expires_at_ms))
    return msgspec.structs.replace(one, behind=behind)


def _forget(state: Triggers, at: tuple[str, int, str], gone: Iterable[tuple[str, int]]) -> None:
    """Signals of one join value wait no more. Who was behind one of them is next."""
    row = state.waiting.get(at)
    if row is None:
        return
    waiting, (key, generation, value) = dict(row.first), at
    for name, sequence in gone:
        first = waiting.get(name)
        if first is None:
            continue  # it came and was used at once
        expires_at_ms = first.expires_at_ms
        if first.sequence == sequence:
            _advance(state, at, name, waiting)
        else:
            kept = state.kept.get((*at, name, sequence))
            if kept is None:
                continue
            expires_at_ms = kept.expires_at_ms
            state.kept.delete((*at, name, sequence))
            waiting[name] = msgspec.structs.replace(first, behind=first.behind - 1)
        if expires_at_ms is not None:
            state.timers.cancel(key, expiry_of((generation, value, name, sequence)))
    if waiting:
        state.waiting.put(at, WaitingRow(waiting))
    else:
        state.waiting.delete(at)


def _advance(state: Triggers, at: tuple[str, int, str], name: str, waiting: dict[str, First]) -> None:
    """The next of a name, if there is one, takes the place of the first."""
    first = waiting.pop(name)
    following = state.kept.first((*at, name)) if first.behind else None
    if following is not None:
        place, kept = following
        state.kept.delete(place)
        waiting[name] = First(place[4], kept.signal_id, kept.params, kept.expires_at_ms, first.behind - 1)
