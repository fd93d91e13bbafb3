"""The state directory: whether it can be written, has room, is fast enough, and is on a disk of this machine."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kapelle.cli.checks.case import Case, Finding, Verdict

MB: Final = 1024 * 1024
WRITE_MB: Final = 16
SPEED_MB_S: Final = 20
MOUNTS: Final = Path("/proc/mounts")
# Where locks and memory maps of RocksDB cannot be trusted, and where nothing outlives the machine.
NETWORK: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "glusterfs", "fuse.sshfs"})
MEMORY: Final = frozenset({"tmpfs", "ramfs"})


def state(case: Case) -> Iterator[Finding]:
    """All that there is to say of the directory, if one was given."""
    if case.state_dir is None:
        return
    path = case.state_dir
    there = next(parent for parent in (path, *path.absolute().parents) if parent.exists())
    try:
        speed_mb_s = write_speed_mb_s(there)
    except OSError as error:
        advice = "Use a directory that this user can write to"
        yield Finding("state directory", Verdict.WRONG, f"{path} is not writable: {error.strerror}", advice)
        return
    yield _room(there, case.free_mb)
    yield _speed(there, speed_mb_s)
    yield _kind(there)


def _room(path: Path, needed_mb: int) -> Finding:
    free_mb = shutil.disk_usage(path).free // MB
    if free_mb >= needed_mb:
        return Finding("space", Verdict.OK, f"{free_mb:,} MB are free in {path}")
    found = f"expected {needed_mb:,} MB to be free in {path}, but found {free_mb:,}"
    return Finding(
        "space", Verdict.WRONG, found, "Free some space, or move --state-dir: the tables are restored from Kafka"
    )


def _speed(path: Path, speed_mb_s: float) -> Finding:
    speed = f"{speed_mb_s:,.0f} MB/s, synced, in {path}"
    if speed_mb_s >= SPEED_MB_S:
        return Finding("write speed", Verdict.OK, speed)
    found = f"expected {SPEED_MB_S} MB/s or more, but found {speed}"
    return Finding(
        "write speed", Verdict.WARNING, found, "Put --state-dir on a faster disk: restoring takes long on this one"
    )


def _kind(path: Path) -> Finding:
    kind = filesystem(path)
    if kind in NETWORK:
        advice = "Put --state-dir on a disk of this machine: tables can always be restored from Kafka"
        return Finding("file system", Verdict.WRONG, f"{path} is on the network ({kind})", advice)
    if kind in MEMORY:
        advice = "This works, but after a reboot all tables are restored from Kafka"
        return Finding("file system", Verdict.WARNING, f"{path} is in memory ({kind})", advice)
    return Finding("file system", Verdict.OK, kind or "unknown")


def write_speed_mb_s(path: Path) -> float:
    """How fast a file is written and synced. It is gone afterwards."""
    block = os.urandom(MB)
    with tempfile.TemporaryFile(dir=path) as file:
        began = time.perf_counter()
        for _ in range(WRITE_MB):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return WRITE_MB / max(time.perf_counter() - began, 1e-6)


def filesystem(path: Path, mounts: Path = MOUNTS) -> str:
    """The kind of file system that a path is on; empty where the system does not tell."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    resolved = path.resolve()
    kinds = {Path(words[1].replace("\\040", " ")): words[2] for words in map(str.split, lines) if len(words) > 2}
    best = max((mount for mount in kinds if resolved.is_relative_to(mount)), key=lambda m: len(m.parts), default=None)
    return kinds[best] if best is not None else ""
