"""Every released schema stays readable for ever, and nothing that was released may be broken by what is current."""

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest

from kapelle.schemas import Catalog, Codec, contracts
from kapelle.schemas.compatibility import violations
from kapelle.schemas.model import canonical_form, fingerprint
from kapelle.schemas.parsing import parse
from kapelle.schemas.released import Version, read_released

ROOT = Path(__file__).parents[3]
RELEASED = ROOT / "schemas/released"
VERSIONS = [(name, version) for name, versions in read_released(RELEASED).items() for version in versions]
IDS = [f"{name} {version.number}" for name, version in VERSIONS]
each_version = pytest.mark.parametrize(("name", "version"), VERSIONS, ids=IDS)


def golden(name: str, version: Version) -> list[bytes]:
    return [bytes.fromhex(line) for line in (RELEASED / name / f"{version.number}.golden").read_text().splitlines()]


def samples(name: str, version: Version) -> Any:
    return json.loads((RELEASED / name / f"{version.number}.json").read_text())


def by_fastavro(data: bytes, writer: Any, reader: Any) -> Any:
    body = io.BytesIO(data[10:])
    found = fastavro.schemaless_reader(body, fastavro.parse_schema(writer), fastavro.parse_schema(reader))
    assert not body.read()
    return found


def test_there_are_released_schemas() -> None:
    assert VERSIONS


@each_version
def test_golden_bytes_hold_the_sample_values(name: str, version: Version) -> None:
    schema = json.loads(canonical_form(version.of))

    found = [by_fastavro(data, schema, schema) for data in golden(name, version)]

    assert json.loads(msgspec.json.encode(found)) == samples(name, version)


@each_version
def test_golden_bytes_name_their_schema(name: str, version: Version) -> None:
    for data in golden(name, version):
        assert data[:10] == b"\xc3\x01" + fingerprint(version.of).to_bytes(8, "little")


@each_version
def test_golden_bytes_are_read_as_the_current_type(name: str, version: Version) -> None:
    codec = Codec(Catalog.of(contracts))

    for data in golden(name, version):
        value = codec.decode(data)
        current = json.loads(value.SCHEMA.replace('"logicalType"', '"note"'))
        plain = by_fastavro(data, json.loads(canonical_form(version.of)), current)
        assert value == msgspec.convert(plain, type(value))


@each_version
def test_golden_bytes_of_the_current_version_are_what_we_write(name: str, version: Version) -> None:
    codec = Codec(Catalog.of(contracts))

    for data in golden(name, version):
        value = codec.decode(data)
        if fingerprint(parse(value.SCHEMA)) == version.fingerprint:
            assert codec.encode(value) == data


def test_no_current_contract_breaks_a_released_version() -> None:
    assert violations(ROOT / "schemas/avsc", RELEASED) == []
