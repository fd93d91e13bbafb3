"""RocksDB under a shard: whole batches after a crash, typed errors for damage, nothing left open, bounded memory."""

import gc
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kapelle.topology.tables import (
    Batch,
    Memory,
    RocksStore,
    StoreClosed,
    StoreCorrupt,
)
from kapelle.topology.tables.rocks import MEMORY_BYTES_MIN

MB = 1024 * 1024


def write(store: RocksStore, first: int, last: int, *, sync: bool = False) -> None:
    """Batches of two rows each, which must come and go together."""
    for number in range(first, last):
        batch = Batch()
        batch.put(b"a%05d" % number, b"x" * 100)
        batch.put(b"b%05d" % number, b"y" * 100)
        store.write(batch, sync=sync)


def numbers(store: RocksStore, letter: bytes = b"a") -> list[int]:
    return [int(key[1:]) for key, _ in store.scan(letter, letter + b"\xff")]


@pytest.fixture
def directory(tmp_path: Path, memory: Memory) -> Path:
    """A store as a killed process leaves it: 1,000 batches in files, 1,000 in the log."""
    store = RocksStore(tmp_path / "running", memory)
    write(store, 0, 1_000)
    store.close()
    store = RocksStore(tmp_path / "running", memory)
    write(store, 1_000, 2_000)
    shutil.copytree(tmp_path / "running", tmp_path / "killed")
    store.close()
    return tmp_path / "killed"


def newest(directory: Path, pattern: str) -> Path:
    return max((directory / "rows").glob(pattern))


def fill_with_garbage(path: Path, start: int = 0, size: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    end = len(content) if size is None else start + size
    content[start:end] = bytes(1 + n * 7 % 255 for n in range(end - start))
    path.write_bytes(content)


def truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def test_everything_written_survives_the_end_of_the_process(directory: Path, memory: Memory) -> None:
    store = RocksStore(directory, memory)

    assert numbers(store) == list(range(2_000))
    store.close()


WRITE_FOR_EVER = """
import sys
from itertools import count
from pathlib import Path
from kapelle.topology.tables import Batch, Memory, RocksStore
store = RocksStore(Path(sys.argv[1]), Memory(8 * 1024 * 1024))
for number in count():
    batch = Batch()
    batch.put(b"a%05d" % number, b"x" * 100)
    batch.put(b"b%05d" % number, b"y" * 100)
    store.write(batch)
    print(number, flush=True)
"""


def test_a_killed_process_has_lost_nothing_that_it_had_written(tmp_path: Path, memory: Memory) -> None:
    command = [sys.executable, "-c", WRITE_FOR_EVER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "500\n":
            pass
        process.kill()

    store = RocksStore(tmp_path, memory)

    found = numbers(store)
    assert len(found) >= 501
    assert found == numbers(store, b"b") == list(range(len(found)))
    store.close()


def test_a_torn_log_gives_an_earlier_state_and_never_half_a_batch(directory: Path, memory: Memory) -> None:
    size = newest(directory, "*.log").stat().st_size
    found = []
    for cut in range(0, size + 1, size // 7):
        torn = directory.with_name(f"torn-{cut}")
        shutil.copytree(directory, torn)
        truncate(newest(torn, "*.log"), cut)

        store = RocksStore(torn, memory)
        assert numbers(store, b"a") == numbers(store, b"b") == list(range(len(numbers(store))))
        found.append(len(numbers(store)))
        write(store, 5_000, 5_001)
        store.close()

    assert found == sorted(found)
    assert (found[0], found[-1]) == (1_000, 1_999 if size % 7 else 2_000)


def test_garbage_in_the_log_ends_it_there(directory: Path, memory: Memory) -> None:
    fill_with_garbage(newest(directory, "*.log"), 50_000, 100)

    store = RocksStore(directory, memory)

    found = numbers(store)
    assert 1_000 < len(found) < 2_000
    assert found == numbers(store, b"b") == list(range(len(found)))
    store.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: truncate(newest(d, "*.sst"), 1_000),
        lambda d: fill_with_garbage(newest(d, "*.sst")),
        lambda d: newest(d, "*.sst").unlink(),
        lambda d: truncate(newest(d, "MANIFEST*"), 20),
        lambda d: fill_with_garbage(newest(d, "MANIFEST*")),
        lambda d: newest(d, "MANIFEST*").unlink(),
        lambda d: fill_with_garbage(d / "rows" / "CURRENT"),
        lambda d: truncate(d / "rows" / "CURRENT", 0),
        lambda d: (d / "rows" / "CURRENT").unlink(),
    ],
    ids=[
        "truncated rows",
        "garbage for rows",
        "rows gone",
        "truncated manifest",
        "garbage for a manifest",
        "manifest gone",
        "garbage for CURRENT",
        "empty CURRENT",
        "CURRENT gone",
    ],
)
def test_a_damaged_directory_is_refused_every_time(
    directory: Path, memory: Memory, damage: Callable[[Path], None]
) -> None:
    damage(directory)
    rows = set((directory / "rows").glob("*.sst"))

    # More than once: an attempt to open must not make an empty store of it, nor delete anything.
    for _ in range(2):
        with pytest.raises(StoreCorrupt) as refused:
            RocksStore(directory, memory)
        assert refused.value.path == directory

    assert set((directory / "rows").glob("*.sst")) == rows


def test_damage_inside_a_file_is_found_by_whoever_reads_it(directory: Path, memory: Memory) -> None:
    fill_with_garbage(newest(directory, "*.sst"), 2_000, 500)
    store = RocksStore(directory, memory)

    with pytest.raises(StoreCorrupt, match="checksum"):
        all(store.get(b"a%05d" % number) for number in range(1_000))
    with pytest.raises(StoreCorrupt, match="checksum"):
        numbers(store)
    with pytest.raises(StoreCorrupt, match="checksum"):
        list(store.scan(b"a", b"c", reverse=True))

    store.close()


def test_a_new_store_is_made_where_an_attempt_to_make_one_ended_early(tmp_path: Path, memory: Memory) -> None:
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "MANIFEST-000001").write_bytes(b"")

    store = RocksStore(tmp_path, memory)

    assert numbers(store) == []
    store.close()


def test_a_store_can_be_closed_while_scans_are_under_way(tmp_path: Path, memory: Memory) -> None:
    store = RocksStore(tmp_path, memory)
    write(store, 0, 10)
    started, unstarted, backward = store.scan(b"a", b"b"), store.scan(b"a", b"b"), store.scan(b"a", b"b", reverse=True)
    next(started)
    next(backward)

    store.close()

    reopened = RocksStore(tmp_path, memory)
    assert numbers(reopened) == list(range(10))
    assert list(started) == list(unstarted) == list(backward) == []
    reopened.close()


def test_scans_that_were_dropped_are_not_remembered(rocks: RocksStore) -> None:
    write(rocks, 0, 10)

    for _ in range(100):
        next(rocks.scan(b"a", b"b"))
        rocks.scan(b"a", b"b", reverse=True)
        list(rocks.scan(b"a", b"b"))
    gc.collect()

    assert len(rocks._scans) == 0


def test_the_bound_of_a_scan_holds_when_nobody_else_keeps_it(rocks: RocksStore) -> None:
    write(rocks, 0, 50)

    for _ in range(200):
        scan = rocks.scan(b"a", b"".join([b"a", b"000", b"20"]))
        others = [b"z%07d" % n for n in range(50)]  # would take the place of a bound that was freed
        assert len(list(scan)) == 20
        assert len(others) == 50


def test_a_closed_store_refuses_everything_but_another_close(tmp_path: Path, memory: Memory) -> None:
    store = RocksStore(tmp_path, memory)
    store.close()
    store.close()

    with pytest.raises(StoreClosed):
        store.get(b"a")
    with pytest.raises(StoreClosed):
        store.scan(b"a", b"b")
    with pytest.raises(StoreClosed):
        store.write(Batch(), sync=True)


def test_the_budget_of_memory_is_used_after_reopening_as_before(tmp_path: Path) -> None:
    memory = Memory(8 * MB)
    store = RocksStore(tmp_path, memory)
    write(store, 0, 5_000)
    store.close()
    again = Memory(8 * MB)
    store = RocksStore(tmp_path, again)
    before = again.used_bytes

    numbers(store)

    # Opened with options of its own, RocksDB would use a cache of its own too.
    assert again.used_bytes > before + 100_000
    store.close()


def test_too_small_a_budget_is_refused() -> None:
    with pytest.raises(ValueError, match=f"Expected at least {MEMORY_BYTES_MIN} bytes"):
        Memory(MEMORY_BYTES_MIN - 1)


FILL = """
import os, resource, sys
from pathlib import Path
from kapelle.topology.tables import Batch, Memory, RocksStore

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

memory = Memory(32 * 1024 * 1024)
store = RocksStore(Path(sys.argv[1]), memory)
before = resident_bytes()
peak = used = 0
for number in range(300):
    batch = Batch()
    for row in range(250):
        batch.put(b"%08d" % (number * 7919 % 300 * 250 + row), os.urandom(4000))
    store.write(batch)
    for row in range(0, 250, 5):
        store.get(b"%08d" % (number * 4801 % 300 * 250 + row))
    peak = max(peak, resident_bytes() - before)
    used = max(used, memory.used_bytes)
print(peak, used)
store.close()
"""


def test_memory_stays_within_bounds_while_ten_times_as_much_is_written(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FILL, str(tmp_path)], capture_output=True, text=True, check=True)

    peak, used = map(int, done.stdout.split())
    assert used <= 40 * MB
    # On top of the budget come the batch itself, compactions under way and what the allocator keeps.
    assert peak <= 80 * MB


def test_rows_are_measured_a_slice_at_a_time(rocks: RocksStore) -> None:
    write(rocks, 0, 5)

    whole = rocks.measure(b"a", b"b", 100)
    first = rocks.measure(b"a", b"b", 3)

    assert (whole.rows, whole.size_bytes, whole.rest) == (5, 5 * (6 + 100), None)
    assert (first.rows, first.rest) == (3, b"a00003")
    assert rocks.measure(b"a00003", b"b", 2) == (2, 2 * 106, None)
    assert rocks.measure(b"c", b"d", 2) == (0, 0, None)


def test_a_store_is_not_measured_once_it_is_closed(tmp_path: Path, memory: Memory) -> None:
    store = RocksStore(tmp_path / "store", memory)
    store.close()

    with pytest.raises(StoreClosed):
        store.measure(b"a", b"b", 1)
