"""Input that breaks readers of JSON, of paths and of queries: every operation answers it with less than 500."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.api.places import Place, step

JSON = {"Content-Type": "application/json"}
DEEP = 1_100
BASE = "/api/v3"
WORKFLOW = "nasty"

VALUES = {
    "nested lists": b"[" * DEEP + b"1" + b"]" * DEEP,
    "nested objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "nested below Python's limit": b"[" * 400 + b"1" + b"]" * 400,
    "nested far too deep": b"[" * 90_000 + b"]" * 90_000,
    "an integer of 5,000 digits": b"9" * 5_000,
    "an integer of 65 bits": b"18446744073709551616",
    "2^63": b"9223372036854775808",
    "a number that no double can hold": b"1e400",
    "an exponent without bounds": b"1e999999999",
    "NaN": b"NaN",
    "Infinity": b"-Infinity",
    "half of a surrogate pair": b'"\\ud800"',
    "a key that is half of a surrogate pair": b'{"\\ud800": 1}',
    "NUL": b'"a\\u0000b"',
    "a newline": b'"a\\nb"',
    "text that is no UTF-8": b'"\xff"',
    "text of 300,000 characters": b'"' + b"x" * 300_000 + b'"',
    "a key twice": b'{"name": "a", "name": 1}',
    "an object": b"{}",
    "nothing": b"null",
}
IN_PATHS = ["%00", "a%0Ab", "..%2f", "%ff", "x" * 300, "9" * 30, "9" * 5_000, "%D9%A3"]
IN_QUERIES = ["%00%0A", "%ff", "9" * 30, "9" * 5_000, "%7B", "runs.events-0:99999999"]
IN_HEADERS = [b"\x80\xff", b"9" * 5_000, b"{"]
USUAL = {
    "workflow_id": WORKFLOW,
    "instance_id": "1",
    "step_id": "work",
    "version": "active",
    "run_id": "1",
    "attempt": "1",
    "name": "n",
    "sequence": "1",
    "action": "stop",
}


@pytest.fixture(scope="module")
def operations(api: Place) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of all operations but the tail, which has no end; and an instance to ask about."""
    api.push(step("work", "nobody"), workflow_id=WORKFLOW)
    api.start(WORKFLOW)
    document = httpx.get(f"{api.url}/openapi.json").json()
    return [
        (method.upper(), path.removeprefix(BASE), {**about, "components": document["components"]})
        for path, methods in document["paths"].items()
        for method, about in methods.items()
        if path.startswith(BASE) and path != f"{BASE}/events"
    ]


def filled(path: str, **unusual: str) -> str:
    for name, value in {**USUAL, **unusual}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def members_in(schema: Any, components: Any) -> Iterator[str]:
    """The names of all members that a body may have, of inner objects too."""
    if isinstance(schema, list):
        for one in schema:
            yield from members_in(one, components)
    elif isinstance(schema, dict):
        if "$ref" in schema:
            yield from members_in(components["schemas"][schema["$ref"].rpartition("/")[2]], components)
        yield from schema.get("properties", {})
        for one in schema.values():
            yield from members_in(one, components)


def found_bugs(api: Place, calls: Iterator[tuple[str, str, dict[str, Any]]]) -> list[str]:
    """The calls that are answered as if they were the server's own fault."""
    bugs = []
    for method, path, more in calls:
        response = api.http.request(method, path, **more)
        if response.status_code >= 500:
            bugs.append(f"{method} {path[:200]} {str(more)[:200]}: {response.status_code} {response.text[:300]}")
    return bugs


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_no_body_is_a_bug_of_the_server(
    api: Place, operations: list[tuple[str, str, dict[str, Any]]], value: bytes
) -> None:
    def calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
        for method, path, about in operations:
            if "requestBody" not in about:
                continue
            where = f"{filled(path)}?wait_ms=1"
            yield method, where, {"content": value, "headers": JSON}
            for name in sorted({*members_in(about["requestBody"], about["components"]), "any"}):
                inner = b'{"name":"n","any":{"x":' + value + b"}}"
                yield method, where, {"content": b'{"name":"n","%b":%b}' % (name.encode(), value), "headers": JSON}
            yield method, where, {"content": inner, "headers": JSON}

    assert found_bugs(api, calls()) == []
    assert httpx.get(f"{api.url}/health").json()["status"] == "ok"


def test_no_path_query_or_header_is_a_bug_of_the_server(
    api: Place, operations: list[tuple[str, str, dict[str, Any]]]
) -> None:
    def calls() -> Iterator[tuple[str, str, dict[str, Any]]]:
        for method, path, about in operations:
            for one in about.get("parameters", ()):
                name, place = one["name"], one["in"]
                if place == "path":
                    for value in IN_PATHS:
                        yield method, f"{filled(path, **{name: value})}?wait_ms=1", {}
                elif place == "query":
                    first = "" if name == "wait_ms" else "wait_ms=1&"
                    for value in IN_QUERIES:
                        yield method, f"{filled(path)}?{first}{name}={value}", {}
                else:
                    for sent in IN_HEADERS:
                        yield method, f"{filled(path)}?wait_ms=1", {"headers": {name.encode(): sent}}

    assert found_bugs(api, calls()) == []


@pytest.mark.parametrize(
    ("path", "body", "word"),
    [
        ("/signals", b'{"name":"n","params":{"x":%b}}' % VALUES["an integer of 5,000 digits"], "out of range"),
        ("/signals", b'{"name":"n","y":%b}' % VALUES["nested below Python's limit"], "nests at most 100 deep"),
        ("/workflows/{id}/properties", b'{"x":%b}' % VALUES["nested lists"], "recursion"),
        ("/workflows/{id}/properties/tag", b'{"name":"n","x":%b}' % VALUES["nested objects"], "recursion"),
        ("/workflows/{id}/properties/tag", b'{"name":"n","x":1e400}', "out of range"),
        ("/workflows/{id}/versions/active/actions/start", b'{"runtime_tags":[{"name":"n","x":1e400}]}', "1e400"),
        (
            "/workflows/{id}/versions/active/actions/start",
            b'{"artifacts":{"x":%b}}' % VALUES["nested below Python's limit"],
            "nests at most 100 deep",
        ),
    ],
)
def test_input_that_broke_readers_is_told_what_is_wrong_with_it(
    api: Place, path: str, *, body: bytes, word: str
) -> None:
    name = api.push() if "{id}" in path else ""

    response = api.http.post(path.replace("{id}", name), content=body, headers=JSON)

    assert response.status_code == 400
    assert word in f"{response.json()['detail']} {response.json()['errors']}"


def test_a_tag_with_a_number_that_no_double_holds_stops_neither_the_view_nor_the_engine(api: Place) -> None:
    name = api.push(step("work", "nobody"))

    refused = api.http.post(f"/workflows/{name}/properties/tag", content=b'{"name":"n","x":1e400}', headers=JSON)
    taken = api.http.post(f"/workflows/{name}/properties/tag", content=b'{"name":"n","x":1e308}', headers=JSON)

    assert (refused.status_code, taken.status_code) == (400, 200)
    assert api.start(name) == 1
