"""Old and new readers and writers of what others read and write, in both framings, against each other."""

import io
import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest

from kapelle.processors.publisher.streams import KEYS
from kapelle.schemas import Catalog, Codec, Confluent, Contract, SingleObject
from kapelle.schemas import contracts as c
from kapelle.schemas.compatibility import violations
from kapelle.schemas.model import to_json
from kapelle.schemas.released import read_released
from tests.unit.schemas.fresh import contract_of

ROOT = Path(__file__).parents[3]
SOURCE, RELEASED = ROOT / "schemas/avsc", ROOT / "schemas/released"
PUBLIC: dict[str, type[Contract]] = {contract.__name__: contract for stream in KEYS for contract in stream.ours} | {
    "AnnounceSignal": c.AnnounceSignal
}
LATER = {"name": "later", "type": ["null", "string"], "default": None}
FRAMINGS = ("single object", "Confluent")


def later(schema: dict[str, Any]) -> dict[str, Any]:
    """The next version of a contract: another field, and another symbol of every enumeration."""

    def grown(of: Any) -> Any:
        if isinstance(of, list):
            return [grown(one) for one in of]
        if not isinstance(of, dict):
            return of
        made = {
            name: grown(inner) if name in {"fields", "type", "items", "values"} else inner for name, inner in of.items()
        }
        if made.get("type") == "enum":
            made["symbols"] = ["LATER", *made["symbols"]]
        return made

    whole: dict[str, Any] = grown(schema)
    whole["fields"] = [LATER, *whole["fields"]]
    return whole


def split(schema: str) -> dict[str, Any]:
    """A schema as a file of ours has it: its namespace beside its name."""
    whole: dict[str, Any] = json.loads(schema)
    namespace, _, name = whole["name"].rpartition(".")
    return whole | {"name": name, "namespace": namespace}


def versions(name: str) -> dict[str, dict[str, Any]]:
    """Every schema of a contract that somebody may write and read by: the released ones, ours, and the next."""
    released = {f"release {one.number}": split(to_json(one.of)) for one in read_released(RELEASED)[f"kapelle.{name}"]}
    current = split(PUBLIC[name].SCHEMA)
    return released | {"current": current, "later": later(current)}


def sample(name: str) -> list[dict[str, Any]]:
    """With everything that a record of the first release can have, and with as little as it can have."""
    values: list[dict[str, Any]] = json.loads((RELEASED / f"kapelle.{name}" / "1.json").read_text())
    return values


def plainly(schema: str) -> Any:
    """A schema for fastavro, without logical types: milliseconds stay integers."""
    return fastavro.parse_schema(json.loads(schema.replace('"logicalType"', '"note"')))


def framed(framing: str, schema: str) -> SingleObject | Confluent:
    return Confluent({7: schema}) if framing == "Confluent" else SingleObject()


def test_all_that_others_read_and_write_is_released() -> None:
    assert {f"kapelle.{name}" for name in PUBLIC} <= set(read_released(RELEASED))


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("name", PUBLIC)
def test_every_version_reads_every_other(name: str, framing: str) -> None:
    kinds = {version: contract_of(schema) for version, schema in versions(name).items()}

    for (written_by, writer), (read_by, reader) in itertools.product(kinds.items(), repeat=2):
        writing = Codec(Catalog.of(writer), framed(framing, writer.SCHEMA))
        reading = Codec(Catalog.of(reader))
        reading.catalog.learn(writer.SCHEMA, schema_id=7)
        for plain in sample(name):
            data = writing.encode(msgspec.convert(plain, writer))

            found = json.loads(msgspec.json.encode(reading.decode(data)))

            assert {key: found[key] for key in plain} == plain, f"{written_by} read by {read_by}"


@pytest.mark.parametrize("name", PUBLIC)
def test_others_who_have_one_version_read_every_other(name: str) -> None:
    schemas = versions(name)
    kinds = {version: contract_of(schema) for version, schema in schemas.items()}

    for (written_by, writer), read_by in itertools.product(kinds.items(), schemas):
        for plain in sample(name):
            body = io.BytesIO(msgspec.convert(plain, writer).to_avro())

            found: Any = fastavro.schemaless_reader(body, plainly(writer.SCHEMA), plainly(json.dumps(schemas[read_by])))

            assert {key: found[key] for key in plain} == plain, f"{written_by} read by {read_by}"


@pytest.mark.parametrize("name", [name for name in PUBLIC if "OTHER" in PUBLIC[name].SCHEMA])
def test_a_symbol_of_later_is_other_to_those_who_do_not_know_it(name: str) -> None:
    current = split(PUBLIC[name].SCHEMA)
    writer, reader = contract_of(later(current)), contract_of(current)
    plain = sample(name)[0]
    text = json.dumps(plain).replace('"OTHER"', '"LATER"')
    reading = Codec(Catalog.of(reader))
    reading.catalog.learn(writer.SCHEMA)

    decoded = reading.decode(Codec(Catalog.of(writer)).encode(msgspec.convert(json.loads(text), writer)))

    found = json.loads(msgspec.json.encode(decoded))
    assert {key: found[key] for key in plain} == plain


@pytest.mark.parametrize("name", PUBLIC)
def test_a_breaking_change_is_told_in_a_sentence_that_names_the_field(name: str, tmp_path: Path) -> None:
    source = shutil.copytree(SOURCE, tmp_path / "avsc")
    schema = json.loads((source / f"{name}.avsc").read_text())
    broken = schema["fields"][0]["name"]
    schema["fields"][0]["name"] = "renamed"
    (source / f"{name}.avsc").write_text(json.dumps(schema))

    told = [str(one) for one in violations(source, RELEASED)]

    assert any(line.startswith(f"kapelle.{name} against version 1: ") and broken in line for line in told), told
