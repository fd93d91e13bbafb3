"""The OpenAPI document: what FastAPI knows of the routes, and the schemas of their answers.

The schemas are made when somebody asks for the document, not when a server starts.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute

from kapelle.api.answers.common import SCHEMAS
from kapelle.api.answers.permits import Limit, ToldLimit
from kapelle.api.answers.workflows import Metadata, PropertiesSnapshot
from kapelle.api.shapes import Shape

# Beside their own members, these have others that people have chosen.
OPEN: Final = (Limit, Metadata, PropertiesSnapshot, ToldLimit)
# FastAPI tells of its own answer to a bad request. Ours is a problem, and its status is 400.
OF_FASTAPI: Final = ("HTTPValidationError", "ValidationError")
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
    schemas, components = msgspec.json.schema_components(kinds, schema_hook=_anything, ref_template=SCHEMAS)
    made = iter(schemas)
    for content, shape in places:
        each = [next(made) for _ in shape.kinds]
        content["schema"] = each[0] if len(each) == 1 else {"anyOf": each}
    for kind in OPEN:
        components[kind.__name__]["additionalProperties"] = True
    known = document["components"]["schemas"]
    document["components"]["schemas"] = dict(sorted(({**components, **known}).items()))
    for name in OF_FASTAPI:
        document["components"]["schemas"].pop(name, None)
    return document


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


def _anything(kind: type) -> Document:
    """What is typed as an object may be any JSON."""
    if kind is object:
        return {"description": "Any JSON."}
    raise NotImplementedError(kind)
