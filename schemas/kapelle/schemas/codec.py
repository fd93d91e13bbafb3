"""From contract values to bytes and back.

Two framings stand side by side. Both are always read; a codec writes one of them:

- single-object encoding: `C3 01`, the fingerprint of the writer's schema (8 bytes, little-endian), the record;
- the Confluent wire format: `00`, the schema's id in a registry (4 bytes, big-endian), the record.

A record of the current schema is read by generated code. One of any other known schema is read by Avro's resolution
rules as the current type. `decode` gives a value or raises a `SchemaError`, whatever the bytes are.
"""

import struct
from collections.abc import Mapping
from typing import Final, NoReturn, Protocol, TypeVar

from kapelle.schemas.catalog import Catalog, Read
from kapelle.schemas.contract import Contract
from kapelle.schemas.diagnosis import misfit
from kapelle.schemas.errors import Corrupt, NotEncodable, RecordTooLarge, Truncated
from kapelle.schemas.parsing import parse

T = TypeVar("T")

RECORD_BYTES_MAX: Final = 1_000_000

_SINGLE_OBJECT: Final = b"\xc3\x01"
_SINGLE_OBJECT_BYTES: Final = 10
_CONFLUENT: Final = b"\x00"
_CONFLUENT_BYTES: Final = 5

# What generated code raises on a value of the wrong shape.
_MISFITS: Final = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError, struct.error)


class Framing(Protocol):
    """What stands before a record."""

    size_bytes: int

    def heads(self, catalog: Catalog) -> Mapping[type[Contract], bytes]:
        """What to write before a record of each type."""
        ...


class SingleObject:
    """Avro's single-object encoding, which needs no registry."""

    size_bytes = _SINGLE_OBJECT_BYTES

    def heads(self, catalog: Catalog) -> Mapping[type[Contract], bytes]:
        return {contract: _SINGLE_OBJECT + contract.FINGERPRINT.to_bytes(8, "little") for contract in catalog}


class Confluent:
    """The wire format of Schema Registry. `ids` are the schemas by their ids there; the catalog learns them."""

    size_bytes = _CONFLUENT_BYTES

    def __init__(self, ids: Mapping[int, str]) -> None:
        self._ids = dict(ids)

    def heads(self, catalog: Catalog) -> Mapping[type[Contract], bytes]:
        for schema_id, schema_json in self._ids.items():
            catalog.learn(schema_json, schema_id=schema_id)
        ids = catalog.schema_ids()
        registered = (contract for contract in catalog if contract.FINGERPRINT in ids)
        return {contract: _CONFLUENT + ids[contract.FINGERPRINT].to_bytes(4, "big") for contract in registered}


class ByRegistry:
    """The wire format of Schema Registry for contracts that have an id there, single-object encoding for all others.

    `earlier` are schemas by the ids that earlier releases may have written with: they are read.
    """

    size_bytes = _SINGLE_OBJECT_BYTES

    def __init__(self, ids: Mapping[type[Contract], int], earlier: Mapping[int, str] | None = None) -> None:
        self._ids = dict(ids)
        self._earlier = dict(earlier or {})

    def heads(self, catalog: Catalog) -> Mapping[type[Contract], bytes]:
        for schema_id, schema_json in self._earlier.items():
            catalog.learn(schema_json, schema_id=schema_id)
        for contract, schema_id in self._ids.items():
            catalog.learn(contract.SCHEMA, schema_id=schema_id)
        registered = {contract: _CONFLUENT + number.to_bytes(4, "big") for contract, number in self._ids.items()}
        return {**SingleObject().heads(catalog), **registered}


class Codec:
    """Encodes and decodes the contracts of a catalog. What the catalog learns later, the codec reads."""

    def __init__(
        self, catalog: Catalog, framing: Framing | None = None, *, record_bytes_max: int = RECORD_BYTES_MAX
    ) -> None:
        framing = framing or SingleObject()
        self.catalog = catalog
        self.record_bytes_max = record_bytes_max
        self._heads = dict(framing.heads(catalog))
        self._head_bytes = framing.size_bytes
        self._readers: dict[bytes, tuple[Read, int, str]] = {}

    def encode(self, value: Contract) -> bytes:
        """The bytes of a value."""
        try:
            data = value.to_avro(self._heads[type(value)])
        except _MISFITS as error:
            self._refuse_value(value, error)
        if len(data) > self.record_bytes_max:
            raise RecordTooLarge(value.FULL_NAME, len(data), self.record_bytes_max)
        return data

    def decode(self, data: bytes) -> Contract:
        """The value of some bytes."""
        size = len(data)
        if size > self.record_bytes_max:
            raise RecordTooLarge("a record", size, self.record_bytes_max)
        read, at, full_name = self._readers.get(data[: self._head_bytes]) or self._reader(data)
        try:
            value, end = read(data, at)
        except IndexError:
            raise Truncated(full_name, size) from None
        except UnicodeDecodeError:
            value, end = self._read_carefully(data, at, full_name)
        if end < size:
            raise Corrupt(f"{full_name} to end after {end} bytes", f"{size - end} bytes more")
        if end > size:
            raise Truncated(full_name, size)
        return value

    def _read_carefully(self, data: bytes, at: int, full_name: str) -> tuple[Contract, int]:
        """Read what is not text once more: it may be cut in the middle of a character, or be wrong."""
        read, _ = self.catalog.careful_reader(self._fingerprint(data[:at]))
        try:
            return read(data, at)
        except IndexError:
            raise Truncated(full_name, len(data)) from None

    @property
    def head_bytes(self) -> int:
        """How many bytes stand before a record that this codec writes."""
        return self._head_bytes

    def by_head(self, values: Mapping[type[Contract], T]) -> dict[bytes, T]:
        """These values, by the first bytes of the records of their types that this codec writes."""
        return {self._heads[contract]: value for contract, value in values.items() if contract in self._heads}

    def _reader(self, data: bytes) -> tuple[Read, int, str]:
        """The reader for the head of some bytes, which is kept: heads are few."""
        head = data[:_SINGLE_OBJECT_BYTES] if data[:2] == _SINGLE_OBJECT else data[:_CONFLUENT_BYTES]
        reader = self._readers.get(head)
        if reader is None:
            read, full_name = self.catalog.reader(self._fingerprint(head))
            reader = self._readers[head] = read, len(head), full_name
        return reader

    def _fingerprint(self, head: bytes) -> int:
        """The fingerprint of the writer's schema, by either framing."""
        if head[:2] == _SINGLE_OBJECT:
            if len(head) < _SINGLE_OBJECT_BYTES:
                raise Truncated("a schema's fingerprint", len(head))
            return int.from_bytes(head[2:], "little")
        if head[:1] == _CONFLUENT:
            if len(head) < _CONFLUENT_BYTES:
                raise Truncated("a schema's id", len(head))
            return self.catalog.fingerprint_of(int.from_bytes(head[1:], "big"))
        if head in (b"", _SINGLE_OBJECT[:1]):
            raise Truncated("a framing", len(head))
        raise Corrupt("a record that begins with C3 01 or 00", head[:2].hex(" ").upper())

    def _refuse_value(self, value: Contract, error: Exception) -> NoReturn:
        kind = type(value)
        if kind not in self.catalog:
            type_name = f"{kind.__module__}.{kind.__qualname__}"
            raise NotEncodable("the catalog", "", expected="a contract", found=type_name) from error
        if kind not in self._heads:
            raise NotEncodable(kind.FULL_NAME, "", expected="a schema id in the registry", found="none") from error
        why = misfit(parse(kind.SCHEMA), value)
        if why is None:
            raise NotEncodable(kind.FULL_NAME, "", expected="an encodable value", found=str(error)) from error
        raise NotEncodable(kind.FULL_NAME, why.path, expected=why.expected, found=why.found) from error
