"""Filling in a form: what pydantic says becomes problems with a path, and what is right is kept for further checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Final, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kapelle.processors.definitions.forms import Form, Raw
from kapelle.processors.definitions.problems import NOTHING, Report, at, shown

F = TypeVar("F", bound=Form)


def _as_told(error: ErrorDetails) -> str:
    return error["msg"]


# What would be right, by pydantic's name for what is wrong. Fields of our own say it themselves.
EXPECTED: Final[dict[str, Callable[[ErrorDetails], str]]] = {
    "wrong": _as_told,
    "missing": lambda _: "a value, which is required",
    "list_type": lambda _: "a list",
    "string_type": lambda _: "text",
    "bool_type": lambda _: "true or false",
    "dict_type": lambda _: "an object",
    "model_type": lambda _: "an object",
}


def fill(form: type[F], raw: object, path: str, *, report: Report, fallback: Raw) -> F:
    """The form with all that is right in it. Where a required value is wrong or missing, `fallback` stands in."""
    try:
        return form.model_validate(raw)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False)
    for problem in errors:
        where = path
        for key in problem["loc"]:
            where = at(where, key)
        if problem["type"] == "extra_forbidden":
            report.add(where, problem["input"], _known_keys(form, problem["loc"]))
        else:
            value = NOTHING if problem["type"] == "missing" else shown(problem["input"])
            report.note(where or "the request", value, EXPECTED.get(problem["type"], _as_told)(problem))
    wrong = {problem["loc"][0] for problem in errors if problem["loc"]}
    right = {key: value for key, value in raw.items() if key not in wrong} if isinstance(raw, dict) else {}
    required = {name for name, field in form.model_fields.items() if field.is_required()}
    return form.model_validate({**{name: fallback[name] for name in required}, **right})


def _known_keys(form: type[Form], loc: tuple[str | int, ...]) -> str:
    """The keys that could have been meant."""
    for key in loc[:-1]:
        field = form.model_fields.get(str(key))
        form = next(_forms_in(field.annotation), form) if field else form
    known = sorted(field.alias or name for name, field in form.model_fields.items())
    near = get_close_matches(str(loc[-1])[:64], known, n=1, cutoff=0.75)
    return f"the key {near[0]!r}" if near else f"only the keys {', '.join(known)}"


def _forms_in(annotation: object) -> Iterator[type[Form]]:
    if isinstance(annotation, type) and issubclass(annotation, Form):
        yield annotation
    for inner in get_args(annotation):
        yield from _forms_in(inner)
