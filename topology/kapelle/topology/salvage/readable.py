"""Going on with a damaged directory of an embedded log, as far as it can be read.

    salvaged = salvage(topology, Path("kapelle-data/log"))

1. The directory is kept as it is, beside it: files with rows as links, since they never change, all others as copies.
2. If writes are missing at the end, what is before them is whole: each write was there as a whole or not at all.
3. If writes are missing before others, the write-ahead log is given up: what was written to files before it is whole.
4. If files with rows are gone or damaged, RocksDB makes a store of those that can be read, and the state is made again
   from the history that is left (`rebuild.py`).
5. What is left is noted as acknowledged, so that the next start finds nothing missing.
"""

import contextlib
import os
import shutil
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from kapelle.schemas import Framing
from kapelle.topology.build import Topology
from kapelle.topology.embedded.acknowledged import Noted, Notes
from kapelle.topology.embedded.errors import LogDamaged
from kapelle.topology.embedded.layout import open_directory
from kapelle.topology.embedded.partitions import partitions_of
from kapelle.topology.embedded.soundness import (
    Damage,
    Lost,
    Witness,
    assess,
    look,
    lost_beyond,
    lost_text,
    unreadable_files,
)
from kapelle.topology.partition_time import SYSTEM_CLOCK
from kapelle.topology.replay.errors import ReplayError
from kapelle.topology.salvage.rebuild import Rebuilt, rebuild
from kapelle.topology.tables import Memory, Peek, RocksStore, Store, StoreCorrupt
from kapelle.topology.tables.lock import LOCK_NAME, DirectoryLock
from kapelle.topology.tables.rocks import has_rows, repair
from kapelle.topology.tables.writes import writes_in

_ALL: Final = (b"", b"\xff" * 8)


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """What was wrong, what was given up, and where the damaged directory is kept."""

    damage: str
    kept: Path
    lost: tuple[Lost, ...]  # as far as it is known
    rebuilt: bool  # the tables were made again from history
    skipped: tuple[Lost, ...] = ()  # records that were there, but that nobody had folded yet

    def __str__(self) -> str:
        parts = [f"the log was salvaged, because {self.damage}"]
        if self.lost:
            parts.append(lost_text(self.lost))
        if self.rebuilt:
            parts.append("the tables were rebuilt from the remaining history")
        if self.skipped:
            parts.append(f"skipped before they were folded: {', '.join(map(str, self.skipped))}")
        parts.append("the effects of the lost records are lost too, and their numbers are assigned again")
        return f"{'; '.join(parts)}. The damaged directory is kept in {self.kept}"


class GivenUp(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when the directory was mended."""

    damage: Damage
    witness: Witness | None
    kept: Path
    must_rebuild: bool


def salvage(
    topology: Topology, path: Path, witness: Witness | None = None, *, framing: Framing | None = None
) -> Salvaged | None:
    """Make a directory usable again. None: nothing was wrong with it. `framing`: how values in it are framed."""
    lock = DirectoryLock(path)
    try:
        damage = assess(path, witness) or _unreadable(path)
        if damage is None:
            return None
        kept = keep(path)
        given_up = GivenUp(damage=damage, witness=witness, kept=kept, must_rebuild=_mend(path, damage))
    finally:
        lock.release()
    return _opened(topology, path, given_up, framing)


def read_all(store: Store) -> int:
    """Read every row, which checks every block. Returns how many rows there are, or raises `StoreCorrupt`."""
    return sum(1 for _ in store.scan(*_ALL))


def keep(path: Path) -> Path:
    """Keep a directory as it is, under a name of its own beside it."""
    aside = next(there for n in count(1) if not (there := path.with_name(f"{path.name}.damaged-{n}")).exists())
    for source in sorted(path.rglob("*")):
        target = aside / source.relative_to(path)
        if source.is_dir() or source.name == LOCK_NAME:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".sst":
            with contextlib.suppress(OSError):  # a file system without links: then a copy
                os.link(source, target)
                continue
        shutil.copy2(source, target)
    aside.mkdir(exist_ok=True)
    return aside


def _unreadable(path: Path) -> Damage | None:
    """Damage that only shows when everything is read."""
    if not has_rows(path):
        return None
    store = Peek(path, Memory())
    try:
        read_all(store)
    except StoreCorrupt as error:
        return unreadable_files(error)
    finally:
        store.close()
    return None


def _mend(path: Path, damage: Damage) -> bool:
    """Make the store one that can be opened and read. Returns whether its rows may be of different times."""
    rows = path / "rows"
    if damage.found is None:
        _point_to_manifest(rows)
    elif damage.found.missing is not None:
        for file in rows.glob("*.log"):
            file.unlink()
    try:
        if look(path, ()).missing is None and _unreadable(path) is None:
            return False
    except StoreCorrupt:
        pass  # RocksDB makes a store of what can be read
    repair(path, Memory())
    return True


def _point_to_manifest(rows: Path) -> None:
    """Where only CURRENT is damaged, the newest manifest is the right one."""
    manifests = sorted(rows.glob("MANIFEST-*"))
    named = b""
    with contextlib.suppress(FileNotFoundError):
        named = (rows / "CURRENT").read_bytes().strip()
    if manifests and named not in [manifest.name.encode() for manifest in manifests]:
        (rows / "CURRENT").write_text(f"{manifests[-1].name}\n")


def _opened(topology: Topology, path: Path, given_up: GivenUp, framing: Framing | None) -> Salvaged:
    """Open what was mended, make the state again if need be, and note what is left."""
    damage, rebuilt = given_up.damage, Rebuilt()
    store = RocksStore(path, Memory())
    try:
        about = open_directory(topology, store, SYSTEM_CLOCK())
        if given_up.must_rebuild:
            acknowledged = damage.noted.writes if damage.noted is not None else 0
            rebuilt = rebuild(topology, store, about.identity, acknowledged=acknowledged, framing=framing)
        ends = {place: partition.end for place, partition in partitions_of(topology, store).items()}
        writes = writes_in(store).last
        Notes(path, Noted(identity=about.identity, writes=writes, at_ms=SYSTEM_CLOCK(), ends=ends)).close()
    except (StoreCorrupt, ReplayError) as error:
        raise LogDamaged(
            f"Expected to salvage the log in {path}, but the remaining part cannot be read: {error}. It is kept in "
            f"{given_up.kept}: bring back a copy, or begin with an empty directory"
        ) from error
    finally:
        store.close()
    beyond = lost_beyond(ends, damage.noted, given_up.witness)
    gaps = [each for each in rebuilt.lost if each.place not in {lost.place for lost in beyond}]
    return Salvaged(
        damage=str(damage),
        kept=given_up.kept,
        lost=(*beyond, *gaps),
        rebuilt=given_up.must_rebuild,
        skipped=rebuilt.skipped,
    )
