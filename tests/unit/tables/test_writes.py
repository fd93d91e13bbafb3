"""A store is as it was after some write, or it is refused: damage never gives later rows without earlier ones.

A member on Kafka restores what is older from the changelog, from the offset that its tables name. So rows and offset
must be of one moment, whatever happens to the files.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kapelle.topology.kafka.run import _opened
from kapelle.topology.tables import Batch, Memory, StoreCorrupt
from kapelle.topology.tables.writes import SLOTS, NumberedStore, Writes, write_row, writes_in

EACH = 60
OFFSET = b"offset"


def write(store: NumberedStore, first: int, last: int) -> list[int]:
    """A row for each write, and the offset that the rows stand for. Returns how long the log was after each."""
    sizes = []
    for number in range(first, last):
        batch = Batch()
        batch.put(b"row%05d" % number, b"x" * 300)
        batch.put(OFFSET, number.to_bytes(8, "big"))
        store.write(batch)
        sizes.append(logs(store.path)[-1].stat().st_size)
    return sizes


def logs(path: Path) -> list[Path]:
    return sorted((path / "rows").glob("*.log"), key=lambda file: int(file.stem))


def is_of_one_moment(store: NumberedStore) -> bool:
    rows = [int(key[3:]) for key, _ in store.scan(b"row", b"row\xff")]
    offset = store.get(OFFSET)
    return rows == list(range(len(rows))) and (len(rows) == 0 or rows[-1] == int.from_bytes(offset or b"", "big"))


@pytest.fixture
def killed(tmp_path: Path, memory: Memory) -> tuple[Path, list[int]]:
    """A store whose process was killed while a buffer was on its way to a file: two write-ahead logs are in use."""
    store = NumberedStore(tmp_path / "running", memory)
    sizes = write(store, 0, EACH)
    shutil.copytree(store.path, tmp_path / "tables")
    store._rocks.flush()
    write(store, EACH, 2 * EACH)
    shutil.copy(logs(store.path)[-1], tmp_path / "tables" / "rows")
    store.close()
    return tmp_path / "tables", sizes


def test_two_logs_are_read_one_after_the_other(killed: tuple[Path, list[int]], memory: Memory) -> None:
    store = NumberedStore(killed[0], memory)

    assert is_of_one_moment(store)
    assert writes_in(store) == Writes(2 * EACH)
    store.close()


@pytest.mark.parametrize(
    "damage",
    [lambda log, _sizes: log.unlink(), lambda log, sizes: os.truncate(log, sizes[EACH // 2])],
    ids=["gone", "ends too soon"],
)
def test_an_earlier_log_without_its_writes_is_noticed_and_the_tables_are_put_away(
    killed: tuple[Path, list[int]], memory: Memory, damage: Callable[[Path, list[int]], None]
) -> None:
    path, sizes = killed
    damage(logs(path)[0], sizes)
    shutil.copytree(path, path.with_name("same"))

    with pytest.raises(StoreCorrupt, match="is missing although later ones are there"):
        NumberedStore(path.with_name("same"), memory)
    restored = _opened(path)

    assert restored.get(OFFSET) is None  # everything is read from the changelog
    assert list(path.parent.glob("tables.corrupt-*"))
    restored.close()


def test_tables_whose_numbers_cannot_be_read_are_put_away_at_once(
    killed: tuple[Path, list[int]], memory: Memory
) -> None:
    path, _ = killed
    NumberedStore(path, memory).close()
    for file in (path / "rows").glob("*.sst"):
        content = bytearray(file.read_bytes())
        content[10:40] = b"\xff" * 30  # in the first block, where the numbers are
        file.write_bytes(content)

    restored = _opened(path)

    assert restored.get(OFFSET) is None
    restored.close()


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_flipped_or_torn_log_is_refused_or_gives_rows_and_offset_of_one_moment(
    killed: tuple[Path, list[int]], memory: Memory, log: int, share: float
) -> None:
    for number, spoil in enumerate((_flip, _tear, _zero)):
        path = killed[0].with_name(f"spoilt-{number}")
        shutil.copytree(killed[0], path)
        spoil(logs(path)[log], share)

        try:
            store = NumberedStore(path, memory)
        except StoreCorrupt:  # RocksDB does not notice that an earlier log is torn
            assert log == 0
            continue
        assert is_of_one_moment(store)
        store.close()


def _flip(file: Path, share: float) -> None:
    content = bytearray(file.read_bytes())
    content[int(len(content) * share)] ^= 1
    file.write_bytes(content)


def _tear(file: Path, share: float) -> None:
    os.truncate(file, int(file.stat().st_size * share))


def _zero(file: Path, share: float) -> None:
    content = bytearray(file.read_bytes())
    at = int(len(content) * share)
    content[at : at + 600] = bytes(600)
    file.write_bytes(content)


def test_slots_are_used_in_turns(killed: tuple[Path, list[int]], memory: Memory) -> None:
    store = NumberedStore(killed[0], memory)
    batch = Batch()
    for number in range(1, SLOTS + 100):
        batch.put(*write_row(number))
    super(NumberedStore, store).write(batch)

    assert writes_in(store) == Writes(SLOTS + 99)
    store.close()
