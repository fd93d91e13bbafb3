"""The store on disk: RocksDB in one directory, within a fixed budget of memory.

Writes go to the write-ahead log and survive the end of the process at once. They survive a loss of power when they are
synced: the Kafka runtime need not, since the changelog repairs what is lost; the embedded runtime must. A log whose end
is torn is read up to the tear, so the store is then as it was after some earlier batch, never between two.
"""

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DbClosedError,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteBufferManager,
)

from kapelle.topology.tables.descriptors import open_files_max
from kapelle.topology.tables.errors import StoreClosed, StoreCorrupt, StoreError, StoreFailed, StoreLocked
from kapelle.topology.tables.lock import DirectoryLock
from kapelle.topology.tables.store import Batch

MB: Final = 1024 * 1024
MEMORY_BYTES_DEFAULT: Final = 256 * MB
MEMORY_BYTES_MIN: Final = 8 * MB
BLOOM_BITS: Final = 10  # one read in a hundred looks into a file in vain

Scan = Iterator[tuple[bytes, bytes]]


class Sizes(NamedTuple):
    """How large a store is. RocksDB knows its rows only about."""

    rows: int
    disk_bytes: int
    memory_bytes: int


class Extent(NamedTuple):
    """What some rows come to, keys and values as they are before compression; and where the rest begins, if any."""

    rows: int
    size_bytes: int
    rest: bytes | None


class Memory:
    """How much memory the stores of this process may take together: blocks, indexes, filters and write buffers.

    Write buffers are charged to the cache, so the sum of all is bounded by `limit_bytes`. Beyond it come only what
    scans pin, and the buffers of compactions under way.
    """

    def __init__(self, limit_bytes: int = MEMORY_BYTES_DEFAULT) -> None:
        if limit_bytes < MEMORY_BYTES_MIN:
            raise ValueError(
                f"Expected at least {MEMORY_BYTES_MIN} bytes of memory for tables, but found {limit_bytes}"
            )
        self.limit_bytes = limit_bytes
        self.write_buffer_bytes = limit_bytes // 8
        # Not the LRU kind: each of its many shards must hold the largest filter, or reads it again for every lookup.
        self.cache = Cache.new_hyper_clock_cache(limit_bytes, 0)
        self.write_buffers = WriteBufferManager.new_write_buffer_manager_with_cache(limit_bytes // 4, False, self.cache)

    @property
    def used_bytes(self) -> int:
        return self.cache.get_usage()


class RocksStore:
    """A store in a directory, which one process has at a time.

    `wait_s` is how long to wait for another process to leave it, as when one takes over from another. `check` looks at
    the directory before RocksDB opens it, and may refuse it: opening a damaged one deletes what is left of its log.
    """

    def __init__(
        self,
        path: Path,
        memory: Memory,
        *,
        wait_s: float = 0.0,
        check: Callable[[Path], None] | None = None,
    ) -> None:
        self._lock: DirectoryLock | None = DirectoryLock(path, wait_s=wait_s)
        try:
            if check is not None:
                check(path)
            self._hold(path, memory, _opened(path, memory))
        except BaseException:
            self._lock.release()
            raise

    def _hold(self, path: Path, memory: Memory, rocks: Rdict) -> None:
        self.path = path
        self._memory = memory
        self._rocks = rocks
        # The same rows, without a search for the column family by its name at every call.
        self._rows = self._rocks.get_column_family("default")
        self._get = self._rows.get
        self._scans: set[weakref.ref[Scan]] = set()
        self._closed = False
        self._measuring = threading.Lock()

    def get(self, key: bytes, /) -> bytes | None:
        try:
            value: bytes | None = self._get(key)
        except Exception as error:
            raise _translated(self.path, error) from error
        return value

    def scan(self, start: bytes, end: bytes, /, *, reverse: bool = False) -> Scan:
        if start >= end:
            return iter(())
        options = ReadOptions()
        # The bound below is not set: in rocksdict 0.3.29 `set_iterate_lower_bound` sets the one above.
        options.set_iterate_upper_bound(end)
        try:
            rows = self._rows.iter(options)
            if reverse:
                rows.seek_to_last()
            else:
                rows.seek(start)
        except Exception as error:
            raise _translated(self.path, error) from error
        scan = self._backward(rows, start, options) if reverse else self._forward(rows, options)
        self._scans.add(weakref.ref(scan, self._scans.discard))
        return scan

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:
        try:
            self._rocks.write(_written(batch))
            if sync:
                # Not by an option of the write, which would stop all other Python threads until the disk has answered.
                self._rocks.flush_wal(True)
        except Exception as error:
            raise _translated(self.path, error) from error

    def sizes(self) -> Sizes:
        """How large the store is. May be asked from another thread."""
        try:
            rows = self._rocks.property_int_value("rocksdb.estimate-num-keys") or 0
        except Exception as error:
            raise _translated(self.path, error) from error
        return Sizes(rows, _size_bytes(self.path / "rows"), self._memory.used_bytes)

    def measure(self, start: bytes, end: bytes, rows_max: int) -> Extent:
        """What is stored from `start` to `end`, up to so many rows. May be asked from another thread."""
        options = ReadOptions()
        options.set_iterate_upper_bound(end)
        # Whoever only counts must not push out what the tables need.
        options.fill_cache(False)  # type: ignore[call-arg]  # the stub of rocksdict 0.3.29 lacks its argument
        # A store is not closed under somebody who reads it in another thread, nor read by him afterwards.
        with self._measuring:
            if self._closed:
                raise StoreClosed(self.path)
            try:
                return _measured(self._rows.iter(options), start, rows_max)
            except Exception as error:
                raise _translated(self.path, error) from error

    def close(self) -> None:
        """Leave the directory to others. Scans under way end here."""
        with self._measuring:
            if self._closed:
                return
            self._closed = True
        # A scan keeps the database open, and with it the directory: end those that somebody still holds.
        for reference in list(self._scans):
            scan = reference()
            if scan is not None:
                scan.close()  # type: ignore[attr-defined]  # scans are generators
        try:
            self._close_both()
        except Exception as error:
            raise _translated(self.path, error) from error
        finally:
            if self._lock is not None:
                self._lock.release()

    def _close_both(self) -> None:
        """Closing writes what is in memory, which fails on damaged files. The other handle is closed all the same."""
        try:
            self._rows.close()
        finally:
            self._rocks.close()

    # A scan holds its options although it never reads them: rocksdict's iterator points into their memory for its
    # bound, and does not keep them alive.

    def _forward(self, rows: RdictIter, _options: ReadOptions) -> Scan:
        valid, key, value, step = rows.valid, rows.key, rows.value, rows.next
        try:
            while valid():
                yield key(), value()
                step()
            rows.status()  # a damaged block ends a scan like the end of the range does; only this tells them apart
        except Exception as error:
            raise _translated(self.path, error) from error

    def _backward(self, rows: RdictIter, start: bytes, _options: ReadOptions) -> Scan:
        try:
            while rows.valid():
                key = rows.key()
                if key < start:
                    return
                yield key, rows.value()
                rows.prev()
            rows.status()
        except Exception as error:
            raise _translated(self.path, error) from error


class Peek(RocksStore):
    """The rows that the next start would find in a directory. Whoever peeks has its lock, and changes nothing in it."""

    def __init__(self, path: Path, memory: Memory) -> None:
        self._lock = None
        self._hold(path, memory, _opened(path, memory, AccessType.read_only()))

    def write(self, batch: Batch, /, *, sync: bool = False) -> None:  # noqa: ARG002
        raise StoreFailed(self.path, "it is open for reading only")


def has_rows(path: Path) -> bool:
    """Whether a directory has a store. Raises `StoreCorrupt` if it has parts of one."""
    rows = path / "rows"
    if (rows / "CURRENT").exists():
        return True
    if any(rows.glob("*.sst")) or any(rows.glob("*.log")):
        raise StoreCorrupt(path, "the file CURRENT is missing, but there are files with rows")
    return False


def repair(path: Path, memory: Memory) -> None:
    """Make a store of the files with rows that can be read. RocksDB puts the others into `rows/lost`."""
    try:
        Rdict.repair(str(path / "rows"), _options(memory))
    except Exception as error:
        raise _translated(path, error) from error


def _opened(path: Path, memory: Memory, access: AccessType | None = None) -> Rdict:
    has_rows(path)  # where parts are left, RocksDB would make a new, empty database and delete the files of the old one
    try:
        options = _options(memory)
        # Unless the column family is named, rocksdict opens it with the options of the last time and a cache of 8 MB.
        return Rdict(str(path / "rows"), options, {"default": options}, access or AccessType.read_write())
    except Exception as error:
        raise _translated(path, error) from error


def _measured(rows: RdictIter, start: bytes, rows_max: int) -> Extent:
    valid, key, value, step = rows.valid, rows.key, rows.value, rows.next
    count = size_bytes = 0
    rows.seek(start)
    while valid():
        if count == rows_max:
            return Extent(count, size_bytes, key())
        size_bytes += len(key()) + len(value())
        count += 1
        step()
    rows.status()
    return Extent(count, size_bytes, None)


def _size_bytes(directory: Path) -> int:
    """What the files take. RocksDB tells of those with sorted rows only, and deletes some while we look."""
    size_bytes = 0
    with os.scandir(directory) as files:
        for file in files:
            with suppress(FileNotFoundError):
                size_bytes += file.stat().st_size
    return size_bytes


def _options(memory: Memory) -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(memory.cache)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    blocks.set_bloom_filter(BLOOM_BITS, False)
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_manager(memory.write_buffers)
    options.set_write_buffer_size(memory.write_buffer_bytes)
    options.set_max_write_buffer_number(3)
    # A filter for write buffers too: most keys are not in them, and to search them costs as much as a file.
    options.set_memtable_prefix_bloom_ratio(0.05)
    options.set_memtable_whole_key_filtering(True)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_max_background_jobs(2)
    options.set_max_open_files(open_files_max())
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(4 * MB)
    options.set_stats_dump_period_sec(0)
    return options


def _written(batch: Batch) -> WriteBatch:
    written = WriteBatch(raw_mode=True)
    for start, end in batch.ranges:
        if start < end:
            written.delete_range(start, end)
    put, delete = written.put, written.delete
    for key, value in batch.rows.items():
        if value is None:
            delete(key)
        else:
            put(key, value)
    return written


def _translated(path: Path, error: Exception) -> StoreError:
    """What an error of RocksDB means. It comes as text only: the kind, a colon, the particulars."""
    text = str(error)
    if isinstance(error, DbClosedError):
        return StoreClosed(path)
    if text.startswith("Corruption") or "No such file" in text:
        return StoreCorrupt(path, text)
    if "lock" in text.lower():
        return StoreLocked(path, text)
    return StoreFailed(path, text)
