"""Finding instances: pages by status, workflow, time and label, the one created last first, and counts of them.

A page must not take longer because there are more instances. So each statement names the index whose order is that of
the list, the statuses are merged from as many ordered arms, and nothing is counted beyond a limit.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from kapelle.processors.runs.composites.identity import is_inline
from kapelle.views.queries.instances import HAS_HOME
from kapelle.views.queries.pages import Page, PageInfo, PageRequest, cursor_of, place_of
from kapelle.views.queries.records import OF_CHILD, instance_record
from kapelle.views.rows import Cell, Cells

COUNTED_MAX: Final = 1_000  # what is counted one by one is counted up to this
LOOKED_MAX: Final = 10_000  # of those with a label, so many are looked at for a page
FEW: Final = 2_000  # of so few, each can be looked at
NO_STATUS: Final = ""  # that of nobody

NEWEST_FIRST: Final = "ORDER BY at_ms DESC, workflow_id DESC, instance_id DESC"
OLDEST_FIRST: Final = "ORDER BY at_ms, workflow_id, instance_id"

Place = tuple[int, str, int]  # when it was created, its workflow, its number
Values = Cells
Bounds = dict[str, Place]  # by <, > and what they are with the place itself
PLACE: Final = ("at_ms", "at_workflow", "at_instance")
NAMES: Final = {"<": "below", ">": "above", "<=": "up_to", ">=": "down_to"}


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    """Which instances: those for which all of this holds. Of several statuses, one; of several labels, all."""

    statuses: tuple[str, ...] = ()
    workflow_id: str | None = None
    labels: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def are_counted(self) -> bool:
        """Whether the view knows at any time how many there are."""
        return not self.labels and self.since_ms is None and self.until_ms is None


ALL: Final = Filters()
HIDDEN: Final = f"SELECT {HAS_HOME} FROM instances i WHERE i.workflow_id = ? LIMIT 1"  # noqa: S608 - of our own words


def browse(connection: sqlite3.Connection, page: PageRequest, filters: Filters = ALL) -> Page:
    """A page of instances with their latest runs. What there is more of than we count is told as None.

    A page may be short although more follow: so many with a label were looked at, and had not all that was asked for.
    """
    looking = InstanceSearch(connection, filters)
    place = None if page.cursor is None else place_of(page.cursor, tuple[int, str, int])
    places, cut = looking.look(page.limit + 1, place, newer=page.backwards)
    shown = places[: page.limit]
    has_more = len(places) > page.limit or cut is not None
    last = cut if cut is not None else (shown[-1] if shown else None)
    first = shown[0] if shown else last
    if page.backwards:
        shown.reverse()
        first, last = last, first
    is_top = place is None and not page.backwards
    before = 0 if is_top or first is None else looking.count(first, newer=True)
    has_next = has_more
    if page.backwards:
        has_next = last is not None and looking.has_any(last, newer=False)
    info: PageInfo = {
        "start_cursor": None if first is None else cursor_of(first),
        "end_cursor": None if last is None else cursor_of(last),
        "has_previous_page": has_more if page.backwards else before is None or before > 0,
        "has_next_page": has_next,
        "start_index": None if before is None else before + bool(shown),
    }
    elements = [instance_record(connection, row) for row in runs_at(connection, shown)]
    return {"page_info": info, "total_count": looking.total(), "elements": elements}


def counts(connection: sqlite3.Connection, workflow_id: str | None = None) -> dict[str, int]:
    """How many instances have which status, of a workflow or of all."""
    if is_hidden(connection, workflow_id):
        return {}
    rows = connection.execute(
        "SELECT status, count FROM counts WHERE workflow_id = ? AND count > 0", (workflow_id or "",)
    ).fetchall()
    return {row["status"]: row["count"] for row in rows}


def is_hidden(connection: sqlite3.Connection, workflow_id: str | None) -> bool:
    """Whether a workflow id is that of iterations or rounds whose home was deleted. All of them have the same home."""
    if workflow_id is None or not is_inline(workflow_id):
        return False
    row = connection.execute(HIDDEN, (workflow_id,)).fetchone()
    return row is not None and not row[0]


def runs_at(connection: sqlite3.Connection, places: Iterable[Place]) -> Iterator[sqlite3.Row]:
    """The latest runs of some instances."""
    for _, workflow_id, instance_id in places:
        row = connection.execute(
            f"""SELECT r.*, {OF_CHILD} FROM instances i JOIN runs r USING (workflow_id, instance_id, run_id)
            WHERE i.workflow_id = ? AND i.instance_id = ?""",  # noqa: S608 - values are bound
            (workflow_id, instance_id),
        ).fetchone()
        if row is not None:
            yield row


class InstanceSearch:
    """A search for the instances that match filters, in one state of the view."""

    def __init__(self, connection: sqlite3.Connection, filters: Filters) -> None:
        self._connection = connection
        self._filters = filters
        self._counts = counts(connection, filters.workflow_id)
        # Every list is merged from lists of one status each: without a filter, of each that some instance has.
        self._statuses = filters.statuses or tuple(self._counts) or (NO_STATUS,)
        if is_hidden(connection, filters.workflow_id):
            self._statuses = (NO_STATUS,)
        # A label may be on a million instances, and a status on three of them: what there is few of comes first.
        self._by_label = bool(filters.labels) and self._counted() > FEW

    def look(self, limit: int, after: Place | None, *, newer: bool) -> tuple[list[Place], Place | None]:
        """The first so many after a place, and how far we have looked if there is more than we look at."""
        cut = self._cut(after, newer=newer) if self._by_label else None
        text, values = self.statement(after, newer=newer, cut=cut)
        rows = self._connection.execute(f"{text} LIMIT :limit", {**values, "limit": limit}).fetchall()
        places = [_place(row) for row in rows]
        return places, cut if len(places) < limit else None

    def _cut(self, after: Place | None, *, newer: bool) -> Place | None:
        """The last that is looked at for its label; None if there are no more than that."""
        text, values = self._with_label(after, newer=newer)
        row = self._connection.execute(f"{text} LIMIT 1 OFFSET {LOOKED_MAX - 1}", values).fetchone()
        return None if row is None else _place(row)

    def has_any(self, after: Place, *, newer: bool) -> bool:
        """Whether there is one after a place, or may be one where we have not looked."""
        places, cut = self.look(1, after, newer=newer)
        return bool(places) or cut is not None

    def count(self, beyond: Place | None, *, newer: bool) -> int | None:
        """How many stand beyond a place; None if there are more to look at than we count."""
        if self._by_label and self._up_to_limit(*self._with_label(beyond, newer=newer)) is None:
            return None
        return self._up_to_limit(*self.statement(beyond, newer=newer))

    def _up_to_limit(self, text: str, values: Values) -> int | None:
        counted = f"SELECT COUNT(*) FROM ({text} LIMIT {COUNTED_MAX + 1})"  # noqa: S608 - values are bound
        count: int = self._connection.execute(counted, values).fetchone()[0]
        return count if count <= COUNTED_MAX else None

    def total(self) -> int | None:
        """How many there are; None if that is more than we count."""
        return self._counted() if self._filters.are_counted else self.count(None, newer=False)

    def _counted(self) -> int:
        return sum(self._counts.get(status, 0) for status in self._statuses)

    def statement(self, after: Place | None, *, newer: bool, cut: Place | None = None) -> tuple[str, Values]:
        """The places in the order of the list, up to a cut and with it, as SQL without a limit."""
        bounds, order = _bounds(self._filters, after, newer=newer), OLDEST_FIRST if newer else NEWEST_FIRST
        if cut is not None:
            bounds["<=" if newer else ">="] = cut
        if self._by_label:
            return f"{self._labelled(bounds)} {order}", self._values(bounds)
        arms = [self._arm(number, bounds) for number in range(len(self._statuses))]
        return f"{' UNION ALL '.join(arms)} {order}", self._values(bounds)

    def _with_label(self, after: Place | None, *, newer: bool) -> tuple[str, Values]:
        """The places of the first label alone, in the order of the list."""
        bounds = _bounds(self._filters, after, newer=newer)
        where = " AND ".join(["l.label = :label_0", *_within("l", bounds)])
        columns = "l.created_at_ms AS at_ms, l.workflow_id AS workflow_id, l.instance_id AS instance_id"
        order = OLDEST_FIRST if newer else NEWEST_FIRST
        return f"SELECT {columns} FROM labels l WHERE {where} {order}", self._values(bounds)  # noqa: S608 - they are bound

    def _values(self, bounds: Bounds) -> Values:
        filters = self._filters
        values: Values = {
            "workflow_id": filters.workflow_id,
            **{f"status_{number}": status for number, status in enumerate(self._statuses)},
            **{f"label_{number}": label for number, label in enumerate(filters.labels)},
        }
        for sign, place in bounds.items():
            parts: tuple[Cell, ...] = place
            values |= {f"{name}_{NAMES[sign]}": part for name, part in zip(PLACE, parts, strict=True)}
        return values

    def _arm(self, number: int, bounds: Bounds) -> str:
        """The instances of one status, from the index that has them in order."""
        has_workflow = self._filters.workflow_id is not None
        where = [f"i.status = :status_{number}", "i.created_at_ms IS NOT NULL", *_within("i", bounds)]
        where += ["i.workflow_id = :workflow_id" if has_workflow else "i.home_workflow IS NULL"]
        where += [_has_label(number) for number in range(len(self._filters.labels))]
        return (
            "SELECT i.created_at_ms AS at_ms, i.workflow_id AS workflow_id, i.instance_id AS instance_id "  # noqa: S608 - values are bound
            f"FROM instances i INDEXED BY instances_by_{'workflow_' * has_workflow}status WHERE {' AND '.join(where)}"
        )

    def _labelled(self, bounds: Bounds) -> str:
        """The instances with the first label, in the order in which the label has them."""
        statuses = ", ".join(f":status_{number}" for number in range(len(self._filters.statuses)))
        where = ["l.label = :label_0", *_within("l", bounds), "i.created_at_ms IS NOT NULL"]
        where += [f"i.status IN ({statuses})"] if statuses else []
        # The plus keeps SQLite from thinking that one workflow makes for another order, which it would have to sort.
        where += ["+l.workflow_id = :workflow_id"] if self._filters.workflow_id is not None else []
        where += [_has_label(number) for number in range(1, len(self._filters.labels))]
        return (
            "SELECT l.created_at_ms AS at_ms, l.workflow_id AS workflow_id, l.instance_id AS instance_id "  # noqa: S608 - values are bound
            "FROM labels l CROSS JOIN instances i ON i.workflow_id = l.workflow_id AND i.instance_id = l.instance_id "
            f"WHERE {' AND '.join(where)}"
        )


def _place(row: sqlite3.Row) -> Place:
    return row["at_ms"], row["workflow_id"], row["instance_id"]


def _bounds(filters: Filters, after: Place | None, *, newer: bool) -> Bounds:
    """Between which places: a time is one too, that of nobody before all that were created then."""
    bounds: Bounds = {}
    if filters.since_ms is not None:
        bounds[">"] = (filters.since_ms, "", 0)
    if filters.until_ms is not None:
        bounds["<"] = (filters.until_ms, "", 0)
    if after is not None and newer:
        bounds[">"] = max(after, bounds.get(">", after))
    elif after is not None:
        bounds["<"] = min(after, bounds.get("<", after))
    return bounds


def _within(of: str, bounds: Bounds) -> Iterator[str]:
    """Only what is asked for stands in the statement: what may be absent would keep indexes from being used."""
    columns = f"({of}.created_at_ms, {of}.workflow_id, {of}.instance_id)"
    for sign in bounds:
        yield f"{columns} {sign} ({', '.join(f':{name}_{NAMES[sign]}' for name in PLACE)})"


def _has_label(number: int) -> str:
    return (
        f"EXISTS (SELECT 1 FROM labels h WHERE h.label = :label_{number} AND h.created_at_ms = i.created_at_ms "  # noqa: S608
        "AND h.workflow_id = i.workflow_id AND h.instance_id = i.instance_id)"
    )
