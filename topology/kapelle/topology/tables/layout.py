"""The layout of the declared tables of a processor: checked once, with codecs that all its shards share."""

import re
from collections import Counter
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from kapelle.processors.errors import BadDeclaration
from kapelle.processors.tables import Key, Tables, TableSpec
from kapelle.topology.tables.keys import KeyCodec
from kapelle.topology.tables.rows import RowCodec

K = TypeVar("K", bound=Key)
R = TypeVar("R", bound=msgspec.Struct)

# Names stand at the beginning of keys, before a zero byte; those that begin with "_" are our own.
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


class TableLayout(msgspec.Struct, Generic[R], frozen=True):
    """One table: its coders, and what its keys begin with after the shard's own prefix."""

    name: str
    prefix: bytes
    keys: KeyCodec
    rows: RowCodec[R]
    bucketed: bool


Layouts = tuple[TableLayout[Any], ...]  # their rows differ
_layouts: WeakKeyDictionary[type[Tables], Layouts] = WeakKeyDictionary()


def table_layout(spec: TableSpec[K, R]) -> TableLayout[R]:
    keys = KeyCodec(spec.name, spec.key)
    if spec.bucketed and keys.columns[:1] != (int,):
        raise BadDeclaration(
            f"Expected the key of the bucketed table {spec.name!r} to begin with an int, but found {spec.key!r}"
        )
    return TableLayout(spec.name, spec.name.encode() + b"\0", keys, RowCodec(spec), spec.bucketed)


def layout(tables: type[Tables]) -> Layouts:
    """The layouts of all declared tables, in the order of their declaration."""
    layout_ = _layouts.get(tables)
    if layout_ is None:
        layout_ = _layouts[tables] = _laid_out(tables)
    return layout_


def _laid_out(tables: type[Tables]) -> Layouts:
    specs = tables.specs()
    for spec in specs:
        check_name("a table", spec.name)
        if spec.attribute == "timers":
            raise BadDeclaration(f"Expected the attribute timers of {tables.__name__} to stay free, but it is a table")
    doubled = [name for name, count in Counter(spec.name for spec in specs).items() if count > 1]
    if doubled:
        raise BadDeclaration(f"Expected each table of {tables.__name__} to have a name of its own, but found {doubled}")
    return tuple(table_layout(spec) for spec in specs)


def check_name(what: str, name: str) -> None:
    if not NAME.fullmatch(name):
        raise BadDeclaration(
            f"Expected the name of {what} to be a letter followed by letters, digits, '_', '.' and '-', "
            f"but found {name!r}"
        )
