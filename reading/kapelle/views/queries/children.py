"""The children of composite steps: pages of them, how many there are, and what Maestro calls the artifacts of a step.

A page is read from the index that has the children of a step by status and number. A list of several statuses is merged
from the lists of each.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Final

import msgspec

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.keys import run_key
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.processors.runs.states import RESTARTABLE_IN_RUN
from kapelle.schemas.contracts import ChildKind, InstanceStatus
from kapelle.views.projection.children import launch_of
from kapelle.views.queries.browsing import runs_at
from kapelle.views.queries.pages import Listing, Page, PageRequest, page_of, place_of
from kapelle.views.queries.records import Record, instance_record, raw
from kapelle.views.queries.rollups import rollup_below

STATUSES: Final = tuple(status.value for status in InstanceStatus if status is not InstanceStatus.OTHER)
UNSUCCESSFUL: Final = INSTANCE_TERMINAL - {InstanceStatus.SUCCEEDED}
FAILED_STEPS: Final = sorted(status.value for status in RESTARTABLE_IN_RUN)
OF_STEP: Final = "i.parent_workflow = :workflow_id AND i.parent_instance = :instance_id AND i.parent_step = :step_id"

StepAt = tuple[str, int, str]  # workflow, instance and step
Place = tuple[int, str, int]  # the number of the child, its workflow, and its instance
Interval = int | tuple[int, int]


def children(connection: sqlite3.Connection, at: StepAt, wanted: PageRequest, statuses: Sequence[str] = ()) -> Page:
    """A page of the children of a step, by number, each with its latest run."""
    place: Place | None = None if wanted.cursor is None else place_of(wanted.cursor, tuple[int, str, int])
    text, values = statement(at, statuses or STATUSES, place, backwards=wanted.backwards)
    rows = connection.execute(f"{text} LIMIT :limit", {**values, "limit": wanted.limit + 1}).fetchall()
    found: list[Place] = [(row["number"], row["workflow_id"], row["instance_id"]) for row in rows]
    shown = found[: wanted.limit]
    first = (shown[-1] if wanted.backwards else shown[0]) if shown else None
    total = sum(counts(connection, at, statuses).values())
    before = 0 if first is None else _before(connection, at, statuses or STATUSES, first)
    listing = Listing(("number", "workflow_id", "instance_id"), partial(_record, connection), total)
    return page_of(rows, wanted, listing, before)


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
    at: StepAt, statuses: Sequence[str], place: Place | None, *, backwards: bool
) -> tuple[str, dict[str, object]]:
    """The places of children in the order of their numbers, as SQL without a limit."""
    sign, order = ("<", "DESC") if backwards else (">", "ASC")
    values: dict[str, object] = dict(zip(("workflow_id", "instance_id", "step_id"), at, strict=True))
    after = ""
    if place is not None:
        after = f"AND (i.number, i.workflow_id, i.instance_id) {sign} (:number, :child_workflow, :child_instance)"
        values |= zip(("number", "child_workflow", "child_instance"), place, strict=True)
    arms = []
    for number, status in enumerate(statuses):
        values[f"status_{number}"] = status
        arms.append(
            "SELECT i.number AS number, i.workflow_id AS workflow_id, i.instance_id AS instance_id FROM instances i "  # noqa: S608 - values are bound
            f"INDEXED BY instances_by_parent WHERE {OF_STEP} AND i.status = :status_{number} {after}"
        )
    by = ", ".join(f"{name} {order}" for name in ("number", "workflow_id", "instance_id"))
    return f"{' UNION ALL '.join(arms)} ORDER BY {by}", values


def _before(connection: sqlite3.Connection, at: StepAt, statuses: Sequence[str], place: Place) -> int:
    text, values = statement(at, statuses, place, backwards=True)
    found: int = connection.execute(f"SELECT COUNT(*) FROM ({text})", values).fetchone()[0]  # noqa: S608
    return found


def counts(
    connection: sqlite3.Connection, at: StepAt, statuses: Sequence[str] = (), launches: Sequence[str] = ()
) -> dict[str, int]:
    """How many children of a step have which status: of all, or of those that some attempts have launched."""
    where = f"AND i.launch IN ({', '.join('?' * len(launches))})" if launches else ""
    rows = connection.execute(
        "SELECT i.status, COUNT(*) FROM instances i INDEXED BY instances_by_parent "  # noqa: S608
        f"WHERE i.parent_workflow = ? AND i.parent_instance = ? AND i.parent_step = ? {where} GROUP BY i.status",
        (*at, *launches),
    ).fetchall()
    return {status: number for status, number in rows if status and (not statuses or status in statuses)}


# What a step has started --------------------------------------------------------------------------------------------


class Fans:
    """What the composite steps of an instance have started, in one state of the view."""

    def __init__(self, connection: sqlite3.Connection, workflow_id: str, instance_id: int) -> None:
        self._connection = connection
        self._instance = (workflow_id, instance_id)
        rows = connection.execute(
            "SELECT * FROM fans WHERE workflow_id = ? AND instance_id = ?", self._instance
        ).fetchall()
        self._rows = {(row["run_id"], row["step_id"], row["iteration"], row["attempt"]): row for row in rows}

    def artifacts(self, step: sqlite3.Row, *, in_full: bool = False) -> Record | None:
        """The artifacts of an attempt, named as Maestro names them; None if it is no composite step."""
        row = self._rows.get((step["run_id"], step["step_id"], step["iteration"], step["attempt"]))
        if row is None or row["kind"] is None:
            return None
        if row["kind"] == ChildKind.SUBWORKFLOW:
            return {"maestro_subworkflow": self._subworkflow(row)}
        if row["kind"] == ChildKind.WHILE:
            return {"maestro_while": self._while(row)}
        return {"maestro_foreach": self._foreach(row, in_full=in_full)}

    def _at(self, row: sqlite3.Row) -> StepAt:
        return (*self._instance, row["step_id"])

    def _launches(self, row: sqlite3.Row) -> list[str]:
        """The attempts whose children count for this one: those since which children are kept."""
        return [
            launch_of(run_id, iteration, attempt)
            for (run_id, step_id, iteration, attempt), one in self._rows.items()
            if step_id == row["step_id"]
            and one["fan_run"] is not None
            and row["kept_since"] <= one["fan_run"] <= row["fan_run"]
        ]

    def _common(self, row: sqlite3.Row, name: str) -> Record:
        found = self._connection.execute(
            "SELECT restart FROM runs WHERE workflow_id = ? AND instance_id = ? AND run_id = ?",
            (*self._instance, row["run_id"]),
        ).fetchone()
        restart = None if found is None else found["restart"]
        key = run_key(*self._instance)
        return {
            f"{name}_workflow_id": inline_id(ChildKind(row["kind"]), key, row["step_id"]),
            f"{name}_identity": f"{key}/{row['step_id']}",
            f"{name}_run_id": row["fan_run"],
            "run_policy": "START_FRESH_NEW_RUN" if restart is None else msgspec.json.decode(restart)["policy"],
            "run_id": row["run_id"],
        }

    def _foreach(self, row: sqlite3.Row, *, in_full: bool) -> Record:
        earlier = [
            one["next"] - 1
            for one in self._rows.values()
            if one["step_id"] == row["step_id"] and one["fan_run"] is not None and one["fan_run"] < row["fan_run"]
        ]
        return {
            **self._common(row, "foreach"),
            "ancestor_iteration_count": max(earlier, default=None),
            "total_loop_count": row["total"],
            "next_loop_index": row["next"] - 1,
            "foreach_overview": self._overview(row, in_full=in_full),
        }

    def _overview(self, row: sqlite3.Row, *, in_full: bool) -> Record:
        at, launches = self._at(row), self._launches(row)
        found = counts(self._connection, at, launches=launches)
        ended, others = (
            {s: n for s, n in found.items() if (s in INSTANCE_TERMINAL) is is_over} for is_over in (True, False)
        )
        overview: Record = {"stats": ended, "running_stats": others, "rollup": rollup_below(self._connection, at)}
        if in_full:
            details = self._details(at, launches)
            overview |= {"checkpoint": _checkpoint(details), "details": details}
        return overview

    def _details(self, at: StepAt, launches: Sequence[str]) -> dict[str, list[Interval]]:
        marks = ", ".join("?" * len(launches))
        rows = self._connection.execute(
            "SELECT i.status, i.number FROM instances i INDEXED BY instances_by_parent WHERE i.parent_workflow = ? "  # noqa: S608
            f"AND i.parent_instance = ? AND i.parent_step = ? AND i.launch IN ({marks}) ORDER BY i.status, i.number",
            (*at, *launches),
        )
        return {status: intervals(number for _, number in of) for status, of in groupby(rows, key=lambda row: row[0])}

    def _while(self, row: sqlite3.Row) -> Record:
        return {
            **self._common(row, "loop"),
            "first_iteration": row["first"],
            "last_iteration": row["last_number"],
            "last_status": row["last_status"],
            "loop_param_values": raw(row["last_values"]),
            "rollup": rollup_below(self._connection, self._at(row)),
        }

    def _subworkflow(self, row: sqlite3.Row) -> Record:
        workflow_id, _, number = (row["child"] or "").partition("/")
        found = self._connection.execute(
            "SELECT request_id, status FROM runs WHERE workflow_id = ? AND instance_id = ? AND run_id = ?",
            (workflow_id, int(number or 0), row["child_run_id"]),
        ).fetchone()
        return {
            "subworkflow_id": workflow_id,
            "subworkflow_version_id": row["child_version"],
            "subworkflow_instance_id": int(number) if number else None,
            "subworkflow_run_id": row["child_run_id"],
            "subworkflow_uuid": None if found is None else found["request_id"],
            "subworkflow_status": _status_of_child(row, found),
            "subworkflow_overview": {"rollup_overview": rollup_below(self._connection, self._at(row))},
        }


def _status_of_child(fan: sqlite3.Row, run: sqlite3.Row | None) -> str | None:
    """The status of a subworkflow: its end as its parent knows it, or what it is now. Either may be folded first."""
    if fan["last_status"] in INSTANCE_TERMINAL or run is None:
        status: str | None = fan["last_status"]
        return status
    now: str | None = run["status"]
    return now


def intervals(numbers: Iterable[int]) -> list[Interval]:
    """Rising numbers, with those that follow one another as their first and last."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return [first if first == last else (first, last) for first, last in found]


def _checkpoint(details: dict[str, list[Interval]]) -> int:
    """The highest number up to which all have ended."""
    spans = sorted(
        (one, one) if isinstance(one, int) else one
        for status, of in details.items()
        if status in INSTANCE_TERMINAL
        for one in of
    )
    checkpoint = 0
    for first, last in spans:
        if first > checkpoint + 1:
            break
        checkpoint = max(checkpoint, last)
    return checkpoint
