"""A dead letter is shown with all that an operator needs, whatever bytes the record had."""

import json

from kapelle.cli.text.letters import as_lines
from kapelle.schemas import Catalog, Codec
from kapelle.schemas.contracts import DeadLetter, Header, Stage
from kapelle.topology.letters import shown
from tests.proof.contracts import Tick

CODEC = Codec(Catalog.of(DeadLetter, Tick))


def letter(**changed: object) -> DeadLetter:
    values: dict[str, object] = {
        "processor": "counting",
        "stage": Stage.DECIDE,
        "reason": "I doubt tick-1",
        "error": "ValueError",
        "topic": "shop.ticks",
        "partition": 3,
        "offset": 1042,
        "key": b"apple",
        "value": CODEC.encode(Tick("tick-1", "apple", 1_782_907_200_500, 1)),
        "headers": (Header("ce_id", b"tick-1"), Header("blob", b"\xff")),
        "at_ms": 1_782_907_200_500,
    }
    return DeadLetter(**(values | changed))  # type: ignore[arg-type]  # the values above are of the right types


def test_a_letter_is_data_with_its_record_as_a_contract() -> None:
    found = shown(CODEC, 7, CODEC.encode(letter()))

    assert found == {
        "offset": 7,
        "at": "2026-07-01T12:00:00.500Z",
        "processor": "counting",
        "stage": "DECIDE",
        "error": "ValueError",
        "reason": "I doubt tick-1",
        "record": {"topic": "shop.ticks", "partition": 3, "offset": 1042},
        "key": {"text": "apple"},
        "value": {
            "contract": "Tick",
            "fields": {"id": "tick-1", "word": "apple", "at_ms": 1_782_907_200_500, "weight": 1},
        },
        "headers": [
            {"name": "ce_id", "value": {"text": "tick-1"}},
            {"name": "blob", "value": {"base64": "/w=="}},
        ],
    }
    json.dumps(found)


def test_bytes_that_are_no_contract_are_text_or_base_64() -> None:
    assert shown(CODEC, 0, CODEC.encode(letter(value=b"plain")))["value"] == {"text": "plain"}
    assert shown(CODEC, 0, CODEC.encode(letter(value=b"\x00\x01")))["value"] == {"base64": "AAE="}
    assert shown(CODEC, 0, CODEC.encode(letter(value=None, key=None)))["value"] is None


def test_a_command_that_never_had_an_offset_has_none() -> None:
    assert shown(CODEC, 0, CODEC.encode(letter(offset=-1)))["record"]["offset"] is None


def test_a_letter_that_cannot_be_read_is_not_hidden() -> None:
    assert "unreadable" in shown(CODEC, 9, b"\xff\xfe")
    assert "Expected a DeadLetter, but found Tick" in shown(CODEC, 9, CODEC.encode(Tick("t", "w", 1, 1)))["unreadable"]


def test_a_letter_is_lines_for_people() -> None:
    lines = list(as_lines(shown(CODEC, 7, CODEC.encode(letter(reason="two\nlines")))))

    assert "\n".join(lines).splitlines() == [
        "letter 7  2026-07-01T12:00:00.500Z  counting  DECIDE  ValueError",
        "  record  shop.ticks partition 3 offset 1042",
        "  reason  two",
        "          lines",
        "  key     apple",
        '  value   Tick {"id": "tick-1", "word": "apple", "at_ms": 1782907200500, "weight": 1}',
        "  header  ce_id: tick-1",
        "  header  blob: base64 /w==",
    ]


def test_lines_say_when_there_was_no_offset_and_when_a_value_is_long() -> None:
    lines = list(as_lines(shown(CODEC, 7, CODEC.encode(letter(offset=-1, value=b"x" * 2_000, key=None, headers=())))))

    assert lines[1] == "  record  shop.ticks partition 3 delivered within a cycle"
    assert lines[3] == "  key     none"
    assert lines[4] == f"  value   {'x' * 500}… (2000 characters)"


def test_an_unreadable_letter_is_lines_too() -> None:
    assert next(as_lines(shown(CODEC, 9, b"\xff\xfe"))) == "letter 9 cannot be read"
