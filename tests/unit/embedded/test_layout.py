"""A directory remembers what it was made for."""

import msgspec
import pytest

from kapelle.topology.embedded import DirectoryDiffers
from kapelle.topology.embedded.layout import About, Chunks, offset_key, open_directory
from kapelle.topology.log import Place
from kapelle.topology.tables import Batch, MemoryStore
from tests.proof.processors import topology


def test_a_directory_keeps_its_identity() -> None:
    store = MemoryStore()
    made = open_directory(topology("counting"), store, now_ms=1)

    assert open_directory(topology("counting"), store, now_ms=2) == made


def test_new_processors_are_welcome_in_an_old_directory() -> None:
    store = MemoryStore()
    made = open_directory(topology("counting"), store, now_ms=1)

    grown = open_directory(topology("all"), store, now_ms=2)
    again = open_directory(topology("counting"), store, now_ms=3)

    assert grown.identity == made.identity
    assert again.partitions == grown.partitions


def test_another_number_of_partitions_is_refused() -> None:
    store = MemoryStore()
    open_directory(topology(partitions=2), store, now_ms=1)

    with pytest.raises(DirectoryDiffers, match=r"partitions of proof\.[a-z0-9.-]+: 3, but it was made with 2"):
        open_directory(topology(partitions=3), store, now_ms=2)


def test_another_prefix_is_refused() -> None:
    store = MemoryStore()
    open_directory(topology(prefix="mine"), store, now_ms=1)

    with pytest.raises(DirectoryDiffers, match="the prefix 'yours', but it was made with 'mine'"):
        open_directory(topology(prefix="yours"), store, now_ms=2)


def test_a_later_format_is_refused_even_if_all_else_has_changed() -> None:
    store = MemoryStore()
    batch = Batch()
    batch.put(b"\x03", msgspec.msgpack.encode({"format": 2, "unheard": "of"}))
    store.write(batch)

    with pytest.raises(DirectoryDiffers, match="format 1, but it was made with 2"):
        open_directory(topology(), store, now_ms=1)


def test_places_do_not_run_into_each_other() -> None:
    store = MemoryStore()
    places = [Place("a", 0), Place("a", 1), Place("a.b", 0), Place("ab", 256), Place("b", 0)]
    batch = Batch()
    for number, place in enumerate(places, 1):
        Chunks(place, store).stage(batch, 0, [(b"%d" % n, str(place).encode(), ()) for n in range(number)], 0)
    store.write(batch)

    assert [Chunks(place, store).end() for place in places] == [1, 2, 3, 4, 5]
    assert [len(list(Chunks(place, store).scan(0))) for place in places] == [1, 1, 1, 1, 1]


def test_offsets_of_different_processors_have_different_keys() -> None:
    keys = [offset_key(p, Place(t, n)) for p in ("a", "ab") for t in ("b", "bc") for n in (0, 1)]

    assert len(set(keys)) == len(keys)


def test_what_was_made_at_another_time_has_another_identity() -> None:
    identities = {About(prefix="p", made_at_ms=at_ms, partitions={}).identity for at_ms in (1, 2)}

    assert len(identities) == 2
