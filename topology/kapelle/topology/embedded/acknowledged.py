"""The end of the acknowledged writes: a small file beside the store, which the next start compares with the store.

RocksDB reads its write-ahead log up to the first damage and takes that for the end. Only somebody who knows how far it
went can tell a torn last write, which nobody was told of, from the loss of what others rely on. So after each synced
write, and before anybody is told of it, its number and the end of every place are noted.

    header    magic, CRC, length, msgpack: the log's identity and the places, in the order of their ends
    slot      magic, CRC, number of the write, time, an end for each place; two slots, written in turns

A note is handed to the system and not forced to the disk each time: it survives the end of the process, and a loss of
power may take the notes of the last `SYNC_EVERY_S` seconds. They then say too little, never too much: what a note tells
was synced before.
"""

import os
import struct
import time
import zlib
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kapelle.topology.embedded.errors import DirectoryTaken
from kapelle.topology.log import Place
from kapelle.topology.tables import StoreFailed

FILE_NAME: Final = "acknowledged"
SYNC_EVERY_S: Final = 5.0

_MAGIC: Final = b"kapack1\n"
_HEAD: Final = struct.Struct(">8sII")  # magic, CRC, length of what follows
_SLOT: Final = struct.Struct(">8sIQQ")  # magic, CRC, number of the write, time
_PAGE_BYTES: Final = 4096  # nothing that is written later shares a sector with what was written before
_END_BYTES: Final = 8


class Header(msgspec.Struct, frozen=True, array_like=True):
    """What the slots are about."""

    identity: str
    places: list[tuple[str, int]]


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """What was acknowledged: all writes up to a number, and all records before the ends."""

    identity: str
    writes: int
    at_ms: int
    ends: dict[Place, int]


class NotesUnreadable(Exception):
    """The file is there and cannot be read."""


class Notes:
    """The file while it is written, by the one process that has the directory."""

    def __init__(self, directory: Path, first: Noted) -> None:
        """Begin a new file. What it says must be on the disk already."""
        self._path = directory / FILE_NAME
        self._directory = directory
        self._numbers = {place: number for number, place in enumerate(first.ends)}
        self._ends = array("Q", first.ends.values())
        header = msgspec.msgpack.encode(Header(first.identity, list(first.ends)))
        self._begins = _page(_HEAD.size + len(header))
        self._size = _page(_SLOT.size + _END_BYTES * len(self._ends))
        slot = self._slot(first.writes, first.at_ms)
        head = _HEAD.pack(_MAGIC, zlib.crc32(header), len(header)) + header
        content = head.ljust(self._begins, b"\0") + 2 * slot.ljust(self._size, b"\0")
        try:
            self._file = _replaced(self._path, content)
        except OSError as error:
            raise StoreFailed(directory, str(error)) from error
        self._inode = os.fstat(self._file).st_ino
        self._synced_at_s = time.monotonic()

    def note(self, writes: int, at_ms: int, ends: Mapping[Place, int]) -> None:
        """Note a write that is synced, and the ends of the places that it made longer."""
        for place, end in ends.items():
            self._ends[self._numbers[place]] = end
        try:
            os.pwrite(self._file, self._slot(writes, at_ms), self._begins + writes % 2 * self._size)
            now_s = time.monotonic()
            if now_s - self._synced_at_s > SYNC_EVERY_S:
                self._synced_at_s = now_s
                os.fsync(self._file)
            there = self._path.stat().st_ino == self._inode
        except FileNotFoundError:
            there = False
        except OSError as error:
            raise StoreFailed(self._directory, str(error)) from error
        if not there:
            raise DirectoryTaken(self._directory)

    def close(self) -> None:
        os.fsync(self._file)
        os.close(self._file)

    def _slot(self, writes: int, at_ms: int) -> bytes:
        ends = self._ends.tobytes()
        crc = zlib.crc32(ends, zlib.crc32(struct.pack(">QQ", writes, at_ms)))
        return _SLOT.pack(_MAGIC, crc, writes, at_ms) + ends


def read_notes(directory: Path) -> Noted | None:
    """What was noted last; None if there is no file. Raises `NotesUnreadable`."""
    try:
        content = (directory / FILE_NAME).read_bytes()
    except FileNotFoundError:
        return None
    if len(content) < _HEAD.size:
        raise NotesUnreadable("it is too short")
    magic, crc, length = _HEAD.unpack_from(content)
    packed = content[_HEAD.size : _HEAD.size + length]
    if magic != _MAGIC or zlib.crc32(packed) != crc:
        raise NotesUnreadable("its header is damaged")
    header = msgspec.msgpack.decode(packed, type=Header)
    begins = _page(_HEAD.size + length)
    slots = [_read(content[begins:], header, number) for number in range(2)]
    newest = max((slot for slot in slots if slot is not None), key=lambda slot: slot.writes, default=None)
    if newest is None:
        raise NotesUnreadable("both of its slots are damaged")
    return newest


def _read(slots: bytes, header: Header, number: int) -> Noted | None:
    """One slot; None if it is torn or damaged."""
    size = _SLOT.size + _END_BYTES * len(header.places)
    slot = slots[number * _page(size) :][:size]
    if len(slot) < size:
        return None
    magic, crc, writes, at_ms = _SLOT.unpack_from(slot)
    if magic != _MAGIC or zlib.crc32(slot[_SLOT.size :], zlib.crc32(struct.pack(">QQ", writes, at_ms))) != crc:
        return None
    ends = array("Q", slot[_SLOT.size :])
    places = [Place(*place) for place in header.places]
    return Noted(identity=header.identity, writes=writes, at_ms=at_ms, ends=dict(zip(places, ends, strict=True)))


def _replaced(path: Path, content: bytes) -> int:
    """Put a new file in the place of the old one, so that there is always one of them. Returns it, open."""
    new = path.with_name(f"{path.name}.new")
    file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.pwrite(file, content, 0)
        os.fsync(file)
        new.rename(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except BaseException:
        os.close(file)
        raise
    return file


def _page(size_bytes: int) -> int:
    """The size in whole pages."""
    return -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES
