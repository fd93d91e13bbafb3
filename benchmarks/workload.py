"""The work that every runtime is given: ticks of a thousand words, counted per word. Pure; needs only fastavro."""

import functools
import io
import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import fingerprint, to_parsing_canonical_form

SCHEMAS = Path(__file__).resolve().parents[1] / "tests" / "proof" / "avsc"  # one truth with the proof of the runtime
KEYS = 1_000
PARTITIONS = 4
BEGAN_AT_MS = 1_700_000_000_000
HEADERS = ("ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time")


class Given(NamedTuple):
    """One input record, ready to be produced. The id is how its output is recognised."""

    id: str
    key: str
    value: bytes
    type: str

    def headers(self) -> list[tuple[str, str | bytes | None]]:
        return [
            ("ce_specversion", b"1.0"),
            ("ce_id", self.id.encode()),
            ("ce_source", b"/benchmarks"),
            ("ce_type", self.type.encode()),
            ("ce_time", b"2026-01-01T00:00:00.000Z"),
        ]


@dataclass(frozen=True, slots=True)
class Counted:
    """One output record, as it was read."""

    id: str
    word: str
    count: int


class Codec:
    """One Avro record type in single-object encoding: two marker bytes, eight of the fingerprint, the body."""

    def __init__(self, name: str) -> None:
        # The canonical form has no logical types: times stay integers.
        canonical = to_parsing_canonical_form(json.loads((SCHEMAS / f"{name}.avsc").read_text()))
        self.schema: Any = parse_schema(json.loads(canonical))
        self.type = str(json.loads(canonical)["name"])
        self.mark = b"\xc3\x01" + bytes.fromhex(fingerprint(canonical, "CRC-64-AVRO"))

    def encode(self, value: dict[str, Any]) -> bytes:
        buffer = io.BytesIO(self.mark)
        buffer.seek(len(self.mark))
        schemaless_writer(buffer, self.schema, value)
        return buffer.getvalue()

    def decode(self, framed: bytes) -> dict[str, Any]:
        if not framed.startswith(self.mark):
            raise ValueError(f"Expected {self.type} to begin with {self.mark.hex()}, but it is {framed[:10].hex()}")
        value: Any = schemaless_reader(io.BytesIO(framed[len(self.mark) :]), self.schema, None)
        return dict(value)


TICK = Codec("Tick")
COUNTED = Codec("Counted")


def tick(number: int, word: str, *, series: str = "tick") -> Given:
    """The tick of this number; two series share no id."""
    name = f"{series}-{number:08d}"
    body = {"id": name, "word": word, "at_ms": BEGAN_AT_MS + number, "weight": number % 10}
    return Given(name, word, TICK.encode(body), TICK.type)


def word(number: int) -> str:
    return f"word-{number:08d}"


@functools.lru_cache(maxsize=16)
def ticks(count: int, series: str, keys: int = KEYS) -> list[Given]:
    """The same ticks on every call: words drawn evenly from `keys` of them."""
    draw = random.Random(20_260_101).randrange
    return [tick(number, word(draw(keys)), series=series) for number in range(count)]


def faults(given: Iterable[Given], outputs: Iterable[Counted]) -> list[str]:
    """The errors in the outputs: an id lost, duplicated or unknown, or a word whose counts are not 1, 2, 3, …"""
    expected = {tick.id: tick.key for tick in given}
    seen: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    wrong_words, unknown = set[str](), 0
    for output in outputs:
        seen[output.id] += 1
        counts[output.word] += 1
        unknown += expected.get(output.id) != output.word
        if output.count != counts[output.word]:
            wrong_words.add(output.word)
    found = {
        "missing": len(expected.keys() - seen.keys()),
        "doubled": sum(times - 1 for times in seen.values()),
        "unknown": unknown,
        "words with wrong counts": len(wrong_words),
    }
    return [f"{number} {kind}" for kind, number in found.items() if number]
