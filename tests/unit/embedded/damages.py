"""What can happen to the files of an embedded log: each damage takes the directory of a log and spoils it."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path], None]


def newest(log: Path, pattern: str) -> Path:
    return max((log / "rows").glob(pattern), key=lambda path: (path.stat().st_mtime_ns, path.name))


def wal(log: Path) -> Path:
    return max((log / "rows").glob("*.log"), key=lambda path: int(path.stem))


def flip(path: Path, at: int, mask: int = 0xFF) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= mask
    path.write_bytes(content)


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def middle(path: Path) -> int:
    return path.stat().st_size // 2


def empty(log: Path) -> None:
    shutil.rmtree(log)
    log.mkdir()


# The log of a process that was killed: files with rows, and a write-ahead log with later writes.
DAMAGES: dict[str, Damage] = {
    "a flipped byte in the write-ahead log": lambda log: flip(wal(log), middle(wal(log))),
    "the write-ahead log cut in half": lambda log: os.truncate(wal(log), middle(wal(log))),
    "an empty write-ahead log": lambda log: os.truncate(wal(log), 0),
    "zeros in the write-ahead log": lambda log: overwrite(wal(log), middle(wal(log)), bytes(4096)),
    "no write-ahead log": lambda log: wal(log).unlink(),
    "a file with rows gone": lambda log: newest(log, "*.sst").unlink(),
    "a file with rows cut": lambda log: os.truncate(newest(log, "*.sst"), 500),
    "no manifest": lambda log: newest(log, "MANIFEST-*").unlink(),
    "a manifest cut": lambda log: os.truncate(newest(log, "MANIFEST-*"), 20),
    "no CURRENT": lambda log: (log / "rows" / "CURRENT").unlink(),
    "rubbish in CURRENT": lambda log: overwrite(log / "rows" / "CURRENT", 0, b"rubbish"),
    "no rows": lambda log: shutil.rmtree(log / "rows"),
    "an empty directory of rows": lambda log: empty(log / "rows"),
    "no note of what was acknowledged": lambda log: (log / "acknowledged").unlink(),
    "rubbish in the note": lambda log: overwrite(log / "acknowledged", 0, random.Random(1).randbytes(4096)),
    "an empty note": lambda log: os.truncate(log / "acknowledged", 0),
}
