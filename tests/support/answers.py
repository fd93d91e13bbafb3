"""Compares answers of the API with the shapes that its document gives them. What is not described is an error."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

import httpx
from fastapi.routing import APIRoute
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from starlette.routing import Match

from kapelle.api.app import ROUTED
from tests.support.texts import METHODS, document

Operation = tuple[str, str]  # the method and the path in the document
JSON_TYPE: Final = re.compile(r"application/(problem\+)?json")
SHOWN_CHARS_MAX: Final = 2_000


def operations() -> dict[Operation, Any]:
    """All operations of the document."""
    paths = document()["paths"]
    return {(method, path): item[method] for path, item in paths.items() for method in METHODS if method in item}


class Answers:
    """The answers that were looked at: `seen` has their operations and statuses."""

    def __init__(self) -> None:
        self.seen: set[tuple[Operation, int]] = set()

    def look(self, response: httpx.Response) -> None:
        """Compare an answer with its shape. A hook of httpx: a stream is not read."""
        operation = operation_of(response.request.method, response.request.url.path)
        if operation is None:
            return
        media_type = response.headers.get("content-type", "").partition(";")[0]
        if JSON_TYPE.fullmatch(media_type):
            response.read()
            check(operation, response.status_code, media_type, response.json())
        self.seen.add((operation, response.status_code))


def operation_of(method: str, path: str) -> Operation | None:
    """The operation that a request calls; None if there is none."""
    for prefix, route in _routes():
        if path.startswith(prefix):
            scope = {"type": "http", "method": method, "path": path.removeprefix(prefix), "root_path": ""}
            if route.matches(scope)[0] is Match.FULL:
                return method.lower(), prefix + route.path_format
    return None


@cache
def _routes() -> list[tuple[str, APIRoute]]:
    return [(prefix, route) for prefix, router in ROUTED for route in router.routes if isinstance(route, APIRoute)]


def check(operation: Operation, status: int, media_type: str, answer: object) -> None:
    """Refuse an answer that does not have its shape."""
    validator = _validator(operation, status, media_type)
    where = f"{operation[0].upper()} {operation[1]} {status}"
    assert validator is not None, f"Expected a shape of {where} ({media_type}), but the document has none"
    error = best_match(validator.iter_errors(answer))
    if error is not None:
        text = str(answer)[:SHOWN_CHARS_MAX]
        raise AssertionError(f"Expected {where} to have its shape, but {error.json_path}: {error.message}\n{text}")


@cache
def _validator(operation: Operation, status: int, media_type: str) -> Draft202012Validator | None:
    response = _closed()["paths"][operation[1]][operation[0]]["responses"].get(str(status), {})
    schema = response.get("content", {}).get(media_type, {}).get("schema")
    return Draft202012Validator({**schema, "components": _closed()["components"]}) if schema else None


@cache
def _closed() -> Any:
    """The document, in which no object has other members than those that are described."""
    found = document()
    for schema in _schemas(found["components"]):
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return found


def _schemas(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "type" in value:
            yield value
        for each in value.values():
            yield from _schemas(each)
