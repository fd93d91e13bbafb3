"""Signals: their names, those of one name, and announcements that came to nothing."""

import sqlite3
from typing import Annotated, Any

import msgspec

from kapelle.views.queries.pages import Wanted, page_of, place_of
from kapelle.views.queries.records import Record, raw

Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


def names(connection: sqlite3.Connection, wanted: Wanted, prefix: str = "") -> dict[str, Any]:
    """All names that begin so, by name: how many signals each has had, and how many want to hear of it."""
    sign, order = ("<", "DESC") if wanted.backwards else (">", "ASC")
    place = (None,) if wanted.cursor is None else place_of(wanted.cursor, tuple[str])
    whole = "FROM signal_names n WHERE substr(n.name, 1, length(?1)) = ?1"
    rows = connection.execute(
        f"SELECT * {whole} AND (?2 IS NULL OR n.name {sign} ?2) ORDER BY n.name {order} LIMIT ?3",
        (prefix, *place, wanted.limit + 1),
    ).fetchall()
    shown = rows[: wanted.limit]
    first = (shown[-1] if wanted.backwards else shown[0])["name"] if shown else ""
    total = _count(connection, f"SELECT COUNT(*) {whole}", (prefix,))
    before = _count(connection, f"SELECT COUNT(*) {whole} AND n.name < ?2", (prefix, first))
    page = page_of(rows, wanted, place=lambda row: (row["name"],), total=total, before=before)
    return {**page, "elements": [_named(connection, row) for row in page["elements"]]}


def _count(connection: sqlite3.Connection, statement: str, given: tuple[Any, ...]) -> int:
    found: int = connection.execute(statement, given).fetchone()[0]
    return found


def _named(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    vain = connection.execute(
        "SELECT status, COUNT(*) AS count FROM vain_signals WHERE name = ? GROUP BY status", (row["name"],)
    ).fetchall()
    counts = {one["status"]: one["count"] for one in vain}
    waiting = connection.execute(
        "SELECT COUNT(trigger_id), COUNT(step_id) FROM subscriptions INDEXED BY subscriptions_by_end "
        "WHERE name = ? AND ended = 0",
        (row["name"],),
    ).fetchone()
    return {
        "name": row["name"],
        "signals": row["sequence"],
        "duplicates": counts.get("DUPLICATED", 0),
        "too_late": counts.get("TOO_LATE", 0),
        "triggers": waiting[0],
        "waiting_steps": waiting[1],
        "latest_time": row["at_ms"],
    }


def of_name(connection: sqlite3.Connection, name: str, wanted: Wanted) -> dict[str, Any]:
    """The signals of a name, the latest first."""
    sign, order = (">", "ASC") if wanted.backwards else ("<", "DESC")
    place = (None,) if wanted.cursor is None else place_of(wanted.cursor, tuple[Number])
    rows = connection.execute(
        f"SELECT * FROM signals WHERE name = ?1 AND (?2 IS NULL OR sequence {sign} ?2) "  # noqa: S608 - a sign of ours
        f"ORDER BY sequence {order} LIMIT ?3",
        (name, *place, wanted.limit + 1),
    ).fetchall()
    total = latest(connection, name) or 0  # they are numbered without gaps
    shown = rows[: wanted.limit]
    first = (shown[-1] if wanted.backwards else shown[0])["sequence"] if shown else total
    page = page_of(rows, wanted, place=lambda row: (row["sequence"],), total=total, before=total - first)
    return {**page, "elements": [signal_record(row) for row in page["elements"]]}


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


def refused(connection: sqlite3.Connection, name: str, wanted: Wanted, signal_id: str | None) -> dict[str, Any]:
    """Announcements of a name that came to nothing, of one id or of all, the latest first."""
    sign, order = (">", "ASC") if wanted.backwards else ("<", "DESC")
    place = (None,) if wanted.cursor is None else place_of(wanted.cursor, tuple[Number])
    whole = "FROM vain_signals WHERE name = ?1 AND (?2 IS NULL OR signal_id = ?2)"
    rows = connection.execute(
        f"SELECT * {whole} AND (?3 IS NULL OR position {sign} ?3) ORDER BY position {order} LIMIT ?4",
        (name, signal_id, *place, wanted.limit + 1),
    ).fetchall()
    shown = rows[: wanted.limit]
    first = (shown[-1] if wanted.backwards else shown[0])["position"] if shown else 2**62
    total = _count(connection, f"SELECT COUNT(*) {whole}", (name, signal_id))
    before = _count(connection, f"SELECT COUNT(*) {whole} AND position > ?3", (name, signal_id, first))
    page = page_of(rows, wanted, place=lambda row: (row["position"],), total=total, before=before)
    return {**page, "elements": [refused_record(row) for row in page["elements"]]}


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
