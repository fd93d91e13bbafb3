"""Is all there that was acknowledged? Asked before a directory is opened, and answered without changing anything.

Three witnesses are heard: what the store itself has (the numbers of its writes, the ends of its places), what was noted
beside it when writes were acknowledged, and, if there is one, how far a view has read.

    the store has more than was noted     a torn or unacknowledged last write: nothing is wrong
    the store has less than was noted     acknowledged writes are lost
    a view has read more                  the same; or the log was replaced by an older copy of it
    a view has read another log           the log was replaced
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kapelle.topology.embedded.acknowledged import FILE_NAME, Noted, NotesUnreadable, read_notes
from kapelle.topology.embedded.errors import LogDamaged, LogReplaced
from kapelle.topology.embedded.layout import Chunks, about
from kapelle.topology.log import Place
from kapelle.topology.tables import Memory, Peek, StoreCorrupt
from kapelle.topology.tables.rocks import MEMORY_BYTES_MIN, has_rows
from kapelle.topology.tables.writes import writes_in

PLACES_TOLD: Final = 5


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has read a log: which one, and how far."""

    who: str
    identity: str
    ends: Mapping[Place, int]


class Lost(msgspec.Struct, frozen=True):
    """Records of one place, from the first offset to the one before the end."""

    place: Place
    first: int
    end: int

    def __str__(self) -> str:
        return f"{self.place} offsets {self.first} to {self.end - 1}"


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a store has."""

    identity: str | None = None
    writes: int = 0
    missing: int | None = None  # the number of a write before the last that is not there
    ends: Mapping[Place, int] = {}


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a directory."""

    what: str
    noted: Noted | None = None
    found: Contents | None = None  # None: the store cannot be opened
    lost: tuple[Lost, ...] = ()
    is_replaced: bool = False

    @property
    def records(self) -> int:
        return sum(lost.end - lost.first for lost in self.lost)

    def __str__(self) -> str:
        return "; ".join(part for part in (self.what, self._writes(), lost_text(self.lost)) if part)

    def _writes(self) -> str:
        if self.noted is None:
            return ""
        at = datetime.fromtimestamp(self.noted.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        acknowledged = f"{self.noted.writes:,} writes were acknowledged, the last one at {at}"
        if self.found is None:
            return f"{acknowledged}; how many of them can be read is not known"
        count = self.noted.writes - self.found.writes
        if count <= 0:
            return ""
        return f"{acknowledged}, and {self.found.writes:,} were found, so the last {count:,} are lost"


def lost_text(lost: tuple[Lost, ...]) -> str:
    """The records that are lost, for people: those of the first places one by one."""
    if not lost:
        return ""
    count = sum(each.end - each.first for each in lost)
    more = f", and {len(lost) - PLACES_TOLD} more partitions" if len(lost) > PLACES_TOLD else ""
    return f"{count:,} records are lost: {', '.join(map(str, lost[:PLACES_TOLD]))}{more}"


def check(path: Path, witness: Witness | None = None) -> None:
    """Refuse a directory in which acknowledged writes are missing. The caller has its lock."""
    damage = assess(path, witness)
    if damage is None:
        return
    kind = LogReplaced if damage.is_replaced else LogDamaged
    raise kind(
        f"Expected the log in {path} to have everything that was acknowledged, but {damage}. Nothing was changed. "
        "Restore the whole directory from a copy, or continue without the lost records: "
        f"`kapelle dev --data {path.parent} --salvage`, which keeps a copy of the damaged directory"
    )


def assess(path: Path, witness: Witness | None = None) -> Damage | None:
    """What is wrong with a directory; None if nothing is. The caller has its lock."""
    try:
        noted = read_notes(path)
        unreadable = ""
    except NotesUnreadable as error:
        noted, unreadable = None, str(error)
    places = [*(noted.ends if noted else ()), *(witness.ends if witness else ())]
    try:
        contents = look(path, places)
    except StoreCorrupt as error:
        return unreadable_files(error, noted)
    wrong = _wrong(contents, noted, unreadable) or _seen_more(contents, witness)
    if wrong is None:
        return None
    lost = lost_beyond(contents.ends, noted, witness)
    return msgspec.structs.replace(wrong, noted=noted, found=contents, lost=lost)


def unreadable_files(error: StoreCorrupt, noted: Noted | None = None) -> Damage:
    """The damage of files that RocksDB cannot read. It says why in several lines."""
    return Damage(what=f"its files are damaged: {' '.join(error.reason.split()).rstrip('.')}", noted=noted)


def look(path: Path, places: Iterable[Place]) -> Contents:
    """What the store in a directory has. Raises `StoreCorrupt` if it cannot be opened."""
    if not has_rows(path):
        return Contents()
    store = Peek(path, Memory(MEMORY_BYTES_MIN))
    try:
        made = about(store)
        writes = writes_in(store)
        return Contents(
            identity=made.identity if made else None,
            writes=writes.last,
            missing=writes.missing,
            ends={place: Chunks(place, store).end() for place in places},
        )
    finally:
        store.close()


def _wrong(contents: Contents, noted: Noted | None, unreadable: str) -> Damage | None:
    """What the store and the notes say."""
    if noted is None:
        if contents.writes == 0 and not unreadable:
            return None  # a new directory, or one of a release that made no notes
        why = f"cannot be read: {unreadable}" if unreadable else "is missing"
        return Damage(what=f"the file {FILE_NAME}, which records what was acknowledged, {why}")
    if noted.writes == 0:
        return None
    if contents.identity is None:
        return Damage(what="its rows are gone")
    if contents.identity != noted.identity:
        return Damage(
            what=f"its rows are of another log: of {contents.identity}, not of {noted.identity}", is_replaced=True
        )
    if contents.missing is not None:
        return Damage(what=f"write {contents.missing:,} is missing although later ones are there")
    if contents.writes < noted.writes:
        return Damage(what="its end is missing")
    return None


def _seen_more(contents: Contents, witness: Witness | None) -> Damage | None:
    """What a view says that has read the log."""
    if witness is None or not any(witness.ends.values()):
        return None
    if contents.identity != witness.identity:
        there = "there is no log" if contents.identity is None else f"it is the log {contents.identity}"
        return Damage(what=f"{witness.who} has read the log {witness.identity}, and {there}", is_replaced=True)
    ahead = [place for place, end in witness.ends.items() if end > contents.ends[place]]
    if ahead:
        return Damage(what=f"{witness.who} has read more than it has: is it an older copy?")
    return None


def lost_beyond(stored: Mapping[Place, int], noted: Noted | None, witness: Witness | None) -> tuple[Lost, ...]:
    """What was noted or read beyond these ends."""
    ends: dict[Place, int] = {}
    for known in (noted, witness):
        for place, end in known.ends.items() if known is not None else ():
            ends[place] = max(end, ends.get(place, 0))
    return tuple(
        Lost(place, begin, end) for place, end in sorted(ends.items()) if end > (begin := stored.get(place, 0))
    )
