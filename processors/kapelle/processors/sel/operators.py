"""What each operator does with each pair of types.

The compiler inlines LONG with LONG; everything else comes here. Errors are raised without a place: the caller knows it.

| left | right | result |
|---|---|---|
| LONG, DOUBLE | LONG, DOUBLE | LONG if both are, else DOUBLE |
| anything | STRING, with `+` | STRING; so does STRING with anything, and NULL with anything |
| LONG, DOUBLE | STRING | the number becomes text: `==` and `!=` compare texts |
| BOOLEAN | BOOLEAN | `==`, `!=` |
| any | NULL, or NULL with any | `==`, `!=`; NULL on the left of `<` or `>` is false |
"""

import math
from collections.abc import Callable

from kapelle.processors.sel.errors import BadValue, SelError, TypeMismatch
from kapelle.processors.sel.limits import Frame, Value
from kapelle.processors.sel.values import LONG_MAX, LONG_MIN, Array, kind_of, text_of, wrap

Binary = Callable[[Frame, Value, Value], Value]
NUMBERS = frozenset({int, float})


def _refused(sign: str, a: Value, b: Value) -> SelError:
    hint = ""
    left, right = a.__class__, b.__class__
    if left is str and right is str and sign in ("<", ">", "<=", ">="):
        hint = "strings are ordered by a.compareTo(b)"
    elif left is str and sign in ("==", "!=") and right in NUMBERS:
        hint = "turn one side into the type of the other: Long.valueOf(text) or String.valueOf(number)"
    elif sign in ("==", "!=") and left is right and kind_of(a) == "DATETIME":
        hint = "times are compared by a.isEqual(b)"
    elif left is str and right is str and sign in ("-", "*", "/", "%"):
        hint = "strings support only +, == and !="
    return TypeMismatch(f"Operator {sign!r} does not support these types: {kind_of(a)} {sign} {kind_of(b)}", hint=hint)


def add(frame: Frame, a: Value, b: Value) -> Value:
    """`+`: a sum, or a concatenation when either side is a string or the left one is null."""
    left, right = a.__class__, b.__class__
    if left is int and right is int:
        total = a + b
        return total if LONG_MIN <= total <= LONG_MAX else wrap(total)
    if left is str or right is str or a is None:
        head = a if left is str else text_of(frame, a)
        tail = b if right is str else text_of(frame, b)
        frame.text(len(head) + len(tail), of=(head, tail))
        return head + tail
    if left in NUMBERS and right in NUMBERS:
        return float(a) + float(b)
    raise _refused("+", a, b)


def subtract(_: Frame, a: Value, b: Value) -> Value:
    """`-`."""
    left, right = a.__class__, b.__class__
    if left is int and right is int:
        total = a - b
        return total if LONG_MIN <= total <= LONG_MAX else wrap(total)
    if left in NUMBERS and right in NUMBERS:
        return float(a) - float(b)
    raise _refused("-", a, b)


def multiply(_: Frame, a: Value, b: Value) -> Value:
    """`*`."""
    left, right = a.__class__, b.__class__
    if left is int and right is int:
        total = a * b
        return total if LONG_MIN <= total <= LONG_MAX else wrap(total)
    if left in NUMBERS and right in NUMBERS:
        return float(a) * float(b)
    raise _refused("*", a, b)


def divide(_: Frame, a: Value, b: Value) -> Value:
    """`/`: towards zero for LONG; for DOUBLE a zero divisor gives Infinity or NaN."""
    left, right = a.__class__, b.__class__
    if left is int and right is int:
        if b == 0:
            raise BadValue("Expected a divisor other than 0")
        quotient = abs(a) // abs(b)
        return wrap(quotient if (a < 0) == (b < 0) else -quotient)
    if left in NUMBERS and right in NUMBERS:
        if b == 0:
            return float(a) * math.copysign(math.inf, b) if a != 0 else math.nan
        return float(a) / float(b)
    raise _refused("/", a, b)


def remainder(_: Frame, a: Value, b: Value) -> Value:
    """`%`: takes the sign of the dividend."""
    left, right = a.__class__, b.__class__
    if left is int and right is int:
        if b == 0:
            raise BadValue("Expected a divisor other than 0")
        rest = abs(a) % abs(b)
        return rest if a >= 0 else -rest
    if left in NUMBERS and right in NUMBERS:
        if b == 0 or math.isinf(a) or math.isnan(a) or math.isnan(b):
            return math.nan
        return math.fmod(a, b)
    raise _refused("%", a, b)


def equal(frame: Frame, a: Value, b: Value) -> bool:
    """`==`: strings by their content."""
    return _same("==", frame, a, b)


def unequal(frame: Frame, a: Value, b: Value) -> bool:
    """`!=`."""
    return not _same("!=", frame, a, b)


def _same(sign: str, frame: Frame, a: Value, b: Value) -> bool:
    left, right = a.__class__, b.__class__
    if a is None or b is None:
        return a is b
    if left is right and left in (int, float, bool):
        return bool(a == b)
    if right is str:
        if left in NUMBERS:
            a, left = text_of(frame, a), str
        if left is str:
            frame.scan(min(len(a), len(b)))
            return bool(a == b)
    if left in NUMBERS and right in NUMBERS:
        return float(a) == float(b)
    raise _refused(sign, a, b)


def _ordering(sign: str, compare: Callable[[float, float], bool], null_on_the_left: bool) -> Binary:
    def run(_: Frame, a: Value, b: Value) -> bool:
        left, right = a.__class__, b.__class__
        if left in NUMBERS and right in NUMBERS:
            return compare(a, b) if left is right else compare(float(a), float(b))
        if a is None and null_on_the_left:
            return False
        raise _refused(sign, a, b)

    return run


less = _ordering("<", lambda a, b: a < b, null_on_the_left=True)
greater = _ordering(">", lambda a, b: a > b, null_on_the_left=True)
at_most = _ordering("<=", lambda a, b: a <= b, null_on_the_left=False)
at_least = _ordering(">=", lambda a, b: a >= b, null_on_the_left=False)

BINARY: dict[str, Binary] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
    "==": equal,
    "!=": unequal,
    "<": less,
    ">": greater,
    "<=": at_most,
    ">=": at_least,
}


def negated(a: Value) -> Value:
    """Prefix `-`."""
    if a.__class__ is int:
        return wrap(-a)
    if a.__class__ is float:
        return -a
    raise TypeMismatch(f"Expected a number after '-', but found {kind_of(a)}")


def posited(a: Value) -> Value:
    """Prefix `+`."""
    if a.__class__ in NUMBERS:
        return a
    raise TypeMismatch(f"Expected a number after '+', but found {kind_of(a)}")


def inverted(a: Value) -> bool:
    """Prefix `!`."""
    if a.__class__ is bool:
        return not a
    raise TypeMismatch(f"Expected BOOLEAN after '!', but found {kind_of(a)}")


UNARY: dict[str, Callable[[Value], Value]] = {"-": negated, "+": posited, "!": inverted}


def element(frame: Frame, target: Value, index: Value) -> Value:
    """`target[index]`."""
    if isinstance(target, Array):
        return target[checked_index(target, index)]
    getter = getattr(target, "sel_item", None)
    if getter is not None:
        if index.__class__ is not str:
            raise TypeMismatch(f"Expected STRING as the key of params, but found {kind_of(index)}")
        frame.scan(len(index))
        return getter(frame, index)
    hint = "a map is read by get(key)" if target.__class__ is dict else ""
    raise TypeMismatch(f"Expected an array before '[', but found {kind_of(target)}", hint=hint)


def checked_index(target: Array, index: Value) -> int:
    """The index, if the array has it."""
    if index.__class__ is not int:
        raise TypeMismatch(f"Expected LONG as an index, but found {kind_of(index)}")
    if not 0 <= index < len(target):
        raise BadValue(f"Expected an index from 0 to {len(target) - 1}, but found {index}")
    return int(index)


def put_element(target: Value, index: Value, value: Value) -> Value:
    """`target[index] = value`."""
    if not isinstance(target, Array):
        raise TypeMismatch(f"Expected an array before '[', but found {kind_of(target)}")
    at = checked_index(target, index)
    target[at] = value = as_element(target.__class__, value)
    return value


def as_element(array: type[Array], value: Value) -> Value:
    """The value as an element of such an array: a LONG fits where a DOUBLE is expected."""
    cls = value.__class__
    if cls is array.element or (value is None and array.element is str):
        return value
    if array.element is float and cls is int:
        return float(value)
    raise TypeMismatch(f"Expected an element for {array.kind}, but found {kind_of(value)}")
