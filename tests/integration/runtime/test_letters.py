"""Records put aside on the real broker: each once, with its coordinates, and never in the way of the others."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message
from kapelle.schemas import Codec
from kapelle.schemas.contracts import Header, Stage
from kapelle.topology.crash import CrashPoint
from kapelle.topology.errors import BrokerRefused, CycleAborted
from kapelle.topology.settings import MemberSettings, OnBug
from tests.integration.runtime.members import LIMITS, Deployment, Raw, own, until
from tests.proof.contracts import Counted, Tick
from tests.proof.processors import Count, Counting, count
from tests.support.broker import Broker
from tests.unit.topology.world import processor_of, tick

GO_ON = MemberSettings(on_bug=OnBug.DEAD_LETTER, limits=LIMITS)
RECORD_BYTES_MAX = LIMITS.record_bytes_max


def touchy(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
    if message.value.id == "bad":
        raise ValueError("no such word")
    return count(message, state, now_ms)


class AbortOnce:
    """Refuses the first commit, so that everything in it is done twice."""

    def __init__(self) -> None:
        self.left = 1

    def __call__(self, point: CrashPoint) -> None:
        if point is CrashPoint.BEFORE_COMMIT and self.left:
            self.left -= 1
            raise CycleAborted("as told")


def test_bad_records_are_put_aside_once_each_and_the_others_are_folded(broker: Broker, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, own([processor_of(touchy)], partitions=1))
    encode = Codec(place.topology.catalog()).encode
    bad: list[tuple[Raw, Stage, str]] = [
        ((b"k", b"not a record", [("who", b"me")]), Stage.DECODE, "Corrupt"),
        ((b"k", None, None), Stage.DECODE, "FoldError"),
        ((None, encode(tick("1")), None), Stage.DECODE, "FoldError"),
        ((b"\xff", encode(tick("1")), None), Stage.DECODE, "FoldError"),
        ((b"k", encode(Counted("1", "a", 1)), None), Stage.DECODE, "UnexpectedType"),
        ((b"k", b"?", [("null", None), ("traceparent", None)]), Stage.DECODE, "Corrupt"),
        ((b"k", b"?" * RECORD_BYTES_MAX, None), Stage.DECODE, "Corrupt"),
        ((b"k" * 500_000, b"?" * 500_000, None), Stage.DECODE, "Corrupt"),
        ((b"k" * 500_000, encode(tick("1")), None), Stage.DECODE, "KeyTooLarge"),
        ((b"k", b"?" * 1_200_000, None), Stage.DECODE, "RecordTooLarge"),
        ((b"k", b"?" * 990_000, [("n", b"")] * 30_000), Stage.DECODE, "Corrupt"),
        ((b"k", encode(tick("bad")), None), Stage.DECIDE, "ValueError"),
    ]
    records = [row for n, (raw, _, _) in enumerate(bad) for row in (raw, (b"k", encode(tick(f"good-{n}")), None))]

    place.publish_bytes("ticks", records)
    with place.member(settings=GO_ON, crash=AbortOnce()) as one:
        until(
            lambda: one.ended() or sum(map(len, place.seen()["counting.events"].values())) == len(bad), "the good ones"
        )

    letters = place.letters()
    assert [(letter.offset, letter.stage, letter.error) for letter in letters] == [
        (2 * n, stage, error) for n, (_, stage, error) in enumerate(bad)
    ]
    assert {(letter.processor, letter.topic, letter.partition) for letter in letters} == {
        ("counting", f"{place.topology.prefix}.ticks", 0)
    }
    events = place.seen()["counting.events"][0]
    assert [event.id for _, event in events] == [f"good-{n}" for n in range(len(bad))]
    assert one.counters.aborts == 1
    assert place.table_problems() == []

    assert (letters[0].key, letters[0].value, letters[0].headers) == (b"k", b"not a record", (Header("who", b"me"),))
    assert letters[5].headers == (Header("null", b""), Header("traceparent", b""))
    kept = {letter.offset // 2: len(letter.key or b"") + len(letter.value or b"") for letter in letters}
    assert [kept[n] for n in (7, 8, 9)] == [RECORD_BYTES_MAX, 500_000 + len(encode(tick("1"))), 0]


def test_a_bug_stops_the_member_by_default_and_leaves_nothing(broker: Broker, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, own([processor_of(touchy)], partitions=1))
    place.publish([("ticks", "k", tick("good")), ("ticks", "k", tick("bad"))])

    one = place.member()
    with pytest.raises(Exception, match="raised ValueError: no such word"), one:
        until(one.ended, "the member to stop")

    assert Counter(map(len, place.seen()["counting.events"].values())) == {0: 1}
    assert place.letters() == []


def test_a_row_that_no_broker_takes_stops_the_member_instead_of_being_tried_for_ever(
    broker: Broker, tmp_path: Path
) -> None:
    def bloated(message: Message[Counted], state: Counting) -> None:
        state.counts.put(("x" * 2_000_000,), Count(1))

    place = Deployment(broker, tmp_path, own([processor_of(count, bloated)], partitions=1))
    place.publish([("ticks", "k", tick("1"))])

    one = place.member(settings=GO_ON)
    with pytest.raises(BrokerRefused, match="MSG_SIZE_TOO_LARGE"), one:
        until(one.ended, "the member to stop")


def endless(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
    while message.value.id == "bad":
        state.counts.get((message.key,))
    return count(message, state, now_ms)


def test_a_decision_that_never_ends_is_put_aside_although_bugs_stop_the_member(broker: Broker, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, own([processor_of(endless)], partitions=1))
    place.publish([("ticks", "k", tick(name)) for name in ("1", "bad", "2")])
    settings = MemberSettings(limits=msgspec.structs.replace(LIMITS, decision_ms_max=200))

    with place.member(settings=settings) as one:
        until(lambda: one.ended() or sum(map(len, place.seen()["counting.events"].values())) == 2, "the good ones")

    assert [(letter.offset, letter.error) for letter in place.letters()] == [(1, "DecisionExhausted")]
    assert [event.id for _, event in place.seen()["counting.events"][0]] == ["1", "2"]
    assert (one.counters.aborts, one.counters.given_up) == (0, 1)
    assert place.table_problems() == []
