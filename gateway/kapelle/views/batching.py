"""The changes of one transaction, in as few statements as say the same.

While a view is rebuilt, a batch holds most of what ever happens to an instance: its row would be written once for each
event of it, with all its indexes. So what is put into a row is gathered, and the row is written once.

1. Puts without a guard: the later one counts, column by column; of a column that keeps what it has, the first one.
2. Puts with a guard, of the same columns: the greatest counts, and of equals the last one.
3. Columns that rise by a guard are put with that guard alone (see `changes`), so the two never meet in a column.
4. Labels are read off rows, so they come after all puts.
5. Entries of timelines are put once, all with the same columns (`entry_put`): they need not be gathered.
6. What looks at rows by other columns than their key waits for nothing: all that was gathered is written before it.
"""

import sqlite3
from typing import Final

from kapelle.views.changes import Cell, Change, Label, Put
from kapelle.views.writing import carry_out, label, put_statement

ROWS_MAX: Final = 50_000  # then they are written, so that a batch does not grow without end

TIMELINE: Final = "timeline"  # its keys are the places of events, of which each is folded once

Key = tuple[Cell, ...]


class Gathered:
    """What is to be put into one row."""

    __slots__ = ("cells", "first", "key")

    def __init__(self, change: Put) -> None:
        self.key = change.key
        self.cells = change.cells
        self.first = change.first

    def join(self, later: Put) -> None:
        """Put these, then those of a later change."""
        if later.first or self.first:
            self._join_first(later)
        else:
            self.cells = {**self.cells, **later.cells}

    def _join_first(self, later: Put) -> None:
        cells, first = {**self.cells, **later.cells}, {**self.first}
        for name, value in later.first.items():
            known = cells if name in cells else first
            if known.get(name) is None:
                known[name] = value
        self.cells = cells
        self.first = {name: value for name, value in first.items() if name not in cells}


class Batch:
    """Takes changes in their order. They are in the database when `flush` returns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: dict[tuple[str, str | None], dict[Key, Gathered]] = {}
        self._entries: list[Put] = []
        self._labels: list[Label] = []
        self._count = 0

    def add(self, change: Change) -> None:
        """Gather a change, or carry it out."""
        if type(change) is Put:
            if change.table == TIMELINE:
                self._entries.append(change)
            else:
                self._put(change)
        elif type(change) is Label:
            self._labels.append(change)
        else:
            self.flush()
            carry_out(self._connection, change)

    def flush(self) -> None:
        """Carry out all that was gathered."""
        statements: dict[str, list[Key]] = {}
        for (table, guard), rows in self._rows.items():
            for one in rows.values():
                text = put_statement(table, (tuple(one.key), tuple(one.cells), tuple(one.first)), guard)
                values = (*one.key.values(), *one.cells.values(), *one.first.values())
                statements.setdefault(text, []).append(values)
        for text, many in statements.items():
            self._connection.executemany(text, many)
        self._put_entries()
        label(self._connection, self._labels)
        self._rows.clear()
        self._labels.clear()
        self._count = 0

    def _put_entries(self) -> None:
        if self._entries:
            one = self._entries[0]
            text = put_statement(TIMELINE, (tuple(one.key), tuple(one.cells), ()), None)
            values = [(*one.key.values(), *one.cells.values()) for one in self._entries]
            self._connection.executemany(text, values)
            self._entries.clear()

    def _put(self, change: Put) -> None:
        rows = self._rows.setdefault((change.table, change.guard), {})
        key = tuple(change.key.values())
        known = rows.get(key)
        if known is None:
            rows[key] = Gathered(change)
            self._count += 1
            if self._count >= ROWS_MAX:
                self.flush()
        elif change.guard is None:
            known.join(change)
        else:
            self._rise(rows, key, known, change)

    def _rise(self, rows: dict[Key, Gathered], key: Key, known: Gathered, change: Put) -> None:
        """Of two that rise by a guard the greater one holds, if they are of the same columns."""
        guard = change.guard or ""
        before, after = known.cells.get(guard), change.cells.get(guard)
        if (
            not isinstance(before, int)
            or not isinstance(after, int)
            or known.first
            or change.first
            or known.cells.keys() != change.cells.keys()
        ):
            self.flush()
            self._put(change)
        elif after >= before:
            rows[key] = Gathered(change)
