"""The changes that events of signals make to the view. All events of a name are on one partition, in order."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Protocol

import msgspec

from kapelle.processors.signals.applying import step_subscription, trigger_subscription
from kapelle.schemas import contracts as c
from kapelle.topology.journal import Entry
from kapelle.views.projection.at import as_json
from kapelle.views.projection.news import request_news
from kapelle.views.rows import Cells, Rows

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


def _origin(source: _Source) -> Cells:
    return {"workflow_id": source.workflow_id, "instance_id": source.workflow_instance_id, "step_id": source.step_id}


class _Announced(Protocol):
    """An event that answers an announcement."""

    @property
    def name(self) -> str: ...

    @property
    def signal_id(self) -> str: ...

    @property
    def at_ms(self) -> int: ...


def _outcome(rows: Rows, entry: Entry, event: _Announced, source: _Source, **body: object) -> None:
    """Write the answer to an announcement through the API."""
    if source.request_id is not None:
        cells: Cells = {
            "workflow_id": announcer(event.name),
            "kind": type(event).__name__,
            "body": as_json({"signal_id": event.signal_id, **body}),
            "at_ms": event.at_ms,
        }
        rows.put("requests", (source.request_id, entry.stream, entry.partition, entry.offset), cells)
        rows.news(request_news(source.request_id))


def _accepted(rows: Rows, entry: Entry, event: c.SignalAccepted) -> None:
    source = _source(event.source)
    cells: Cells = {
        "signal_id": event.signal_id,
        "params": event.params,
        "payload": event.payload,
        "source": event.source,
        "happened_at_ms": event.happened_at_ms,
        "at_ms": event.at_ms,
        "position": entry.offset,
        **_origin(source),
    }
    rows.put("signals", (event.name, event.sequence), cells)
    latest: Cells = {"sequence": event.sequence, "at_ms": event.at_ms}
    rows.put("signal_names", (event.name,), latest, {"floor": event.sequence - 1})
    _offered(rows, entry, event)
    _outcome(rows, entry, event, source, sequence=event.sequence)


def _offered(rows: Rows, _: Entry, event: c.SignalAccepted | c.SignalOffered) -> None:
    for subscription in event.offered:
        rows.put("offers", (event.name, event.sequence, subscription), {"at_ms": event.at_ms})


def _duplicated(rows: Rows, entry: Entry, event: c.SignalDuplicated) -> None:
    source = _source(event.source)
    cells: Cells = {
        "signal_id": event.signal_id,
        "status": DUPLICATED,
        "first_sequence": event.first_sequence,
        "source": event.source,
        "at_ms": event.at_ms,
        **_origin(source),
    }
    rows.put("unaccepted_signals", (event.name, entry.offset), cells)
    _outcome(rows, entry, event, source, first_sequence=event.first_sequence)


def _too_late(rows: Rows, entry: Entry, event: c.SignalTooLate) -> None:
    source = _source(event.source)
    cells: Cells = {
        "signal_id": event.signal_id,
        "status": TOO_LATE,
        "happened_at_ms": event.happened_at_ms,
        "floor_at_ms": event.floor_at_ms,
        "source": event.source,
        "at_ms": event.at_ms,
        **_origin(source),
    }
    rows.put("unaccepted_signals", (event.name, entry.offset), cells)
    rows.put("signal_names", (event.name,), {"too_late_at_ms": event.at_ms})
    _outcome(rows, entry, event, source, happened_at_ms=event.happened_at_ms, floor_at_ms=event.floor_at_ms)


def _subscribed(rows: Rows, entry: Entry, event: c.TriggerSubscribed) -> None:
    subscription = trigger_subscription(event.workflow_id, event.trigger_id)
    cells: Cells = {"workflow_id": event.workflow_id, "trigger_id": event.trigger_id}
    _begun(rows, entry, event, subscription, cells)


def _awaits(rows: Rows, entry: Entry, event: c.StepAwaits) -> None:
    subscription = step_subscription(event.workflow_id, event.instance_id, event.step_id, event.index)
    cells: Cells = {
        "workflow_id": event.workflow_id,
        "instance_id": event.instance_id,
        "step_id": event.step_id,
        "number": event.index,
    }
    _begun(rows, entry, event, subscription, cells)


def _begun(
    rows: Rows, entry: Entry, event: c.TriggerSubscribed | c.StepAwaits, subscription: str, cells: Cells
) -> None:
    """A subscription that is made again is made anew."""
    _over(rows, entry, event.name, subscription)
    key = (event.name, subscription, entry.offset)
    rows.put("subscriptions", key, {**cells, "match": event.match, "at_ms": event.at_ms})
    rows.put("signal_names", (event.name,), {"subscribed_at_ms": event.at_ms})


def _over(rows: Rows, entry: Entry, name: str, subscription: str) -> None:
    where: Cells = {"name": name, "subscription": subscription, "ended": OPEN}
    rows.amend("subscriptions", where, {"ended": entry.offset})


def _unsubscribed(rows: Rows, entry: Entry, event: c.TriggerUnsubscribed) -> None:
    _over(rows, entry, event.name, trigger_subscription(event.workflow_id, event.trigger_id))


def _await_ended(rows: Rows, entry: Entry, event: c.AwaitEnded) -> None:
    subscription = step_subscription(event.workflow_id, event.instance_id, event.step_id, event.index)
    _over(rows, entry, event.name, subscription)
    if event.sequence is not None:  # one of the past was offered without anyone having waited
        rows.put("offers", (event.name, event.sequence, subscription), {"at_ms": event.at_ms})


def step_matched(rows: Rows, workflow_id: str, instance_id: int | None, event: c.DependencyMatched) -> None:
    """A step has taken a signal. One that was let go without has taken none."""
    if event.signal_id:
        key = (workflow_id, instance_id, event.step_id, event.index, event.name, event.sequence)
        rows.put("step_signals", key, {"run_id": event.run_id, "at_ms": event.at_ms})


OF_SIGNALS: Final[Mapping[type[object], Callable[[Rows, Entry, Any], None]]] = {
    c.SignalAccepted: _accepted,
    c.SignalDuplicated: _duplicated,
    c.SignalTooLate: _too_late,
    c.SignalOffered: _offered,
    c.TriggerSubscribed: _subscribed,
    c.TriggerUnsubscribed: _unsubscribed,
    c.StepAwaits: _awaits,
    c.AwaitEnded: _await_ended,
}
