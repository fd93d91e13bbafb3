"""The children of composite steps: pages of them, and how many there are.

They are the children that the step has now: what restarts and later turns of a loop have discarded is listed by its own
workflow id alone. A page is read from the index that has the children of a step by status and number. A list of several
statuses is merged from the lists of each.
"""

import sqlite3
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.runs.states import RESTARTABLE_IN_RUN
from kapelle.schemas.contracts import ChildKind, InstanceStatus
from kapelle.views.leaves import COLUMNS, KNOWN, is_present
from kapelle.views.queries.instance_lists import runs_at
from kapelle.views.queries.pages import Listing, Page, PageRequest, page_of, place_of
from kapelle.views.queries.records import Record, instance_record

STATUSES: Final = tuple(status.value for status in InstanceStatus if status is not InstanceStatus.OTHER)
UNSUCCESSFUL: Final = INSTANCE_TERMINAL - {InstanceStatus.SUCCEEDED}
FAILED_STEPS: Final = sorted(status.value for status in RESTARTABLE_IN_RUN)
OF_STEP: Final = "i.parent_workflow = :workflow_id AND i.parent_instance = :instance_id AND i.parent_step = :step_id"

StepAt = tuple[str, int, str]  # workflow, instance and step
Place = tuple[int, str, int]  # the number of the child, its workflow, and its instance


class Present(msgspec.Struct, frozen=True):
    """The children that a step has now: of a while step up to a round, of any other since an attempt."""

    plan: str
    since: str
    last: int | None = None

    @property
    def condition(self) -> str:
        """As SQL."""
        if self.last is not None:
            return "i.number <= :last"
        return "i.launch >= :since AND i.launch <= :plan"

    @property
    def values(self) -> dict[str, object]:
        """What the condition compares with."""
        return {"last": self.last} if self.last is not None else {"since": self.since, "plan": self.plan}


def present_children(connection: sqlite3.Connection, at: StepAt) -> Present | None:
    """Which children belong to the present attempt of a step; None if that has none."""
    row = connection.execute(KNOWN, at).fetchone()
    leaf = {} if row is None else dict(zip(COLUMNS, row, strict=True))
    if row is None or not is_present(leaf):
        return None
    last = (leaf["last"] or 0) if leaf["kind"] == ChildKind.WHILE else None
    return Present(leaf["plan"], leaf["since"], last)


def children(connection: sqlite3.Connection, at: StepAt, page: PageRequest, statuses: Sequence[str] = ()) -> Page:
    """A page of the children that a step has now, by number, each with its latest run."""
    place: Place | None = None if page.cursor is None else place_of(page.cursor, tuple[int, str, int])
    present = present_children(connection, at)
    if present is None:
        return page_of([], page, Listing(("number", "workflow_id", "instance_id"), dict, 0), 0)
    asked_statuses = statuses or STATUSES
    text, values = statement(at, present, asked_statuses, place, backwards=page.backwards)
    rows = connection.execute(f"{text} LIMIT :limit", {**values, "limit": page.limit + 1}).fetchall()
    places: list[Place] = [(row["number"], row["workflow_id"], row["instance_id"]) for row in rows]
    shown = places[: page.limit]
    first = (shown[-1] if page.backwards else shown[0]) if shown else None
    total = sum(counts(connection, at, statuses).values())
    before = 0 if first is None else _before(connection, statement(at, present, asked_statuses, first, backwards=True))
    listing = Listing(("number", "workflow_id", "instance_id"), partial(_record, connection), total)
    return page_of(rows, page, listing, before)


def _record(connection: sqlite3.Connection, row: sqlite3.Row) -> Record:
    run = next(runs_at(connection, [(row["number"], row["workflow_id"], row["instance_id"])]))
    record = instance_record(connection, run)
    record["reason"] = record["reason"] or _why(connection, record)
    return record


def _why(connection: sqlite3.Connection, record: Record) -> str | None:
    """Why a child has not succeeded: what the last of its steps says that ended for good without success."""
    if record["status"] not in UNSUCCESSFUL:
        return None
    row = connection.execute(
        f"""SELECT step_id, status, reason FROM attempts WHERE workflow_id = ? AND instance_id = ? AND run_id = ?
        AND status IN ({", ".join(f"'{status}'" for status in FAILED_STEPS)}) ORDER BY sequence DESC LIMIT 1""",  # noqa: S608 - of our own words
        (record["workflow_id"], record["workflow_instance_id"], record["workflow_run_id"]),
    ).fetchone()
    if row is None:
        return None
    return f"{row['step_id']} {row['status']}{': ' * bool(row['reason'])}{row['reason'] or ''}"


def statement(
    at: StepAt, present: Present, statuses: Sequence[str], place: Place | None, *, backwards: bool
) -> tuple[str, dict[str, object]]:
    """The places of children in the order of their numbers, as SQL without a limit."""
    sign, order = ("<", "DESC") if backwards else (">", "ASC")
    values: dict[str, object] = dict(zip(("workflow_id", "instance_id", "step_id"), at, strict=True)) | present.values
    condition = f"{OF_STEP} AND {present.condition}"
    if place is not None:
        condition += f" AND (i.number, i.workflow_id, i.instance_id) {sign} (:number, :child_workflow, :child_instance)"
        values |= zip(("number", "child_workflow", "child_instance"), place, strict=True)
    arms = []
    for number, status in enumerate(statuses):
        values[f"status_{number}"] = status
        arms.append(
            "SELECT i.number AS number, i.workflow_id AS workflow_id, i.instance_id AS instance_id FROM instances i "  # noqa: S608 - values are bound
            f"INDEXED BY instances_by_parent WHERE {condition} AND i.status = :status_{number}"
        )
    by = ", ".join(f"{name} {order}" for name in ("number", "workflow_id", "instance_id"))
    return f"{' UNION ALL '.join(arms)} ORDER BY {by}", values


def _before(connection: sqlite3.Connection, of: tuple[str, dict[str, object]]) -> int:
    text, values = of
    count: int = connection.execute(f"SELECT COUNT(*) FROM ({text})", values).fetchone()[0]  # noqa: S608
    return count


def counts(connection: sqlite3.Connection, at: StepAt, statuses: Sequence[str] = ()) -> dict[str, int]:
    """How many of the children that a step has now have which status."""
    present = present_children(connection, at)
    if present is None:
        return {}
    rows = connection.execute(*counting(at, present)).fetchall()
    return {status: number for status, number in rows if status and (not statuses or status in statuses)}


def counting(at: StepAt, present: Present) -> tuple[str, dict[str, object]]:
    """The number of children by status, as SQL."""
    values = dict(zip(("workflow_id", "instance_id", "step_id"), at, strict=True)) | present.values
    counted = "SELECT i.status, COUNT(*) FROM instances i INDEXED BY instances_by_parent"
    return f"{counted} WHERE {OF_STEP} AND {present.condition} GROUP BY i.status", values
