"""Which subscriptions match a signal, and which earlier signals match a subscription."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from kapelle.processors.signals.bounds import params_in
from kapelle.processors.signals.matching import (
    KINDS,
    TELLING,
    Conditions,
    Operator,
    Scalar,
    Scan,
    conditions_of,
    failing,
    scans_of,
    text_of,
    values_of,
)
from kapelle.processors.signals.tables import SignalRow, Signals, SubscriptionRow
from kapelle.processors.tables import Key

Subscriber = tuple["Cursor", SubscriptionRow]
Past = tuple[int, SignalRow]
SEQUENCE_END: Final = 1 << 62
# How many rows one decision looks at; a command to itself goes on with the rest.
LOOKS_MAX: Final = 2_000

P = TypeVar("P")
R = TypeVar("R")


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where in the index a subscription was found, so that another decision can go on behind it."""

    param: str
    kind: int
    start: str
    text: str
    subscription: str

    def json(self) -> str:
        """As text."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def parse(cls, text: str) -> "Cursor | None":
        """From text; None from an empty one."""
        return msgspec.json.decode(text, type=cls) if text else None


def bounded(looks: Iterable[tuple[P, R | None]], most: int) -> tuple[list[tuple[P, R]], P | None]:
    """What was found, up to a number and with a bounded number of looks, and where to go on; None at the end."""
    rows: list[tuple[P, R]] = []
    for count, (place, row) in enumerate(looks, 1):
        if row is not None:
            rows.append((place, row))
        if len(rows) == most or count == LOOKS_MAX:
            return rows, place
    return rows, None


def concerned(
    name: str, signal: Past, state: Signals, *, after: Cursor | None
) -> Iterator[tuple[Cursor, SubscriptionRow | None]]:
    """The entries of the index that a signal leads to, from behind a cursor on, always in the same order.

    Each subscription that it matches is there once; an entry whose subscription it does not match comes with None.
    """
    used = state.used.get((name,))
    if used is None:
        return
    sequence, signal_row = signal
    params: Mapping[str, Scalar] = params_in(signal_row.params)
    begun = (after.param, after.kind, after.start) if after else None
    for scan in scans_of(params, used.kinds):
        if begun is not None and scan.order < begun:
            continue
        for text, subscription in _entered(name, scan, state, after if scan.order == begun else None):
            row = state.subscriptions.get((name, subscription))
            is_match = row is not None and row.since < sequence and failing(conditions_of(row.match), params) is None
            yield Cursor(*scan.order, text, subscription), row if is_match else None


def _entered(name: str, scan: Scan, state: Signals, after: Cursor | None) -> Iterator[tuple[str, str]]:
    """The entries of one scan: text and subscription. Most places have none or a few, and one look tells them."""
    if scan.is_place:
        crowd = state.crowds.get((name, scan.param, scan.kind, scan.start))
        if crowd is None:
            return
        if crowd.few:
            yield from (
                (scan.start, subscription)
                for subscription in crowd.few
                if after is None or subscription > after.subscription
            )
            return
    start: Key = (name, scan.param, scan.kind, scan.start)
    if after is not None:
        start = (name, scan.param, scan.kind, after.text, after.subscription + "\0")
    for key, _ in state.index.range(start, (name, scan.param, scan.kind, scan.end)):
        yield key[3], key[4]


class Span(msgspec.Struct, frozen=True):
    """A part of the past: signals after one number and before another, in their order or from the newest."""

    after: int = 0
    before: int = SEQUENCE_END
    newest_first: bool = False


def past(name: str, conditions: Conditions, state: Signals, span: Span) -> Iterator[tuple[int, SignalRow | None]]:
    """The signals of a part of the past; one that does not match comes with None."""
    for sequence, row in _candidates(name, conditions, state, span):
        yield sequence, _if_matching(row, conditions)


def _candidates(name: str, conditions: Conditions, state: Signals, span: Span) -> Iterator[Past]:
    """Those with a parameter that must be equal, if there is such a one; else all."""
    equal = next((condition for condition in conditions if condition.operator is Operator.EQUAL), None)
    if equal is None or isinstance(equal.value, list):
        start, end = (name, span.after + 1), (name, span.before)
        for key, row in state.signals.range(start, end, reverse=span.newest_first):
            yield key[1], row
        return
    at = (name, equal.param, text_of(equal.value))
    for place, _ in state.by_param.range((*at, span.after + 1), (*at, span.before), reverse=span.newest_first):
        signal = state.signals.get((name, place[3]))
        if signal is not None:
            yield place[3], signal


def by_value(name: str, conditions: Conditions, state: Signals) -> Iterator[tuple[int, SignalRow | None]] | None:
    """All signals of the past that fulfil one of the conditions, in the order of that value.

    Nothing if this is no way to find them: they can be found by an equal value in their order, or any will do.
    """
    if not conditions or any(condition.operator is Operator.EQUAL for condition in conditions):
        return None
    best = min(conditions, key=lambda condition: TELLING.index(KINDS[condition.operator]))
    return (
        (key[3], _if_matching(row, conditions))
        for start, end in values_of(best)
        for key, _ in state.by_param.range((name, best.param, start), (name, best.param, end))
        if (row := state.signals.get((name, key[3]))) is not None
    )


def _if_matching(row: SignalRow, conditions: Conditions) -> SignalRow | None:
    return row if failing(conditions, params_in(row.params)) is None else None
