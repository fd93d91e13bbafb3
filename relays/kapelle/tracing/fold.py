"""Our history as spans: a fold over the records of one partition, in their order.

    signal ─▶ trigger ─▶ queue
                     └─▶ run ─▶ step, for each attempt ◁╌╌ signal that it announced
                                └─▶ queue and run of each child of it

| span | from | to | stream |
|---|---|---|---|
| signal | it is accepted | the same | signals |
| trigger | its signals are together | the same | triggers |
| queue | an instance is created | it leaves the queue, or ends there | workflows |
| run | it begins | it ends | runs |
| step | an attempt is created | it ends | runs |

1. A span is told when its end is read. What is needed of its beginning is remembered until then, and nothing else.
2. Ids and times are made of records alone. Who reads the same records again tells the same spans.
3. `since` is the oldest record that something remembered came from. Who begins there remembers the same.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from kapelle.processors.wiring import RUN_EVENTS, SIGNAL_EVENTS, TRIGGER_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.tracing.ids import Ids
from kapelle.tracing.memory import Begun
from kapelle.tracing.origins import Origin, announcer_of, origin_of
from kapelle.tracing.runs import VERDICTS, Runs
from kapelle.tracing.spans import Attributes, Kind, Link, Past, Span

FOLLOWED: Final = (SIGNAL_EVENTS, TRIGGER_EVENTS, WORKFLOW_EVENTS, RUN_EVENTS)


class Folding(Protocol):
    """Tells the spans of one partition."""

    @property
    def since(self) -> int | None:
        """The offset of the oldest record that is still needed."""
        ...

    def of(self, past: Past) -> Iterator[Span]:
        """The spans that end with a record. Most records end none."""
        ...


class Signals:
    """What was accepted. Nothing is remembered."""

    since: Final = None

    def __init__(self, ids: Ids) -> None:
        self._ids = ids

    def of(self, past: Past) -> Iterator[Span]:
        event = past.entry.value
        if not isinstance(event, c.SignalAccepted):
            return
        trace = self._ids.trace_of_signal(event.name, event.sequence, past.trace)
        if not trace.is_sampled:
            return
        parent_id, is_remote, links = trace.parent_id, True, tuple[Link, ...]()
        step = announcer_of(self._ids, event.source)
        if step is not None and step.trace.id == trace.id:  # a stranger's trace has come all the way
            parent_id, is_remote = step.span_id, False
        elif step is not None and step.trace.is_sampled:
            links = (Link(step.trace.id, step.span_id, step.attributes),)
        yield Span(
            name=f"signal {event.name}",
            kind=Kind.CONSUMER,
            trace_id=trace.id,
            span_id=self._ids.signal(event.name, event.sequence),
            parent_id=parent_id,
            is_parent_remote=is_remote,
            start_ms=event.at_ms,
            end_ms=event.at_ms,
            attributes=_signal(event) | past.coordinates,
            links=links,
        )


class Triggers:
    """What was fired. Of signals that wait for partners, those are remembered that came with a trace of their own."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._waiting: Begun[tuple[str, str, int], str] = Begun()

    @property
    def since(self) -> int | None:
        return self._waiting.since

    def of(self, past: Past) -> Iterator[Span]:
        tell = TRIGGERS.get(type(past.entry.value))
        if tell is not None:
            yield from tell(self, past, past.entry.value)

    def kept(self, past: Past, event: c.SignalKept) -> Iterator[Span]:
        if past.trace is not None:
            self._waiting.begin((past.entry.key, event.name, event.sequence), past.entry.offset, past.trace)
        yield from ()

    def gone(self, past: Past, event: c.SignalPassedOver | c.SignalExpired) -> Iterator[Span]:
        self._waiting.end((past.entry.key, event.name, event.sequence))
        yield from ()

    def dropped(self, past: Past, _: c.KeptDropped) -> Iterator[Span]:
        for waiting in self._waiting:
            if waiting[0] == past.entry.key:
                self._waiting.end(waiting)
        yield from ()

    def fired(self, past: Past, event: c.TriggerFired) -> Iterator[Span]:
        """The signal that came last is its parent, the others are linked."""
        partners = list(event.signals)
        last = partners.pop(event.last if event.last < len(partners) else 0)
        trace = self._ids.trace_of_signal(last.name, last.sequence, past.trace)
        links = tuple(self._link(past.entry.key, partner) for partner in partners)
        if trace.is_sampled:
            signals = {signal.name: signal.sequence for signal in event.signals}
            named: Attributes = {
                "kapelle.workflow": event.workflow_id,
                "kapelle.trigger": event.trigger_id,
                "kapelle.request": event.request_id,
            }
            yield Span(
                name=f"trigger {event.workflow_id}",
                trace_id=trace.id,
                span_id=self._ids.firing(event.workflow_id, event.trigger_id, signals),
                parent_id=self._ids.signal(last.name, last.sequence),
                start_ms=event.at_ms,
                end_ms=event.at_ms,
                attributes=named | past.coordinates,
                links=links,
            )

    def skipped(self, past: Past, event: c.FiringSkipped) -> Iterator[Span]:
        for signal in event.signals:
            self._waiting.end((past.entry.key, signal.name, signal.sequence))
        yield from ()

    def _link(self, key: str, signal: c.JoinedSignal) -> Link:
        came_with = self._waiting.end((key, signal.name, signal.sequence))
        trace = self._ids.trace_of_signal(signal.name, signal.sequence, came_with)
        return Link(trace.id, self._ids.signal(signal.name, signal.sequence), _signal(signal))


class Queued(msgspec.Struct, frozen=True):
    """A run that waits for its turn."""

    origin: Origin
    at_ms: int


class Queues:
    """How long runs waited for their turn, and which never had one."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._queued: Begun[tuple[str, int, int], Queued] = Begun()

    @property
    def since(self) -> int | None:
        return self._queued.since

    def of(self, past: Past) -> Iterator[Span]:
        tell = QUEUES.get(type(past.entry.value))
        if tell is not None:
            yield from tell(self, past, past.entry.value)

    def created(self, past: Past, event: c.InstanceCreated) -> Iterator[Span]:
        origin = origin_of(self._ids, event)
        if not origin.trace.is_sampled:
            return
        queued = Queued(origin, event.at_ms)
        if event.status in VERDICTS:
            yield self._span(past, event, queued, (event.status, event.reason))
        else:
            self._queued.begin((event.workflow_id, event.instance_id, event.run_id), past.entry.offset, queued)

    def launched(self, past: Past, event: c.InstanceLaunched) -> Iterator[Span]:
        queued = self._queued.end((event.workflow_id, event.instance_id, event.run_id))
        if queued is not None:
            yield self._span(past, event, queued, None)

    def ended(self, past: Past, event: c.InstanceEnded) -> Iterator[Span]:
        queued = self._queued.end((event.workflow_id, event.instance_id, event.run_id))
        if queued is not None and not event.was_launched:
            yield self._span(past, event, queued, (event.status, event.reason))

    def _span(
        self,
        past: Past,
        event: c.InstanceCreated | c.InstanceLaunched | c.InstanceEnded,
        queued: Queued,
        end: tuple[c.InstanceStatus, str] | None,
    ) -> Span:
        origin = queued.origin
        named: Attributes = {
            "kapelle.workflow": event.workflow_id,
            "kapelle.instance": event.instance_id,
            "kapelle.run": event.run_id,
            "kapelle.status": "LAUNCHED" if end is None else end[0].value,
        }
        made = Span(
            name=f"queue {event.workflow_id}",
            trace_id=origin.trace.id,
            span_id=self._ids.queued(event.workflow_id, event.instance_id, event.run_id),
            parent_id=origin.parent_id,
            is_parent_remote=origin.is_remote,
            start_ms=queued.at_ms,
            end_ms=event.at_ms,
            attributes=named | origin.attributes | past.coordinates,
        )
        return made if end is None else msgspec.structs.replace(made, verdict=VERDICTS[end[0]], reason=end[1])


TRIGGERS: Final[Mapping[type[object], Callable[[Triggers, Past, Any], Iterator[Span]]]] = {
    c.SignalKept: Triggers.kept,
    c.SignalPassedOver: Triggers.gone,
    c.SignalExpired: Triggers.gone,
    c.KeptDropped: Triggers.dropped,
    c.TriggerFired: Triggers.fired,
    c.FiringSkipped: Triggers.skipped,
}
QUEUES: Final[Mapping[type[object], Callable[[Queues, Past, Any], Iterator[Span]]]] = {
    c.InstanceCreated: Queues.created,
    c.InstanceLaunched: Queues.launched,
    c.InstanceEnded: Queues.ended,
}
FOLDINGS: Final[Mapping[str, Callable[[Ids], Folding]]] = {
    SIGNAL_EVENTS.name: Signals,
    TRIGGER_EVENTS.name: Triggers,
    WORKFLOW_EVENTS.name: Queues,
    RUN_EVENTS.name: Runs,
}


def _signal(signal: c.SignalAccepted | c.JoinedSignal) -> Attributes:
    return {
        "kapelle.signal": signal.name,
        "kapelle.signal.id": signal.signal_id,
        "kapelle.signal.number": signal.sequence,
    }
