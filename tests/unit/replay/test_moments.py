"""Moments: what people write, and how far histories are then folded."""

import pytest

from kapelle.topology.replay.errors import BadMoment, HistoryIncomplete, HistoryUnreadable
from kapelle.topology.replay.fold import Folding, decoder
from kapelle.topology.replay.lookup import folded
from kapelle.topology.replay.moments import Moment
from kapelle.topology.tables import Batch, MemoryStore
from tests.proof.processors import topology
from tests.unit.replay.world import SHARD, SPREADING, World, records

TOPOLOGY = topology("all", partitions=4)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("end", Moment()),
        ("2023-11-14T22:13:20Z", Moment(1_700_000_000_000)),
        ("2023-11-14T22:13:20.125", Moment(1_700_000_000_125)),
        ("2023-11-14T23:13:20+01:00", Moment(1_700_000_000_000)),
        ("counting-3@7", Moment(offsets={("counting", 3): 7})),
        ("stage-1-0@0, joining-2@12", Moment(offsets={("stage-1", 0): 0, ("joining", 2): 12})),
    ],
)
def test_a_moment_is_a_time_or_offsets_or_the_end(text: str, moment: Moment) -> None:
    assert Moment.parse(text, TOPOLOGY) == moment


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("yesterday", "Expected a time such as .* but found 'yesterday'"),
        ("counting@7", "Expected offsets such as .* but found 'counting@7'"),
        ("painting-0@7", "Expected a processor among counting, .* but found 'painting'"),
        ("counting-4@7", "Expected a partition of counting below 4, but found 4"),
    ],
)
def test_what_is_no_moment_is_refused_with_what_would_be(text: str, reason: str) -> None:
    with pytest.raises(BadMoment, match=reason):
        Moment.parse(text, TOPOLOGY)


def test_an_offset_beyond_the_end_of_its_history_is_refused() -> None:
    history = World().play().history()

    with pytest.raises(BadMoment, match=r"Expected an offset of at most \d for counting-0, but found 900"):
        list(folded(history, [("counting", 0)], Moment(offsets={("counting", 0): 900}), MemoryStore()))


def test_a_shard_at_the_end_is_what_the_engine_has() -> None:
    world = World().play()
    live = world.fingerprints()

    found = {
        fold.shard: fold.state.fingerprint()
        for fold, is_done in folded(world.history(), live, Moment(), MemoryStore())
        if is_done
    }

    assert found == live


def test_before_the_first_event_there_is_nothing() -> None:
    world = World().play()
    live = world.fingerprints()

    rows = [
        row
        for fold, is_done in folded(world.history(), live, Moment(time_ms=0), MemoryStore())
        if is_done
        for row in fold.state.rows()
    ]

    assert rows == []


def test_a_history_whose_first_events_are_gone_is_refused() -> None:
    world = World().play()
    place = world.runtime.member.shards["counting", 0].events
    batch = Batch()
    world.runtime.log.partitions[place].chunks.trim(batch, 1)
    world.store.write(batch)

    with pytest.raises(HistoryIncomplete, match="to begin at offset 0, but it begins at 1"):
        list(folded(world.history(), [("counting", 0)], Moment(), MemoryStore()))


def test_an_event_that_cannot_be_read_is_listed_with_its_place_and_passed_over() -> None:
    world = World()
    fold = Folding(SPREADING, SHARD, decode=decoder(world.history()), store=MemoryStore())

    fold.take([*records(["a"]), records(["a"])[0].__class__(7, 0, b"k", b"\xff\xff")])

    [(offset, reason)] = fold.unreadable.first
    assert (offset, fold.unreadable.count, fold.position) == (7, 1, 8)
    assert "C3 01" in reason


def test_an_event_of_an_unknown_schema_is_refused_unless_it_is_to_be_passed_over() -> None:
    world = World().play()
    place = world.runtime.member.shards["counting", 0].events
    unknown = b"\xc3\x01" + b"\x07" * 8
    world.runtime.publish_at(place, (b"k", unknown, ()))
    world.runtime.step_until_idle()
    history, shards = world.history(), [("counting", 0)]

    with pytest.raises(HistoryUnreadable, match=r"world\.counting\.events-0.*--pass-over-unknown"):
        list(folded(history, shards, Moment(), MemoryStore()))
    *_, (fold, is_done) = folded(history, shards, Moment(passes_over=True), MemoryStore())

    assert is_done
    assert fold.unreadable.count == 1
