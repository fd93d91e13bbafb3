"""The page `/docs`: the OpenAPI document for people. It is plain HTML, so it needs no other server and no script."""

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from kapelle.api.answers.common import SCHEMAS
from kapelle.api.document import Document

router = APIRouter()

REF: Final = SCHEMAS.format(name="")
POLICY: Final = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
BOUNDS: Final = ("minimum", "maximum", "minLength", "maxLength", "maxItems", "pattern", "default")
CODE: Final = re.compile(r"`([^`]+)`")
STYLE: Final = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 0 auto; padding: 1rem; }
nav a { margin-right: 1rem; }
details { border-top: 1px solid #8884; padding: .3rem 0; }
summary { cursor: pointer; }
summary b { display: inline-block; min-width: 4.5rem; }
table { border-collapse: collapse; margin: .5rem 0; }
td, th { border-top: 1px solid #8884; padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
details:target { outline: 2px solid; }
"""


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """The document as a page. It is made once."""
    state = request.app.state
    if not hasattr(state, "page"):
        state.page = page_of(request.app.openapi())
    return HTMLResponse(state.page, headers=POLICY)


def page_of(document: Document) -> str:
    """A document as HTML: its operations by tag, and then its schemas, to which they have links."""
    return "".join(_page(document))


def _page(document: Document) -> Iterator[str]:
    info, by_tag = document["info"], _by_tag(document)
    title = f"{info['title']} {info['version']}"
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    yield f'<h1>{escape(title)}</h1>{_text(info)}<p><a href="openapi.json">openapi.json</a></p><nav>'
    yield from (f'<a href="#{_anchor(tag)}">{escape(tag)}</a>' for tag in (*by_tag, "schemas"))
    yield "</nav>"
    for tag, operations in by_tag.items():
        yield f'<h2 id="{_anchor(tag)}">{escape(tag)}</h2>'
        for name, operation in operations:
            yield from _operation(name, operation)
    yield '<h2 id="schemas">schemas</h2>'
    for name, schema in document["components"]["schemas"].items():
        yield f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>{_text(schema)}'
        yield from _schema(schema)
        yield "</details>"


def _anchor(tag: str) -> str:
    return escape(tag.replace(" ", "-"))


def _by_tag(document: Document) -> dict[str, list[tuple[str, Document]]]:
    found: dict[str, list[tuple[str, Document]]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            name = f"<b>{escape(method.upper())}</b> <code>{escape(path)}</code>"
            found.setdefault(operation["tags"][0], []).append((name, operation))
    return found


def _operation(name: str, operation: Document) -> Iterator[str]:
    yield f"<details id='{escape(operation['operationId'])}'><summary>{name} {escape(operation['summary'])}</summary>"
    yield _text(operation)
    parameters = operation.get("parameters", ())
    if parameters:
        yield from _table(("parameter", "in", "type", ""), (_parameter(one) for one in parameters))
    if "requestBody" in operation:
        yield from _table(("body", "type"), _contents(operation["requestBody"]))
    answers = ((status, _told(one), _types(one)) for status, one in operation["responses"].items())
    yield from _table(("answer", "", "type"), answers)
    yield "</details>"


def _parameter(parameter: Document) -> tuple[str, ...]:
    is_required = " (required)" if parameter.get("required") else ""
    name = f"<code>{escape(parameter['name'])}</code>{is_required}"
    return name, parameter["in"], _type(parameter["schema"]), _told(parameter)


def _contents(about: Document) -> Iterator[tuple[str, ...]]:
    for media_type, content in about["content"].items():
        yield f"<code>{escape(media_type)}</code>", _type(content.get("schema", {}))


def _types(response: Document) -> str:
    return ", ".join(_type(content.get("schema", {})) for content in response.get("content", {}).values())


def _schema(schema: Document) -> Iterator[str]:
    members = schema.get("properties")
    if not members:
        yield f"<p>{_type(schema)}</p>"
        return
    required = schema.get("required", ())
    yield from _table(
        ("member", "type", ""),
        (
            (f"<code>{escape(name)}</code>{'' if name in required else ' (optional)'}", _type(one), _told(one))
            for name, one in members.items()
        ),
    )


def _told(schema: Document) -> str:
    return _with_code(schema.get("description", ""))


def _type(schema: Document) -> str:
    """A type in words, with links to named ones."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(REF))
        return f'<a href="#{name}">{name}</a>'
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return " or ".join(_type(one) for one in schema[key])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"<code>{escape(str(one))}</code>" for one in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any JSON")
    if kind == "array":
        inner = schema.get("prefixItems") or [schema.get("items") or {}]
        return f"list of {', '.join(_type(one) for one in inner)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {_type(schema['additionalProperties'])}"
    bounds = [f"{name} {schema[name]}" for name in BOUNDS if name in schema]
    return escape(f"{kind} ({', '.join(bounds)})" if bounds else str(kind))


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A table. Its cells are HTML."""
    yield f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    yield from (f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    yield "</table>"


def _text(about: Document) -> str:
    return "".join(f"<p>{_with_code(part)}</p>" for part in about.get("description", "").split("\n\n"))


def _with_code(text: str) -> str:
    """Text as HTML. Text between backticks is code."""
    return CODE.sub(r"<code>\1</code>", escape(text))
