"""The index finds just the subscriptions that a signal matches."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kapelle.processors.signals.matching import (
    Condition,
    Entry,
    Operator,
    conditions_json,
    conditions_of,
    entries_of,
    failing,
    scans_of,
    text_of,
)
from tests.property.signals.model import fulfils

LONGS = st.sampled_from([-(2**63), -2, -1, 0, 1, 2, 10, 2**63 - 1])
STRINGS = st.sampled_from(["", "a", "ab", "abc", "b", "é", "\U0001f600", "10"])
SCALARS = st.one_of(LONGS, STRINGS)
PARAMS = st.dictionaries(st.sampled_from(["p", "q", "r"]), SCALARS, max_size=3)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    param, operator = draw(st.sampled_from(["p", "q", "r"])), draw(st.sampled_from(list(Operator)))
    value: Any = draw(SCALARS)
    if operator is Operator.IN:
        value = draw(st.lists(SCALARS, max_size=3))
    if operator is Operator.PREFIX:
        value = draw(STRINGS)
    return Condition(param, operator, value)


SUBSCRIPTIONS = st.lists(st.lists(conditions(), max_size=3).map(tuple), max_size=8)


@given(PARAMS, st.lists(conditions(), max_size=3).map(tuple))
def test_conditions_hold_as_the_model_says(params: dict[str, Any], given_: tuple[Condition, ...]) -> None:
    plain = tuple((one.param, str(one.operator), one.value) for one in given_)

    assert (failing(given_, params) is None) == fulfils(params, plain)
    assert conditions_of(conditions_json(given_)) == given_


@given(PARAMS, SUBSCRIPTIONS)
def test_the_index_leads_to_every_subscription_that_matches(
    params: dict[str, Any], subscriptions: list[tuple[Condition, ...]]
) -> None:
    index: dict[tuple[str, str], list[tuple[str, int]]] = {}
    used: dict[str, dict[str, int]] = {}
    for number, wanted in enumerate(subscriptions):
        for entry in entries_of(wanted, lambda _: 0):
            index.setdefault((entry.param, entry.kind), []).append((entry.text, number))
            kinds = used.setdefault(entry.param, {})
            kinds[entry.kind] = kinds.get(entry.kind, 0) + 1

    found = [
        number
        for scan in scans_of(params, used)
        for text, number in index.get((scan.param, scan.kind), [])
        if scan.start <= text < scan.end
    ]

    matching = {number for number, wanted in enumerate(subscriptions) if failing(wanted, params) is None}
    assert matching <= set(found)
    assert len(found) == len(set(found))


USED = st.fixed_dictionaries({kind: st.just(1) for kind in "=<>!^"})


@given(PARAMS, st.dictionaries(st.sampled_from(["p", "q", "r"]), USED))
def test_scans_come_in_their_order(params: dict[str, Any], used: dict[str, dict[str, int]]) -> None:
    orders = [scan.order for scan in scans_of(params, {**used, "": {"*": 1}})]

    assert orders == sorted(orders)
    assert len(orders) == len(set(orders))


@given(st.lists(LONGS), st.lists(STRINGS))
def test_values_as_text_sort_as_the_values_do(longs: list[int], strings: list[str]) -> None:
    assert sorted(longs, key=text_of) == sorted(longs)
    assert sorted(strings, key=text_of) == sorted(strings)


@given(st.sampled_from(["p", ""]), st.sampled_from("=<>!^*"), STRINGS)
def test_an_entry_is_read_back_from_the_event_that_names_it(param: str, kind: str, text: str) -> None:
    assert Entry.parse(str(Entry(param, kind, text))) == Entry(param, kind, text)
