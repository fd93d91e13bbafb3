"""Writes are numbered: each takes its number into the store, so that the store can tell which of them it has.

    04 slot    the number of the write, eight bytes; the slot is the number modulo `SLOTS`, two bytes

The last `SLOTS` numbers must all be there. One that is missing in between tells that a file of RocksDB's write-ahead
log is gone although a later one is there: RocksDB itself does not notice that.
"""

from typing import Final, NamedTuple

from kapelle.topology.tables import Batch, Store

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
