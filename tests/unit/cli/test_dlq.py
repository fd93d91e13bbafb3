"""Dead letters on their way back: the record as it was, with one header that counts."""

import re

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.errors import InTheWay
from kapelle.cli.redrive import redrive_of
from kapelle.schemas.contracts import Header
from kapelle.topology.letters import COUNT_HEADER
from tests.proof.contracts import Tick
from tests.unit.cli.test_letters import CODEC, letter

NOWHERE = ("--bootstrap-servers", "127.0.0.1:1", "--timeout", "0.3")


def kapelle(*words: str) -> Result:
    return CliRunner().invoke(cli, words, prog_name="kapelle")


def test_a_record_goes_back_as_it_was_and_is_counted() -> None:
    found = redrive_of(CODEC, 7, CODEC.encode(letter(value=b"any bytes", key=b"apple")))

    assert (found.letter, found.topic, found.partition) == (7, "shop.ticks", 3)
    assert (found.key, found.value) == (b"apple", b"any bytes")
    assert found.headers == (("ce_id", b"tick-1"), ("blob", b"\xff"), (COUNT_HEADER, b"1"))


@pytest.mark.parametrize(("before", "count"), [(b"1", 2), (b"41", 42), (b"many", 1), (b"", 1), (b"9" * 30, 1)])
def test_a_record_that_went_this_way_before_is_counted_on(before: bytes, count: int) -> None:
    found = redrive_of(CODEC, 7, CODEC.encode(letter(headers=(Header(COUNT_HEADER, before),))))

    assert found.count == count
    assert found.headers == ((COUNT_HEADER, str(count).encode()),)


def test_a_record_without_a_value_is_one_too() -> None:
    found = redrive_of(CODEC, 7, CODEC.encode(letter(value=None)))

    assert found.value is None


def test_a_record_that_was_too_large_for_its_letter_is_refused_with_its_place() -> None:
    large = letter(key=None, value=None, reason="no (the record of 2000000 bytes is left at its coordinates)")

    with pytest.raises(InTheWay, match=r"it is at shop\.ticks partition 3 offset 1042"):
        redrive_of(CODEC, 7, CODEC.encode(large))


@pytest.mark.parametrize("data", [b"\xff\xfe", CODEC.encode(Tick("t", "w", 1, 1))])
def test_what_is_no_letter_is_refused(data: bytes) -> None:
    with pytest.raises(InTheWay, match="Expected letter 9 to be a DeadLetter"):
        redrive_of(CODEC, 9, data)


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("dlq", "list", "--url", "http://127.0.0.1:1"), 5, "Is the server running?"),
    (("dlq", "show", "1", "--url", "http://127.0.0.1:1"), 5, "Is the server running?"),
    (("dlq", "redrive", "1", "--url", "http://127.0.0.1:1"), 5, "Is the server running?"),
    (("dlq", "list", *NOWHERE), 5, "Connection refused"),
    (("dlq", "list", *NOWHERE, "-n", "0"), 2, "'--count'"),
    (("dlq", "show", *NOWHERE), 2, "Missing argument"),
    (("dlq", "show", "x", *NOWHERE), 2, "'OFFSET…'"),
    (("dlq", "show", "-1", *NOWHERE), 2, "-1"),
    (("dlq", "show", "1", *NOWHERE), 5, "Connection refused"),
    (("dlq", "redrive", *NOWHERE), 2, "Missing argument"),
    (("dlq", "redrive", "1", "--yes", *NOWHERE), 5, "Connection refused"),
]


@pytest.mark.parametrize(("words", "code", "message"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
def test_a_wrong_call_ends_with_its_code_and_its_reason(
    words: tuple[str, ...], code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAPELLE_BOOTSTRAP_SERVERS", raising=False)

    result = kapelle(*words)

    assert message in re.sub(r"\s+", " ", result.stderr)
    assert result.exit_code == code
    assert result.stdout == ""
