"""The OpenAPI document: what FastAPI knows of the routes, and the schemas of their answers.

The schemas are made when somebody asks for the document, not when a server starts.
"""

import re
from collections.abc import Iterator, Sequence
from inspect import cleandoc
from typing import Any, Final

import msgspec
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from kapelle.api.answers.common import SCHEMAS
from kapelle.api.answers.permits import DetailedLimit, Limit
from kapelle.api.answers.workflows import Metadata, PropertiesSnapshot
from kapelle.api.shapes import Shape

# Beside their own members, these have others that people have chosen.
OPEN: Final = (Limit, Metadata, PropertiesSnapshot, DetailedLimit)
# FastAPI tells of its own answer to a bad request. Ours is a problem, and its status is 400.
OF_FASTAPI: Final = ("HTTPValidationError", "ValidationError")
GENERIC: Final = re.compile(r"([A-Za-z]+)_([A-Za-z]+)_$")
UNPROCESSABLE: Final = "422"

Document = dict[str, Any]  # JSON


class Described(FastAPI):
    """An application whose document has the schemas of all answers. `routers` are its routers with their prefixes."""

    routers: Sequence[tuple[str, APIRouter]] = ()

    def openapi(self) -> Document:
        """The document. It is made once."""
        if not self.openapi_schema:
            self.openapi_schema = described(super().openapi(), self.routers)
        return self.openapi_schema


def described(document: Document, routers: Sequence[tuple[str, APIRouter]]) -> Document:
    """A document of FastAPI, with a schema in the place of each shape."""
    places = list(_places(document, routers))
    kinds = [kind for _, shape in places for kind in shape.kinds]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=SCHEMAS)
    made = iter([_plainly(schema) for schema in schemas])
    for content, shape in places:
        each = [next(made) for _ in shape.kinds]
        content["schema"] = each[0] if len(each) == 1 else {"anyOf": each}
    for kind in OPEN:
        components[kind.__name__]["additionalProperties"] = True
    named = {_plain(name): _named(name, schema) for name, schema in components.items()}
    known = {name: schema for name, schema in document["components"]["schemas"].items() if name not in OF_FASTAPI}
    document["components"]["schemas"] = dict(sorted({**named, **known}.items()))
    return document


def _named(name: str, schema: Document) -> Document:
    """A schema under the name that others use, with a docstring as plain text."""
    return {**schema, "title": _plain(name), "description": cleandoc(schema.get("description", ""))}


def _plainly(schema: Document) -> Document:
    """The schema of a shape. No other schemas refer to generic ones."""
    return {"$ref": _plain(schema["$ref"])} if "$ref" in schema else schema


def _plain(name: str) -> str:
    """msgspec names `Page[Run]` Page_Run_. Here it is PageOfRun."""
    return GENERIC.sub(r"\1Of\2", name)


def _places(document: Document, routers: Sequence[tuple[str, APIRouter]]) -> Iterator[tuple[Document, Shape]]:
    """Where the shapes of all routes stand in the document."""
    for prefix, router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute):
                for method in route.methods or ():
                    operation = document["paths"][prefix + route.path_format][method.lower()]
                    yield from _of_operation(operation["responses"], route)


def _of_operation(responses: Document, route: APIRoute) -> Iterator[tuple[Document, Shape]]:
    if UNPROCESSABLE not in {str(status) for status in route.responses}:
        responses.pop(UNPROCESSABLE, None)  # of FastAPI
    for status, response in route.responses.items():
        for media_type, content in response.get("content", {}).items():
            if isinstance(content.get("schema"), Shape):
                yield responses[str(status)]["content"][media_type], content["schema"]
