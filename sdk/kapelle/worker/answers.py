"""The body of an HTTP answer: decoded up to a maximum length, and always as text.

A few bytes can decode to gigabytes. So the decoder is handed the bytes that it may still give, and stops there; one
layer is decoded, because each layer multiplies what the one below gives.
"""

import re
import zlib
from collections.abc import AsyncIterable
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import Final, Protocol

from kapelle.worker.errors import NonRetryable, PlatformFailure

RESPONSE_BYTES_MAX: Final = 1_000_000
ACCEPTED_ENCODINGS: Final = "gzip, deflate"
GZIP_BITS: Final = 16 + zlib.MAX_WBITS

_CHARSET: Final = re.compile(r"""charset\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE)

# Encodings of text, as Python names them. It has others that are none (zlib, rot13), or that fail (idna, undefined).
TEXT_ENCODINGS: Final = frozenset(
    {
        *("ascii", "latin_1", "utf_8", "utf_8_sig", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le"),
        *("utf_32_be", "koi8_r", "koi8_u", "mac_roman", "mac_cyrillic", "tis_620", "gb2312", "gbk", "gb18030", "big5"),
        *("big5hkscs", "shift_jis", "cp932", "euc_jp", "iso2022_jp", "euc_kr", "cp949", "cp950", "cp437", "cp850"),
        *("cp852", "cp855", "cp866", "cp874", *(f"cp{number}" for number in range(1250, 1259))),
        *(f"iso8859_{number}" for number in range(2, 17) if number != 12),
    }
)


class Decoder(Protocol):
    """One layer of Content-Encoding."""

    def decode(self, chunk: bytes, bytes_max: int) -> bytes:
        """What a chunk gives, and no more than this."""
        ...


class Identity:
    """No encoding."""

    def decode(self, chunk: bytes, bytes_max: int) -> bytes:
        return chunk[:bytes_max]


class Inflating:
    """gzip or deflate."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._inflate = zlib.decompressobj(GZIP_BITS if is_gzip else zlib.MAX_WBITS)
        self._has_begun = is_gzip

    def decode(self, chunk: bytes, bytes_max: int) -> bytes:
        if not self._has_begun and chunk:
            self._has_begun = True
            if chunk[0] & 0x0F != zlib.DEFLATED:  # many servers send deflate without the header that it should have
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            return self._inflate.decompress(chunk, bytes_max)
        except zlib.error as error:
            raise PlatformFailure(f"Expected an answer in its Content-Encoding, but {error}") from error


def decoder_of(content_encoding: str) -> Decoder:
    """The decoder for a Content-Encoding. More than one layer, or a form that was not asked for, is refused."""
    layers = [name for part in content_encoding.split(",") if (name := part.strip().lower()) not in ("", "identity")]
    match layers:
        case []:
            return Identity()
        case ["gzip" | "x-gzip"]:
            return Inflating(is_gzip=True)
        case ["deflate"]:
            return Inflating(is_gzip=False)
    raise NonRetryable(f"Expected one Content-Encoding of {ACCEPTED_ENCODINGS}, but found {content_encoding[:80]!r}")


async def read_bounded(chunks: AsyncIterable[bytes], content_encoding: str) -> bytes:
    """The body of an answer. Reading stops at the limit, of what is sent and of what that decodes to."""
    decoder: Decoder | None = None  # an answer to HEAD tells of an encoding and has nothing in it
    body, sent = bytearray(), 0
    async for chunk in chunks:
        decoder = decoder or decoder_of(content_encoding)
        sent += len(chunk)
        body += decoder.decode(chunk, RESPONSE_BYTES_MAX + 1 - len(body))
        if sent > RESPONSE_BYTES_MAX or len(body) > RESPONSE_BYTES_MAX:
            raise NonRetryable(f"Expected a response of at most {RESPONSE_BYTES_MAX:,} bytes, but it has more")
    return bytes(body)


def text_of(body: bytes, content_type: str) -> str:
    """A body as text, by the charset of its type if that is one of text, else by UTF-8. It never fails."""
    charset = _CHARSET.search(content_type)
    name = normalize_encoding(charset[1].lower()) if charset else "utf_8"
    canonical = aliases.get(name, name)
    return body.decode(canonical if canonical in TEXT_ENCODINGS else "utf-8", "replace")
