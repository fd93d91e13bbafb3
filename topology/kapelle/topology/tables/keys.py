"""Keys as bytes: tuples of strings, integers and bytes, in an encoding whose bytes sort as the tuples do.

    str     UTF-8, 00 written as 01 01 and 01 as 01 02, then 00      sorts by code point
    bytes   the same escapes, then 00
    int     eight bytes, big-endian, plus 2**63                      sorts by value

Laws, which the property tests hold:

1. `encode(a) < encode(b)` exactly when `a < b`.
2. `decode(encode(a)) == a`.
3. The beginning of a tuple encodes to a prefix of the tuple's encoding, and to a prefix of no other tuple's.

The coder of a table is made once, as straight-line code for its columns: a loop over the columns costs more than twice
as much, and a record encodes several keys.
"""

from collections.abc import Callable
from typing import Any, Final, get_args, get_origin

from kapelle.processors.errors import BadDeclaration
from kapelle.processors.tables import Key
from kapelle.topology.tables.errors import BadKey, RowCorrupt

Column = type[str] | type[int] | type[bytes]

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
_BIAS: Final = 2**63
_MISFIT: Final = (AttributeError, OverflowError, TypeError, ValueError)  # what a key or bytes of another shape raise


class KeyCodec:
    """Encodes and decodes the keys of one table.

    `encode(prefix, key)` puts the key's bytes after `prefix`; `decode(stored, at)` reads a key that begins at `at`.
    """

    encode: Callable[[bytes, Key], bytes]
    decode: Callable[[bytes, int], Any]

    def __init__(self, table: str, key: object) -> None:
        self.table = table
        self.columns = _columns(table, key)
        names: dict[str, Any] = {
            "codec": self,
            "BIAS": _BIAS,
            "MISFIT": _MISFIT,
            "escape": _escape,
            "unescape": _unescape,
        }
        exec(_source(self.columns), names)  # noqa: S102  our own templates, with nothing from outside in them
        self._bounds: list[Callable[[bytes, Key], bytes]] = [names[f"encode_{n}"] for n in range(len(self.columns) + 1)]
        self.encode = self._bounds[-1]
        self.decode = names["decode"]

    def bound(self, prefix: bytes, start: Key) -> bytes:
        """The bytes that stand before every key that begins with `start`."""
        if len(start) > len(self.columns):
            raise self._misfit(start)
        return self._bounds[len(start)](prefix, start)

    def encode_slowly(self, prefix: bytes, key: Key, width: int) -> bytes:
        """Where the fast code goes when it fails: takes lone surrogates too, and names a key that does not fit."""
        if not isinstance(key, tuple) or len(key) != width:
            raise self._misfit(key)
        return prefix + b"".join([self._encode_column(key, n) for n in range(width)])

    def decode_slowly(self, stored: bytes, at: int) -> Key:
        """Where the fast code goes when it fails: takes lone surrogates too, and names bytes that are no key."""
        columns: list[str | int | bytes] = []
        try:
            for column in self.columns:
                end = at + 8 if column is int else stored.index(0, at) + 1
                columns.append(_decode_column(column, stored[at:end]))
                at = end
        except ValueError as error:
            raise RowCorrupt(self.table, stored, None, str(error)) from None
        if at != len(stored):
            raise RowCorrupt(self.table, stored, None, f"{len(stored) - at} bytes after the key")
        return tuple(columns)

    def _encode_column(self, key: Key, n: int) -> bytes:
        column, value = self.columns[n], key[n]
        if column is int and isinstance(value, int) and INT_MIN <= value <= INT_MAX:
            return (value + _BIAS).to_bytes(8, "big")
        if column is str and isinstance(value, str):
            # Lenient JSON lets lone surrogates in. Passed through like this, they sort where Python sorts them.
            return _escape(value.encode("utf-8", "surrogatepass")) + b"\0"
        if column is bytes and isinstance(value, bytes):
            return _escape(value) + b"\0"
        raise self._misfit(key)

    def _misfit(self, key: object) -> BadKey:
        names = ", ".join(column.__name__ for column in self.columns)
        return BadKey(self.table, f"({names}) with integers of 64 bits", key)


def successor(prefix: bytes) -> bytes:
    """The smallest bytes that sort after everything that begins with `prefix`."""
    kept = prefix.rstrip(b"\xff")
    if not kept:
        raise ValueError(f"nothing sorts after all that begins with {prefix!r}")
    return kept[:-1] + bytes((kept[-1] + 1,))


def _columns(table: str, key: object) -> tuple[Column, ...]:
    """The columns of a declared key type such as `tuple[str, int]`; a NewType counts as what it is made of."""
    columns = tuple(getattr(column, "__supertype__", column) for column in get_args(key))
    if get_origin(key) is not tuple or not all(column in (str, int, bytes) for column in columns):
        raise BadDeclaration(
            f"Expected the key of table {table!r} to be a tuple of str, int and bytes such as tuple[str, int], "
            f"but found {key!r}"
        )
    return columns


def _escape(value: bytes) -> bytes:
    return value.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1")


def _unescape(value: bytes) -> bytes:
    return value.replace(b"\1\1", b"\0").replace(b"\1\2", b"\1")


def _decode_column(column: Column, piece: bytes) -> str | int | bytes:
    if column is int:
        if len(piece) != 8:
            raise ValueError(f"an integer of {len(piece)} bytes")
        return int.from_bytes(piece, "big") - _BIAS
    value = _unescape(piece[:-1])
    return value.decode("utf-8", "surrogatepass") if column is str else value


# How one column is encoded and decoded: the steps first, then the expression. `{c}` is the column's name.

_ESCAPED = "if 0 in {c} or 1 in {c}: {c} = escape({c})"
_PIECE = "end = stored.index(0, at); {c} = stored[at:end]; at = end + 1"
_UNESCAPED = "if 1 in {c}: {c} = unescape({c})"

_ENCODE: dict[Column, tuple[list[str], str]] = {
    str: (["{c} = {c}.encode()", _ESCAPED], '{c} + b"\\0"'),
    bytes: ([_ESCAPED], '{c} + b"\\0"'),
    int: ([], '({c} + BIAS).to_bytes(8, "big")'),
}
_DECODE: dict[Column, tuple[list[str], str]] = {
    str: ([_PIECE, _UNESCAPED], "{c}.decode()"),
    bytes: ([_PIECE, _UNESCAPED], "{c}"),
    int: (["{c} = stored[at:at + 8]; at += 8"], 'int.from_bytes({c}, "big") - BIAS'),
}


def _source(key: tuple[Column, ...]) -> str:
    encoders = [_encoder(key[:width]) for width in range(len(key) + 1)]
    return "\n".join([*encoders, _decoder(key)])


def _encoder(key: tuple[Column, ...]) -> str:
    steps, results = _filled(_ENCODE, key)
    return _function(
        f"encode_{len(key)}(prefix, key)",
        [
            f"[{', '.join(f'c{n}' for n in range(len(key)))}] = key",
            *steps,
            f"return {' + '.join(['prefix', *results])}",
        ],
        f"return codec.encode_slowly(prefix, key, {len(key)})",
    )


def _decoder(key: tuple[Column, ...]) -> str:
    steps, results = _filled(_DECODE, key)
    checked = [
        "start = at",
        *steps,
        "if at != len(stored): raise ValueError",
        f"return ({' '.join(f'{r},' for r in results)})",
    ]
    return _function("decode(stored, at)", checked, "return codec.decode_slowly(stored, start)")


def _filled(templates: dict[Column, tuple[list[str], str]], key: tuple[Column, ...]) -> tuple[list[str], list[str]]:
    steps = [step.format(c=f"c{n}") for n, column in enumerate(key) for step in templates[column][0]]
    return steps, [templates[column][1].format(c=f"c{n}") for n, column in enumerate(key)]


def _function(head: str, body: list[str], otherwise: str) -> str:
    lines = [f"def {head}:", " try:", *(f"  {line}" for line in body), " except MISFIT:", f"  {otherwise}"]
    return "\n".join(lines)
