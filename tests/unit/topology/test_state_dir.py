"""The directory of a member: damaged tables are put away and made anew, and its name is made once."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import Rdict

from kapelle.topology.kafka import run
from kapelle.topology.kafka.run import instance_of
from kapelle.topology.tables import Batch, Memory, RocksStore, StoreCorrupt, StoreLocked

ROW = (b"processor\0key", b"row")


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """The path of a store with one row, in a table file."""
    store = RocksStore(tmp_path / "tables", Memory())
    batch = Batch()
    batch.put(*ROW)
    store.write(batch)
    store._rocks.flush()
    store.close()
    return tmp_path / "tables"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "truncated table file": ("*.sst", truncate),
    "missing table file": ("*.sst", Path.unlink),
    "zeroed table file": ("*.sst", zero),
    "zeroed manifest": ("MANIFEST-*", zero),
    "missing manifest": ("MANIFEST-*", Path.unlink),
    "missing CURRENT": ("CURRENT", Path.unlink),
    "empty CURRENT": ("CURRENT", lambda path: path.write_bytes(b"")),
    "zeroed CURRENT": ("CURRENT", zero),
}


def test_tables_that_are_whole_are_opened(tables: Path) -> None:
    store = run._opened(tables)

    assert store.get(ROW[0]) == ROW[1]
    store.close()


@pytest.mark.parametrize("damage", DAMAGES)
def test_tables_that_are_damaged_are_put_away_and_made_anew(damage: str, tables: Path) -> None:
    pattern, harm = DAMAGES[damage]
    found = list((tables / "rows").glob(pattern))
    assert found
    for path in found:
        harm(path)

    store = run._opened(tables)

    assert store.get(ROW[0]) is None
    store.close()
    (aside,) = tables.parent.glob("tables.corrupt-*")
    assert (aside / "rows").is_dir()


class DamagedHandle:
    """A handle of RocksDB that finds damage when it writes what is in memory."""

    def __init__(self, handle: Rdict) -> None:
        self._handle = handle

    def close(self) -> None:
        self._handle.close()
        raise Exception("Corruption: block checksum mismatch")


@pytest.mark.parametrize("is_known", [True, False])
def test_damage_that_shows_while_tables_are_closed_puts_them_away_too(is_known: bool, tables: Path) -> None:
    store = RocksStore(tables, Memory())
    store._rows = DamagedHandle(store._rows)  # type: ignore[assignment]

    run._close(store, StoreCorrupt(tables, "read before") if is_known else None)

    assert not tables.exists()
    assert list(tables.parent.glob("tables.corrupt-*"))
    RocksStore(tables, Memory()).close()  # the directory is free


def test_a_manifest_that_is_cut_short_after_a_clean_stop_gives_an_earlier_state_or_none(tmp_path: Path) -> None:
    """RocksDB takes a manifest that ends early for whole. What it then opens must be as it was after some batch."""
    whole = tmp_path / "whole"
    store = RocksStore(whole, Memory())
    for n in (b"1", b"2", b"3"):
        batch = Batch()
        batch.update({b"row-" + n: n, b"meta": n})
        store.write(batch)
        store._rocks.flush()
    store.close()
    (manifest,) = (whole / "rows").glob("MANIFEST-*")
    states: list[set[tuple[bytes, bytes]]] = [set()]
    for n in (b"1", b"2", b"3"):
        states.append({row for row in states[-1] if row[0] != b"meta"} | {(b"row-" + n, n), (b"meta", n)})

    for size in range(0, manifest.stat().st_size, 40):
        cut = tmp_path / f"cut-{size}"
        shutil.copytree(whole, cut)
        (cut / "rows" / manifest.name).write_bytes(manifest.read_bytes()[:size])

        store = run._opened(cut)
        assert set(store.scan(b"", b"~")) in states
        store.close()


def test_tables_that_another_process_has_are_refused(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "HANDOVER_S", 0.0)
    store = run._opened(tables)

    with pytest.raises(StoreLocked):
        run._opened(tables)

    store.close()


def test_the_name_of_a_directory_is_made_once(tmp_path: Path) -> None:
    name = instance_of(tmp_path / "one")

    assert instance_of(tmp_path / "one") == name != instance_of(tmp_path / "two")


@pytest.mark.parametrize("torn", ["", "\n"])
def test_a_name_that_was_torn_is_made_anew(tmp_path: Path, torn: str) -> None:
    (tmp_path / "instance").write_text(torn)

    assert instance_of(tmp_path) == instance_of(tmp_path) != ""
