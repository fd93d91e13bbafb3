"""The changes of one transaction, in as few statements as say the same.

While a view is rebuilt, a batch holds most of what ever happens to an instance: its row would be written once for each
event of it, with all its indexes. So what is put into a row is gathered, and the row is written once.

1. Of what is put into a column the last counts; of a column that keeps what it has, the first.
2. Of what a run stands at the highest counts, and of equals the last; for its instance, that of its latest run.
3. What is told of an instance at one time is one row, however many batches tell it.
4. Labels are read off rows, so they come after all puts.
5. What looks at the rows of a table by other columns than their key waits for nothing: what was gathered for that table
   is written before it; and all there is, before what labels are read off changes otherwise.
6. Steps below composite steps are counted when all else is written: what was gathered of all of them is added up, and
   each row of counts is written once.
7. Rows are erased before later rows of their table are written, and the same rows once: each round of a loop erases
   what its steps waited for, and a statement for each round would keep the view behind the engine.
"""

import sqlite3
from collections import defaultdict
from typing import Final

import msgspec

from kapelle.views.leaves import Descents, Leaves, write_leaves
from kapelle.views.projection.news import run_news
from kapelle.views.rows import Cells, Key, Line, Page, Run
from kapelle.views.schema import grade_of
from kapelle.views.statements import Label, Names, amend, erase, forget, put_statement, write_labels, write_told

ROWS_MAX: Final = 50_000  # then they are written, so that a batch does not grow without end
FORM_FIRST: Final = "/"  # between the names of columns
FORM_RISES: Final = "^"
READ_BY_LABELS: Final = frozenset({"declared_tags", "instances"})


class PendingRow(msgspec.Struct, gc=False):
    """The values to write into one row. With a grade below 0, no column rises."""

    cells: Cells
    first: Cells
    grade: int = -1
    risen: Key = ()

    def join(self, cells: Cells, first: Cells) -> None:
        """Put what comes later."""
        self.cells.update(cells)
        for name, value in first.items():
            known = self.cells if name in self.cells else self.first
            if known.get(name) is None:
                known[name] = value
        if not self.first.keys().isdisjoint(cells):
            self.first = {name: value for name, value in self.first.items() if name not in cells}


class Batch:
    """The rows of the view, as `projection` changes them. They are in the database when `flush` returns."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._tables: defaultdict[str, dict[Key, PendingRow]] = defaultdict(dict)
        self._erased: defaultdict[str, dict[tuple[Names, Key], None]] = defaultdict(dict)
        self._count = 0
        self._standings: dict[Run, tuple[int, str]] = {}
        self._told: defaultdict[Page, list[Line]] = defaultdict(list)
        self._labels: list[Label] = []
        self._leaves: Leaves = {}
        self._descents: Descents = {}
        self._news: set[str] = set()
        self._moved: set[tuple[str, int | None]] = set()  # instances of which something is written

    def all_news(self) -> set[str]:
        """Of what waiters may want to hear. Each event of a run is told in its timeline, so that is enough of runs."""
        return self._news | {run_news(workflow_id, instance_id) for workflow_id, instance_id in self._moved}

    # As `Rows` --------------------------------------------------------------------------------------------------------

    def put(self, table: str, key: Key, cells: Cells, first: Cells | None = None) -> None:
        row = self._tables[table].get(key)
        if row is None:
            if self._count >= ROWS_MAX:
                self.flush()
            self._tables[table][key] = PendingRow(cells, first or {})
            self._count += 1
        elif first or row.first:
            row.join(cells, first or {})
        else:
            row.cells.update(cells)

    def stand(self, run: Run, rank: int, status: str) -> None:
        known = self._standings.get(run)
        if known is None or rank >= known[0]:
            self._standings[run] = rank, status

    def tell(self, page: Page, line: Line) -> None:
        self._told[page].append(line)

    def label(self, instance: tuple[str, int], created_at_ms: int | None, version: int, labels: Names) -> None:
        self._labels.append((instance, created_at_ms, version, labels))

    def leaf(self, at: tuple[str, int, str], cells: Cells) -> None:
        of_instance = self._leaves.setdefault(at[:2], {})
        known = of_instance.get(at[2])
        if known is None:
            of_instance[at[2]] = dict(cells)
        else:
            known.update(cells)

    def descend(self, instance: tuple[str, int], ancestors: str, bucket: str) -> None:
        self._descents[instance] = ancestors, bucket

    def news(self, text: str) -> None:
        self._news.add(text)

    def amend(self, table: str, where: Cells, cells: Cells) -> None:
        self._write_before(table)
        amend(self._connection, table, where, cells)

    def erase(self, table: str, where: Cells) -> None:
        if self._tables.get(table) or table in READ_BY_LABELS:
            self._write_before(table)
        self._erased[table][tuple(where), tuple(where.values())] = None

    def forget(self, workflow_id: str) -> None:
        self.flush()
        forget(self._connection, workflow_id)

    # Writing ----------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write all that was gathered."""
        for (workflow_id, instance_id, run_id), (rank, status) in self._standings.items():
            self._rise("runs", (workflow_id, instance_id, run_id), rank, (status,))
            self._rise("instances", (workflow_id, instance_id), grade_of(run_id, rank), (run_id, status))
        for table in {**self._tables, **self._erased}:
            self._write(table)
        write_told(self._connection, self._told)
        write_labels(self._connection, self._labels)
        write_leaves(self._connection, self._descents, self._leaves)
        self._standings.clear()
        self._moved.update(page[:2] for page in self._told)
        self._told.clear()
        self._labels.clear()
        self._leaves.clear()
        self._descents.clear()
        self._count = 0

    def _rise(self, table: str, key: Key, grade: int, values: Key) -> None:
        row = self._tables[table].get(key)
        if row is None:
            self._tables[table][key] = PendingRow({}, {}, grade, values)
        elif grade >= row.grade:
            row.grade, row.risen = grade, values

    def _write_before(self, table: str) -> None:
        if table in READ_BY_LABELS:
            self.flush()
        else:
            self._write(table)

    def _write(self, table: str) -> None:
        for names, values in self._erased.pop(table, {}):
            erase(self._connection, table, dict(zip(names, values, strict=True)))
        rows = self._tables.pop(table, {})
        statements: dict[tuple[str, ...], tuple[str, list[Key]]] = {}
        for key, row in rows.items():
            cells, first, rises = row.cells, row.first, row.grade >= 0
            form = (*cells, FORM_FIRST, *first, FORM_RISES) if rises else (*cells, FORM_FIRST, *first)
            statement = statements.get(form)
            if statement is None:
                statement = statements[form] = put_statement(table, tuple(cells), tuple(first), rises=rises), []
            values = (*key, *cells.values(), *first.values())
            statement[1].append((*values, row.grade, *row.risen) if rises else values)
        for text, many in statements.values():
            self._connection.executemany(text, many)
