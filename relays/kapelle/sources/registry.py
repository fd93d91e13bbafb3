"""Reads Avro as the serializers of Confluent write it: the id of a schema in a header, or before the record.

    before the record, or in the header `__value_schema_id`:   0, a number in four bytes
                                                               1, a GUID in sixteen bytes

Schemas are asked of the registry over HTTP once and kept: what an id stands for never changes. User and password may
stand in the address, or in `KAPELLE_REGISTRY_AUTH` as user:password.
"""

import io
import os
import struct
import time
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote
from uuid import UUID

import fastavro
import httpx
import msgspec
from fastavro.types import NamedSchemas, Schema

from kapelle.processors.intake.forms import NotASignal
from kapelle.sources.errors import RegistryAway, RegistryRefused

AUTH_VARIABLE: Final = "KAPELLE_REGISTRY_AUTH"
HEADER: Final = "__value_schema_id"
NUMBER: Final = struct.Struct(">bI")
GUID: Final = struct.Struct(">b16s")
TIMEOUT_S: Final = 5.0
SCHEMAS_MAX: Final = 10_000
REFERENCES_MAX: Final = 100
UNKNOWN_S: Final = 30.0  # so long an id that the registry does not know is not asked for again

T = TypeVar("T")
Fields = dict[str, Any]
Headers = Sequence[tuple[str, bytes]]
SchemaId = int | UUID


class Registry:
    """The schemas of one registry."""

    def __init__(self, url: str, *, now_s: Callable[[], float] = time.monotonic) -> None:
        auth = os.environ.get(AUTH_VARIABLE, "").partition(":")
        self._client = httpx.Client(
            base_url=url, timeout=TIMEOUT_S, auth=(auth[0], auth[2]) if auth[1] else None, follow_redirects=False
        )
        self._now_s = now_s
        self._schemas: dict[SchemaId, Schema] = {}
        self._unknown: dict[SchemaId, float] = {}

    def decode(self, value: bytes | None, headers: Headers = ()) -> object:
        """What a record says, in what JSON can hold. Raises `NotASignal`, `RegistryAway`, `RegistryRefused`."""
        if value is None:
            raise NotASignal("Expected Avro with the id of its schema, but the record has no value")
        header = next((content for name, content in headers if name == HEADER), None)
        if header is None:
            number, size = _id(value, "the value")
        else:
            (number, _), size = _id(header, f"the header {HEADER}"), 0
        schema = self._schema(number)
        try:
            datum = fastavro.schemaless_reader(io.BytesIO(value[size:]), schema, None)
            return msgspec.to_builtins(datum)  # times, decimals and bytes as JSON writes them
        except Exception as error:  # noqa: BLE001 - fastavro meets wrong bytes with errors of any type
            raise NotASignal(f"Expected a record of schema {number}, but {type(error).__name__}: {error}") from None

    def close(self) -> None:
        self._client.close()

    def _schema(self, number: SchemaId) -> Schema:
        if number in self._schemas:
            return self._schemas[number]
        if self._now_s() - self._unknown.get(number, -UNKNOWN_S) < UNKNOWN_S:
            raise _unknown(number)
        try:
            schema = self._parsed(
                self._get(f"/schemas/{'ids' if isinstance(number, int) else 'guids'}/{number}"), {}, []
            )
        except _NotThere:
            self._remember(self._unknown, number, self._now_s())
            raise _unknown(number) from None
        self._remember(self._schemas, number, schema)
        return schema

    def _parsed(self, answer: Fields, named: NamedSchemas, seen: list[str]) -> Schema:
        """A schema, after those that it refers to."""
        if answer.get("schemaType", "AVRO") != "AVRO":
            raise NotASignal(f"Expected a schema of Avro, but found one of {answer['schemaType']}")
        for reference in answer.get("references", []):
            subject, version = str(reference["subject"]), int(reference["version"])
            if f"{subject} {version}" in seen:
                continue
            seen.append(f"{subject} {version}")
            if len(seen) > REFERENCES_MAX:
                raise NotASignal(f"Expected a schema with at most {REFERENCES_MAX} references, but found more")
            self._parsed(self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}"), named, seen)
        try:
            return fastavro.parse_schema(msgspec.json.decode(answer["schema"]), named)
        except (fastavro.schema.SchemaParseException, msgspec.DecodeError, KeyError, TypeError) as error:
            raise NotASignal(f"Expected a schema of Avro, but {type(error).__name__}: {error}") from None

    def _get(self, path: str) -> Fields:
        """What the registry answers. The address is never told: it may hold a password."""
        try:
            answer = self._client.get(path)
        except httpx.HTTPError as error:
            raise RegistryAway(f"Expected the registry to answer, but {type(error).__name__}: {error}") from None
        if answer.status_code == HTTPStatus.NOT_FOUND:
            raise _NotThere
        if answer.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise RegistryRefused(f"The registry refused GET {path}: status {answer.status_code}")
        try:
            return msgspec.json.decode(answer.raise_for_status().content, type=Fields)
        except (httpx.HTTPError, msgspec.MsgspecError):
            raise RegistryAway(f"Expected a schema from {path}, but the answer is {answer.status_code}") from None

    def _remember(self, where: dict[SchemaId, T], number: SchemaId, what: T) -> None:
        if len(where) >= SCHEMAS_MAX:
            where.pop(next(iter(where)))
        where[number] = what


class _NotThere(Exception):
    """The registry has no such schema."""


def _id(data: bytes, where: str) -> tuple[SchemaId, int]:
    """The id of a schema, and how many bytes it took."""
    for magic, form in enumerate((NUMBER, GUID)):
        if data[:1] == bytes([magic]):
            if len(data) < form.size:
                raise NotASignal(f"Expected the id of a schema in {where}, but it has less than {form.size} bytes")
            schema_id = form.unpack_from(data)[1]
            return (UUID(bytes=schema_id) if form is GUID else schema_id), form.size
    begin = f"begins with {data[0]:#04x}" if data else "is empty"
    raise NotASignal(f"Expected the id of a schema in {where}, as Confluent's serializers write it, but it {begin}")


def _unknown(number: SchemaId) -> NotASignal:
    return NotASignal(f"Expected a schema that the registry knows, but it has none of the id {number}")
