"""A reader of older or newer bytes, made from a plan of `resolution`."""

from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from kapelle.schemas import wire
from kapelle.schemas.contract import Contract
from kapelle.schemas.errors import Corrupt, Unresolvable
from kapelle.schemas.model import Type
from kapelle.schemas.resolution import (
    Choice,
    Entries,
    Fields,
    Items,
    Plan,
    Refused,
    Scalar,
    Sized,
    Symbols,
    resolve,
)

C = TypeVar("C", bound=Contract)
Read = Callable[[bytes, int], tuple[Any, int]]

_SCALARS: Final[dict[str, Read]] = {
    "null": lambda _, at: (None, at),
    "boolean": wire.boolean_at,
    "int": wire.integer_at,
    "long": wire.long_at,
    "float": wire.single_at,
    "double": wire.double_at,
    "bytes": wire.binary_at,
    "string": wire.string_at,
}


def reader_as(contract: type[C], writer: Type, reader: Type) -> Callable[[bytes, int], tuple[C, int]]:
    """A reader of `writer`'s bytes as the contract, whose schema is `reader`. What was not written has its default."""
    read = _reader(resolve(writer, reader), contract.FULL_NAME)

    def read_as(data: bytes, at: int) -> tuple[C, int]:
        fields, at = read(data, at)
        try:
            return msgspec.convert(fields, contract), at
        except msgspec.ValidationError as error:
            raise Unresolvable(contract.FULL_NAME, str(error)) from error

    return read_as


def _reader(plan: Plan, contract: str) -> Read:
    match plan:
        case Scalar():
            return _scalar(plan)
        case Sized(size_bytes=size):
            return lambda data, at: wire.fixed_at(data, at, size)
        case Symbols():
            return _symbols(plan, contract)
        case Items(item=item):
            read_item = _reader(item, contract)
            return lambda data, at: wire.array_at(data, at, read_item)
        case Entries(value=value):
            read_value = _reader(value, contract)
            return lambda data, at: wire.mapping_at(data, at, read_value)
        case Choice():
            return _choice(plan, contract)
        case Fields():
            return _fields(plan, contract)
        case Refused():
            return _refusal(plan, contract)


def _scalar(plan: Scalar) -> Read:
    # Text and bytes are written alike: what is wanted decides whether they must be UTF-8.
    read = _SCALARS[plan.wanted if plan.wanted in ("bytes", "string") else plan.written]
    if plan.wanted not in ("float", "double") or plan.written in ("float", "double"):
        return read

    def as_float(data: bytes, at: int) -> tuple[float, int]:
        value, at = read(data, at)
        return float(value), at

    return as_float


def _symbols(plan: Symbols, contract: str) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        n, at = wire.long_at(data, at)
        if not 0 <= n < len(plan.table):
            raise Corrupt(f"a symbol below {len(plan.table)}", str(n))
        symbol = plan.table[n]
        if isinstance(symbol, Refused):
            raise _unresolvable(symbol, contract)
        return symbol, at

    return read


def _choice(plan: Choice, contract: str) -> Read:
    branches = tuple(_reader(branch, contract) for branch in plan.branches)

    def read(data: bytes, at: int) -> tuple[object, int]:
        n, at = wire.long_at(data, at)
        if not 0 <= n < len(branches):
            raise Corrupt(f"a branch below {len(branches)}", str(n))
        return branches[n](data, at)

    return read


def _fields(plan: Fields, contract: str) -> Read:
    if plan.missing:
        return _refusal(plan.missing[0], contract)
    steps = tuple((name, _reader(step, contract)) for name, step in plan.steps)

    def read(data: bytes, at: int) -> tuple[dict[str, object], int]:
        values = {}
        for name, read_field in steps:
            value, at = read_field(data, at)
            if name is not None:
                values[name] = value
        return values, at

    return read


def _refusal(refused: Refused, contract: str) -> Read:
    def read(_data: bytes, _at: int) -> NoReturn:
        raise _unresolvable(refused, contract)

    return read


def _unresolvable(refused: Refused, contract: str) -> Unresolvable:
    return Unresolvable(contract, f"in {refused.path} it {refused.detail}")
