"""Whatever the text, an evaluation gives a value or a typed error, and the same one each time."""

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kapelle.processors.sel import Limits, Sel, SelError, seeded
from kapelle.processors.sel.joda.moment import DateTime
from tests.property.sel.grammar import expressions, programs

LIMITS = Limits(expression_chars=3_000, visits=20_000, memory_bytes=1_000_000, loop_iterations=200, array_length=500)
NOW_MS = 1_700_000_000_000
SEL = Sel(LIMITS)
INPUTS: dict[str, Any] = {
    "x": 5,
    "s": "abc",
    "flag": True,
    "d": 2.5,
    "longs": [1, 2, 3],
    "strings": ["a", "b"],
    "map": {"a": 1, "b": {"c": [1.5]}},
    "dt": DateTime(NOW_MS),
}
BOUNDED = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def outcome(text: str, inputs: dict[str, Any] = INPUTS) -> tuple[str, str]:
    """The type and value, or the kind and message of the error. Anything else is raised."""
    try:
        result = SEL.evaluate(text, inputs, seeded("fuzz", NOW_MS))
    except SelError as error:
        return error.kind, error.rendered()
    return result.type, repr(result.value)


@BOUNDED
@given(programs)
def test_a_program_of_the_grammar_gives_a_value_or_a_typed_error(text: str) -> None:
    before = copy.deepcopy({name: value for name, value in INPUTS.items() if name != "dt"})

    first = outcome(text)

    assert outcome(text) == first
    assert {name: value for name, value in INPUTS.items() if name != "dt"} == before


@BOUNDED
@given(expressions)
def test_only_the_reported_names_matter_to_the_result(text: str) -> None:
    try:
        names = SEL.names(text)
    except SelError:
        return
    if "params" not in names:
        assert outcome(text, {name: INPUTS[name] for name in names if name in INPUTS}) == outcome(text)


TOKENS = [
    "x",
    "1",
    "2.5",
    "'a'",
    '"b"',
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    ";",
    ":",
    "?",
    "=",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&&",
    "||",
    "!",
    "+=",
    "new",
    "String[]",
    "long",
    "Map()",
    "if",
    "else",
    "while",
    "for",
    "return",
    "throw",
    "break",
    "true",
    "null",
    "import",
    "/*",
    "*/",
    "//",
    "[]",
    "DateTime",
    "Util",
    ".get(",
    ".put(",
    "++",
    "&",
    "@",
    "\\",
    "\n",
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join))
def test_any_sequence_of_tokens_gives_a_value_or_a_typed_error(text: str) -> None:
    outcome(text)


@settings(max_examples=500, deadline=None)
@given(st.one_of(st.text(max_size=60), st.binary(max_size=60).map(lambda raw: raw.decode("utf-8", "surrogateescape"))))
def test_any_text_gives_a_value_or_a_typed_error(text: str) -> None:
    outcome(text)


@settings(max_examples=250, deadline=None)
@given(st.text(max_size=30), st.text(max_size=30), st.integers(-3, 5))
def test_any_pattern_and_text_give_a_value_or_a_typed_error(pattern: str, text: str, limit: int) -> None:
    inputs = {"p": pattern, "t": text, "n": limit}
    for expression in (
        "t.split(p, n)",
        "t.replaceAll(p, 'x')",
        "'abc'.replaceAll('b', t)",
        "t.replace(p, 'x')",
        "String.format(p, t, n)",
        "new DateTime(0).toString(p)",
        "DateTimeFormat.forPattern(p).parseMillis(t)",
        "DateTimeFormat.forPattern('yyyyMMdd').parseMillis(t)",
        "new DateTime(t).getMillis()",
        "DateTimeZone.forID(t).getOffset(0)",
        "Util.timeoutForDateTimeDeadline(new DateTime(), t)",
        "Long.parseLong(t) + Double.parseDouble(t)",
    ):
        outcome(expression, inputs)
