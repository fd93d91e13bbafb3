"""Writes are numbered: each takes its number into the store, so that the store can tell which of them it has.

    04 slot    the number of the write, eight bytes; the slot is the number modulo `SLOTS`, two bytes

The last `SLOTS` numbers must all be there. One that is missing in between tells that a file of RocksDB's write-ahead
log is gone, or ends too soon, although a later one is there. RocksDB does not notice that: it would give a state that
never was, with rows of later writes and without those of earlier ones.
"""

from pathlib import Path
from typing import Final, NamedTuple

from kapelle.topology.tables.errors import StoreCorrupt
from kapelle.topology.tables.rocks import Memory, RocksStore
from kapelle.topology.tables.store import Batch, Store

SLOTS: Final = 16_384  # more writes than are made while RocksDB writes one of its buffers to a file

_WRITES: Final = b"\x04"
_WRITES_END: Final = b"\x05"
_NUMBER_BYTES: Final = 8
_SLOT_BYTES: Final = 2


class Writes(NamedTuple):
    """Which writes a store has: the number of the last one, and the first that is missing before it, if any."""

    last: int
    missing: int | None = None


def write_row(number: int) -> tuple[bytes, bytes]:
    """The row that goes along with a write."""
    return _WRITES + (number % SLOTS).to_bytes(_SLOT_BYTES, "big"), number.to_bytes(_NUMBER_BYTES, "big")


def writes_in(store: Store) -> Writes:
    """Which writes a store has. They are numbered from 1."""
    numbers = {int.from_bytes(row, "big") for _, row in store.scan(_WRITES, _WRITES_END)}
    last = max(numbers, default=0)
    expected = range(max(last - SLOTS, 0) + 1, last + 1)
    return Writes(last, next((number for number in expected if number not in numbers), None))


def forget_writes(batch: Batch) -> None:
    """Put the removal of all numbers into a batch: those that come begin with 1 again."""
    batch.delete_range(_WRITES, _WRITES_END)


class NumberedStore(RocksStore):
    """A store that numbers its writes, and that is refused as damaged if one is missing before others."""

    def __init__(self, path: Path, memory: Memory, *, wait_s: float = 0.0) -> None:
        super().__init__(path, memory, wait_s=wait_s)
        self._number = 0
        damage = self._damage()
        if damage is not None:
            self.close()
            raise StoreCorrupt(path, damage)

    def _damage(self) -> str | None:
        """What is wrong with the numbers. As text: an error would hold the scan that met it, and that the directory."""
        try:
            self._number, missing = writes_in(self)
        except StoreCorrupt as error:
            return error.reason
        return None if missing is None else f"write {missing:,} is missing although later ones are there"

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:
        batch.put(*write_row(self._number + 1))
        super().write(batch, sync=sync)
        self._number += 1
