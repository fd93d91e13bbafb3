"""Tables: typed rows in order, over one store for each process, with the changes of a cycle kept apart until commit."""

from kapelle.topology.tables.errors import (
    BadKey,
    BadRow,
    NotBucketed,
    RowCorrupt,
    RowTooLarge,
    RowVersionUnknown,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreLocked,
    TableError,
)
from kapelle.topology.tables.memory import MemoryStore
from kapelle.topology.tables.rocks import Memory, Peek, RocksStore
from kapelle.topology.tables.rows import ROW_BYTES_MAX
from kapelle.topology.tables.shard import ShardMeta, ShardState
from kapelle.topology.tables.store import Batch, Store

__all__ = [
    "ROW_BYTES_MAX",
    "BadKey",
    "BadRow",
    "Batch",
    "Memory",
    "MemoryStore",
    "NotBucketed",
    "Peek",
    "RocksStore",
    "RowCorrupt",
    "RowTooLarge",
    "RowVersionUnknown",
    "ShardMeta",
    "ShardState",
    "Store",
    "StoreClosed",
    "StoreCorrupt",
    "StoreError",
    "StoreFailed",
    "StoreLocked",
    "TableError",
]
