"""Changes are read together with what is stored, in one order, at one moment, and their size is known."""

from collections.abc import Iterator

import pytest

from kapelle.topology.tables import Batch, MemoryStore, Store
from kapelle.topology.tables.overlay import ENTRY_BYTES, Overlay


@pytest.fixture
def overlay(store: Store) -> Overlay:
    """Over the stored rows a, c, e and g."""
    batch = Batch()
    for key in (b"a", b"c", b"e", b"g"):
        batch.put(key, b"stored")
    store.write(batch)
    return Overlay(store)


def commit(overlay: Overlay) -> None:
    batch = Batch()
    batch.update(overlay.rows)
    overlay.store.write(batch)
    overlay.clear()


def keys(overlay: Overlay, start: bytes = b"a", end: bytes = b"z", *, reverse: bool = False) -> bytes:
    return b"".join(key for key, _ in overlay.read(start, end, reverse=reverse))


def test_what_is_not_changed_is_read_from_the_store(overlay: Overlay) -> None:
    assert overlay.get(b"a") == b"stored"
    assert overlay.get(b"b") is None
    assert keys(overlay) == b"aceg"


def test_changes_are_read_before_they_are_stored(overlay: Overlay) -> None:
    overlay.put(b"a", b"changed")
    overlay.put(b"b", b"new")
    overlay.put(b"e", None)

    assert (overlay.get(b"a"), overlay.get(b"b"), overlay.get(b"e")) == (b"changed", b"new", None)
    assert list(overlay.read(b"a", b"f")) == [(b"a", b"changed"), (b"b", b"new"), (b"c", b"stored")]
    assert keys(overlay, reverse=True) == b"gcba"


def test_changes_before_between_and_behind_the_stored_rows_are_merged(overlay: Overlay) -> None:
    for key in (b"A", b"b", b"d", b"f", b"y", b"z"):
        overlay.put(key, b"new")

    assert keys(overlay, b"A", b"\xff") == b"Aabcdefgyz"
    assert keys(overlay, b"A", b"\xff", reverse=True) == b"zygfedcbaA"
    assert keys(overlay, b"b", b"y") == b"bcdefg"


def test_a_deletion_of_what_is_nowhere_is_still_a_change(overlay: Overlay) -> None:
    overlay.put(b"x", None)

    assert overlay.rows == {b"x": None}
    assert keys(overlay) == b"aceg"


def test_a_deleted_key_can_be_put_again(overlay: Overlay) -> None:
    overlay.put(b"c", None)
    assert keys(overlay) == b"aeg"

    overlay.put(b"c", b"again")

    assert keys(overlay) == b"aceg"
    assert overlay.get(b"c") == b"again"


def test_keys_put_after_a_scan_are_found_in_order_by_the_next(overlay: Overlay) -> None:
    overlay.put(b"x", b"new")
    assert keys(overlay) == b"acegx"

    for key in (b"z", b"y", b"b", b"a"):
        overlay.put(key, b"new")
    assert keys(overlay) == b"abcegxy"

    for number in range(50):
        overlay.put(b"b%02d" % number, b"new")
    assert len(list(overlay.read(b"b", b"c"))) == 51


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_sees_the_moment_when_it_began(overlay: Overlay, reverse: bool) -> None:
    overlay.put(b"b", b"before")
    scan = overlay.read(b"a", b"z", reverse=reverse)
    before = list(overlay.read(b"a", b"z", reverse=reverse))

    overlay.put(b"b", b"after")
    overlay.put(b"d", b"after")
    seen = [next(scan)]
    overlay.put(b"f", b"after")
    overlay.put(b"e", None)
    overlay.clear()

    assert seen + list(scan) == before


def test_what_a_scan_learned_does_not_hide_later_rows(overlay: Overlay) -> None:
    overlay.put(b"a", None)
    overlay.put(b"c", None)
    assert keys(overlay) == b"eg"

    overlay.put(b"b", b"new")
    assert keys(overlay) == b"beg"

    commit(overlay)
    assert keys(overlay) == b"beg"


def test_rows_that_a_scan_met_before_they_were_stored_are_met_again(overlay: Overlay) -> None:
    for key in (b"A", b"b", b"x"):
        overlay.put(key, b"new")
        assert next(overlay.read(key, b"z"))[0] == key

    commit(overlay)

    assert keys(overlay, b"A") == b"Aabcegx"


@pytest.mark.parametrize("taken", range(5))
def test_after_an_abort_the_rows_that_were_taken_are_seen_again(overlay: Overlay, taken: int) -> None:
    for key in (b"a", b"c", b"e", b"g")[:taken]:
        assert next(overlay.read(b"a", b"z"))[0] == key
        overlay.put(key, None)
    assert keys(overlay) == b"aceg"[taken:]

    overlay.clear()

    assert keys(overlay) == b"aceg"


@pytest.mark.parametrize("taken", range(5))
def test_after_a_commit_the_rows_that_were_taken_stay_away(overlay: Overlay, taken: int) -> None:
    for key in (b"a", b"c", b"e", b"g")[:taken]:
        assert next(overlay.read(b"a", b"z"))[0] == key
        overlay.put(key, None)
        commit(overlay)

    assert keys(overlay) == b"aceg"[taken:]
    overlay.put(b"a", b"again")
    commit(overlay)
    assert keys(overlay) == b"a" + b"aceg"[max(taken, 1) :]


class NotingStore(MemoryStore):
    """Tells where scans began."""

    __slots__ = ("starts",)

    def __init__(self) -> None:
        super().__init__()
        self.starts: list[bytes] = []

    def scan(self, start: bytes, end: bytes, /, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        self.starts.append(start)
        return super().scan(start, end, reverse=reverse)


def test_a_queue_is_never_read_from_before_its_head() -> None:
    store = NotingStore()
    overlay = Overlay(store)
    for number in range(1, 10):
        overlay.put(b"%d" % number, b"waiting")
    commit(overlay)

    for _ in range(1, 10):
        head, _ = next(overlay.read(b"0", b"\xff"))
        overlay.put(head, None)
        commit(overlay)

    # Each look begins where the one before it found the head, whose deletion is all that it crawls over.
    assert store.starts == [b"0", *(b"%d" % number for number in range(1, 9))]


def test_within_a_cycle_too_a_queue_is_read_from_its_head_on() -> None:
    store = NotingStore()
    overlay = Overlay(store)
    for number in range(1, 10):
        overlay.put(b"%d" % number, b"waiting")
    commit(overlay)

    taken = []
    for _ in range(9):
        taken.append(next(overlay.read(b"0", b"\xff"))[0])
        overlay.put(taken[-1], None)

    assert store.starts == [b"0", *taken[:-1]]


def test_rows_stored_by_others_are_seen_once_the_overlay_is_told(overlay: Overlay, store: Store) -> None:
    assert keys(overlay, b"d", b"z") == b"eg"
    batch = Batch()
    batch.put(b"d", b"restored")
    batch.put(b"f", b"restored")
    store.write(batch)

    overlay.forget_store()

    assert keys(overlay, b"d", b"z") == b"defg"


def test_the_size_is_that_of_the_last_values(overlay: Overlay) -> None:
    assert overlay.size_bytes == 0

    overlay.put(b"key", b"12345")
    assert overlay.size_bytes == ENTRY_BYTES + 3 + 5
    for _ in range(100):
        overlay.put(b"key", b"1234567")
        overlay.put(b"key", None)
    assert overlay.size_bytes == ENTRY_BYTES + 3
    overlay.put(b"k2", b"")
    assert overlay.size_bytes == 2 * ENTRY_BYTES + 3 + 2

    overlay.clear()
    assert overlay.size_bytes == 0
