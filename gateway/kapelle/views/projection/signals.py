"""What the events of signals do to the view. All events of a name stand on one partition, in order."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final

import msgspec

from kapelle.processors.signals.applying import step_subscription, trigger_subscription
from kapelle.schemas import contracts as c
from kapelle.topology.journal import Entry
from kapelle.views.changes import Amend, Cell, Change, Put
from kapelle.views.projection.at import as_json

Changes = Iterator[Change]
DUPLICATED: Final = "DUPLICATED"
TOO_LATE: Final = "TOO_LATE"
OPEN: Final = 0


class _Source(msgspec.Struct):
    """Who announced a signal, as far as the view asks: a step, or a request to the API."""

    workflow_id: str | None = None
    workflow_instance_id: Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)] | None = None
    step_id: str | None = None
    request_id: str | None = None


def _source(text: str) -> _Source:
    try:
        return msgspec.json.decode(text, type=_Source)
    except msgspec.MsgspecError:
        return _Source()  # anyone may announce, and say of themselves what they like


def announcer(name: str) -> str:
    """In whose name the outcomes of announcements stand. No workflow can have such an id."""
    return f"signal/{name}"


def _origin(source: _Source) -> dict[str, Cell]:
    return {"workflow_id": source.workflow_id, "instance_id": source.workflow_instance_id, "step_id": source.step_id}


def _outcome(entry: Entry, event: Any, source: _Source, **body: Any) -> Changes:
    """Whoever announced through the API hears what came of it."""
    if source.request_id is not None:
        cells: dict[str, Cell] = {
            "request_id": source.request_id,
            "workflow_id": announcer(event.name),
            "kind": type(event).__name__,
            "body": as_json({"signal_id": event.signal_id, **body}),
            "at_ms": event.at_ms,
        }
        place: dict[str, Cell] = {"stream": entry.stream, "partition": entry.partition, "position": entry.offset}
        yield Put("requests", place, cells)


def _accepted(entry: Entry, event: c.SignalAccepted) -> Changes:
    source = _source(event.source)
    cells: dict[str, Cell] = {
        "signal_id": event.signal_id,
        "params": event.params,
        "payload": event.payload,
        "source": event.source,
        "happened_at_ms": event.happened_at_ms,
        "at_ms": event.at_ms,
        "position": entry.offset,
        **_origin(source),
    }
    yield Put("signals", {"name": event.name, "sequence": event.sequence}, cells)
    yield Put("signal_names", {"name": event.name}, {"sequence": event.sequence, "at_ms": event.at_ms})
    yield from _offered(entry, event)
    yield from _outcome(entry, event, source, sequence=event.sequence)


def _offered(_: Entry, event: c.SignalAccepted | c.SignalOffered) -> Changes:
    for subscription in event.offered:
        yield _offer(event.name, event.sequence, subscription, event.at_ms)


def _offer(name: str, sequence: int, subscription: str, at_ms: int) -> Put:
    key: dict[str, Cell] = {"name": name, "sequence": sequence, "subscription": subscription}
    return Put("offers", key, {"at_ms": at_ms})


def _duplicated(entry: Entry, event: c.SignalDuplicated) -> Changes:
    source = _source(event.source)
    cells: dict[str, Cell] = {
        "signal_id": event.signal_id,
        "status": DUPLICATED,
        "first_sequence": event.first_sequence,
        "source": event.source,
        "at_ms": event.at_ms,
        **_origin(source),
    }
    yield Put("vain_signals", {"name": event.name, "position": entry.offset}, cells)
    yield from _outcome(entry, event, source, first_sequence=event.first_sequence)


def _too_late(entry: Entry, event: c.SignalTooLate) -> Changes:
    source = _source(event.source)
    cells: dict[str, Cell] = {
        "signal_id": event.signal_id,
        "status": TOO_LATE,
        "happened_at_ms": event.happened_at_ms,
        "floor_at_ms": event.floor_at_ms,
        "source": event.source,
        "at_ms": event.at_ms,
        **_origin(source),
    }
    yield Put("vain_signals", {"name": event.name, "position": entry.offset}, cells)
    yield Put("signal_names", {"name": event.name}, {"too_late_at_ms": event.at_ms})
    yield from _outcome(entry, event, source, happened_at_ms=event.happened_at_ms, floor_at_ms=event.floor_at_ms)


def _subscribed(entry: Entry, event: c.TriggerSubscribed) -> Changes:
    subscription = trigger_subscription(event.workflow_id, event.trigger_id)
    cells: dict[str, Cell] = {"workflow_id": event.workflow_id, "trigger_id": event.trigger_id}
    yield from _begun(entry, event, subscription, cells)


def _awaits(entry: Entry, event: c.StepAwaits) -> Changes:
    subscription = step_subscription(event.workflow_id, event.instance_id, event.step_id, event.index)
    cells: dict[str, Cell] = {
        "workflow_id": event.workflow_id,
        "instance_id": event.instance_id,
        "step_id": event.step_id,
        "number": event.index,
    }
    yield from _begun(entry, event, subscription, cells)


def _begun(
    entry: Entry, event: c.TriggerSubscribed | c.StepAwaits, subscription: str, cells: Mapping[str, Cell]
) -> Changes:
    """A subscription that is made again is made anew."""
    yield _over(entry, event.name, subscription)
    key: dict[str, Cell] = {"name": event.name, "subscription": subscription, "position": entry.offset}
    yield Put("subscriptions", key, {**cells, "match": event.match, "at_ms": event.at_ms})
    yield Put("signal_names", {"name": event.name}, {"subscribed_at_ms": event.at_ms})


def _over(entry: Entry, name: str, subscription: str) -> Amend:
    where: dict[str, Cell] = {"name": name, "subscription": subscription, "ended": OPEN}
    return Amend("subscriptions", where, {"ended": entry.offset})


def _unsubscribed(entry: Entry, event: c.TriggerUnsubscribed) -> Changes:
    yield _over(entry, event.name, trigger_subscription(event.workflow_id, event.trigger_id))


def _await_ended(entry: Entry, event: c.AwaitEnded) -> Changes:
    subscription = step_subscription(event.workflow_id, event.instance_id, event.step_id, event.index)
    yield _over(entry, event.name, subscription)
    if event.sequence is not None:  # one of the past was offered without anyone having waited
        yield _offer(event.name, event.sequence, subscription, event.at_ms)


def step_matched(workflow_id: str, instance_id: int | None, event: c.DependencyMatched) -> Changes:
    """A step has taken a signal. One that was let go without has taken none."""
    if event.signal_id:
        key: dict[str, Cell] = {
            "workflow_id": workflow_id,
            "instance_id": instance_id,
            "step_id": event.step_id,
            "number": event.index,
            "name": event.name,
            "sequence": event.sequence,
        }
        yield Put("step_signals", key, {"run_id": event.run_id, "at_ms": event.at_ms})


OF_SIGNALS: Final[Mapping[type[Any], Callable[[Entry, Any], Changes]]] = {
    c.SignalAccepted: _accepted,
    c.SignalDuplicated: _duplicated,
    c.SignalTooLate: _too_late,
    c.SignalOffered: _offered,
    c.TriggerSubscribed: _subscribed,
    c.TriggerUnsubscribed: _unsubscribed,
    c.StepAwaits: _awaits,
    c.AwaitEnded: _await_ended,
}
