"""However parameters refer to each other, no text is made beyond the budget, and what fits is as it was."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.params import (
    Context,
    CyclicReference,
    ParamError,
    ParamsTooLarge,
    WorkflowScope,
    definitions_of,
    evaluate,
    interpolated,
)
from kapelle.processors.sel import Extension, Sel
from kapelle.processors.sel.values import json_least, json_text

SEL = Sel()
CHARS_MAX = 400
COUNT = 6
NAMES = [f"p{number}" for number in range(COUNT)]
pieces = st.one_of(
    st.sampled_from([*(f"${{{name}}}" for name in NAMES), *(f"${name}" for name in NAMES), "$$", "$", "{"]),
    st.text(max_size=6),
)
texts = st.lists(pieces, max_size=8).map("".join)
forms = st.one_of(
    texts.map(lambda text: {"type": "STRING", "value": text}),
    st.lists(texts, max_size=3).map(lambda items: {"type": "STRING_ARRAY", "value": items}),
    texts.map(lambda text: {"type": "STRING_MAP", "value": {"k": text}}),
    texts.map(lambda text: {"type": "MAP", "value": {"k": {"type": "STRING", "value": text}}}),
    st.sampled_from(NAMES).map(lambda name: {"type": "STRING", "expression": f"'' + {name}"}),
)
sets = st.lists(forms, min_size=COUNT, max_size=COUNT).map(lambda made: dict(zip(NAMES, made, strict=True)))
_REFERENCE = re.compile(r"\$(?:(\$)|\{([a-zA-Z][-_./a-zA-Z0-9]*)\}|([a-zA-Z][_a-zA-Z0-9]*))")


def evaluated(raw: dict[str, object], chars_max: int) -> dict[str, object]:
    context = Context(SEL, 0, "s", Extension(), chars_max)
    made = evaluate(definitions_of(raw), WorkflowScope("w", context.extension), context)
    return {name: one.value for name, one in made.items()}


def size_of(values: dict[str, object]) -> int:
    return sum(len(name) + len(json_text(value)) + 6 for name, value in values.items())


@settings(max_examples=300, deadline=None)
@given(sets)
def test_parameters_are_refused_exactly_when_they_are_too_large_together(raw: dict[str, object]) -> None:
    try:
        whole = evaluated(raw, 10**6)
    except CyclicReference:
        return
    except ParamsTooLarge:
        whole = {}
    except ParamError:
        return  # it refers to nothing
    try:
        bounded = evaluated(raw, CHARS_MAX)
    except ParamsTooLarge as error:
        bounded, found = {}, error.chars
    else:
        found = size_of(bounded)
    if bounded:
        assert bounded == whole
        assert found <= CHARS_MAX
    else:
        assert not whole or size_of(whole) > CHARS_MAX
        # It was refused at the first piece beyond the bound, and no piece is longer than all that was kept before.
        assert CHARS_MAX < found <= 3 * CHARS_MAX


@settings(max_examples=300, deadline=None)
@given(texts, st.dictionaries(st.sampled_from(NAMES), st.text(max_size=9), min_size=COUNT, max_size=COUNT))
def test_a_text_is_counted_to_its_last_character(text: str, values: dict[str, str]) -> None:
    counted = 0

    def count(chars: int) -> None:
        nonlocal counted
        counted += chars

    def known(name: str) -> str:
        return values.get(name, "?")

    made = interpolated(text, known, count)

    assert made == _REFERENCE.sub(lambda found: "$" if found[1] else known(found[2] or found[3]), text)
    assert counted == len(made)


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(values)
def test_the_least_length_of_a_json_is_never_more_than_its_length(value: object) -> None:
    assert json_least(value) <= len(json_text(value))
