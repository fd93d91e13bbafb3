"""`publisher.signals`: the outcome of every signal, and the verdict of each trigger. A firing is one record per signal.

| event | verdict | key |
|---|---|---|
| `SignalAccepted`, `SignalDuplicated`, `SignalTooLate` | ACCEPTED, DUPLICATE, TOO_LATE | the signal's name |
| `SignalKept`, `SignalPassedOver`, `SignalExpired` | KEPT, PASSED_OVER, EXPIRED | workflow and trigger |
| `TriggerFired`, `FiringSkipped` | FIRED, SKIPPED | workflow and trigger |
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypedDict

import msgspec

from kapelle.processors.effects import Effect, Emit, SetAside
from kapelle.processors.messages import Message
from kapelle.processors.publisher.processor import verdicts
from kapelle.processors.publisher.sources import next_number, source_of
from kapelle.processors.publisher.tables import Numbered
from kapelle.processors.signals.bounds import params_in
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Verdict


class Judged(msgspec.Struct, frozen=True):
    """One signal as an event names it."""

    name: str
    signal_id: str | None
    sequence: int | None


class Dated(Protocol):
    """An event, all of which have a time."""

    @property
    def at_ms(self) -> int: ...


class More(TypedDict, total=False):
    """What only some verdicts say."""

    workflow_id: str
    trigger_id: str
    join_value: str | None
    request_id: str
    reason: str
    strings: dict[str, str]
    longs: dict[str, int]
    happened_at_ms: int | None


@verdicts.decides(c.SignalAccepted)
def publish_accepted(message: Message[c.SignalAccepted], state: Numbered, _: int) -> Iterator[Effect]:
    event = message.value
    try:
        params = params_in(event.params)
    except msgspec.MsgspecError as error:
        return iter((SetAside(f"Expected the parameters of a signal as strings and integers by name, but {error}"),))
    return _published(
        message,
        state,
        [Judged(event.name, event.signal_id, event.sequence)],
        verdict=Verdict.ACCEPTED,
        more={
            "strings": {name: value for name, value in params.items() if isinstance(value, str)},
            "longs": {name: value for name, value in params.items() if isinstance(value, int)},
            "happened_at_ms": event.happened_at_ms,
        },
    )


@verdicts.decides(c.SignalDuplicated)
def publish_duplicate(message: Message[c.SignalDuplicated], state: Numbered, _: int) -> Iterator[Effect]:
    event = message.value
    judged = [Judged(event.name, event.signal_id, event.first_sequence)]
    return _published(message, state, judged, verdict=Verdict.DUPLICATE)


@verdicts.decides(c.SignalTooLate)
def publish_too_late(message: Message[c.SignalTooLate], state: Numbered, _: int) -> Iterator[Effect]:
    event = message.value
    more: More = {"happened_at_ms": event.happened_at_ms}
    return _published(message, state, [Judged(event.name, event.signal_id, None)], verdict=Verdict.TOO_LATE, more=more)


@verdicts.decides(c.SignalKept)
def publish_kept(message: Message[c.SignalKept], state: Numbered, _: int) -> Iterator[Effect]:
    event = message.value
    judged = [Judged(event.name, event.signal_id, event.sequence)]
    more: More = {**_trigger(message.key), "join_value": event.join_value}
    return _published(message, state, judged, verdict=Verdict.KEPT, more=more)


@verdicts.decides(c.SignalPassedOver)
def publish_passed_over(message: Message[c.SignalPassedOver], state: Numbered, _: int) -> Iterator[Effect]:
    event = message.value
    judged = [Judged(event.name, event.signal_id, event.sequence)]
    more: More = {**_trigger(message.key), "join_value": event.join_value, "reason": event.reason}
    return _published(message, state, judged, verdict=Verdict.PASSED_OVER, more=more)


@verdicts.decides(c.SignalExpired)
def publish_expired(message: Message[c.SignalExpired], state: Numbered, _: int) -> Iterator[Effect]:
    event = message.value
    more: More = {**_trigger(message.key), "join_value": event.join_value}
    return _published(message, state, [Judged(event.name, None, event.sequence)], verdict=Verdict.EXPIRED, more=more)


@verdicts.decides(c.TriggerFired)
def publish_firing(message: Message[c.TriggerFired], state: Numbered, _: int) -> Iterator[Effect]:
    event = message.value
    more: More = {**_trigger(message.key), "join_value": event.join_value, "request_id": event.request_id}
    return _published(message, state, _joined(event.signals), verdict=Verdict.FIRED, more=more)


@verdicts.decides(c.FiringSkipped)
def publish_skipped(message: Message[c.FiringSkipped], state: Numbered, _: int) -> Iterator[Effect]:
    event = message.value
    more: More = {**_trigger(message.key), "join_value": event.join_value, "reason": event.reason}
    return _published(message, state, _joined(event.signals), verdict=Verdict.SKIPPED, more=more)


def _trigger(key: str) -> More:
    workflow_id, _, trigger_id = key.partition("/")  # a workflow id holds no slash
    return {"workflow_id": workflow_id, "trigger_id": trigger_id}


def _joined(signals: Sequence[c.JoinedSignal]) -> list[Judged]:
    return [Judged(signal.name, signal.signal_id, signal.sequence) for signal in signals]


def _published(
    message: Message[Dated],
    state: Numbered,
    judged: Sequence[Judged],
    *,
    verdict: Verdict,
    more: More | None = None,
) -> Iterator[Effect]:
    (topic, partition, offset), first = source_of(message), next_number(state, message.key)
    for number, signal in enumerate(judged, first):
        fields: More = {"reason": "", "strings": {}, "longs": {}, **(more or {})}
        yield Emit(
            c.SignalVerdict(
                signal_name=signal.name,
                signal_id=signal.signal_id,
                signal_sequence=signal.sequence,
                sequence=number,
                verdict=verdict,
                at_ms=message.value.at_ms,
                source_topic=topic,
                source_partition=partition,
                source_offset=offset,
                **fields,
            )
        )
