"""Lists in the order of an index: a page of one reads about as many rows as it shows, however many there are."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from kapelle.views.queries.pages import Page, PageRequest, cursor_of, place_of
from kapelle.views.queries.records import Record
from kapelle.views.rows import Cell, Key

COUNTED_MAX: Final = 10_000  # more rows than that are not counted

Place = type[tuple[Cell, ...]]  # of cursors


class Search(msgspec.Struct, frozen=True):
    """A list: its table with the index that has its order, the columns of that order, and which rows belong to it."""

    table: str
    order: tuple[str, ...]
    place: Place  # the type of a place in this order, for cursors
    where: tuple[str, ...] = ()
    given: Key = ()  # the values of these conditions

    def rows(self, place: Sequence[Cell] | None, *, backwards: bool) -> tuple[str, Key]:
        """The rows of the list, or those beyond a place, as SQL with its values."""
        sign, direction = ("<", "DESC") if backwards else (">", "ASC")
        by = ", ".join(f"{name} {direction}" for name in self.order)
        where, given = self._where(sign, place)
        return f"SELECT * FROM {self.table} WHERE {where} ORDER BY {by}", given  # noqa: S608 - values are bound

    def before(self, place: Sequence[Cell] | None) -> tuple[str, Key]:
        """The rows before a place, or all of them, up to the limit of what is counted."""
        where, given = self._where("<", place)
        return f"SELECT 1 FROM {self.table} WHERE {where} LIMIT {COUNTED_MAX + 1}", given  # noqa: S608

    def _where(self, sign: str, place: Sequence[Cell] | None) -> tuple[str, Key]:
        conditions = [*self.where]
        if place is not None:
            conditions.append(f"({', '.join(self.order)}) {sign} ({', '.join('?' * len(self.order))})")
        return " AND ".join(conditions) or "TRUE", (*self.given, *(place or ()))


def count_before(connection: sqlite3.Connection, search: Search, place: Sequence[Cell] | None = None) -> int | None:
    """How many rows come before a place, or how many there are; None if there are more than we count."""
    text, given = search.before(place)
    count: int = connection.execute(f"SELECT COUNT(*) FROM ({text})", given).fetchone()[0]  # noqa: S608 - they are bound
    return count if count <= COUNTED_MAX else None


def page(
    connection: sqlite3.Connection,
    search: Search,
    wanted: PageRequest,
    record: Callable[[sqlite3.Row], Record],
    total: int | None = None,
) -> Page:
    """A page of a list. `total` is how many rows it has, if that is known. What we do not count is None."""
    place = None if wanted.cursor is None else place_of(wanted.cursor, search.place)
    text, given = search.rows(place, backwards=wanted.backwards)
    rows = connection.execute(f"{text} LIMIT ?", (*given, wanted.limit + 1)).fetchall()
    shown, has_more = rows[: wanted.limit], len(rows) > wanted.limit
    if wanted.backwards:
        shown.reverse()
    first, last = (_place(search, shown[0]), _place(search, shown[-1])) if shown else (None, None)
    is_top = place is None and not wanted.backwards
    before = 0 if first is None or is_top else count_before(connection, search, first)
    return {
        "page_info": {
            "start_cursor": None if first is None else cursor_of(first),
            "end_cursor": None if last is None else cursor_of(last),
            "has_previous_page": has_more if wanted.backwards else before is None or before > 0,
            "has_next_page": _follows(connection, search, last) if wanted.backwards else has_more,
            "start_index": None if before is None else before + bool(shown),
        },
        "total_count": count_before(connection, search) if total is None else total,
        "elements": [record(row) for row in shown],
    }


def _place(search: Search, row: sqlite3.Row) -> Key:
    return tuple(row[name] for name in search.order)


def _follows(connection: sqlite3.Connection, search: Search, place: Key | None) -> bool:
    if place is None:
        return False
    text, given = search.rows(place, backwards=False)
    return connection.execute(f"{text} LIMIT 1", given).fetchone() is not None
