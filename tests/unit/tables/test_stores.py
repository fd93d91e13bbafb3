"""What every store promises: order, whole batches, and scans that see one moment."""

from collections.abc import Iterable

import pytest

from kapelle.topology.tables import Batch, MemoryStore, Store

TEN = [b"%d" % n for n in range(10)]


def put(store: Store, keys: Iterable[bytes], value: bytes = b"v") -> None:
    batch = Batch()
    for key in keys:
        batch.put(key, value)
    store.write(batch)


def keys(store: Store, start: bytes = b"", end: bytes = b"\xff", *, reverse: bool = False) -> list[bytes]:
    return [key for key, _ in store.scan(start, end, reverse=reverse)]


def test_a_key_that_was_never_put_has_no_value(store: Store) -> None:
    assert store.get(b"a") is None


def test_a_key_has_the_last_value_that_it_was_given(store: Store) -> None:
    put(store, [b"a"], b"1")
    put(store, [b"a"], b"2")

    assert store.get(b"a") == b"2"


def test_a_scan_is_in_the_order_of_the_bytes_whatever_the_order_of_the_puts(store: Store) -> None:
    put(store, [b"\xfe", b"b", b"a\0", b"\0", b"a"])

    assert keys(store) == [b"\0", b"a", b"a\0", b"b", b"\xfe"]
    assert keys(store, reverse=True) == [b"\xfe", b"b", b"a\0", b"a", b"\0"]


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (b"2", b"5", [b"2", b"3", b"4"]),
        (b"2\0", b"5\0", [b"3", b"4", b"5"]),
        (b"5", b"5", []),
        (b"7", b"3", []),
        (b"99", b"\xff", []),
        (b"", b"0", []),
        (b"", b"1", [b"0"]),
    ],
)
def test_a_range_has_its_start_but_not_its_end(store: Store, start: bytes, end: bytes, expected: list[bytes]) -> None:
    put(store, TEN)

    assert keys(store, start, end) == expected
    assert keys(store, start, end, reverse=True) == expected[::-1]


def test_a_batch_deletes_ranges_first_and_then_gives_each_key_its_last_value(store: Store) -> None:
    put(store, TEN)
    batch = Batch()
    batch.put(b"3", b"new")
    batch.delete(b"8")
    batch.put(b"9", b"first")
    batch.delete(b"9")
    batch.delete_range(b"2", b"5")

    store.write(batch)

    assert keys(store) == [b"0", b"1", b"3", b"5", b"6", b"7"]
    assert store.get(b"3") == b"new"


def test_an_empty_or_turned_range_deletes_nothing(store: Store) -> None:
    put(store, TEN)
    batch = Batch()
    batch.delete_range(b"5", b"5")
    batch.delete_range(b"7", b"3")

    store.write(batch)

    assert keys(store) == TEN


def test_deleting_what_is_not_there_is_no_error(store: Store) -> None:
    batch = Batch()
    batch.delete(b"a")

    store.write(batch, sync=True)

    assert store.get(b"a") is None


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_sees_the_moment_when_it_began(store: Store, reverse: bool) -> None:
    put(store, TEN[:5], b"old")
    scan = store.scan(b"", b"\xff", reverse=reverse)
    unstarted = store.scan(b"", b"\xff", reverse=reverse)
    first = next(scan)

    put(store, TEN[2:], b"new")
    batch = Batch()
    batch.delete_range(b"0", b"2")
    store.write(batch)

    expected = [(key, b"old") for key in TEN[:5]]
    assert [first, *scan] == (expected[::-1] if reverse else expected)
    assert list(unstarted) == (expected[::-1] if reverse else expected)
    assert keys(store) == TEN[2:]


def test_an_empty_batch_is_false_and_may_be_written(store: Store) -> None:
    batch = Batch()

    store.write(batch)

    assert not batch
    assert keys(store) == []


def test_an_empty_store_in_memory_is_still_a_store() -> None:
    store = MemoryStore()

    assert (store or MemoryStore()) is store


def test_a_copy_in_memory_goes_its_own_way() -> None:
    store = MemoryStore()
    put(store, TEN)

    after_the_crash = store.copy()
    put(store, [b"later"])

    assert keys(after_the_crash) == TEN
    assert len(after_the_crash) == 10
    assert len(store) == 11
