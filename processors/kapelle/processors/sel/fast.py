"""The operators compiled for the common case: two LONGs are handled in place, all else by `operators`."""

import operator
from collections.abc import Callable

from kapelle.processors.sel import operators
from kapelle.processors.sel.errors import SelError, Span
from kapelle.processors.sel.limits import CHAR_BYTES, OBJECT_BYTES, Frame, Value
from kapelle.processors.sel.values import LONG_MAX, LONG_MIN

Expression = Callable[[Frame], Value]

# Short strings are counted at one price, which is not below their real one.
SHORT_CHARS = 64
SHORT_BYTES = OBJECT_BYTES + CHAR_BYTES * SHORT_CHARS


def _general(sign: str, left: Expression, right: Expression, span: Span) -> Expression:
    apply = operators.BINARY[sign]

    def run(f: Frame) -> Value:
        a = left(f)
        b = right(f)
        try:
            return apply(f, a, b)
        except SelError as error:
            raise error.placed(span) from None

    return run


def _add(left: Expression, right: Expression, span: Span) -> Expression:
    def run(f: Frame) -> Value:
        a = left(f)
        b = right(f)
        if a.__class__ is int and b.__class__ is int:
            total = a + b
            if LONG_MIN <= total <= LONG_MAX:
                return total
        elif a.__class__ is str and b.__class__ is str and len(a) + len(b) < SHORT_CHARS:
            f.memory -= SHORT_BYTES
            if f.memory >= 0:
                return a + b
        try:
            return operators.add(f, a, b)
        except SelError as error:
            raise error.placed(span) from None

    return run


def _subtract(left: Expression, right: Expression, span: Span) -> Expression:
    def run(f: Frame) -> Value:
        a = left(f)
        b = right(f)
        if a.__class__ is int and b.__class__ is int:
            total = a - b
            if LONG_MIN <= total <= LONG_MAX:
                return total
        try:
            return operators.subtract(f, a, b)
        except SelError as error:
            raise error.placed(span) from None

    return run


def _less(left: Expression, right: Expression, span: Span) -> Expression:
    def run(f: Frame) -> Value:
        a = left(f)
        b = right(f)
        if a.__class__ is int and b.__class__ is int:
            return a < b
        try:
            return operators.less(f, a, b)
        except SelError as error:
            raise error.placed(span) from None

    return run


def _greater(left: Expression, right: Expression, span: Span) -> Expression:
    def run(f: Frame) -> Value:
        a = left(f)
        b = right(f)
        if a.__class__ is int and b.__class__ is int:
            return a > b
        try:
            return operators.greater(f, a, b)
        except SelError as error:
            raise error.placed(span) from None

    return run


def _equal(left: Expression, right: Expression, span: Span) -> Expression:
    def run(f: Frame) -> Value:
        a = left(f)
        b = right(f)
        if a.__class__ is int and b.__class__ is int:
            return a == b
        try:
            return operators.equal(f, a, b)
        except SelError as error:
            raise error.placed(span) from None

    return run


_FAST = {"+": _add, "-": _subtract, "<": _less, ">": _greater, "==": _equal}
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def binary(sign: str, left: Expression, right: Expression, span: Span) -> Expression:
    """The closure of `left sign right`."""
    special = _FAST.get(sign)
    return special(left, right, span) if special else _general(sign, left, right, span)


def input_compared(sign: str, name: str, number: int, otherwise: Expression) -> Expression:
    """The closure of `input sign number`, the most common condition: no calls for a LONG, `otherwise` for all else."""
    compare = COMPARE[sign]

    def run(f: Frame) -> Value:
        try:
            value = f.inputs[name]
        except KeyError:
            return otherwise(f)
        return compare(value, number) if value.__class__ is int else otherwise(f)

    return run


def text_and_input(text: str, name: str, otherwise: Expression) -> Expression:
    """The closure of `"text" + input`: no calls for a short STRING, `otherwise` for all else.

    Its memory is not counted here but by the program, before it runs: see `Compiler.memory`.
    """
    room = SHORT_CHARS - len(text)

    def run(f: Frame) -> Value:
        try:
            value = f.inputs[name]
        except KeyError:
            return otherwise(f)
        return text + value if value.__class__ is str and len(value) < room else otherwise(f)

    return run


def chain(first: Expression, rest: list[tuple[str, Expression]], span: Span) -> Expression:
    """The closure of `a + b - c …`, applied from left to right without nesting."""
    steps = [(operators.BINARY[sign], operand) for sign, operand in rest]

    def run(f: Frame) -> Value:
        value = first(f)
        try:
            for apply, operand in steps:
                value = apply(f, value, operand(f))
        except SelError as error:
            raise error.placed(span) from None
        return value

    return run
