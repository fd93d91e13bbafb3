"""Reading a tree costs the same among any number of instances: no statement about children scans or sorts a table."""

from typing import Any, Final

import pytest

from kapelle.schemas.contracts import ChildKind
from kapelle.views import leaves, tallies
from kapelle.views.leaves import launch_of
from kapelle.views.queries import aggregates, artifacts, children, rollups
from kapelle.views.queries.artifacts import Reach, detailing, running_again
from kapelle.views.queries.children import Present, counting
from kapelle.views.queries.instance_lists import HIDDEN
from tests.unit.views.histories import view_of
from tests.unit.views.trees import used_tree

AT: Final = ("top", 1, "loop")
LAUNCH: Final = launch_of(1, 1, 1)
OF_FOREACH, OF_WHILE = Present(LAUNCH, LAUNCH), Present(LAUNCH, LAUNCH, 7)

# By whole keys of instances or steps, by the numbers of an inline workflow, or by the paths of a status.
SEARCHED_BY: Final = (
    "(workflow_id=? AND instance_id=?",
    "(workflow_id=? AND instance_id<?",
    "(workflow_id=?)",
    "(parent_workflow=? AND parent_instance=? AND parent_step=?",
    "(status=? AND path>?",
)

STATEMENTS: Final[dict[str, tuple[str, Any]]] = {
    "counts_below, the steps": (rollups.COMPOSITES, AT[:2]),
    "counts_below, the counts": (rollups.COUNTS, AT[:2]),
    "rollup_below": (rollups.COUNTS_OF_STEP, AT),
    "rollup_below, some rounds": (rollups.COUNTS_OF_BUCKET, (*AT, LAUNCH)),
    "reset_steps": (rollups.RESET, AT[:2]),
    "references": (rollups.REFERENCES, ("FAILED", "a", "b")),
    "references, the children": (rollups.CHILD, AT),
    "present_children": (leaves.KNOWN, AT),
    "artifacts, the attempt": (artifacts.FAN, ("top", 1, 1, "loop", 1, 1)),
    "artifacts, the first attempt that is kept": (artifacts.FIRST_KEPT, (*AT, 1)),
    "artifacts, earlier attempts": (artifacts.EARLIER, (*AT, 2)),
    "counts of children": counting(AT, OF_FOREACH),
    "counts of rounds": counting(AT, OF_WHILE),
    "details of children": detailing(Reach(AT, OF_FOREACH, is_now=True)),
    "details of rounds": detailing(Reach(AT, OF_WHILE, is_now=True)),
    "details of an earlier attempt": detailing(Reach(AT, OF_FOREACH, is_now=False)),
    "details of rounds of an earlier attempt": detailing(Reach(AT, OF_WHILE, is_now=False)),
    "iterations that run again": running_again(Reach(AT, OF_FOREACH, is_now=True)),
    "values of rounds": (artifacts.ROUNDS, ("maestro_while_1", 7)),
    "whether earlier runs are known below": (aggregates.IS_ABOVE_AND_RAN_LATER, ("top", 1, 1)),
    "whether iterations are hidden": (HIDDEN, ("maestro_foreach_1",)),
    "the fold, the steps above": (tallies.DESCENT, AT[:2]),
    "the fold, which buckets count": (tallies.SPAN, AT),
    "the fold, buckets": (tallies.BUCKETS, (*AT, "a", "b", "")),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_about_trees_scans_or_sorts_a_table(name: str) -> None:
    with view_of(used_tree(3, operations=5)).database.reading() as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {STATEMENTS[name][0]}", STATEMENTS[name][1])]

    searched = [line for line in plan if line.startswith("SEARCH")]
    assert searched
    assert all(any(by in line for by in SEARCHED_BY) for line in searched), searched
    assert not [line for line in plan if line.startswith(("SCAN", "USE TEMP")) and line != "SCAN CONSTANT ROW"]


def test_the_kinds_of_children_have_their_own_order_in_buckets() -> None:
    launched = [launch_of(*at) for at in ((1, 1, 9), (1, 1, 10), (1, 10, 1), (2, 1, 1), (10, 1, 1))]
    rounds = [leaves.bucket_of(ChildKind.WHILE, number, "any") for number in (1, 2, 10, 25_000)]

    assert launched == sorted(launched)
    assert rounds == sorted(rounds)
    assert leaves.bucket_of(ChildKind.FOREACH, 7, launched[0]) == launched[0]
    assert children.STATUSES
