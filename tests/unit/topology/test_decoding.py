"""Records that cannot be read: each is put aside with all that is needed to find it, and nothing else stops."""

import msgspec
import pytest

from kapelle.schemas import Codec
from kapelle.schemas.contracts import DeadLetter, Header, Stage
from kapelle.schemas.headers import read
from kapelle.topology.deadletters import letter_bytes_max
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.log import Headers, Place
from kapelle.topology.settings import MemberSettings, OnBug
from tests.proof.contracts import Counted, Hop
from tests.proof.processors import STAGES, counting, stages
from tests.unit.topology.world import LIMITS, NOW_MS, World, tick

TICK = Codec(World(counting).topology.catalog()).encode(tick("1"))
UNKNOWN = b"\xc3\x01" + b"\x01\x02\x03\x04\x05\x06\x07\x08" + b"rest"
SMALL = 4_000  # a record_bytes_max that tests can exceed without megabytes
SMALL_RECORDS = MemberSettings(limits=msgspec.structs.replace(LIMITS, record_bytes_max=SMALL))

UNREADABLE = {
    "empty": (b"", "Truncated"),
    "half a framing": (TICK[:1], "Truncated"),
    "half a fingerprint": (TICK[:5], "Truncated"),
    "half a record": (TICK[:-1], "Truncated"),
    "too long": (TICK + b"x", "Corrupt"),
    "unknown framing": (b"{}", "Corrupt"),
    "unknown fingerprint": (UNKNOWN, "UnknownFingerprint"),
    "unknown registry id": (b"\0\0\0\0\7rest", "UnknownSchemaId"),
}


def only(letters: list[DeadLetter]) -> DeadLetter:
    assert len(letters) == 1
    return letters[0]


@pytest.mark.parametrize("kind", UNREADABLE)
def test_bytes_that_cannot_be_read_are_put_aside_with_their_coordinates(kind: str) -> None:
    data, error = UNREADABLE[kind]
    world = World(counting)
    world.publish("ticks", "a", tick("before"))
    world.publish("ticks", "b", data, [("trace", b"1"), ("trace", b"2")])
    world.publish("ticks", "a", tick("after"))

    world.run()

    letter = only(world.letters())
    assert (letter.processor, letter.stage, letter.error) == ("counting", Stage.DECODE, error)
    assert (letter.topic, letter.partition, letter.offset) == ("w.ticks", 0, 1)
    assert (letter.key, letter.value, letter.at_ms) == (b"b", data, NOW_MS)
    assert letter.headers == (Header("trace", b"1"), Header("trace", b"2"))
    assert "xpected" in letter.reason
    assert [e.id for _, e in world.events("counting")] == ["before", "after"]
    assert world.committed("counting") == {Place("w.ticks", 0): 3}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, TICK, "Expected a key and a value, but the key is null"),
        (b"a", None, "Expected a key and a value, but the value is null"),
        (None, None, "Expected a key and a value, but the key is null"),
        (b"\xff\xfe", TICK, "Expected a UTF-8 key, but found b'\\xff\\xfe'"),
    ],
)
def test_keys_and_values_that_cannot_be_used_are_put_aside_as_they_were(
    key: bytes | None, value: bytes | None, reason: str
) -> None:
    world = World(counting)
    world.publish("ticks", key, value)

    world.run()

    letter = only(world.letters())
    assert (letter.stage, letter.reason, letter.error) == (Stage.DECODE, reason, "FoldError")
    assert (letter.key, letter.value, letter.offset) == (key, value, 0)
    assert world.committed("counting") == {Place("w.ticks", 0): 1}


def test_a_known_type_on_the_wrong_stream_is_put_aside() -> None:
    world = World(counting)
    world.publish("ticks", "a", Counted("1", "a", 1))

    world.run()

    letter = only(world.letters())
    assert letter.error == "UnexpectedType"
    assert letter.reason == "Expected one of Tick on w.ticks, but found Counted"


def test_a_letter_is_in_the_transaction_that_moves_the_offset() -> None:
    world = World(counting)
    world.publish("ticks", "a", b"?")
    world.log.faults.commit_aborted = True

    world.step(2)
    assert (world.letters(), world.committed("counting")) == ([], {})

    world.run()
    assert only(world.letters()).offset == 0
    assert world.committed("counting") == {Place("w.ticks", 0): 1}


def test_a_letter_goes_to_one_topic_under_the_key_of_its_record() -> None:
    world = World(counting)
    world.publish("ticks", "a", b"?")

    world.run()

    (entry,) = world.entries("w.dead-letters")
    event = read(entry.headers).event
    assert entry.key == b"a"
    assert event is not None
    assert (event.type, event.source, event.id) == ("DeadLetter", "/w/counting", "w.ticks-0-0#dead")


def test_input_that_cannot_be_read_is_put_aside_whatever_the_policy_for_bugs() -> None:
    for policy in OnBug:
        world = World(counting, settings=MemberSettings(on_bug=policy, limits=LIMITS))
        world.publish("ticks", "a", b"?")

        world.run()

        assert only(world.letters()).stage is Stage.DECODE


def test_each_reader_of_a_stream_puts_its_own_letter_aside() -> None:
    world = World(*stages, partitions=2)
    for n in range(1, STAGES + 1):
        world.publish(f"stage-{n}", "a", b"?")
    world.publish("stage-1", "a", Hop("a", 1))

    world.run()

    assert sorted(letter.processor for letter in world.letters()) == [f"stage-{n}" for n in range(1, STAGES + 1)]
    assert len(world.events("stage-4")) == 1


# Sizes --------------------------------------------------------------------------------------------------------------


def letter_for(key: bytes, value: bytes, headers: Headers | None = None) -> DeadLetter:
    """The letter about such a record, which the broker must be able to take."""
    world = World(counting, settings=SMALL_RECORDS)
    world.publish("ticks", key, value, headers)
    world.publish("ticks", "a", tick("after"))

    world.run()

    (entry,) = world.entries("w.dead-letters")
    size = len(entry.key or b"") + len(entry.value or b"") + sum(len(n) + len(v) for n, v in entry.headers or ())
    assert size <= KafkaSettings(bootstrap_servers="b", record_bytes_max=SMALL).wire_bytes_max
    assert len(world.events("counting")) == 1
    return only(world.letters())


def test_a_record_of_the_largest_size_is_put_aside_whole() -> None:
    letter = letter_for(b"k", b"?" * (SMALL - 1))

    assert (letter.key, letter.value) == (b"k", b"?" * (SMALL - 1))


def test_a_record_beyond_the_largest_size_is_left_at_its_coordinates() -> None:
    letter = letter_for(b"k", b"?" * (SMALL + 1))

    assert (letter.key, letter.value, letter.offset) == (None, None, 0)
    assert letter.error == "RecordTooLarge"
    assert letter.reason == (
        f"Expected at most {SMALL} bytes in a record, but found {SMALL + 1} "
        f"(the record of {SMALL + 2} bytes is left at its coordinates)"
    )


def test_a_key_beyond_the_largest_size_is_left_at_its_coordinates() -> None:
    letter = letter_for(b"k" * 500_000, b"?")

    assert (letter.key, letter.value) == (None, None)
    assert "the record of 500001 bytes is left at its coordinates" in letter.reason


def test_headers_that_are_too_large_are_left_at_their_coordinates() -> None:
    letter = letter_for(b"k", b"?", [("big", b"x" * 40_000)])

    assert (letter.value, letter.headers) == (b"?", ())
    assert letter.reason.endswith("(the headers are left at its coordinates)")


@pytest.mark.parametrize(
    "headers",
    [
        [("é" * 15_000, b"")],
        [("n", b"")] * 32_000,
        [("x" * 16_000, b"y" * 16_000)],
    ],
    ids=["names of more bytes than letters", "many empty ones", "just below the limit"],
)
def test_a_letter_never_exceeds_what_letters_may_be(headers: list[tuple[str, bytes]]) -> None:
    letter = letter_for(b"k", b"?" * (SMALL - 1), headers)

    assert len(letter.to_avro()) <= letter_bytes_max(SMALL)


def test_headers_without_a_value_are_put_aside_as_empty_ones() -> None:
    headers: list[tuple[str, bytes]] = [("empty", None)]  # type: ignore[list-item] # Kafka knows headers of null

    assert letter_for(b"k", b"?", headers).headers == (Header("empty", b""),)
