"""JSON as people write it: integers of 64 bits, exact decimals, each key once; and the compact form that is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from math import isinf
from typing import Any, Final, NoReturn

import msgspec

from kapelle.processors.definitions.limits import PUSH_BYTES_MAX
from kapelle.processors.definitions.problems import DefinitionRefused, Problem, at
from kapelle.processors.params.nesting import NESTED_JSON_MAX

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
NUMBER_CHARS_MAX: Final = 1000
ROOT: Final = "the request"

_encoder = msgspec.json.Encoder(decimal_format="number")


class _Repeating(dict[str, Any]):
    """An object in whose text a key was written twice."""

    repeated: str


def read_json(text: str | bytes, *, bytes_max: int = PUSH_BYTES_MAX) -> Any:
    """What the text says. Numbers with a point, an exponent or more than 64 bits are decimals."""
    size = len(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    if size > bytes_max:
        raise _refused(f"{size:,} bytes", f"at most {bytes_max:,} bytes")
    try:
        value = json.loads(
            text, parse_int=_integer, parse_float=_decimal, parse_constant=_no_constant, object_pairs_hook=_object
        )
    except RecursionError:
        raise _refused("deeper nesting", f"JSON that nests at most {NESTED_JSON_MAX} deep") from None
    except ValueError as error:  # malformed JSON, text that is no UTF-8, and what the hooks refuse
        raise _refused(str(error)[:200], "JSON") from None
    if problems := list(_problems(value, "", 0)):
        raise DefinitionRefused(problems)
    return value


def write_json(value: object) -> str:
    """The compact form; keys stay in their order, which is the order of evaluation for parameters."""
    return _encoder.encode(value).decode()


def _refused(found: str, expected: str) -> DefinitionRefused:
    return DefinitionRefused([Problem(ROOT, found, expected)])


def _integer(text: str) -> int | Decimal:
    if len(text) > NUMBER_CHARS_MAX:
        raise ValueError(f"a number of {len(text):,} digits")
    number = int(text)
    return number if LONG_MIN <= number <= LONG_MAX else Decimal(text)


def _decimal(text: str) -> Decimal:
    number = bounded_decimal(text)
    if number is None:
        raise ValueError(f"the number {text[:40]}, which is out of range")
    return number


def bounded_decimal(text: str) -> Decimal | None:
    """A number with a point or an exponent; None if a double cannot hold it: others read what we write as doubles."""
    if len(text) > NUMBER_CHARS_MAX or isinf(float(text)):
        return None
    number = Decimal(text)
    return number if abs(number.adjusted()) <= NUMBER_CHARS_MAX else None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name}, which is not valid JSON")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    marked = _Repeating(made)
    marked.repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return marked


def _problems(value: object, path: str, depth: int) -> Iterator[Problem]:
    if depth > NESTED_JSON_MAX:
        yield Problem(path, "deeper nesting", f"JSON that nests at most {NESTED_JSON_MAX} deep")
    elif isinstance(value, dict):
        if isinstance(value, _Repeating):
            yield Problem(at(path, value.repeated), "it twice", "each key once")
        for key, inner in value.items():
            yield from _text_problems(key, at(path, key))
            yield from _problems(inner, at(path, key), depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _problems(inner, at(path, index), depth + 1)
    elif isinstance(value, str):
        yield from _text_problems(value, path)


def is_unicode(text: str) -> bool:
    """Whether no half of a surrogate pair stands by itself, which no encoding could hold."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _text_problems(text: str, path: str) -> Iterator[Problem]:
    if not is_unicode(text):
        yield Problem(path.encode("utf-8", "replace").decode(), "an unpaired surrogate", "text in Unicode")
