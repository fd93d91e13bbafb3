"""The statements that change rows: one for each form that a change may have, made once and kept."""

import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from kapelle.views.rows import Cell, Cells, Line, Page
from kapelle.views.schema import KEYS, RISING
from kapelle.views.schema_schedules import FORGET_SCHEDULES

STATEMENTS_KEPT: Final = 1_024
Names = tuple[str, ...]
# An instance, when it was created if that is known, its version, and its labels.
Label = tuple[tuple[str, int], int | None, int, tuple[str, ...]]

# All names in statements are those of our own tables: values are bound, never written into them.
FORGET: Final = (
    """UPDATE workflows SET is_deleted = 1, active_version = 0, latest_version = 0, created_at_ms = NULL,
    activated_at_ms = NULL, activated_by = NULL WHERE workflow_id = ?""",
    # The rows stay: the streams of their runs may be folded later, and must find them as they would have before.
    "UPDATE instances SET created_at_ms = NULL WHERE workflow_id = ? AND created_at_ms IS NOT NULL",
    "DELETE FROM labels WHERE workflow_id = ?",
    "DELETE FROM declared_tags WHERE workflow_id = ?",
    *FORGET_SCHEDULES,
)
LABEL: Final = "INSERT OR IGNORE INTO labels VALUES (?1, ?2, ?3, ?4)"
LABEL_LATER: Final = """INSERT OR IGNORE INTO labels SELECT ?1, created_at_ms, workflow_id, instance_id FROM instances
    WHERE ?2 IS NULL AND workflow_id = ?3 AND instance_id = ?4"""
DECLARED: Final = "SELECT tag FROM declared_tags WHERE workflow_id = ? AND version IN (0, ?)"
TELL: Final = """INSERT INTO timeline VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET lines = timeline.lines || excluded.lines"""

_lines: Final = msgspec.json.Encoder().encode_lines


def write_told(connection: sqlite3.Connection, timelines: Mapping[Page, Sequence[Line]]) -> None:
    """Add entries to timelines. An event is folded once, and those of a partition in order: so each has its place."""
    connection.executemany(TELL, [(*page, _lines(lines).decode()) for page, lines in timelines.items()])


def write_labels(connection: sqlite3.Connection, labels: Sequence[Label]) -> None:
    """Let instances be found by their labels. Their rows, and the tags that are declared, must be there already."""
    declared: dict[tuple[str, int], Names] = {}
    rows: dict[bool, list[tuple[Cell, ...]]] = {True: [], False: []}
    for (workflow_id, instance_id), created_at_ms, version, texts in labels:
        at = (workflow_id, version)
        if at not in declared:
            declared[at] = tuple(f"tag:{row['tag']}" for row in connection.execute(DECLARED, at))
        place = (created_at_ms, workflow_id, instance_id)
        rows[created_at_ms is None] += [(text, *place) for text in (*texts, *declared[at])]
    connection.executemany(LABEL, rows[False])
    connection.executemany(LABEL_LATER, rows[True])


def amend(connection: sqlite3.Connection, table: str, where: Cells, cells: Cells) -> None:
    """Set some columns of the rows that match."""
    connection.execute(_amend(table, tuple(where), tuple(cells)), (*cells.values(), *where.values()))


def erase(connection: sqlite3.Connection, table: str, where: Cells) -> None:
    """Remove the rows that match."""
    connection.execute(_erase(table, tuple(where)), tuple(where.values()))


def forget(connection: sqlite3.Connection, workflow_id: str) -> None:
    """Hide a workflow and all instances that it has had so far."""
    for statement in FORGET:
        connection.execute(statement, (workflow_id,))


@lru_cache(STATEMENTS_KEPT)
def put_statement(table: str, cells: Names, first: Names, *, rises: bool) -> str:
    """The statement that puts columns into a row: those of its key, those that are set, that stay, and that rise."""
    rising = RISING[table] if rises else ()
    columns = (*KEYS[table], *cells, *first, *rising)
    changes = [f"{name} = excluded.{name}" for name in cells]
    changes += [f"{name} = COALESCE({table}.{name}, excluded.{name})" for name in first]
    changes += [
        f"{name} = CASE WHEN excluded.{rising[0]} >= COALESCE({table}.{rising[0]}, -1) "
        f"THEN excluded.{name} ELSE {table}.{name} END"
        for name in rising
    ]
    verb = "INSERT" if changes else "INSERT OR IGNORE"
    text = f"{verb} INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    if not changes:
        return text
    text += f" ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {', '.join(changes)}"
    if rising and not cells and not first:
        # Both streams of a run tell its end: who comes second writes nothing, and leaves all indexes as they are.
        new, old = (", ".join(f"{of}.{name}" for name in rising) for of in ("excluded", table))
        text += f" WHERE ({new}) IS NOT ({old})"
    return text


@lru_cache(STATEMENTS_KEPT)
def _amend(table: str, where: Names, cells: Names) -> str:
    return f"UPDATE {table} SET {_equal(cells, ', ')} WHERE {_equal(where, ' AND ')}"  # noqa: S608 - see above


@lru_cache(STATEMENTS_KEPT)
def _erase(table: str, where: Names) -> str:
    return f"DELETE FROM {table} WHERE {_equal(where, ' AND ')}"  # noqa: S608 - see above


def _equal(names: Names, joined_by: str) -> str:
    return joined_by.join(f"{name} = ?" for name in names)
