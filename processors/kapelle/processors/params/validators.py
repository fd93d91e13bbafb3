"""Validators: a SEL expression over the value that must be true, or one of the annotations that templates use.

In the expression the value is called `value`, `param` as in Maestro's own definitions, and by the parameter's own name.
Other names are refused: a validator that nobody can check would be a promise that is not kept.
"""

import re
from collections.abc import Callable, Sized
from decimal import Decimal
from typing import Any, Final, Protocol

from kapelle.processors.params.definitions import Definition
from kapelle.processors.params.errors import BadDefinition, EvaluationFailed, ValidatorFailed, failed_of
from kapelle.processors.params.types import ParamType, ParamValue
from kapelle.processors.sel import Budget, Sel, SelError, TypeMismatch

NAMES: Final = ("value", "param")  # of the value, besides the parameter's own
_ANNOTATION = re.compile(r"@(\w+)(?:\(\s*(-?\d{1,18}(?:\.\d{1,18})?)?\s*\))?")


class Means(Protocol):
    """The interpreter, and the budget that validators share with what else is evaluated."""

    @property
    def sel(self) -> Sel: ...

    @property
    def budget(self) -> Budget: ...


def _size(value: object) -> int:
    return len(value) if isinstance(value, Sized) else 1


def _number(value: object) -> Decimal:
    return Decimal(str(value)) if isinstance(value, int | float | Decimal) else Decimal(_size(value))


ANNOTATIONS: Final[dict[str, Callable[[Any, Decimal], bool]]] = {
    "NotNull": lambda value, _: value is not None,
    "NotEmpty": lambda value, _: _size(value) > 0,
    "NotBlank": lambda value, _: bool(str(value).strip()),
    "Min": lambda value, bound: _number(value) >= bound,
    "Max": lambda value, bound: _number(value) <= bound,
    "Positive": lambda value, _: _number(value) > 0,
    "PositiveOrZero": lambda value, _: _number(value) >= 0,
}


def validate(name: str, definition: Definition, value: ParamValue, means: Means) -> None:
    """Refuse a value that its validator refuses, those inside a map included."""
    if definition.type is ParamType.MAP and definition.is_literal:
        for key, inner in definition.value.items():
            validate(f"{name}.{key}", inner, value[key], means)
    text = (definition.validator or "").strip()
    if not text:
        return
    holds = _annotated(name, text, value) if text.startswith("@") else _expressed(name, text, value, means)
    if not holds:
        raise ValidatorFailed(name, text, repr(value))


def check_validator(name: str, definition: Definition, sel: Sel) -> None:
    """Refuse a validator that could never be evaluated; for the time at which a definition is pushed."""
    text = (definition.validator or "").strip()
    if text.startswith("@"):
        _annotation(name, text)
    elif text:
        _program_names(name, text, sel)


def _annotation(name: str, text: str) -> tuple[Callable[[object, Decimal], bool], Decimal]:
    match = _ANNOTATION.fullmatch(text)
    if match is None or match[1] not in ANNOTATIONS:
        known = ", ".join(f"@{known}" for known in ANNOTATIONS)
        raise BadDefinition(name, f"its validator {text!r} is neither an expression nor one of {known}")
    return ANNOTATIONS[match[1]], Decimal(match[2] or 0)


def _annotated(name: str, text: str, value: ParamValue) -> bool:
    holds, bound = _annotation(name, text)
    return holds(value, bound)


def _program_names(name: str, text: str, sel: Sel, budget: Budget | None = None) -> tuple[str, ...]:
    try:
        names = sel.program(text, budget).names
    except SelError as error:
        raise failed_of(name, error) from error
    last = name.rpartition(".")[2]
    if unknown := [other for other in names if other not in (*NAMES, last)]:
        allowed = f"{', '.join(map(repr, NAMES))} and {last!r}"
        raise BadDefinition(name, f"its validator refers to {unknown[0]!r}, and may only refer to {allowed}")
    return names


def _expressed(name: str, text: str, value: ParamValue, means: Means) -> bool:
    names = _program_names(name, text, means.sel, means.budget)
    try:
        result = means.sel.evaluate(text, dict.fromkeys(names, value), budget=means.budget)
    except SelError as error:
        raise failed_of(name, error) from error
    if result.type != "BOOLEAN":
        wrong = TypeMismatch(f"Expected BOOLEAN from the validator, but found {result.type}").located(text)
        raise EvaluationFailed(name, wrong)
    return bool(result.value)
