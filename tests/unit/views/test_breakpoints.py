"""What the view knows of breakpoints and paused attempts: who set them, what they hold, and since when."""

import random

import pytest

from kapelle.processors.runs.composites.identity import inline_id
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, StepStatus
from kapelle.views import BadCursor
from kapelle.views.queries import breakpoints, steps, workflows
from kapelle.views.queries.index_pages import Search
from kapelle.views.queries.pages import PageRequest, cursor_of
from tests.unit.views.gates import (
    PAUSED,
    batched,
    both,
    breakpoint_of,
    changed,
    of_runs,
    of_workflows,
    started,
    was_deleted,
    was_set,
)
from tests.unit.views.histories import dump, written

INLINE = inline_id(ChildKind.FOREACH, "etl/1", "loop")


def child_of(key: str) -> c.Parent:
    """The place of an iteration of `etl/1`."""
    return c.Parent(
        key="etl/1",
        run_id=1,
        step_id="loop",
        attempt=1,
        iteration=1,
        number=int(key.rpartition("/")[2]),
        kind=ChildKind.FOREACH,
        root="etl/1",
        home="etl/1",
        depth=1,
    )


def test_breakpoints_are_listed_by_workflow_and_step_with_their_authors() -> None:
    entries = [
        *of_workflows("etl", was_set("etl", breakpoint_of("load", instance_id=3, attempt=2))),
        *of_workflows("etl", was_set("etl", breakpoint_of("load", author="bob", at_ms=8)), first=1),
        *of_workflows("etl", was_set("etl", breakpoint_of("extract", version=2)), first=2),
        *of_workflows("other", was_set("other", breakpoint_of("load")), first=3),
    ]

    for database in both(entries):
        with database.reading() as connection:
            of_step = breakpoints.listed(connection, PageRequest(), "etl", "load")
            of_workflow = breakpoints.listed(connection, PageRequest(), "etl")
            of_all = breakpoints.listed(connection, PageRequest())

        assert of_step["elements"] == [
            {
                "workflow_id": "etl",
                "step_id": "load",
                "workflow_version_id": None,
                "workflow_instance_id": None,
                "workflow_run_id": None,
                "step_attempt_id": None,
                "create_time": 8,
                "created_by": "bob",
            },
            {
                "workflow_id": "etl",
                "step_id": "load",
                "workflow_version_id": None,
                "workflow_instance_id": 3,
                "workflow_run_id": None,
                "step_attempt_id": 2,
                "create_time": 5,
                "created_by": "ann",
            },
        ]
        assert [one["step_id"] for one in of_workflow["elements"]] == ["extract", "load", "load"]
        assert [one["workflow_id"] for one in of_all["elements"]] == ["etl", "etl", "etl", "other"]
        assert of_all["total_count"] == 4


def test_a_breakpoint_that_is_set_again_has_its_new_author_and_a_deleted_one_is_gone() -> None:
    first, again = breakpoint_of(), breakpoint_of(author="bob", at_ms=8)
    other = breakpoint_of(run_id=1, instance_id=1)
    entries = of_workflows("etl", was_set("etl", first), was_set("etl", other), was_set("etl", again))

    for database in both(entries):
        with database.reading() as connection:
            assert [one["created_by"] for one in breakpoints.listed(connection, PageRequest())["elements"]] == [
                "bob",
                "ann",
            ]
    for database in both([*entries, *of_workflows("etl", was_deleted("etl", again), first=3)]):
        with database.reading() as connection:
            left = breakpoints.listed(connection, PageRequest())["elements"]
            assert [one["workflow_run_id"] for one in left] == [1]
            assert breakpoints.breakpoint_at(connection, ("etl", "load", 0, 0, 0, 0)) is None
            assert breakpoints.breakpoint_at(connection, ("etl", "load", 0, 1, 1, 0)) == left[0]


def test_the_change_log_of_a_workflow_tells_of_breakpoints() -> None:
    set_ = breakpoint_of(instance_id=3, attempt=2)
    entries = of_workflows("etl", was_set("etl", set_), was_deleted("etl", set_, resume=False))

    with written(entries).reading() as connection:
        found = workflows.notes(connection, "etl")

    assert [(one["author"], one["log"]) for one in found] == [
        (
            "bob",
            "Deleted the breakpoint on step 'load' (instance 3, attempt 2); the attempts that it held stay paused",
        ),
        ("ann", "Set a breakpoint on step 'load' (instance 3, attempt 2)"),
    ]


def test_a_paused_attempt_is_listed_with_its_breakpoints_until_it_goes_on() -> None:
    set_ = breakpoint_of()
    events = [started("etl/1", set_, breakpoint_of("other")), changed(PAUSED, reason="Paused by ann")]

    for database in both(of_runs("etl/1", *events)):
        with database.reading() as connection:
            page = breakpoints.paused(connection, PageRequest(), "etl", "load")
            (one,) = page["elements"]
            assert breakpoints.paused_count(connection) == page["total_count"] == 1
        assert (one["workflow_id"], one["workflow_instance_id"], one["step_attempt_id"]) == ("etl", 1, 1)
        assert (one["workflow_version_id"], one["create_time"], one["reason"]) == (None, 7, "Paused by ann")
        assert [(found["created_by"], found["create_time"]) for found in one["breakpoints"]] == [("ann", 5)]
    for database in both(of_runs("etl/1", *events, changed(StepStatus.STARTING, at_ms=9))):
        with database.reading() as connection:
            assert breakpoints.paused(connection, PageRequest())["elements"] == []
            assert breakpoints.paused_count(connection) == 0


def test_an_attempt_that_stays_paused_after_its_breakpoint_tells_why_it_was_paused() -> None:
    changes = c.BreakpointsChanged(run_id=1, generation=2, breakpoints=(), at_ms=9)
    events = [started("etl/1", breakpoint_of()), changed(PAUSED, reason="Paused by ann"), changes]

    with written(of_runs("etl/1", *events)).reading() as connection:
        (one,) = breakpoints.paused(connection, PageRequest())["elements"]
        step = steps.attempt(connection, ("etl", 1, "load"))

    assert (one["breakpoints"], one["reason"]) == ([], "Paused by ann")
    assert step is not None
    assert step["waiting_for"] == "a person to resume it: paused by a breakpoint since 1970-01-01T00:00:00Z"


def test_a_step_tells_who_has_paused_it_and_since_when() -> None:
    first, second = breakpoint_of(), breakpoint_of(author="bob", attempt=1)
    other = breakpoint_of(author="eve", attempt=2)
    events = [started("etl/1", first, second, other), changed(PAUSED, at_ms=1_800_000_000_000)]

    with written(of_runs("etl/1", *events)).reading() as connection:
        (listed,) = steps.latest_of_each(connection, "etl", 1)
        shown = steps.attempt(connection, ("etl", 1, "load"))

    assert shown is not None
    assert listed["waiting_for"] == shown["waiting_for"]
    assert shown["waiting_for"] == (
        "a person to resume it: paused by a breakpoint of ann, bob since 2027-01-15T08:00:00Z"
    )
    assert (shown["status"], shown["pause_time"]) == ("PAUSED", 1_800_000_000_000)
    assert [one["created_by"] for one in shown["breakpoints"]] == ["ann", "bob"]


@pytest.mark.parametrize("seed", range(3))
def test_paused_iterations_are_found_by_the_workflow_that_people_know_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    streams = [
        of_runs(key, started(key, parent=child_of(key)), changed(PAUSED, at_ms=number))
        for number, key in enumerate((f"{INLINE}/1", f"{INLINE}/2", f"{INLINE}/3"), start=1)
    ]
    chance.shuffle(streams)
    entries = [entry for stream in streams for entry in stream]

    for database in both(entries):
        with database.reading() as connection:
            page = breakpoints.paused(connection, PageRequest(2), "etl", "load")
            rest = breakpoints.paused(connection, PageRequest(2, page["page_info"]["end_cursor"]), "etl", "load")
            before = PageRequest(2, rest["page_info"]["start_cursor"], backwards=True)
            back = breakpoints.paused(connection, before, "etl", "load")
        assert [one["workflow_instance_id"] for one in (*page["elements"], *rest["elements"])] == [1, 2, 3]
        assert {(one["workflow_id"], one["home_workflow_id"], one["home_instance_id"]) for one in page["elements"]} == {
            (INLINE, "etl", 1)
        }
        assert (page["total_count"], page["page_info"]["has_next_page"]) == (3, True)
        assert (rest["page_info"]["start_index"], rest["page_info"]["has_next_page"]) == (3, False)
        assert back == page


def test_what_is_paused_does_not_depend_on_batches() -> None:
    entries = [
        *of_runs("etl/1", started("etl/1", breakpoint_of()), changed(PAUSED), changed(StepStatus.STOPPED)),
        *of_runs("etl/2", started("etl/2"), changed(PAUSED), changed(StepStatus.EVALUATING_PARAMS), first=3),
        *of_runs("etl/2", changed(PAUSED, attempt=2, at_ms=20), first=6),
    ]

    found = [dump(database) for database in (written(entries), batched(entries))]

    assert found[0] == found[1]
    assert [row[5:7] for row in found[0]["pauses"]] == [(2, 20)]


@pytest.mark.parametrize(
    "search",
    [
        breakpoints.breakpoints_search(),
        breakpoints.breakpoints_search("etl"),
        breakpoints.breakpoints_search("etl", "load"),
        breakpoints.pauses_search(),
        breakpoints.pauses_search("etl"),
        breakpoints.pauses_search("etl", "load"),
    ],
)
def test_no_list_reads_or_sorts_a_whole_table(search: Search) -> None:
    place = [0] * len(search.order)

    with written([]).reading() as connection:
        for after, backwards in ((None, False), (place, False), (place, True)):
            text, given = search.rows(after, backwards=backwards)
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text} LIMIT 5", given)]
            is_whole = after is None and not search.where
            assert [line for line in plan if line.startswith("USE TEMP")] == []
            assert is_whole or plan[0].startswith("SEARCH"), plan


def test_a_cursor_of_another_list_is_refused() -> None:
    with written([]).reading() as connection, pytest.raises(BadCursor):
        breakpoints.paused(connection, PageRequest(2, cursor_of(["etl"])), "etl", "load")


def test_the_breakpoints_of_a_deleted_workflow_are_gone() -> None:
    deleted = c.WorkflowDeleted(request_id="r", author="ann", workflow_id="etl", at_ms=9)
    entries = of_workflows("etl", was_set("etl", breakpoint_of()), deleted, was_set("etl", breakpoint_of("again")))

    for database in both(entries):
        with database.reading() as connection:
            found = breakpoints.listed(connection, PageRequest())["elements"]
            assert [one["step_id"] for one in found] == ["again"]
