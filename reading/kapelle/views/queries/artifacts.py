"""What Maestro calls the artifacts of a step: what an attempt of a composite step has planned, launched and seen end.

Of the attempt whose children the step has now, they tell how these are. Of an earlier attempt they tell how its
children have ended. How the leaves below were at that time, the view cannot tell.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from typing import Final

import msgspec

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.keys import ids_in, run_key
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas.contracts import ChildKind, InstanceStatus
from kapelle.views.leaves import launch_of
from kapelle.views.queries.aggregates import aggregate, runtime_overview
from kapelle.views.queries.children import OF_STEP, Present, StepAt, counting, present_children
from kapelle.views.queries.records import Record
from kapelle.views.queries.rollups import rollup_below

FAN: Final = """SELECT * FROM fans WHERE workflow_id = ? AND instance_id = ? AND run_id = ? AND step_id = ?
    AND iteration = ? AND attempt = ?"""
FIRST_KEPT: Final = """SELECT run_id, iteration, attempt FROM fans INDEXED BY fans_by_step
    WHERE workflow_id = ? AND instance_id = ? AND step_id = ? AND fan_run >= ? ORDER BY fan_run LIMIT 1"""
EARLIER: Final = """SELECT MAX(next) FROM fans INDEXED BY fans_by_step
    WHERE workflow_id = ? AND instance_id = ? AND step_id = ? AND fan_run < ?"""
LAST_RUN_THEN: Final = """r.run_id = (SELECT MAX(q.run_id) FROM runs q WHERE q.workflow_id = i.workflow_id
    AND q.instance_id = i.instance_id AND q.launch <= :plan)"""

ROUNDS: Final = """SELECT r.params FROM instances i
    JOIN runs r ON r.workflow_id = i.workflow_id AND r.instance_id = i.instance_id AND r.run_id = i.run_id
    WHERE i.workflow_id = ? AND i.instance_id <= ? ORDER BY i.instance_id"""
NULL: Final = msgspec.Raw(b"null")
RUNNING: Final = ", ".join(f"'{status.value}'" for status in InstanceStatus if status not in INSTANCE_TERMINAL)

Interval = int | tuple[int, int]


class Reach(msgspec.Struct, frozen=True):
    """The children of one attempt of a step."""

    at: StepAt
    present: Present
    is_now: bool


def detailing(reach: Reach) -> tuple[str, dict[str, object]]:
    """The children of an attempt by status and number, as SQL. Those of an earlier attempt come in any order."""
    values: dict[str, object] = dict(zip(("workflow_id", "instance_id", "step_id"), reach.at, strict=True))
    if reach.is_now:
        select = "SELECT i.status, i.number FROM instances i INDEXED BY instances_by_parent"
        where = f"{OF_STEP} AND {reach.present.condition}"
        return f"{select} WHERE {where} ORDER BY i.status, i.number", values | reach.present.values
    within = "i.number <= :last" if reach.present.last is not None else "r.launch >= :since"
    then = """SELECT r.status, i.number FROM instances i INDEXED BY instances_by_parent
        CROSS JOIN runs r ON r.workflow_id = i.workflow_id AND r.instance_id = i.instance_id"""
    where = f"{OF_STEP} AND {LAST_RUN_THEN} AND {within}"
    return f"{then} WHERE {where}", values | reach.present.values | {"plan": reach.present.plan}


def running_again(reach: Reach) -> tuple[str, dict[str, object]]:
    """The children that run again although the attempt has launched them before, as SQL."""
    values: dict[str, object] = dict(zip(("workflow_id", "instance_id", "step_id"), reach.at, strict=True))
    select = "SELECT i.number FROM instances i INDEXED BY instances_by_parent"
    before = """EXISTS (SELECT 1 FROM runs q WHERE q.workflow_id = i.workflow_id AND q.instance_id = i.instance_id
        AND q.run_id < i.run_id AND q.launch = i.launch)"""
    where = f"{OF_STEP} AND i.status IN ({RUNNING}) AND {reach.present.condition}"
    return f"{select} WHERE {where} AND {before}", values | reach.present.values


class Fans:
    """What the composite steps of an instance have started, in one state of the view."""

    def __init__(self, connection: sqlite3.Connection, workflow_id: str, instance_id: int) -> None:
        self._connection = connection
        self._instance = (workflow_id, instance_id)

    def artifacts(self, step: sqlite3.Row, *, in_full: bool = False) -> Record | None:
        """The artifacts of an attempt, named as Maestro names them; None if it is no composite step."""
        place = (*self._instance, step["run_id"], step["step_id"], step["iteration"], step["attempt"])
        row = self._connection.execute(FAN, place).fetchone()
        if row is None or row["kind"] is None:
            return None
        if row["kind"] == ChildKind.SUBWORKFLOW:
            return {"maestro_subworkflow": self._subworkflow(row, in_full=in_full)}
        if row["kind"] == ChildKind.WHILE:
            return {"maestro_while": self._while(row, in_full=in_full)}
        return {"maestro_foreach": self._foreach(row, in_full=in_full)}

    def _at(self, row: sqlite3.Row) -> StepAt:
        return (*self._instance, row["step_id"])

    def _reach(self, row: sqlite3.Row) -> Reach:
        """The children of an attempt, and whether they are those that the step has now."""
        at, plan = self._at(row), launch_of(row["run_id"], row["iteration"], row["attempt"])
        now = present_children(self._connection, at)
        if now is not None and now.plan == plan:
            return Reach(at, now, is_now=True)
        first = self._connection.execute(FIRST_KEPT, (*at, row["kept_since"])).fetchone()
        last = (row["last_number"] or 0) if row["kind"] == ChildKind.WHILE else None
        return Reach(at, Present(plan, plan if first is None else launch_of(*first), last), is_now=False)

    def _common(self, row: sqlite3.Row, name: str) -> Record:
        launch = self._connection.execute(
            "SELECT restart FROM runs WHERE workflow_id = ? AND instance_id = ? AND run_id = ?",
            (*self._instance, row["run_id"]),
        ).fetchone()
        restart = None if launch is None else launch["restart"]
        key = run_key(*self._instance)
        return {
            f"{name}_workflow_id": inline_id(ChildKind(row["kind"]), key, row["step_id"]),
            f"{name}_identity": f"{key}/{row['step_id']}",
            f"{name}_run_id": row["fan_run"],
            "run_policy": "START_FRESH_NEW_RUN" if restart is None else msgspec.json.decode(restart)["policy"],
            "run_id": row["run_id"],
        }

    def _foreach(self, row: sqlite3.Row, *, in_full: bool) -> Record:
        (earlier,) = self._connection.execute(EARLIER, (*self._at(row), row["fan_run"])).fetchone()
        return {
            **self._common(row, "foreach"),
            "ancestor_iteration_count": None if earlier is None else earlier - 1,
            "total_loop_count": row["total"],
            "next_loop_index": row["next"] - 1,
            "foreach_overview": self._overview(self._reach(row), in_full=in_full),
            "pending_action": None,  # an action is decided when it arrives
        }

    def _overview(self, reach: Reach, *, in_full: bool) -> Record:
        counts = self._counts(reach)
        ended, others = (
            {s: n for s, n in counts.items() if (s in INSTANCE_TERMINAL) is is_over} for is_over in (True, False)
        )
        overview: Record = {"stats": ended, "running_stats": others, "rollup": self._rollup(reach)}
        if in_full:
            details = self._details(reach)
            again = self._connection.execute(*running_again(reach)) if reach.is_now else ()
            overview |= {"checkpoint": _checkpoint(details), "details": details}
            overview["restart_info"] = sorted(row["number"] for row in again)
        return overview

    def _rollup(self, reach: Reach) -> Record | None:
        """The leaves below a step as they are now. What they were below an earlier attempt, the view cannot tell."""
        return rollup_below(self._connection, reach.at) if reach.is_now else None

    def _counts(self, reach: Reach) -> dict[str, int]:
        if reach.is_now:
            rows = self._connection.execute(*counting(reach.at, reach.present)).fetchall()
            return {status: number for status, number in rows if status}
        return dict(Counter(status for status, _ in self._then(reach)))

    def _details(self, reach: Reach) -> dict[str, list[Interval]]:
        rows = self._connection.execute(*detailing(reach)) if reach.is_now else self._then(reach)
        return {status: intervals(number for _, number in of) for status, of in groupby(rows, key=lambda row: row[0])}

    def _then(self, reach: Reach) -> list[tuple[str, int]]:
        """The children of an earlier attempt by status and number, each with its last run up to then."""
        return sorted(tuple(row) for row in self._connection.execute(*detailing(reach)))

    def _while(self, row: sqlite3.Row, *, in_full: bool) -> Record:
        reach, common = self._reach(row), self._common(row, "loop")
        inline, last = (common["loop_workflow_id"], row["last_number"]), row["last_number"]
        is_known = reach.is_now and last is not None
        artifact = {
            **common,
            "first_iteration": row["first"],
            "last_iteration": last,
            "last_status": row["last_status"],
            "last_overview": _overview_of(self._connection, inline, None) if is_known else None,
            "rollup": rollup_below(self._connection, reach.at, last=last) if is_known else None,
        }
        return artifact | (
            {"loop_param_values": self._loop_values(row, inline) if is_known else None} if in_full else {}
        )

    def _loop_values(self, row: sqlite3.Row, last_round: tuple[str, int]) -> dict[str, list[msgspec.Raw]]:
        """The values that each round was given, and those that the last one has left: an array for each name."""
        rounds = [_members(given["params"] or "{}") for given in self._connection.execute(ROUNDS, last_round)]
        last = _members(row["last_values"] or "{}")
        if row["last_status"] == InstanceStatus.SUCCEEDED and row["carried"] is not None:
            rounds.append({**last, **_members(row["carried"])})
        return {name: [given.get(name, NULL) for given in rounds] for name in last}

    def _subworkflow(self, row: sqlite3.Row, *, in_full: bool) -> Record:
        workflow_id, _, number = (row["child"] or "").partition("/")
        child = self._connection.execute(
            "SELECT request_id, status FROM runs WHERE workflow_id = ? AND instance_id = ? AND run_id = ?",
            (workflow_id, int(number or 0), row["child_run_id"]),
        ).fetchone()
        return {
            "subworkflow_id": workflow_id,
            "subworkflow_version_id": row["child_version"],
            "subworkflow_instance_id": int(number) if number else None,
            "subworkflow_run_id": row["child_run_id"],
            "subworkflow_uuid": None if child is None else child["request_id"],
            "subworkflow_status": _status_of_child(row, child),
            "subworkflow_overview": self._overview_of_child(row, in_full=in_full),
        }

    def _overview_of_child(self, row: sqlite3.Row, *, in_full: bool) -> Record:
        """How far the run of the child is; in a list of steps, only its leaves."""
        rollup, child = self._rollup(self._reach(row)), ids_in(row["child"] or "")
        if not in_full or child is None:
            return {"rollup_overview": rollup}
        whole = _overview_of(self._connection, child, row["child_run_id"])
        return {**(whole or {}), "rollup_overview": rollup}


def _overview_of(connection: sqlite3.Connection, child: tuple[str, int], run_id: int | None) -> Record | None:
    aggregated = aggregate(connection, child, run_id)
    return None if aggregated is None else runtime_overview(connection, aggregated, child)


def _members(text: str) -> dict[str, msgspec.Raw]:
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


def _status_of_child(fan: sqlite3.Row, run: sqlite3.Row | None) -> str | None:
    """The status of a subworkflow: its end as its parent knows it, or what it is now. Either may be folded first."""
    if fan["last_status"] in INSTANCE_TERMINAL or run is None:
        status: str | None = fan["last_status"]
        return status
    now: str | None = run["status"]
    return now


def intervals(numbers: Iterable[int]) -> list[Interval]:
    """Rising numbers, with those that follow one another as their first and last."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return [first if first == last else (first, last) for first, last in ranges]


def _checkpoint(details: dict[str, list[Interval]]) -> int:
    """The lowest number that has not ended, or the one after the last: all below it have ended."""
    spans = sorted(
        (interval, interval) if isinstance(interval, int) else interval
        for status, of in details.items()
        if status in INSTANCE_TERMINAL
        for interval in of
    )
    checkpoint = 1
    for first, last in spans:
        if first > checkpoint:
            break
        checkpoint = max(checkpoint, last + 1)
    return checkpoint
