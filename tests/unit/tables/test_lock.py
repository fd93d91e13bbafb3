"""A directory belongs to one process at a time, whoever died in it before."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kapelle.topology.tables import Memory, RocksStore, StoreFailed, StoreLocked
from kapelle.topology.tables.lock import LOCK_NAME

HOLD = """
import sys
from pathlib import Path
from kapelle.topology.tables import Memory, RocksStore
store = RocksStore(Path(sys.argv[1]), Memory(8 * 1024 * 1024))
print("open", flush=True)
sys.stdin.read()
store.close()
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the store until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_refused_and_told_who_is_there(tmp_path: Path, memory: Memory) -> None:
    with holder(tmp_path) as process, pytest.raises(StoreLocked) as refused:
        RocksStore(tmp_path, memory)

    assert refused.value.path == tmp_path
    assert refused.value.holder.startswith(f"process {process.pid} on ")


def test_a_second_store_in_the_same_process_is_refused(tmp_path: Path, memory: Memory) -> None:
    store = RocksStore(tmp_path, memory)

    with pytest.raises(StoreLocked, match=f"process {os.getpid()} on "):
        RocksStore(tmp_path, memory)

    store.close()
    RocksStore(tmp_path, memory).close()


def test_the_lock_of_a_killed_process_keeps_nobody_out(tmp_path: Path, memory: Memory) -> None:
    with holder(tmp_path) as process:
        process.kill()
        process.wait()

    assert str(process.pid) in (tmp_path / LOCK_NAME).read_text()
    RocksStore(tmp_path, memory).close()


def test_whoever_waits_takes_over_when_the_holder_leaves(tmp_path: Path, memory: Memory) -> None:
    with holder(tmp_path) as process:
        assert process.stdin is not None
        process.stdin.close()

        store = RocksStore(tmp_path, memory, wait_s=30)

        assert str(os.getpid()) in (tmp_path / LOCK_NAME).read_text()
        store.close()


def test_waiting_ends_at_the_deadline(tmp_path: Path, memory: Memory) -> None:
    store = RocksStore(tmp_path, memory)

    with pytest.raises(StoreLocked):
        RocksStore(tmp_path, memory, wait_s=0.05)

    store.close()


def test_a_store_that_cannot_be_opened_leaves_the_directory_free(tmp_path: Path, memory: Memory) -> None:
    (tmp_path / "rows").write_text("not a directory")
    with pytest.raises(StoreFailed):
        RocksStore(tmp_path, memory)

    (tmp_path / "rows").unlink()

    RocksStore(tmp_path, memory).close()


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path, memory: Memory) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreFailed, match="file"):
        RocksStore(tmp_path / "file", memory)
