"""`$name`, `${name}` and `$$` in literals."""

from decimal import Decimal
from typing import Any

import pytest

from kapelle.processors.params import interpolated, references
from kapelle.processors.sel import BooleanArray, DoubleArray, LongArray, StringArray

VALUES: dict[str, Any] = {
    "var": 0,
    "var1": True,
    "var2": 2,
    "foo": "$bar",
    "bar": "$baz",
    "baz": "$foo",
    "d": 1.5,
    "big": 1e10,
    "exact": Decimal("1.10"),
    "strArray": StringArray(["one", "two", "three"]),
    "longArray": LongArray([1, 2]),
    "doubleArray": DoubleArray([1.5, 2.0]),
    "boolArray": BooleanArray([True, False]),
    "empty": StringArray(),
    "map": {"a": 1, "b": {"c": ["x"]}},
    "quote": 'say "hi"',
    "step.1__x": "dotted",
    "a-b/c": "path",
    "with_underscore": "u",
}
TABLE = [
    ("", ""),
    ("plain", "plain"),
    ("test $var $var1 $var2", "test 0 true 2"),
    ("$$var$var $var1$$var1 $$$var2 $$$$var2", "$var0 true$var1 $2 $$var2"),
    ("$foo$bar$baz", "$bar$baz$foo"),
    ("no $$ $$$$", "no $ $$"),
    ("$strArray", '["one","two","three"]'),
    ("$longArray $doubleArray $boolArray", "[1,2] [1.5,2.0] [true,false]"),
    ("$empty", "[]"),
    ("$map", '{"a":1,"b":{"c":["x"]}}'),
    ("${var}", "0"),
    ("${var}1", "01"),
    ("${step.1__x}", "dotted"),
    ("${a-b/c}", "path"),
    ("$var.x", "0.x"),
    ("$var-x", "0-x"),
    ("a${var}b${var2}c", "a0b2c"),
    ("$d $big $exact", "1.5 1.0E10 1.10"),
    ("$quote", 'say "hi"'),
    ("$with_underscore!", "u!"),
    ("costs $5", "costs $5"),
    ("$", "$"),
    ("$ var", "$ var"),
    ("${}", "${}"),
    ("${1a}", "${1a}"),
    ("${unclosed", "${unclosed"),
    ("$_var", "$_var"),
    ("$${var}", "${var}"),
    ("$$${var}", "$0"),
    ("{var}", "{var}"),
    ("%s {0} $var", "%s {0} 0"),
    ("$var\n$var", "0\n0"),
]


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_a_text_becomes_what_its_row_says(text: str, expected: str) -> None:
    assert interpolated(text, VALUES.__getitem__) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("$a $b $a", ["a", "b"]),
        ("${a.b}$c", ["a.b", "c"]),
        ("$$a", []),
        ("$$$a", ["a"]),
        ("$5 $ ${", []),
    ],
)
def test_references_are_found_in_order_and_once(text: str, expected: list[str]) -> None:
    assert references(text) == expected
