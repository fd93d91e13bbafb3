"""The OpenAPI document: random calls made from it never find a bug of the server, and every route is documented."""

from contextlib import suppress
from html.parser import HTMLParser
from typing import Any

import httpx
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from kapelle.api.routes import ROUTERS
from tests.integration.api.places import Place, step
from tests.support import texts
from tests.tidy.files import REPOSITORY

EXAMPLES_EACH = 24
CLOSED = ("details", "summary", "table", "tr", "td", "th", "p", "a", "code", "b", "nav", "h1", "h2")
METHODS = ("get", "put", "post", "delete", "patch", "head", "options", "trace")


def test_no_call_made_from_the_document_finds_a_bug(api: Place) -> None:
    name = api.push(step("work", "nobody"))
    api.start(name)
    schema = schemathesis.openapi.from_url(f"{api.url}/openapi.json")
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    found = list(schema.get_all_operations())

    tried = []
    for one in found:
        assert isinstance(one, Ok), f"Expected an operation that calls can be made from, but found {one.err()}"
        try_operation(one.ok())
        tried.append((one.ok().path, one.ok().method))

    assert sorted(tried) == sorted(documented())
    assert httpx.get(f"{api.url}/health").json()["status"] == "ok"


def documented() -> list[tuple[str, str]]:
    """The path and the method of every operation of the document."""
    return [(path, method) for path, item in texts.document()["paths"].items() for method in item if method in METHODS]


def try_operation(operation: Any) -> None:
    """Call a route with what its description allows, and with what it does not."""

    @settings(
        max_examples=EXAMPLES_EACH,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def try_call(case: Any) -> None:
        response = hurried(case).call(timeout=30)

        assert response.status_code < 500, (case, response.text)

    try_call()


def hurried(case: Any) -> Any:
    """The same call, by somebody who does not wait."""
    case.query = {**(case.query or {}), "wait_ms": 5}
    # A whole number, however it is written, is one of milliseconds: 2500.0 and "2500" too.
    if isinstance(case.body, dict) and isinstance(case.body.get("wait_ms"), int | float | str):
        with suppress(ValueError):
            case.body = {**case.body, "wait_ms": min(float(case.body["wait_ms"]), 0)}
    return case


def test_every_route_is_documented() -> None:
    text = (REPOSITORY / "docs" / "http.md").read_text()
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]

    missing = [
        f"{method} {route.path}"
        for route in routes
        for method in route.methods or ()
        if f"| {method} {route.path} |" not in text
    ]

    assert missing == []


def test_the_page_for_people_has_every_operation_and_schema_and_needs_no_other_server(api: Place) -> None:
    page = httpx.get(f"{api.url}/docs")
    found = Page()
    found.feed(page.text)
    operations = [one["operationId"] for item in texts.document()["paths"].values() for one in item.values()]

    assert page.status_code == 200
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert found.ids >= {*operations, *texts.document()["components"]["schemas"]}
    assert {link.removeprefix("#") for link in found.links} - found.ids == {"openapi.json"}
    assert found.tags & {"script", "link", "img", "iframe"} == set()
    assert found.open == []


class Page(HTMLParser):
    """The ids, links and tags of a page. `open` has the elements of details and tables that were not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.tags: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        about = dict(attrs)
        self.tags.add(tag)
        self.ids.add(about.get("id") or "")
        self.links |= {about["href"] or ""} if "href" in about else set()
        if tag in CLOSED:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in CLOSED:
            assert self.open.pop() == tag


def test_every_operation_and_parameter_of_the_document_has_a_description() -> None:
    operations = [one for item in texts.document()["paths"].values() for one in item.values()]
    parameters = [parameter for one in operations for parameter in one.get("parameters", ())]

    assert [one["operationId"] for one in operations if not (one.get("summary") and one.get("description"))] == []
    assert [one["name"] for one in parameters if not one.get("description")] == []
