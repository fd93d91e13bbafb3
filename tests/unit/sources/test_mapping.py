"""Documents become signals by rules, and files of sources are checked as a whole."""

import json
from typing import Any

import pytest

from kapelle.processors.intake.forms import NotASignal
from kapelle.schemas.contracts import AnnounceSignal
from kapelle.sources import BadSources, Coordinates, TopicSource, read_sources, signal_of
from kapelle.sources.paths import NOTHING, Path

AT = Coordinates("shop.orders", 3, 41)


def source(**said: Any) -> TopicSource:
    return read_sources(json.dumps({"sources": [{"topic": "shop.orders", "name": "order", **said}]})).sources[0]


def made(document: Any, **said: Any) -> AnnounceSignal:
    found = signal_of(source(**said), document, AT)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/a/b", 1),
        ("a.b", 1),
        ("/list/1/x", 2),
        ("list.1.x", 2),
        ("/x~1y/~0", 3),
        ("", {"a": {"b": 1}, "list": [0, {"x": 2}], "x/y": {"~": 3}}),
        ("/a/c", NOTHING),
        ("/list/2", NOTHING),
        ("/list/01", NOTHING),
        ("/list/-1", NOTHING),
        ("a.b.c", NOTHING),
    ],
)
def test_paths_lead_to_what_stands_there(path: str, found: Any) -> None:
    document = {"a": {"b": 1}, "list": [0, {"x": 2}], "x/y": {"~": 3}}

    assert Path.parse(path).find(document) == found


@pytest.mark.parametrize("path", ["a..b", ".a", "a.", "/~2", 7, None, "x" * 1_001])
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(ValueError, match="Expected"):
        Path.parse(path)


def test_a_signal_has_what_the_rule_says() -> None:
    document = {"id": "o1", "lines": [{"sku": "a"}], "at": "2026-11-16T10:00:00Z", "more": {"x": [1.5]}, "n": 7}

    signal = made(
        document,
        params={"sku": "lines.0.sku", "n": "/n", "region": {"value": "eu"}, "tier": {"path": "/tier", "default": 1}},
        id="/id",
        time="at",
        payload="/more",
    )

    assert signal == AnnounceSignal(
        name="order",
        signal_id="o1",
        params='{"n":7,"region":"eu","sku":"a","tier":1}',
        payload='{"x":[1.5]}',
        happened_at_ms=1_794_823_200_000,
        source='{"topic":"shop.orders","partition":3,"offset":41}',
    )


def test_without_an_id_the_coordinates_are_the_id() -> None:
    assert made({}).signal_id == "shop.orders-3-41"
    assert made({}).happened_at_ms is None


def test_the_name_may_stand_in_the_record() -> None:
    assert made({"kind": "paid"}, name={"path": "/kind"}).name == "paid"


@pytest.mark.parametrize(
    ("document", "passes"),
    [
        ({"type": "placed", "paid": True}, True),
        ({"type": "moved", "paid": True}, True),
        ({"type": "placed", "paid": 1}, False),
        ({"type": "placed"}, False),
        ({"type": "dropped", "paid": True}, False),
        ([], False),
        (None, False),
    ],
)
def test_a_filter_lets_equal_values_of_the_same_type_pass(document: Any, passes: bool) -> None:
    rule = source(filter={"/type": ["placed", "moved"], "paid": True})

    assert (signal_of(rule, document, AT) is not None) is passes


@pytest.mark.parametrize(
    ("document", "said", "reason"),
    [
        ({}, {"params": {"a": "/a"}}, "Expected parameter 'a' at /a, but found nothing there"),
        ({"a": None}, {"params": {"a": "/a"}}, "Expected parameter 'a' at /a, but found nothing there"),
        ({"a": 1.5}, {"params": {"a": "/a"}}, "Expected a string or an integer of 64 bits for parameter 'a'"),
        ({"a": 2**63}, {"params": {"a": "/a"}}, "Expected a string or an integer of 64 bits for parameter 'a'"),
        ({"a": True}, {"params": {"a": "/a"}}, "Expected a string or an integer of 64 bits for parameter 'a'"),
        ({}, {"id": "/id"}, "Expected the id at /id, but found nothing there"),
        ({"id": ""}, {"id": "/id"}, "Expected an id of 1 to 1024 characters, but it has 0"),
        ({"id": []}, {"id": "/id"}, "Expected 'id' to be a string, but it is not"),
        ({"at": "soon"}, {"time": "/at"}, "Expected a time as ISO 8601 or in milliseconds, but found 'soon'"),
        ({"name": 5}, {"name": {"path": "/name"}}, "Expected the name of a signal, with at most 256 characters"),
        ([], {"name": {"path": "/name"}}, "Expected the name of the signal at /name, but found nothing there"),
    ],
)
def test_a_document_that_makes_no_signal_is_told_why(document: Any, said: dict[str, Any], reason: str) -> None:
    with pytest.raises(NotASignal) as caught:
        made(document, **said)

    assert str(caught.value) == reason


def test_all_problems_of_a_file_are_told_at_once() -> None:
    text = """
    sources:
      - {topic: a b, name: {pth: x}, params: {a: x..y, b: 1.5}, filter: {x: 1.5}, nope: 1}
      - {format: xml, topic: x}
    """

    with pytest.raises(BadSources) as caught:
        read_sources(text)

    places = [problem.split(": ")[0] for problem in caught.value.problems]
    assert sorted(places) == [
        "sources.0.filter",
        "sources.0.name",
        "sources.0.nope",
        "sources.0.params.a",
        "sources.0.params.b",
        "sources.0.topic",
        "sources.1.format",
        "sources.1.name",
    ]
    assert [problem for problem in caught.value.problems if ": Expected " not in problem] == []
    assert "sources.0.nope: Expected no such member, but found another value" in caught.value.problems
    assert "sources.1.name: Expected a value, which is required, but found nothing" in caught.value.problems


def test_avro_without_a_registry_is_refused() -> None:
    with pytest.raises(BadSources, match="Expected a registry for Avro, but found none for shop"):
        read_sources("sources: [{topic: shop, format: avro, name: x}]")


@pytest.mark.parametrize("text", ["[]", "sources: 7", "a: [", "sources: [7]", "registry: ftp://x"])
def test_what_is_no_file_of_sources_is_refused(text: str) -> None:
    with pytest.raises(BadSources):
        read_sources(text)


def test_a_password_in_a_registry_is_never_shown() -> None:
    with pytest.raises(BadSources) as caught:
        read_sources("registry: ftp://ann:secret@host")
    found = read_sources("registry: http://ann:secret@host")

    assert "secret" not in str(caught.value)
    assert "secret" not in repr(found)
