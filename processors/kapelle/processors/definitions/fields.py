"""The kinds of values that definitions are made of, as pydantic fields that say what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

from pydantic import PlainValidator
from pydantic_core import PydanticCustomError

from kapelle.processors.definitions.limits import ID_CHARS_MAX, NAME_CHARS_MAX, TEXT_CHARS_MAX

E = TypeVar("E", bound=StrEnum)

SYSTEM_PREFIX, SYSTEM_SUFFIX = "maestro_", "_maestro"
STEP_PARAM_SEPARATOR: Final = "__"
SINCE: Final[Mapping[str, int | None]] = {"latest": None, "earliest": 0}
_WORKFLOW_ID = re.compile(r"[_a-zA-Z0-9][.\-_a-zA-Z0-9]*")
_STEP_ID = re.compile(r"[_a-zA-Z][.\-_a-zA-Z0-9]*")
_TAG = re.compile(r"[\w .,:@&='(){}$+\[\]\-/\\]+", re.ASCII)


def wrong(expected: str) -> PydanticCustomError:
    """The error of a field: what would have been right."""
    return PydanticCustomError("wrong", "{expected}", {"expected": expected})


def text(chars_max: int, *, expected: str = "text", chars_min: int = 0) -> Callable[[object], str]:
    """A string of bounded length."""

    def check(value: object) -> str:
        if not isinstance(value, str):
            raise wrong(expected)
        if len(value) > chars_max:
            raise wrong(f"at most {chars_max:,} characters")
        if len(value) < chars_min:
            raise wrong(f"{expected} of at least {chars_min} character")
        return value

    return check


def matching(pattern: re.Pattern[str], chars_max: int, expected: str) -> Callable[[object], str]:
    """A string that looks as it should."""
    bounded = text(chars_max, expected=expected)

    def check(value: object) -> str:
        if not pattern.fullmatch(bounded(value)):
            raise wrong(expected)
        return str(value)

    return check


def workflow_id(value: object) -> str:
    """The id of a workflow that people push."""
    name = matching(_WORKFLOW_ID, ID_CHARS_MAX, "an id of letters, digits, '.', '-' and '_'")(value)
    if name.startswith(SYSTEM_PREFIX) or name.endswith(SYSTEM_SUFFIX):
        raise wrong(f"an id that does not begin with {SYSTEM_PREFIX!r} or end with {SYSTEM_SUFFIX!r}")
    return name


def _step_id(value: object) -> str:
    expected = "an id of letters, digits, '.', '-' and '_' that does not begin with a digit"
    name = matching(_STEP_ID, ID_CHARS_MAX, expected)(value)
    if name.startswith(SYSTEM_PREFIX):
        raise wrong(f"an id that does not begin with {SYSTEM_PREFIX!r}")
    if STEP_PARAM_SEPARATOR in name:
        raise wrong(f"an id without {STEP_PARAM_SEPARATOR!r}, which stands between a step and its parameter")
    return name


def integer(least: int, most: int) -> Callable[[object], int]:
    """An integer within bounds."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise wrong(f"an integer from {least} to {most:,}")
        return value

    return check


def condition(value: object) -> str:
    """An expression; `true` and `false` may be written without quotes."""
    return str(value).lower() if isinstance(value, bool) else text(TEXT_CHARS_MAX)(value)


def boolean(value: object) -> bool:
    """`true` or `false`."""
    if not isinstance(value, bool):
        raise wrong("true or false")
    return value


def one_of(options: type[E]) -> Callable[[object], E]:
    """A word of a list, in any case."""
    known = {str(option).upper(): option for option in options if option != "OTHER"}

    def check(value: object) -> E:
        option = known.get(value.upper()) if isinstance(value, str) else None
        if option is None:
            raise wrong(f"one of {', '.join(known)}")
        return option

    return check


def parsable(value: object) -> int | str:
    """A number or text; what the text means is looked at when the parameters are known."""
    if isinstance(value, str):
        return text(NAME_CHARS_MAX)(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong("an integer from 0, or text such as '90 s' or '${limit}'")
    return value


def text_or_integer(value: object) -> int | str:
    """What a parameter of a signal can be."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise wrong("text or an integer")
    return value


def instant(value: object) -> int | str:
    """A time as text, or milliseconds since 1970; what the text means is looked at when the zone is known."""
    if isinstance(value, str):
        return text(NAME_CHARS_MAX)(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong("a time such as '2026-01-31T12:00', or milliseconds since 1970")
    return value


def signal_values(value: object) -> int | str | tuple[int | str, ...]:
    """What a parameter of a signal is compared with: one value, or a list of them."""
    return tuple(text_or_integer(item) for item in value) if isinstance(value, list) else text_or_integer(value)


def word(options: Mapping[str, bool]) -> Callable[[object], bool]:
    """One of two words, in any case."""

    def check(value: object) -> bool:
        is_latest = options.get(value.lower()) if isinstance(value, str) else None
        if is_latest is None:
            raise wrong(f"one of {', '.join(options)}")
        return is_latest

    return check


def since(value: Any) -> int | None:
    """From when on signals count: None for those to come, 0 for all, else a time in milliseconds."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63:
        return value
    if isinstance(value, str) and value.lower() in SINCE:
        return SINCE[value.lower()]
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        time = None
    if time is None or time.tzinfo is None or time.timestamp() < 0:
        raise wrong("latest, earliest, a time such as '2026-01-31T12:00:00Z', or milliseconds since 1970")
    return round(time.timestamp() * 1000)


WorkflowId = Annotated[str, PlainValidator(workflow_id)]
StepId = Annotated[str, PlainValidator(_step_id)]
Name = Annotated[str, PlainValidator(text(NAME_CHARS_MAX, expected="a name"))]
TagName = Annotated[
    str,
    PlainValidator(
        matching(_TAG, NAME_CHARS_MAX, "a tag of letters, digits, blanks and . , : @ & = ' ( ) { } $ + [ ] - / \\ _")
    ),
]
FilledName = Annotated[str, PlainValidator(text(NAME_CHARS_MAX, expected="a name", chars_min=1))]
_type_name = matching(_WORKFLOW_ID, ID_CHARS_MAX, "a type of letters, digits, '.', '-' and '_'")
TypeName = Annotated[str, PlainValidator(_type_name)]
Text = Annotated[str, PlainValidator(text(TEXT_CHARS_MAX))]
Condition = Annotated[str, PlainValidator(condition)]
Flag = Annotated[bool, PlainValidator(boolean)]
WrittenNumber = Annotated[int | str, PlainValidator(parsable)]
# Null is taken out of objects before they are looked at, so these see it only as their default.
OptionalName = Annotated[str | None, PlainValidator(text(NAME_CHARS_MAX, expected="a name"))]
OptionalTypeName = Annotated[str | None, PlainValidator(_type_name)]
OptionalText = Annotated[str | None, PlainValidator(text(TEXT_CHARS_MAX))]
OptionalNumber = Annotated[int | str | None, PlainValidator(parsable)]
OptionalInstant = Annotated[int | str | None, PlainValidator(instant)]
SignalValue = Annotated[int | str | tuple[int | str, ...], PlainValidator(signal_values)]
# Whether only the newest counts, of the signals that wait in a trigger and of those that a step finds.
InTurn = Annotated[bool, PlainValidator(word({"first": False, "latest": True}))]
AnyOne = Annotated[bool, PlainValidator(word({"any": False, "latest": True}))]
Since = Annotated[int | None, PlainValidator(since)]
