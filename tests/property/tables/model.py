"""A shard as anyone would write it with dictionaries, to compare the real one with."""

from copy import deepcopy
from typing import Any

from kapelle.processors.tables import Key

Rows = dict[Key, Any]


class ModelTables:
    """What can be seen of a shard."""

    def __init__(self) -> None:
        self.tables: dict[str, Rows] = {"stock": {}, "queue": {}, "seen": {}, "blobs": {}}
        self.floor: int | None = None
        self.timers: dict[tuple[str, str], int] = {}

    def put(self, table: str, key: Key, row: Any) -> None:
        if not self._is_below_floor(table, key):
            self.tables[table][key] = row

    def delete(self, table: str, key: Key) -> None:
        self.tables[table].pop(key, None)

    def drop_before(self, bucket: int) -> None:
        self.floor = bucket if self.floor is None else max(self.floor, bucket)
        seen = self.tables["seen"]
        self.tables["seen"] = {key: row for key, row in seen.items() if not self._is_below_floor("seen", key)}

    def range(self, table: str, start: Key, end: Key) -> list[tuple[Key, Any]]:
        # A tuple sorts before all that begin with it, which is just what a short bound means.
        return [(key, row) for key, row in sorted(self.tables[table].items()) if start <= key < end]

    def prefix(self, table: str, prefix: Key) -> list[tuple[Key, Any]]:
        return [(key, row) for key, row in sorted(self.tables[table].items()) if key[: len(prefix)] == prefix]

    def due(self, now_ms: int, limit: int) -> list[tuple[str, str, int]]:
        found = sorted((due_at_ms, *timer) for timer, due_at_ms in self.timers.items() if due_at_ms <= now_ms)
        return [(key, name, due_at_ms) for due_at_ms, key, name in found[:limit]]

    def _is_below_floor(self, table: str, key: Key) -> bool:
        return table == "seen" and self.floor is not None and isinstance(key[0], int) and key[0] < self.floor


class Model:
    """The tables now, and as they were at the last commit."""

    def __init__(self) -> None:
        self.now = ModelTables()
        self.committed = ModelTables()

    def commit(self) -> None:
        self.committed = deepcopy(self.now)

    def abort(self) -> None:
        self.now = deepcopy(self.committed)
