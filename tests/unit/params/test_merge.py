"""What a later layer may do to an earlier one: the decisions, row by row."""

from typing import Any

import pytest

from kapelle.processors.params import MergeRefused, Mode, Source, Stage, definition_of, merge

S = Source
Raw = dict[str, Any]


def long(value: int, mode: str | None = None, **more: Any) -> Raw:
    return {"type": "LONG", "value": value, **({"mode": mode} if mode else {}), **more}


def string(value: str, mode: str | None = None, **more: Any) -> Raw:
    return {"type": "STRING", "value": value, **({"mode": mode} if mode else {}), **more}


def table(**inner: Raw) -> Raw:
    return {"type": "MAP", "value": inner}


def strings(**inner: str) -> Raw:
    return {"type": "STRING_MAP", "value": inner}


def merged(base: Raw | None, change: Raw, source: Source, **stage: Any) -> Any:
    trusted = {"p": definition_of("p", base, trusted=True)} if base else {}
    baseline = merge({}, trusted, Stage("before", Source.SYSTEM_DEFAULT)) if base else {}
    return merge(baseline, {"p": definition_of("p", change)}, Stage("now", source, **stage))["p"]


def plain(definition: Any) -> Any:
    if isinstance(definition.value, dict):
        return {k: plain(v) if hasattr(v, "value") else v for k, v in definition.value.items()}
    return definition.value


ACCEPTED: list[tuple[Raw | None, Raw, Source, Any]] = [
    (None, long(1), S.LAUNCH, 1),
    (long(1, "MUTABLE_ON_START"), long(2), S.LAUNCH, 2),
    (long(1, "MUTABLE_ON_START"), long(2), S.DEFINITION, 2),
    (long(1, "MUTABLE_ON_START"), long(2), S.SIGNAL, 2),
    (long(1, "MUTABLE_ON_START"), long(2), S.TIME_TRIGGER, 2),
    (long(1, "MUTABLE_ON_START"), long(2), S.SUBWORKFLOW, 2),
    (long(1, "MUTABLE_ON_START"), long(2), S.FOREACH, 2),
    (long(1, "MUTABLE_ON_START"), long(2), S.WHILE, 2),
    (long(1, "MUTABLE_ON_START_RESTART"), long(2), S.LAUNCH, 2),
    (long(1, "MUTABLE_ON_START_RESTART"), long(2), S.RESTART, 2),
    (long(1, "MUTABLE"), long(2), S.RESTART, 2),
    (long(1, "MUTABLE"), long(2), S.OUTPUT_PARAMETER, 2),
    (long(1), long(2), S.OUTPUT_PARAMETER, 2),
    (long(1, "IMMUTABLE"), long(1), S.LAUNCH, 1),
    (long(1, "CONSTANT"), long(1), S.RESTART, 1),
    (long(1, "CONSTANT"), long(2), S.SYSTEM_INJECTED, 2),
    (long(1, "IMMUTABLE"), long(2), S.SYSTEM_DEFAULT, 2),
    (string("a"), string("b", "IMMUTABLE"), S.DEFINITION, "b"),
    (table(x=long(1), y=long(2)), table(y=long(3), z=long(4)), S.DEFINITION, {"x": 1, "y": 3, "z": 4}),
    (table(x=table(a=long(1))), table(x=table(b=long(2))), S.LAUNCH, {"x": {"a": 1, "b": 2}}),
    (table(), table(x=long(1)), S.LAUNCH, {"x": 1}),
    (strings(a="1", b="2"), strings(b="3", c="4"), S.LAUNCH, {"a": "1", "b": "3", "c": "4"}),
    (long(1), string("7"), S.LAUNCH, 7),
    (string("a"), long(7), S.LAUNCH, "7"),
    (string("a"), {"type": "BOOLEAN", "value": True}, S.LAUNCH, "true"),
    ({"type": "DOUBLE", "value": 1.5}, long(2), S.LAUNCH, 2),
    ({"type": "BOOLEAN", "value": True}, string("FALSE"), S.LAUNCH, False),
    ({"type": "STRING_ARRAY", "value": ["a"]}, {"type": "LONG_ARRAY", "value": [1]}, S.LAUNCH, ["1"]),
    ({"type": "LONG_ARRAY", "value": [1, 2]}, {"type": "LONG_ARRAY", "value": [3]}, S.LAUNCH, [3]),
    (strings(a="1"), {"type": "STRING_MAP", "expression": "x"}, S.LAUNCH, None),
]


@pytest.mark.parametrize(("base", "change", "source", "expected"), ACCEPTED)
def test_a_merge_that_is_allowed_gives_the_value(base: Raw | None, change: Raw, source: Source, expected: Any) -> None:
    assert plain(merged(base, change, source)) == expected


REFUSED: list[tuple[Raw, Raw, Source, str]] = [
    (long(1, "MUTABLE_ON_START"), long(2), S.RESTART, "MUTABLE_ON_START"),
    (long(1, "MUTABLE_ON_START"), long(2), S.OUTPUT_PARAMETER, "MUTABLE_ON_START"),
    (long(1, "MUTABLE_ON_START_RESTART"), long(2), S.OUTPUT_PARAMETER, "MUTABLE_ON_START_RESTART"),
    (long(1, "IMMUTABLE"), long(2), S.LAUNCH, "IMMUTABLE"),
    (long(1, "IMMUTABLE"), long(2), S.DEFINITION, "IMMUTABLE"),
    (long(1, "CONSTANT"), long(2), S.DEFINITION, "CONSTANT"),
    (long(1, "CONSTANT"), long(2), S.RESTART, "CONSTANT"),
    (string("a", "IMMUTABLE"), string("a", "MUTABLE"), S.LAUNCH, "IMMUTABLE"),
    (string("a", "MUTABLE_ON_START"), string("a", "MUTABLE"), S.LAUNCH, "less strict"),
    (string("a", "MUTABLE_ON_START"), string("b", "MUTABLE_ON_START_RESTART"), S.LAUNCH, "less strict"),
    ({"type": "STRING_MAP", "expression": "x"}, strings(a="1"), S.LAUNCH, "expression"),
    ({"type": "MAP", "expression": "x"}, table(a=long(1)), S.LAUNCH, "expression"),
    (long(1), string("seven"), S.LAUNCH, "type is LONG"),
    (long(1), table(a=long(1)), S.LAUNCH, "type is LONG"),
    (table(a=long(1)), long(1), S.LAUNCH, "type is MAP"),
    (table(a=long(1)), strings(a="1"), S.LAUNCH, "type is MAP"),
    (strings(a="1"), table(a=long(1)), S.LAUNCH, "type is STRING_MAP"),
    ({"type": "STRING", "value": "w", "internal_mode": "RESERVED"}, string("x"), S.LAUNCH, "reserved"),
    ({"type": "STRING", "value": "w", "internal_mode": "RESERVED"}, string("x"), S.DEFINITION, "reserved"),
    (table(a=long(1, "IMMUTABLE")), table(a=long(2)), S.LAUNCH, "IMMUTABLE"),
    ({**table(a=long(1)), "mode": "IMMUTABLE"}, table(a=long(2)), S.LAUNCH, "IMMUTABLE"),
]


@pytest.mark.parametrize(("base", "change", "source", "reason"), REFUSED)
def test_a_merge_that_is_not_allowed_is_refused_with_its_reason(
    base: Raw, change: Raw, source: Source, reason: str
) -> None:
    with pytest.raises(MergeRefused, match=reason) as caught:
        merged(base, change, source)

    assert caught.value.layer == "now"


def test_a_new_expression_keeps_the_type_of_the_baseline() -> None:
    made = merged({"type": "STRING", "expression": "'a'"}, {"type": "LONG", "expression": "1"}, S.LAUNCH)

    assert (made.type, made.expression) == ("STRING", "1")


def test_a_value_takes_the_place_of_an_expression_and_the_other_way_round() -> None:
    assert merged({"type": "LONG", "expression": "1"}, long(2), S.LAUNCH).expression is None
    assert merged(long(2), {"type": "LONG", "expression": "1"}, S.LAUNCH).value is None


def test_the_stricter_mode_stays() -> None:
    assert merged(string("a"), string("b", "IMMUTABLE"), S.DEFINITION).mode is Mode.IMMUTABLE
    assert merged(string("a", "MUTABLE_ON_START"), string("b"), S.LAUNCH).mode is Mode.MUTABLE_ON_START


def test_a_reserved_parameter_is_constant() -> None:
    made = merge(
        {},
        {"p": definition_of("p", {"type": "LONG", "value": 1, "internal_mode": "RESERVED"}, trusted=True)},
        Stage("s", S.SYSTEM),
    )

    assert made["p"].mode is Mode.CONSTANT


def test_children_take_the_stricter_mode_of_their_map() -> None:
    made = merged({**table(a=long(1)), "mode": "MUTABLE_ON_START"}, table(b=long(2)), S.LAUNCH)

    assert made.value["b"].mode is Mode.MUTABLE_ON_START


def test_tags_are_united_by_name_and_the_later_validator_wins() -> None:
    base = long(1, tags=["a", {"name": "b", "x": 1}], validator="value > 0", unit="s", note="n")
    made = merged(base, long(2, tags=[{"name": "b", "x": 2}, "c"], unit="ms"), S.LAUNCH)

    assert [dict(tag) for tag in made.tags] == [{"name": "a"}, {"name": "b", "x": 2}, {"name": "c"}]
    assert made.validator == "value > 0"
    assert made.meta == {"unit": "ms", "note": "n"}
    assert merged(base, long(2, validator="value > 1"), S.LAUNCH).validator == "value > 1"


def test_saying_the_same_again_leaves_the_layer_that_set_it() -> None:
    made = merged(long(1, "IMMUTABLE"), long(1), S.LAUNCH)

    assert (made.layer, made.source) == ("before", S.SYSTEM_DEFAULT)


def test_a_change_names_the_layer_that_made_it() -> None:
    made = merged(long(1), long(2), S.LAUNCH)

    assert (made.layer, made.source) == ("now", S.LAUNCH)


def test_a_parent_may_change_what_the_system_set() -> None:
    reserved = {"type": "LONG", "value": -1, "internal_mode": "RESERVED"}

    assert merged(reserved, long(0), S.FOREACH, is_upstream=True).value == 0
    with pytest.raises(MergeRefused):
        merged(reserved, long(0), S.LAUNCH)


def test_a_parent_keeps_the_stricter_mode_of_the_child() -> None:
    made = merged(long(1, "MUTABLE_ON_START"), long(2, "MUTABLE"), S.SUBWORKFLOW, is_upstream=True)

    assert (made.value, made.mode) == (2, Mode.MUTABLE_ON_START)


def test_a_restart_by_a_parent_is_bound_by_the_rules_of_restarts() -> None:
    by_user = {"p": definition_of("p", long(1, "MUTABLE_ON_START"))}
    base = merge({}, by_user, Stage("definition", S.DEFINITION))

    with pytest.raises(MergeRefused, match="MUTABLE_ON_START"):
        merge(base, {"p": definition_of("p", long(2))}, Stage("now", S.SUBWORKFLOW, is_upstream=True, is_restart=True))


def test_users_cannot_set_the_internal_mode() -> None:
    sneaky = {"p": definition_of("p", {"type": "LONG", "value": 1, "internal_mode": "RESERVED"}, trusted=True)}

    with pytest.raises(MergeRefused, match="internal mode"):
        merge({}, sneaky, Stage("now", S.LAUNCH))


def test_a_merge_leaves_its_baseline_as_it_was() -> None:
    base = merge({}, {"p": definition_of("p", table(x=long(1)))}, Stage("before", S.DEFINITION))

    merge(base, {"p": definition_of("p", table(x=long(2), y=long(3)))}, Stage("now", S.LAUNCH))

    assert plain(base["p"]) == {"x": 1}
