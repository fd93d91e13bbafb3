"""Avro is read with the schemas of a registry, which is asked once for each."""

import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from kapelle.processors.intake.forms import NotASignal
from kapelle.sources import Registry, RegistryAway, RegistryRefused
from kapelle.sources.registry import UNKNOWN_S
from tests.unit.sources.fake_registry import FakeRegistry, framed, schema_answer

PLACE = {"type": "record", "name": "Place", "fields": [{"name": "town", "type": "string"}]}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "sum", "type": {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}},
    ],
}
WITH_PLACE = {"type": "record", "name": "Sent", "fields": [{"name": "to", "type": "Place"}]}
INLINE = {"type": "record", "name": "Sent", "fields": [{"name": "to", "type": PLACE}]}


@pytest.fixture
def fake() -> Iterator[FakeRegistry]:
    answers = {
        "/schemas/ids/1": schema_answer(ORDER),
        "/schemas/ids/2": schema_answer(WITH_PLACE, references=[{"name": "Place", "subject": "a/place", "version": 3}]),
        "/subjects/a%2Fplace/versions/3": schema_answer(PLACE),
        "/schemas/ids/4": schema_answer({}, schemaType="PROTOBUF"),
        "/schemas/ids/5": {"schema": "no schema"},
    }
    with FakeRegistry(answers) as started:
        yield started


@pytest.fixture
def registry(fake: FakeRegistry) -> Iterator[Registry]:
    made = Registry(fake.url)
    yield made
    made.close()


def test_records_are_read_as_json_would_hold_them(fake: FakeRegistry, registry: Registry) -> None:
    record = {"id": "o1", "at": datetime(2026, 11, 16, 10, tzinfo=UTC), "sum": Decimal("12.50")}
    data = framed(1, ORDER, record)

    found = [registry.decode(data) for _ in range(3)]

    assert found == [{"id": "o1", "at": "2026-11-16T10:00:00Z", "sum": "12.50"}] * 3
    assert fake.asked == ["/schemas/ids/1"]


GUID = UUID("6e2f3c1a-8a4e-4b5e-9f43-3a6d2f1f7a10")


@pytest.mark.parametrize(
    ("before", "headers", "asked"),
    [
        (struct.pack(">bI", 0, 1), (), "/schemas/ids/1"),
        (b"\1" + GUID.bytes, (), f"/schemas/guids/{GUID}"),
        (b"", (("__value_schema_id", struct.pack(">bI", 0, 1)),), "/schemas/ids/1"),
        (b"", (("other", b"x"), ("__value_schema_id", b"\1" + GUID.bytes)), f"/schemas/guids/{GUID}"),
    ],
)
def test_the_id_of_a_schema_stands_before_the_record_or_in_a_header(
    fake: FakeRegistry, registry: Registry, before: bytes, headers: Any, asked: str
) -> None:
    fake.answers = {asked: schema_answer(PLACE)}
    record = framed(0, PLACE, {"town": "Ulm"})[5:]

    found = registry.decode(before + record, headers)

    assert found == {"town": "Ulm"}
    assert fake.asked == [asked]


def test_a_header_that_holds_no_id_is_told_of(registry: Registry) -> None:
    with pytest.raises(NotASignal, match="in the header __value_schema_id, as Confluent's serializers write it"):
        registry.decode(b"x", [("__value_schema_id", b"7")])


def test_schemas_may_refer_to_others(registry: Registry) -> None:
    assert registry.decode(framed(2, INLINE, {"to": {"town": "Ulm"}})) == {"to": {"town": "Ulm"}}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "has no value"),
        (b"", "it is empty"),
        (b"\1" + bytes(15), "less than 17 bytes"),
        (b"\0\0", "less than 5 bytes"),
        (b'{"a": 1}', "begins with 0x7b"),
        (struct.pack(">bI", 0, 1) + b"\xff", "Expected a record of schema 1"),
        (struct.pack(">bI", 0, 4) + b"x", "one of PROTOBUF"),
        (struct.pack(">bI", 0, 5) + b"x", "Expected a schema of Avro"),
    ],
)
def test_what_cannot_be_read_is_told_why(registry: Registry, data: bytes | None, reason: str) -> None:
    with pytest.raises(NotASignal, match=reason):
        registry.decode(data)


def test_an_unknown_schema_is_asked_for_again_only_after_a_while(fake: FakeRegistry) -> None:
    now_s = [0.0]
    registry = Registry(fake.url, now_s=lambda: now_s[0])
    data = framed(9, PLACE, {"town": "Ulm"})
    for _ in range(3):
        with pytest.raises(NotASignal, match="none of the id 9"):
            registry.decode(data)

    fake.answers["/schemas/ids/9"] = schema_answer(PLACE)
    now_s[0] += UNKNOWN_S
    found = registry.decode(data)
    registry.close()

    assert found == {"town": "Ulm"}
    assert fake.asked == ["/schemas/ids/9"] * 2


@pytest.mark.parametrize(("status", "kind"), [(500, RegistryAway), (401, RegistryRefused), (403, RegistryRefused)])
def test_a_registry_that_gives_nothing_is_no_fault_of_the_record(
    fake: FakeRegistry, registry: Registry, status: int, kind: type[Exception]
) -> None:
    fake.status = status

    with pytest.raises(kind):
        registry.decode(framed(1, PLACE, {"town": "Ulm"}))


def test_a_registry_that_cannot_be_reached_is_away() -> None:
    registry = Registry("http://127.0.0.1:9")

    with pytest.raises(RegistryAway):
        registry.decode(framed(1, PLACE, {"town": "Ulm"}))
    registry.close()
