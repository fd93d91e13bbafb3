"""An instance as all its runs together have left it: the state of each step, and what that makes of the whole.

The rules, for the runs up to one of them:

1. A fresh run begins with nothing; a restart begins with what the runs before it had left.
2. What the run has done to its steps counts, with its number.
3. Steps that the run has to do and has not created yet are NOT_CREATED again, whatever they were before.
4. Steps of the definition of which no run has told anything are NOT_CREATED, and have no run.
5. The status is that of the run, unless a restart succeeded: then the worst of all steps decides (failed, then timed
   out, then stopped), and if some are not created, the instance is what it was before.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from kapelle.processors.runs.states import FAILED
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from kapelle.views.leaves import REFERRED
from kapelle.views.queries.instance_lists import Filters, InstanceSearch
from kapelle.views.queries.records import Record
from kapelle.views.queries.rollups import REFS_MAX, add_refs, counts_below, refs_below, reset_steps

DEFINITIONS_CACHED: Final = 256
# What decides of a restart that succeeded, the worst first.
WORST_FIRST: Final = (
    (FAILED, InstanceStatus.FAILED),
    (frozenset({StepStatus.TIMED_OUT}), InstanceStatus.TIMED_OUT),
    (frozenset({StepStatus.STOPPED}), InstanceStatus.STOPPED),
)


class StepView(msgspec.Struct, frozen=True):
    """A step as the runs have left it. Without a run, none has told of it."""

    status: str
    run_id: int | None = None
    attempt: int | None = None
    started_at_ms: int | None = None
    ended_at_ms: int | None = None

    def record(self) -> Record:
        """As people read it."""
        return {
            "workflow_run_id": self.run_id,
            "step_attempt_id": self.attempt,
            "status": self.status,
            "start_time": self.started_at_ms,
            "end_time": self.ended_at_ms,
        }


NOT_CREATED: Final = StepView(StepStatus.NOT_CREATED.value)
Steps = dict[str, StepView]
IS_ABOVE_AND_RAN_LATER: Final = """SELECT
    EXISTS (SELECT 1 FROM fans WHERE workflow_id = ?1 AND instance_id = ?2 AND has_children = 1)
    AND EXISTS (SELECT 1 FROM runs WHERE workflow_id = ?1 AND instance_id = ?2 AND run_id > ?3
        AND created_at_ms IS NOT NULL)"""


class Aggregate(msgspec.Struct, frozen=True):
    """An instance after some of its runs: `own` are the steps of the last of them, `order` those that it has to do.

    What is below its steps is known as it is now. Of an instance with children it is not known for earlier runs.
    """

    steps: Steps
    status: str
    own: Steps
    order: Sequence[str]
    run_status: str
    is_known_below: bool = True


class _Identified(msgspec.Struct):
    id: str


class _Outline(msgspec.Struct):
    steps: list[dict[str, _Identified]] = []


@lru_cache(DEFINITIONS_CACHED)
def step_ids(definition: str) -> tuple[str, ...]:
    """The steps of a definition, in its order."""
    steps = msgspec.json.decode(definition, type=_Outline).steps
    return tuple(step.id for forms in steps for step in forms.values())


def aggregate(connection: sqlite3.Connection, at: tuple[str, int], run_id: int | None = None) -> Aggregate | None:
    """The instance after the runs up to this one, or after all of them."""
    runs = connection.execute(
        """SELECT r.run_id, r.status, r.run_status, r.restart, r.steps, r.started_at_ms,
            COALESCE(v.definition, s.text) AS definition FROM runs r
        LEFT JOIN versions v ON v.workflow_id = r.workflow_id AND v.version = r.version
        LEFT JOIN shared s ON s.digest = r.digest
        WHERE r.workflow_id = ?1 AND r.instance_id = ?2 AND r.created_at_ms IS NOT NULL
            AND (?3 IS NULL OR r.run_id <= ?3) ORDER BY r.run_id""",
        (*at, run_id),
    ).fetchall()
    aggregated: Aggregate | None = None
    before: Aggregate | None = None  # what was left by the last run that has begun
    for run in runs:
        aggregated = _after(before, run, _own_steps(connection, at, run["run_id"]))
        before = aggregated if run["started_at_ms"] is not None else before
    if (
        aggregated is None
        or run_id is None
        or not connection.execute(IS_ABOVE_AND_RAN_LATER, (*at, run_id)).fetchone()[0]
    ):
        return aggregated
    return msgspec.structs.replace(aggregated, is_known_below=False)


def _own_steps(connection: sqlite3.Connection, at: tuple[str, int], run_id: int) -> Steps:
    """The latest attempt of each step of a run, in the order in which the attempts began."""
    rows = connection.execute(
        """SELECT step_id, status, run_id, attempt, started_at_ms, ended_at_ms FROM attempts
        WHERE workflow_id = ? AND instance_id = ? AND run_id = ? ORDER BY sequence""",
        (*at, run_id),
    ).fetchall()
    return {row["step_id"]: StepView(*(row[name] for name in StepView.__struct_fields__)) for row in rows}


def _after(before: Aggregate | None, run: sqlite3.Row, own: Steps) -> Aggregate:
    """What one run more makes of an instance."""
    defined = step_ids(run["definition"]) if run["definition"] else ()
    base: Steps = {} if before is None or run["restart"] is None else before.steps
    order: Sequence[str] = ()
    if run["started_at_ms"] is not None:
        others = (step_id for step_id in own if step_id not in defined)
        order = tuple(msgspec.json.decode(run["steps"])) if run["steps"] else (*defined, *others)
    reset = StepView(StepStatus.NOT_CREATED.value, run["run_id"])
    steps = {**base, **{step_id: own.get(step_id, reset) for step_id in order}, **own}
    steps = {**{step_id: steps.get(step_id, NOT_CREATED) for step_id in defined}, **steps}
    of_run = run["run_status"] or run["status"]
    status = _status(of_run, run, steps, before)
    return Aggregate(steps, status, own, order, of_run)


def _status(of_run: str, run: sqlite3.Row, steps: Steps, before: Aggregate | None) -> str:
    if run["restart"] is None or of_run != InstanceStatus.SUCCEEDED:
        return of_run
    statuses = {StepStatus(step.status) for step in steps.values()}
    for bad, status in WORST_FIRST:
        if statuses & bad:
            return status.value
    if StepStatus.NOT_CREATED in statuses and before is not None:
        return before.status
    return of_run


# What is made of it ---------------------------------------------------------------------------------------------------


def aggregated_info(aggregated: Aggregate) -> Record:
    """The aggregated view of an instance."""
    return {
        "workflow_instance_status": aggregated.status,
        "step_aggregated_views": {step_id: step.record() for step_id, step in aggregated.steps.items()},
    }


def runtime_overview(connection: sqlite3.Connection, aggregated: Aggregate, at: tuple[str, int]) -> Record:
    """How far a run is. `steps` are those that it has to do; an ordinal is a place among them, from 1."""
    ordinals = {step_id: number for number, step_id in enumerate(aggregated.order, 1)}
    overview: dict[str, Record] = {}
    for step_id, step in aggregated.own.items():
        entry = overview.setdefault(step.status, {"cnt": 0, "steps": []})
        entry["cnt"] += 1
        entry["steps"].append([ordinals.get(step_id), step.started_at_ms, step.ended_at_ms])
    return {
        "total_step_count": len(aggregated.order),
        "steps": list(aggregated.order),
        "step_overview": overview,
        "rollup_overview": rollup(connection, aggregated, at) if aggregated.is_known_below else None,
        "run_status": aggregated.run_status,
    }


def rollup(connection: sqlite3.Connection, aggregated: Aggregate, at: tuple[str, int]) -> Record:
    """The leaves of an instance by status: its own steps, and all that is below those that have children.

    Of its own steps, those of the run count, and what earlier runs have left (attempt 0).
    """
    workflow_id, instance_id = at
    overview: dict[str, Record] = {}
    below, composites, reset = counts_below(connection, at), [], reset_steps(connection, at)
    left = {step_id: step for step_id, step in aggregated.steps.items() if step_id not in aggregated.order}
    for step_id, step in {**left, **aggregated.own}.items():
        if step.run_id is None or step.status == StepStatus.NOT_CREATED or step_id in reset:
            continue
        if step_id in below:
            composites.append(step_id)
            for status, count in below[step_id].items():
                overview.setdefault(status, {"cnt": 0})["cnt"] += count
            continue
        entry = overview.setdefault(step.status, {"cnt": 0})
        entry["cnt"] += 1
        if StepStatus(step.status) in REFERRED:
            attempt = step.attempt if step_id in aggregated.own else 0
            where = entry.setdefault("ref", {}).setdefault(f"{workflow_id}:{step.run_id}", [])
            where.append(f"{instance_id}:{step_id}:{attempt}")
    for status, entry in overview.items():
        room = REFS_MAX - sum(len(named) for named in entry.get("ref", {}).values())
        for step_id in composites:
            refs = refs_below(connection, (*at, step_id), status, min(room, below[step_id].get(status, 0)))
            add_refs(entry, refs)
            room -= len(refs)
    return {"total_leaf_count": sum(entry["cnt"] for entry in overview.values()), "overview": overview}


def told_more(
    connection: sqlite3.Connection, records: Sequence[Record], *, aggregated: bool, enriched: bool
) -> list[Record]:
    """Runs with their aggregated view, and with how far they are."""
    return [_told(connection, record, aggregated=aggregated, enriched=enriched) for record in records]


def _told(connection: sqlite3.Connection, record: Record, *, aggregated: bool, enriched: bool) -> Record:
    at = (record["workflow_id"], record["workflow_instance_id"])
    aggregated_view = aggregate(connection, at, record["workflow_run_id"])
    if aggregated_view is None:
        return record
    more = {"aggregated_info": aggregated_info(aggregated_view)} if aggregated else {}
    return {
        **record,
        **more,
        **({"runtime_overview": runtime_overview(connection, aggregated_view, at)} if enriched else {}),
    }


def matrix(connection: sqlite3.Connection, workflow_id: str, limit: int) -> Record:
    """The last instances of a workflow and their steps, as all runs have left them: a row for each instance."""
    places, _ = InstanceSearch(connection, Filters(workflow_id=workflow_id)).look(limit, None, newer=False)
    rows = [(at, _row(connection, (workflow_id, at[2]))) for at in places]
    steps = {step_id: None for _, row in rows for step_id in row["steps"]}
    return {"workflow_id": workflow_id, "steps": list(steps), "instances": [row for _, row in rows]}


def _row(connection: sqlite3.Connection, at: tuple[str, int]) -> Record:
    run = connection.execute(
        """SELECT r.run_id, r.version, r.started_at_ms, r.ended_at_ms, i.created_at_ms, i.status
        FROM instances i JOIN runs r USING (workflow_id, instance_id, run_id)
        WHERE i.workflow_id = ? AND i.instance_id = ?""",
        at,
    ).fetchone()
    aggregated = aggregate(connection, at)
    steps: Mapping[str, StepView] = {} if aggregated is None else aggregated.steps
    return {
        "workflow_instance_id": at[1],
        "workflow_run_id": run["run_id"],
        "workflow_version_id": run["version"],
        "status": run["status"],
        "create_time": run["created_at_ms"],
        "start_time": run["started_at_ms"],
        "end_time": run["ended_at_ms"],
        "steps": {step_id: step.record() for step_id, step in steps.items()},
    }
