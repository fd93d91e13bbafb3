"""Signals: their names, those of one name, and announcements that came to nothing."""

import sqlite3
from functools import partial
from typing import Annotated, Final

import msgspec

from kapelle.views.queries.pages import TEXT_MAX, Listing, Page, PageRequest, begins, page_of, place_of
from kapelle.views.queries.records import Record, raw
from kapelle.views.rows import Key

NUMBER_MAX: Final = 2**63 - 1
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


def names(connection: sqlite3.Connection, page: PageRequest, prefix: str = "") -> Page:
    """All names that begin so, by name: how many signals each has had, and how many want to hear of it."""
    sign, order, edge = ("<", "DESC", TEXT_MAX) if page.backwards else (">", "ASC", "")
    (place,) = (edge,) if page.cursor is None else place_of(page.cursor, tuple[str])
    whole = f"FROM signal_names n WHERE {begins('n.name')}"
    rows = connection.execute(
        f"SELECT * {whole} AND n.name {sign} ?2 ORDER BY n.name {order} LIMIT ?3", (prefix, place, page.limit + 1)
    ).fetchall()
    shown = rows[: page.limit]
    first = (shown[-1] if page.backwards else shown[0])["name"] if shown else ""
    total = _count(connection, f"SELECT COUNT(*) {whole}", (prefix,))
    before = _count(connection, f"SELECT COUNT(*) {whole} AND n.name < ?2", (prefix, first))
    return page_of(rows, page, Listing(("name",), partial(_named, connection), total), before)


def _count(connection: sqlite3.Connection, statement: str, given: Key) -> int:
    row = connection.execute(statement, given).fetchone()
    return 0 if row is None else int(row[0])


def _named(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    # By what subscriptions are called, so that nothing but the index is read.
    waiting = connection.execute(
        """SELECT COUNT(*) AS all_, COUNT(CASE WHEN subscription GLOB 'trigger/*' THEN 1 END) AS triggers
        FROM subscriptions INDEXED BY subscriptions_by_end WHERE name = ? AND ended = 0""",
        (row["name"],),
    ).fetchone()
    return {
        "name": row["name"],
        "signals": row["sequence"],
        "duplicates": row["duplicates"],
        "too_late": row["too_late"],
        "triggers": waiting["triggers"],
        "waiting_steps": waiting["all_"] - waiting["triggers"],
        "latest_time": row["at_ms"],
    }


def of_name(connection: sqlite3.Connection, name: str, page: PageRequest) -> Page:
    """The signals of a name, the latest first."""
    sign, order, edge = (">", "ASC", -1) if page.backwards else ("<", "DESC", NUMBER_MAX)
    (place,) = (edge,) if page.cursor is None else place_of(page.cursor, tuple[Number])
    rows = connection.execute(
        f"SELECT * FROM signals WHERE name = ? AND sequence {sign} ? ORDER BY sequence {order} LIMIT ?",  # noqa: S608
        (name, place, page.limit + 1),
    ).fetchall()
    shown = rows[: page.limit]
    first = (shown[-1] if page.backwards else shown[0])["sequence"] if shown else 0
    before = _after(connection, name, first) if shown else 0
    total = _after(connection, name, 0)
    return page_of(rows, page, Listing(("sequence",), signal_record, total), before)


def _after(connection: sqlite3.Connection, name: str, sequence: int) -> int:
    """How many signals come after one. Above the floor none has left, so that few are counted."""
    row = connection.execute(
        """SELECT MAX(n.sequence - MAX(n.floor, ?2), 0) + (
            SELECT COUNT(*) FROM signals s WHERE s.name = n.name AND s.sequence > ?2 AND s.sequence <= n.floor
        ) FROM signal_names n WHERE n.name = ?1 AND n.floor IS NOT NULL""",
        (name, sequence),
    ).fetchone()
    return 0 if row is None else int(row[0])


def is_known(connection: sqlite3.Connection, name: str) -> bool:
    """Whether anyone has announced a signal of this name, or wanted to hear of one."""
    return connection.execute("SELECT 1 FROM signal_names WHERE name = ?", (name,)).fetchone() is not None


def latest(connection: sqlite3.Connection, name: str) -> int | None:
    """The number of the latest signal of a name; None if there is none."""
    row = connection.execute("SELECT sequence FROM signal_names WHERE name = ? AND sequence > 0", (name,)).fetchone()
    return None if row is None else int(row["sequence"])


def signal_row(connection: sqlite3.Connection, name: str, sequence: int | None) -> sqlite3.Row | None:
    """One signal, the latest if no number is given."""
    number = latest(connection, name) if sequence is None else sequence
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM signals WHERE name = ? AND sequence = ?", (name, number)
    ).fetchone()
    return row


def signal(connection: sqlite3.Connection, name: str, sequence: int | None) -> Record | None:
    """One signal for people."""
    row = signal_row(connection, name, sequence)
    return None if row is None else signal_record(row)


def signal_record(row: sqlite3.Row) -> Record:
    """A signal as people read it."""
    return {
        "name": row["name"],
        "sequence": row["sequence"],
        "signal_id": row["signal_id"],
        "params": raw(row["params"]),
        "payload": raw(row["payload"]),
        "source": raw(row["source"]),
        "happened_time": row["happened_at_ms"],
        "create_time": row["at_ms"],
    }


def refused(connection: sqlite3.Connection, name: str, page: PageRequest, signal_id: str | None) -> Page:
    """Announcements of a name that came to nothing, of one id or of all, the latest first."""
    sign, order, edge = (">", "ASC", -1) if page.backwards else ("<", "DESC", NUMBER_MAX)
    (place,) = (edge,) if page.cursor is None else place_of(page.cursor, tuple[Number])
    whole = f"FROM unaccepted_signals WHERE name = ?{' AND signal_id = ?' * (signal_id is not None)}"
    of = (name,) if signal_id is None else (name, signal_id)
    rows = connection.execute(
        f"SELECT * {whole} AND position {sign} ? ORDER BY position {order} LIMIT ?", (*of, place, page.limit + 1)
    ).fetchall()
    shown = rows[: page.limit]
    first = (shown[-1] if page.backwards else shown[0])["position"] if shown else NUMBER_MAX
    counted = "SELECT duplicates + too_late FROM signal_names WHERE name = ?"
    total = _count(connection, counted if signal_id is None else f"SELECT COUNT(*) {whole}", of)
    before = _count(connection, f"SELECT COUNT(*) {whole} AND position > ?", (*of, first))
    return page_of(rows, page, Listing(("position",), refused_record, total), before)


def refused_record(row: sqlite3.Row) -> Record:
    """An announcement that came to nothing, and why."""
    about: Record = {
        "signal_id": row["signal_id"],
        "status": row["status"],
        "duplicate_of": row["first_sequence"],
        "happened_time": row["happened_at_ms"],
        "floor_time": row["floor_at_ms"],
        "source": raw(row["source"]),
        "create_time": row["at_ms"],
    }
    return {name: value for name, value in about.items() if value is not None}
