"""Programs: their names, their limits, their errors, and what they learn from outside."""

from decimal import Decimal
from typing import Any

import pytest

from kapelle.processors.sel import (
    BadValue,
    Extension,
    ExtensionFailed,
    Host,
    LimitExceeded,
    Limits,
    LongArray,
    ParseError,
    Sel,
    SelError,
    Unsupported,
    seeded,
)
from kapelle.processors.sel.program import CACHE_CHARS_MAX, Program

SEL = Sel()
NAMES = [
    ("1 + 1", ()),
    ("x > 3 && flag", ("x", "flag")),
    ("x + x", ("x",)),
    ("y = x; y + z", ("x", "z")),
    ("x = 1; x", ()),
    ("x = x + 1", ("x",)),
    ("x += 1", ("x",)),
    ("int x = 1; x", ()),
    ("int x = x; x", ("x",)),
    ("int x, y = x; y", ()),
    ("x[0] = y", ("x", "y")),
    ("x[i] += 1", ("x", "i")),
    ("for (i = 0; i < n; i += 1) { s += i; }", ("n", "s")),
    ("for (;;) { i = 1; if (j > i) break; }", ("j",)),
    ("for (; a; b) { b = 1; c; }", ("a", "c")),
    ("if (a) b = 1; else c = 2; b + c", ("a",)),
    ("while (w) v", ("w", "v")),
    ("Math.min(a, b)", ("a", "b")),
    ("new DateTime(RUN_TS).withZone(zone).toString(p)", ("RUN_TS", "zone", "p")),
    ("new String[]{a, b}", ("a", "b")),
    ("new long[n]", ("n",)),
    ("a ? b : c ? d : e", ("a", "b", "c", "d", "e")),
    ("-a + !b", ("a", "b")),
    ("params.get('foo')", ("params",)),
    ("params.getFromStep(step, 'x') + y", ("params", "step", "y")),
    ("x.length", ("x",)),
    ("throw m", ("m",)),
    ("return r", ("r",)),
    ("java.util.UUID", ("java",)),
    ("m = new Map(); m.put(k, v); m", ("k", "v")),
    ("// x\n/* y */ 1", ()),
    ("'x' + \"$y\"", ()),
    ("Util.dateIntsBetween(FROM_DATE, TO_DATE, 1)", ("FROM_DATE", "TO_DATE")),
]


@pytest.mark.parametrize(("text", "names"), NAMES)
def test_names_are_what_is_used_before_it_is_assigned(text: str, names: tuple[str, ...]) -> None:
    assert SEL.names(text) == names


def test_constant_keys_of_params_are_known_before_the_program_runs() -> None:
    program = SEL.program("params.get('a') + params['b'] + params.get('c' + x) + params.containsKey('d')")

    assert program.keys == ("a", "b")


LIMITS: list[tuple[str, Limits, str]] = [
    ("expression_chars", Limits(expression_chars=5), "1 + 1 + 1"),
    ("stack_depth", Limits(stack_depth=5), "(1+(1+(1+(1+(1+1)))))"),
    ("loop_iterations", Limits(loop_iterations=3), "for (i = 0; i < 4; i += 1) { }"),
    ("array_length", Limits(array_length=3), "new long[4]"),
    ("array_length", Limits(array_length=3), "new long[]{1, 2, 3, 4}"),
    ("array_length", Limits(array_length=3), "'a,b,c,d'.split(',')"),
    ("array_length", Limits(array_length=3), "Util.intsBetween(0, 4, 1)"),
    ("visits", Limits(visits=10), "1 + x + 1 + 1 + 1 + 1 + 1"),
    ("visits", Limits(visits=50), "j = 0; for (i = 0; i < 100; i += 1) j += 1; j"),
    ("memory_bytes", Limits(memory_bytes=100), "m = new Map(); for (i = 0; i < 9; i += 1) m.put('' + i, '' + i); m"),
    ("memory_bytes", Limits(memory_bytes=100), "Util.intsBetween(0, 100, 1)"),
    ("memory_bytes", Limits(memory_bytes=1000), "'" + "a" * 300 + "'.toUpperCase().toLowerCase()"),
    ("memory_bytes", Limits(memory_bytes=1000), "String.join('" + "-" * 300 + "', 'a', 'b', 'c')"),
    ("memory_bytes", Limits(memory_bytes=1000), "String.format('%300s%300s', 1, 2)"),
    ("memory_bytes", Limits(memory_bytes=1000), "'abcabcabc'.replaceAll('b', '" + "-" * 200 + "')"),
    ("memory_bytes", Limits(memory_bytes=1000), "'abcabcabc'.replace('b', '" + "-" * 200 + "')"),
    ("memory_bytes", Limits(memory_bytes=1000), "'" + "a," * 40 + "'.split(',')"),
]


@pytest.mark.parametrize(("limit", "limits", "text"), LIMITS)
def test_a_limit_that_is_exceeded_is_named_with_its_place(limit: str, limits: Limits, text: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        Sel(limits).evaluate(text, {"x": 1})

    assert (caught.value.limit, caught.value.allowed) == (limit, getattr(limits, limit))
    assert caught.value.line == 1


@pytest.mark.parametrize(("limit", "limits", "text"), LIMITS)
def test_the_same_is_fine_within_the_default_limits(limit: str, limits: Limits, text: str) -> None:
    try:
        Sel().evaluate(text, {"x": 1})
    except SelError as error:
        assert error.kind == "InvalidResult"  # noqa: PT017 - a loop gives nothing, which is not what is tested


def test_long_chains_are_not_deep() -> None:
    for text in (
        "x" + " + x" * 2400,
        "true" + " && true" * 1200,
        "'a'" + ".trim()" * 1400,
        "false ? 1 : " * 800 + "2",
        "if (false) return 1; else " * 300 + "return 2;",
        "(" * 4900 + "1" + ")" * 4900,
        "!" * 9000 + "true",
        "x" + " + 1 - 1" * 1100 + " * 1",
    ):
        assert SEL.evaluate(text, {"x": 1}).value is not None


def test_a_program_is_compiled_once_and_the_cache_is_bounded() -> None:
    sel = Sel()

    assert sel.program("1 + 1") is sel.program("1 + 1")
    for number in range(60):
        sel.program(f"x + {'1' * 10} + " * 500 + str(number))
    assert sum(len(text) + 1 for text in sel._programs) <= CACHE_CHARS_MAX


def test_evaluations_share_nothing() -> None:
    sel = Sel()

    assert sel.evaluate("y = 1; y").value == 1
    with pytest.raises(SelError, match="NULL"):
        sel.evaluate("y")


def test_inputs_are_never_changed() -> None:
    inputs: dict[str, Any] = {"m": {"a": {"b": 1}}, "l": [1, 2], "t": LongArray([1])}

    SEL.evaluate("m.put('x', 1); m.get('a').put('b', 2); l[0] = 9; t[0] = 9; m", inputs)

    assert inputs == {"m": {"a": {"b": 1}}, "l": [1, 2], "t": [1]}


def test_a_result_is_not_tied_to_the_inputs() -> None:
    inputs: dict[str, Any] = {"m": {"a": [1]}}

    SEL.evaluate("m", inputs).value["a"].append(2)

    assert inputs == {"m": {"a": [1]}}


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (Decimal("1.5"), "DOUBLE", "x"),
        ((1, 2), "LONG_ARRAY", "x"),
        ([1, 2.5], "DOUBLE_ARRAY", "x"),
        ([], "STRING_ARRAY", "x"),
        (LongArray(), "LONG_ARRAY", "x"),
        ({"a": [True]}, "BOOLEAN_ARRAY", "x.get('a')"),
        (["a", None], "BOOLEAN", "x[1] == null"),
    ],
)
def test_python_values_become_values_of_the_language(value: Any, kind: str, text: str) -> None:
    assert SEL.evaluate(text, {"x": value}).type == kind


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**4000, object(), [1, "a"], [[1]], [None, 1], {1, 2}])
def test_python_values_that_have_no_place_in_the_language_are_refused(value: Any) -> None:
    with pytest.raises(SelError):
        SEL.evaluate("y = x; y", {"x": value})


@pytest.mark.parametrize("text", ["System.currentTimeMillis()", "new DateTime()", "Math.random()", "UUID.randomUUID()"])
def test_without_a_host_there_is_no_clock_and_no_chance(text: str) -> None:
    with pytest.raises(BadValue, match="none is configured"):
        SEL.evaluate(text)


def test_a_seeded_host_repeats_itself_and_differs_by_seed() -> None:
    text = "UUID.randomUUID().toString() + ' ' + UUID.randomUUID().toString() + ' ' + Math.random()"
    first, again, other = (SEL.evaluate(text, {}, seeded(seed, 0)).value for seed in ("a", "a", "b"))

    assert first == again != other
    assert len(set(first.split())) == 3
    assert first[14] == "4"


def test_the_clock_stands_still_during_an_evaluation() -> None:
    assert SEL.evaluate("System.currentTimeMillis() == new DateTime().getMillis()", {}, Host(now_ms=5)).value is True


def test_an_engine_that_answers_nothing_says_so() -> None:
    for text in ("params.get('x')", "params.containsKey('x')", "params.nextUniqueId()", "params.getFromStep('a')"):
        with pytest.raises(ExtensionFailed, match="none is connected"):
            SEL.evaluate(text, {}, Host(extension=Extension()))


def test_functions_of_the_caller_are_counted_and_their_results_checked() -> None:
    host = Host(functions={"twice": lambda n: 2 * n, "odd": object})

    assert SEL.evaluate("Util.twice(21)", {}, host).value == 42
    with pytest.raises(SelError, match="parameter value"):
        SEL.evaluate("Util.odd()", {}, host)


def test_problems_are_told_without_running() -> None:
    (problem,) = SEL.program("if (false) return Math.foo(); return 1;").problems

    assert isinstance(problem, Unsupported)
    assert (problem.line, problem.column, problem.fragment) == (1, 24, "foo")
    assert SEL.evaluate("if (false) return Math.foo(); return 1;").value == 1


def test_an_input_hides_a_class_of_the_same_name() -> None:
    assert SEL.evaluate("Days.length()", {"Days": "abc"}).value == 3
    assert SEL.evaluate("Days", {"Days": 5}).value == 5


def test_an_error_shows_its_line_its_place_and_a_hint() -> None:
    with pytest.raises(SelError) as caught:
        SEL.evaluate("x = 1;\n\ty = name.tolowercase();\nreturn y;", {"name": "A"})

    error = caught.value
    assert (error.line, error.column, error.fragment, error.hint) == (
        2,
        11,
        "tolowercase",
        "did you mean 'toLowerCase'?",
    )
    assert error.rendered().splitlines()[2:4] == ["   y = name.tolowercase();", "            ^^^^^^^^^^^"]
    assert str(error).endswith("at line 2, column 11: tolowercase (did you mean 'toLowerCase'?)")


def test_the_caret_of_a_long_line_stays_in_sight() -> None:
    with pytest.raises(ParseError) as caught:
        SEL.program("x" + " + x" * 200 + " + * 2" + " + x" * 200)

    line, caret = caught.value.rendered().splitlines()[2:4]
    assert len(line) <= 122
    assert line[caret.index("^")] == "*"


def test_an_error_at_the_end_points_behind_the_text() -> None:
    with pytest.raises(ParseError) as caught:
        SEL.program("1 +")

    assert caught.value.rendered().splitlines()[-2:] == ["  1 +", "     ^"]


def test_value_gives_what_evaluate_gives() -> None:
    program = Program("x * 2", Limits())

    assert program.value({"x": 4}) == program.evaluate({"x": 4}).value == 8
    assert Program("1 + 1", Limits()).value() == 2
