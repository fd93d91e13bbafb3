"""Rows as bytes: a version byte, then msgpack.

A row of an older version is read as the type that it then had, and taken step by step to today's by the upgrades that
the table declares. It is written in today's version when it is next put.
"""

from typing import Final, Generic, TypeVar

import msgspec
from msgspec import inspect

from kapelle.processors.errors import BadDeclaration
from kapelle.processors.tables import Key, TableSpec
from kapelle.topology.tables.errors import BadRow, RowCorrupt, RowTooLarge, RowVersionUnknown

K = TypeVar("K", bound=Key)
R = TypeVar("R", bound=msgspec.Struct)

ROW_BYTES_MAX: Final = 1_000_000  # what a broker takes by default, less room for the key and headers
VERSION_MAX: Final = 255
_PLAIN: Final = (
    inspect.StrType,
    inspect.IntType,
    inspect.BoolType,
    inspect.BytesType,
    inspect.NoneType,
    inspect.EnumType,
)


class RowCodec(Generic[R]):
    """Encodes and decodes the rows of one table.

    `is_plain`: a row is the same when it is read again. One with a dictionary may not be: it is stored in the order of
    its keys. One with a float may not be: Python takes an integer for it.
    """

    def __init__(self, spec: TableSpec[K, R]) -> None:
        _check(spec)
        self.table = spec.name
        self.row = spec.row
        self.version = spec.version
        self.is_plain = _is_plain(spec.row)
        self._mark = bytes((spec.version,))
        # Sets and dictionaries in a fixed order, so that equal rows are equal bytes in every process.
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode
        self._decode = msgspec.msgpack.Decoder(spec.row).decode
        self._older = {
            version: (msgspec.msgpack.Decoder(row).decode, upgrade) for version, (row, upgrade) in spec.upgrades.items()
        }

    def encode(self, row: R) -> bytes:
        if row.__class__ is not self.row:
            raise BadRow(self.table, self.row.__name__, repr(row))
        try:
            value = self._mark + self._encode(row)
        except (TypeError, ValueError, OverflowError) as error:
            raise BadRow(self.table, f"{self.row.__name__} that msgpack can hold", f"{row!r} ({error})") from error
        if len(value) > ROW_BYTES_MAX:
            raise RowTooLarge(self.table, len(value), ROW_BYTES_MAX)
        return value

    def decode(self, value: bytes, key: Key) -> R:
        """The row in `value`. The key is only for the error that names it."""
        if not value or value[0] != self.version:
            return self._decode_older(value, key)
        try:
            return self._decode(value[1:])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RowCorrupt(self.table, key, self.version, str(error)) from error

    def _decode_older(self, value: bytes, key: Key) -> R:
        if not value:
            raise RowCorrupt(self.table, key, None, "no bytes at all")
        version = value[0]
        if version not in self._older:
            raise RowVersionUnknown(self.table, key, version, (*self._older, self.version))
        try:
            row = self._older[version][0](value[1:])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RowCorrupt(self.table, key, version, str(error)) from error
        for step in range(version, self.version):
            row = self._older[step][1](row)
        if row.__class__ is not self.row:
            raise BadRow(self.table, f"{self.row.__name__} from the upgrade of version {version}", repr(row))
        return row


def _is_plain(row: type[msgspec.Struct]) -> bool:
    return _is_plain_type(inspect.type_info(row))


def _is_plain_type(type_: inspect.Type) -> bool:
    match type_:
        case inspect.StructType():
            return all(_is_plain_type(field.type) for field in type_.fields)
        case inspect.UnionType():
            return all(_is_plain_type(item) for item in type_.types)
        case inspect.VarTupleType():
            return _is_plain_type(type_.item_type)
        case _:
            return isinstance(type_, _PLAIN)


def _check(spec: TableSpec[K, R]) -> None:
    """Refuse a row form that could not be written, or not be read later."""
    config = getattr(spec.row, "__struct_config__", None)
    if config is None or not config.frozen:
        raise BadDeclaration(
            f"Expected the row of table {spec.name!r} to be a frozen msgspec.Struct, but found {spec.row!r}"
        )
    if not 1 <= spec.version <= VERSION_MAX:
        raise BadDeclaration(
            f"Expected the row version of table {spec.name!r} to be within 1 and {VERSION_MAX}, "
            f"but found {spec.version}"
        )
    expected = list(range(spec.version - len(spec.upgrades), spec.version))
    if sorted(spec.upgrades) != expected or (expected and expected[0] < 1):
        raise BadDeclaration(
            f"Expected the upgrades of table {spec.name!r} to lead without a gap to version {spec.version}, "
            f"but found upgrades of {sorted(spec.upgrades)}"
        )
