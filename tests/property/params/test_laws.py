"""Laws of merging and evaluating that hold for any parameters."""

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.params import (
    BadDefinition,
    Context,
    CyclicReference,
    Definition,
    Mode,
    NotConvertible,
    ParamError,
    Source,
    Stage,
    WorkflowScope,
    coerced,
    definition_json,
    definition_of,
    definitions_of,
    evaluate,
    interpolated,
    merge,
    references,
    taken_over,
)
from kapelle.processors.params.types import ParamType
from kapelle.processors.sel import Extension, Sel

SEL = Sel()
BOUNDED = settings(max_examples=200, deadline=None)
modes = st.sampled_from([None, *(mode.value for mode in Mode)])
texts = st.text(max_size=12)
literals: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda v: {"type": "LONG", "value": v}),
    texts.map(lambda v: {"type": "STRING", "value": v.replace("$", "$$")}),
    st.booleans().map(lambda v: {"type": "BOOLEAN", "value": v}),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda v: {"type": "DOUBLE", "value": v}),
    st.lists(texts, max_size=3).map(lambda v: {"type": "STRING_ARRAY", "value": [t.replace("$", "$$") for t in v]}),
    st.lists(st.integers(-9, 9), max_size=3).map(lambda v: {"type": "LONG_ARRAY", "value": v}),
    st.dictionaries(texts, st.just("v"), max_size=3).map(
        lambda v: {"type": "STRING_MAP", "value": {k.replace("$", "$$"): i for k, i in v.items()}}
    ),
)


def _with_mode(pair: tuple[dict[str, Any], str | None]) -> dict[str, Any]:
    raw, mode = pair
    return raw if mode is None else {**raw, "mode": mode}


flat = st.tuples(literals, modes).map(_with_mode)
raw_definitions = st.one_of(
    flat, st.dictionaries(st.sampled_from("abc"), flat, max_size=2).map(lambda v: {"type": "MAP", "value": v})
)
param_sets = st.dictionaries(st.sampled_from("pqrst"), raw_definitions, max_size=4).map(definitions_of)
stages = st.sampled_from([Stage("now", source) for source in Source])


@BOUNDED
@given(param_sets, stages)
def test_merging_the_same_again_changes_nothing(params: dict[str, Definition], stage: Stage) -> None:
    once = merge({}, params, Stage("first", Source.DEFINITION))

    assert merge(once, params, stage) == once


@BOUNDED
@given(param_sets, param_sets, stages)
def test_a_merge_never_loosens_a_mode_or_changes_a_type(
    first: dict[str, Definition], second: dict[str, Definition], stage: Stage
) -> None:
    base = merge({}, first, Stage("first", Source.DEFINITION))
    try:
        made = merge(base, second, stage)
    except ParamError:
        return

    assert list(made)[: len(base)] == list(base)
    for name, before in base.items():
        assert made[name].type is before.type
        if not stage.is_system:
            assert made[name].effective_mode.strictness >= before.effective_mode.strictness


@BOUNDED
@given(param_sets)
def test_what_is_written_as_json_is_read_as_the_same(params: dict[str, Definition]) -> None:
    made = merge({}, params, Stage("first", Source.DEFINITION))

    for name, definition in made.items():
        again = definition_of(name, definition_json(definition), trusted=True)
        assert again.same_as(definition)


@BOUNDED
@given(param_sets)
def test_evaluating_what_a_restart_takes_over_gives_the_same_values(params: dict[str, Definition]) -> None:
    context = Context(SEL, 0, "s", Extension())
    scope = WorkflowScope("w", context.extension)

    first = evaluate(params, scope, context)
    again = evaluate(taken_over(first), scope, context)

    assert {n: p.value for n, p in again.items()} == {n: p.value for n, p in first.items()}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 11), max_size=3), min_size=12, max_size=12))
def test_any_graph_of_references_gives_values_or_names_a_real_cycle(edges: list[list[int]]) -> None:
    params = definitions_of(
        {
            f"p{n}": {"type": "LONG", "expression": " + ".join(["1", *(f"p{m}" for m in targets)])}
            for n, targets in enumerate(edges)
        }
    )
    context = Context(SEL, 0, "s", Extension())

    try:
        made = evaluate(params, WorkflowScope("w", context.extension), context)
    except CyclicReference as error:
        ring = [int(name[1:]) for name in error.cycle]
        assert all(after in edges[before] for before, after in zip(ring, [*ring[1:], ring[0]], strict=True))
    else:
        for n, targets in enumerate(edges):
            assert made[f"p{n}"].value == 1 + sum(made[f"p{m}"].value for m in targets)


@BOUNDED
@given(st.text(max_size=40))
def test_doubled_dollar_signs_keep_any_text_as_it_is(text: str) -> None:
    escaped = text.replace("$", "$$")

    assert references(escaped) == []
    assert interpolated(escaped, lambda name: name) == text


@BOUNDED
@given(
    st.sampled_from(list(ParamType)),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
        max_leaves=5,
    ),
)
def test_any_value_is_converted_or_refused(kind: ParamType, value: Any) -> None:
    with suppress(NotConvertible):
        coerced("p", kind, value)


documents = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["type", "value", "expression", "mode", "tags", "validator", "a"]), inner),
    ),
    max_leaves=8,
)


@BOUNDED
@given(st.dictionaries(st.text(max_size=3), documents, max_size=2), st.booleans())
def test_any_document_is_a_definition_or_is_refused(raw: dict[str, Any], trusted: bool) -> None:
    with suppress(BadDefinition):
        definitions_of({name: {"type": "MAP", "value": raw} for name in raw} or raw, trusted=trusted)
    with suppress(BadDefinition):
        definitions_of(raw, trusted=trusted)
