"""Avro's binary encoding, two functions per type: `x(value)` gives bytes, `x_at(data, at)` the value and where it ends.

Generated contracts are made of calls to these, and of straight code where one byte tells all (see `emit`). A reader
that runs past the end raises IndexError or returns an end past the data; `Codec` turns both into `Truncated`. Nothing
is ever allocated by a length that the bytes claim: slices stop where the data stops, and every item of an array takes
at least one byte (see `model`).
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, Generic, TypeVar

from kapelle.schemas.errors import Corrupt

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Write = Callable[[T], bytes]
Read = Callable[[bytes, int], tuple[T, int]]

_LONG_MIN: Final = -(2**63)
_LONG_MAX: Final = 2**63 - 1
_INT_MIN: Final = -(2**31)
_INT_MAX: Final = 2**31 - 1
_SHIFT_MAX: Final = 63  # the tenth and last byte of a long
_MOMENT_MIN: Final = 2**34  # milliseconds since 1970 take six bytes from that year on...
_MOMENT_MAX: Final = 2**41 - 1  # ...until 2039
_MOMENT_BYTES: Final = 6
_HIGHS_MAX: Final = 1_000
_SEQUENCES: Final = (tuple, list)
_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


# Bytes come from tables, 14 bits at a time: a timestamp costs three look-ups instead of six turns of a loop.
_SHORT_MAX: Final = 1 << 6  # numbers below this take one byte
_SMALL_MAX: Final = 1 << 13
_SMALL: Final = tuple(_varint(n << 1) for n in range(_SMALL_MAX))
_LAST: Final = tuple(_varint(n) for n in range(1 << 14))
_MORE: Final = tuple(bytes((n & 127 | 128, n >> 7 | 128)) for n in range(1 << 14))


def _large(n: int) -> bytes:
    if not _LONG_MIN <= n <= _LONG_MAX:
        raise OverflowError(f"{n} takes more than 64 bits")
    n = n << 1 ^ n >> 63
    head = b""
    while n >= 1 << 14:
        head += _MORE[n & 16383]
        n >>= 14
    return head + _LAST[n]


class Sizes(dict[int, bytes]):
    """The bytes of sizes: those of short texts are looked up, others are made."""

    def __missing__(self, size: int) -> bytes:
        return _large(size)


SIZES: Final = Sizes(enumerate(_SMALL))


def long(value: int) -> bytes:
    return _SMALL[value] if 0 <= value < _SMALL_MAX else _large(value)


def moment(value: int) -> bytes:
    """A long that is mostly a time in milliseconds since 1970."""
    if not _MOMENT_MIN <= value <= _MOMENT_MAX:
        return long(value)
    n = value << 1
    return _MORE[n & 16383] + _MORE[n >> 14 & 16383] + _LAST[n >> 28]


def integer(value: int) -> bytes:
    if 0 <= value < _SMALL_MAX:
        return _SMALL[value]
    if not _INT_MIN <= value <= _INT_MAX:
        raise OverflowError(f"{value} takes more than 32 bits")
    return _large(value)


def string(value: str) -> bytes:
    data = value.encode()
    size = len(data)
    return (_SMALL[size] if size < _SMALL_MAX else _large(size)) + data


def binary(value: bytes) -> bytes:
    size = len(value)
    return (_SMALL[size] if size < _SMALL_MAX else _large(size)) + value


boolean: Final[Write[bool]] = {False: b"\x00", True: b"\x01"}.__getitem__


def double(value: float) -> bytes:
    if value.__class__ is not float:  # an int would fit, but it would be read back as a float
        raise TypeError(value)
    return _DOUBLE.pack(value)


def nullable(value: T | None, write: Write[T], null: int = 0) -> bytes:
    """A union of null and another type; `null` is the index of null."""
    if value is None:
        return b"\x02" if null else b"\x00"
    return (b"\x00" if null else b"\x02") + write(value)


def array(values: Sequence[T], write: Write[T]) -> bytes:
    if not values:
        return b"\x00"
    if type(values) not in _SEQUENCES:
        raise TypeError(type(values))  # a text is a sequence of texts, and a set has no order
    return b"".join((long(len(values)), *map(write, values), b"\x00"))


def mapping(values: Mapping[str, T], write: Write[T]) -> bytes:
    """Keys are written in order, so that equal values are equal bytes."""
    if not values:
        return b"\x00"
    return b"".join((long(len(values)), *(string(key) + write(values[key]) for key in sorted(values)), b"\x00"))


class Symbols(Generic[E]):
    """The symbols of an enum, both ways."""

    def __init__(self, enum: type[E]) -> None:
        self._symbols = tuple(enum)
        self._by_byte = {n << 1: symbol for n, symbol in enumerate(enum) if n < _SHORT_MAX}
        self.put: Write[E] = {symbol: long(n) for n, symbol in enumerate(enum)}.__getitem__

    def at(self, data: bytes, at: int) -> tuple[E, int]:
        if (symbol := self._by_byte.get(data[at])) is not None:
            return symbol, at + 1
        n, at = long_at(data, at)
        if not 0 <= n < len(self._symbols):
            raise Corrupt(f"a symbol below {len(self._symbols)}", str(n))
        return self._symbols[n], at


def long_at(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 128:
        return byte >> 1 ^ -(byte & 1), at + 1
    n = byte & 127
    shift = 7
    at += 1
    while (byte := data[at]) > 127:
        n |= (byte & 127) << shift
        shift += 7
        at += 1
        if shift > _SHIFT_MAX:
            raise Corrupt("a number of at most 64 bits", "more than ten bytes")
    n |= byte << shift
    if n >> 64:
        raise Corrupt("a number of at most 64 bits", f"{n.bit_length()} bits")
    return n >> 1 ^ -(n & 1), at + 1


def moment_at(data: bytes, at: int) -> tuple[int, int]:
    """A long that is mostly a time in milliseconds since 1970."""
    low, end = data[at], at + _MOMENT_BYTES
    if low & 129 != 128 or (middle := data[at + 1]) < 128:  # one byte or two, or negative
        return long_at(data, at)
    try:
        return _HIGHS[data[at + 2 : end]] + (low >> 1 & 63) + (middle << 6 & 8128), end
    except KeyError:
        return long_at(data, at)


class _Highs(dict[bytes, int]):
    """What the last four bytes of a moment say. They are the same for eight seconds."""

    def __missing__(self, data: bytes) -> int:
        if len(data) != _MOMENT_BYTES - 2 or not data[0] & data[1] & data[2] & 128 or data[3] & 128:
            raise KeyError(data)
        if len(self) >= _HIGHS_MAX:
            self.clear()
        self[data] = sum((byte & 127) << 13 + 7 * n for n, byte in enumerate(data))
        return self[data]


_HIGHS: Final = _Highs()


def integer_at(data: bytes, at: int) -> tuple[int, int]:
    n, at = long_at(data, at)
    if not _INT_MIN <= n <= _INT_MAX:
        raise Corrupt("a number of at most 32 bits", str(n))
    return n, at


def size_at(data: bytes, at: int) -> tuple[int, int]:
    size, at = long_at(data, at)
    if size < 0:
        raise Corrupt("a size", str(size))
    return size, at


def string_at(data: bytes, at: int) -> tuple[str, int]:
    size = data[at]
    if size & 129:  # more than one byte, or negative
        size, at = size_at(data, at)
    else:
        size >>= 1
        at += 1
    end = at + size
    try:
        return data[at:end].decode(), end
    except UnicodeDecodeError as error:
        _reach(data, end)  # a text may be cut in the middle of a character
        raise Corrupt("UTF-8", f"{error.reason} in byte {at + error.start}") from error


def binary_at(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = size_at(data, at)
    end = at + size
    return data[at:end], end


def fixed_at(data: bytes, at: int, size_bytes: int) -> tuple[bytes, int]:
    end = at + size_bytes
    _reach(data, end)
    return data[at:end], end


def boolean_at(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise Corrupt("0 or 1 for a boolean", str(byte))
    return byte == 1, at + 1


def single_at(data: bytes, at: int) -> tuple[float, int]:
    _reach(data, at + 4)
    value: float = _FLOAT.unpack_from(data, at)[0]
    return value, at + 4


def double_at(data: bytes, at: int) -> tuple[float, int]:
    _reach(data, at + 8)
    value: float = _DOUBLE.unpack_from(data, at)[0]
    return value, at + 8


def _reach(data: bytes, end: int) -> None:
    if end > len(data):
        raise IndexError(end)


def nullable_at(data: bytes, at: int, read: Read[T], null: int = 0) -> tuple[T | None, int]:
    branch, at = long_at(data, at)
    if branch == null:
        return None, at
    if branch != 1 - null:
        raise Corrupt("a branch below 2", str(branch))
    return read(data, at)


def _count_at(data: bytes, at: int) -> tuple[int, int]:
    """The number of items in the next block. A negative one is followed by the size of the block in bytes."""
    count, at = long_at(data, at)
    if count < 0:
        _, at = size_at(data, at)
        count = -count
    if count > len(data) - at:
        raise IndexError(count)  # every item takes a byte at least
    return count, at


def array_at(data: bytes, at: int, read: Read[T]) -> tuple[tuple[T, ...], int]:
    items: list[T] = []
    while data[at]:
        count, at = _count_at(data, at)
        if not count:  # written with more bytes than one
            return tuple(items), at
        for _ in range(count):
            value, at = read(data, at)
            items.append(value)
    return tuple(items), at + 1


def mapping_at(data: bytes, at: int, read: Read[T]) -> tuple[dict[str, T], int]:
    entries: dict[str, T] = {}
    while data[at]:
        count, at = _count_at(data, at)
        if not count:
            return entries, at
        for _ in range(count):
            key, at = string_at(data, at)
            entries[key], at = read(data, at)
    return entries, at + 1
