"""The schemas of a catalog as the records of a compacted topic, so that readers need no registry.

The key is the fingerprint as 16 hex digits, the value is the schema's JSON. Both are UTF-8 text, for any tool to read.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kapelle.schemas.catalog import Catalog
from kapelle.schemas.errors import BadSchema


class SchemaRecord(NamedTuple):
    """A record of the topic as it came, and where it stands, for the log."""

    key: bytes
    value: bytes | None
    where: str


def to_records(catalog: Catalog) -> list[tuple[bytes, bytes]]:
    """A key and a value for every schema, in the order of the keys."""
    return sorted((_key(number).encode(), schema.encode()) for number, schema in catalog.schemas.items())


def from_records(records: Iterable[tuple[bytes, bytes | None]]) -> Catalog:
    """A catalog of schemas, to be joined with one of contracts by `|`."""
    catalog = Catalog()
    for key, value in records:
        learn_record(catalog, key, value)
    return catalog


def learn_record(catalog: Catalog, key: bytes, value: bytes | None) -> None:
    """Take up one record. A deleted one is passed over: whatever was written with it may still be read."""
    if value is None:
        return
    where = f"schema topic, key {key!r}"
    try:
        schema_json = value.decode()
    except UnicodeDecodeError as error:
        raise BadSchema(where, f"expected UTF-8, but {error}") from error
    number = _key(catalog.learn(schema_json))
    if number.encode() != key:
        raise BadSchema(where, f"expected the fingerprint of its schema as key, which is {number}")


def _key(fingerprint: int) -> str:
    return f"{fingerprint:016x}"
