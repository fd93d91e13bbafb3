"""Carries changes out: each kind of change is one SQL statement, made once and kept."""

import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from kapelle.views.changes import Amend, Change, Erase, Forget, Label, Put

STATEMENTS_KEPT: Final = 1_024
Names = tuple[str, ...]

# All names in statements are those of our own tables: values are bound, never written into them.
FORGET: Final = (
    """UPDATE workflows SET is_deleted = 1, active_version = 0, latest_version = 0, created_at_ms = NULL,
    activated_at_ms = NULL, activated_by = NULL WHERE workflow_id = ?""",
    # The rows stay: the streams of their runs may be folded later, and must find them as they would have before.
    "UPDATE instances SET created_at_ms = NULL WHERE workflow_id = ? AND created_at_ms IS NOT NULL",
    "DELETE FROM labels WHERE workflow_id = ?",
    "DELETE FROM declared_tags WHERE workflow_id = ?",
)
LABEL: Final = """INSERT OR IGNORE INTO labels SELECT ?3, created_at_ms, workflow_id, instance_id FROM instances
    WHERE workflow_id = ?1 AND instance_id = ?2"""
LABEL_DECLARED: Final = """INSERT OR IGNORE INTO labels
    SELECT 'tag:' || d.tag, i.created_at_ms, i.workflow_id, i.instance_id
    FROM declared_tags d JOIN instances i ON i.workflow_id = d.workflow_id AND i.instance_id = ?2
    WHERE d.workflow_id = ?1 AND d.version IN (0, ?3)"""


def carry_out(connection: sqlite3.Connection, change: Change) -> None:
    """Change the rows."""
    match change:
        case Put(table, key, cells, first, guard):
            names = (tuple(key), tuple(cells), tuple(first))
            connection.execute(put_statement(table, names, guard), (*key.values(), *cells.values(), *first.values()))
        case Amend(table, where, cells):
            connection.execute(_amend(table, tuple(where), tuple(cells)), (*cells.values(), *where.values()))
        case Erase(table, where):
            connection.execute(_erase(table, tuple(where)), tuple(where.values()))
        case Label():
            label(connection, [change])
        case Forget(workflow_id):
            for statement in FORGET:
                connection.execute(statement, (workflow_id,))


def label(connection: sqlite3.Connection, labels: Sequence[Label]) -> None:
    """Let instances be found by their labels. Their rows, and the tags that are declared, must be there already."""
    own = [(one.workflow_id, one.instance_id, text) for one in labels for text in one.labels]
    connection.executemany(LABEL, own)
    connection.executemany(LABEL_DECLARED, [(one.workflow_id, one.instance_id, one.version) for one in labels])


@lru_cache(STATEMENTS_KEPT)
def put_statement(table: str, names: tuple[Names, Names, Names], guard: str | None) -> str:
    """The statement that puts these columns into a row: those of its key, those that are set, and those that stay."""
    key, cells, first = names
    columns = (*key, *cells, *first)
    changes = [f"{name} = excluded.{name}" for name in cells]
    changes += [f"{name} = COALESCE({table}.{name}, excluded.{name})" for name in first]
    if not changes:
        marks = ", ".join("?" * len(columns))
        return f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - see above
    where = "" if guard is None else f" WHERE excluded.{guard} >= COALESCE({table}.{guard}, -1)"
    marks = ", ".join("?" * len(columns))
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) "  # noqa: S608 - see above
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {', '.join(changes)}{where}"
    )


@lru_cache(STATEMENTS_KEPT)
def _amend(table: str, where: Names, cells: Names) -> str:
    return f"UPDATE {table} SET {_equal(cells, ', ')} WHERE {_equal(where, ' AND ')}"  # noqa: S608 - see above


@lru_cache(STATEMENTS_KEPT)
def _erase(table: str, where: Names) -> str:
    return f"DELETE FROM {table} WHERE {_equal(where, ' AND ')}"  # noqa: S608 - see above


def _equal(names: Names, joined_by: str) -> str:
    return joined_by.join(f"{name} = ?" for name in names)
