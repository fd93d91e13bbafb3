"""What the view knows of permits: limits, holders, the queue in its order, and what a step waits for."""

import json
import random

import pytest

from kapelle.processors.permits.tables import PermitTables
from kapelle.processors.wiring import RUN_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality, StepStatus
from kapelle.testing.engine import Engine
from kapelle.topology.journal import EmbeddedJournal
from kapelle.views import BadCursor, Views
from kapelle.views.database import Database
from kapelle.views.queries import permits, steps
from kapelle.views.queries.index_pages import Search
from kapelle.views.queries.pages import PageRequest, cursor_of
from kapelle.views.queries.requests import outcomes
from kapelle.views.retention import DAY_MS
from tests.unit.views.gates import WAITS, busy_limits, changed, entries, give_back, limit, request, unlimit
from tests.unit.views.histories import definition, dump, entries_of, fold, step, view_of, written
from tests.unit.views.test_aging import aged
from tests.unit.views.test_folding import shuffled

KEYS = ("tag/a", "tag/b", "workflow/etl", "tree/etl/1", "tree/etl/2")


def queued(*, most: int = 1, waiting: int = 3) -> Engine:
    """A tag with one holder and some that wait: of two workflows, and the last of them with a higher criticality."""
    engine = Engine()
    limit(engine, "gpu", most)
    for number in range(1, most + waiting):
        engine.advance(1_000)
        request(engine, "tag/gpu", number, workflow_id=f"wf-{number % 2}")
    engine.advance(1_000)
    request(engine, "tag/gpu", most + waiting, criticality=Criticality.HIGH)
    return engine


# Folding --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_partitions_and_batches_makes_no_difference_to_permits(seed: int) -> None:
    engine, chance = busy_limits(seed), random.Random(seed)
    points = entries_of(engine)

    one_by_one = [dump(written(shuffled(points, chance))) for _ in range(3)]
    batched = []
    for size in (1, 7, 1_000):
        views = Views(EmbeddedJournal(engine.runtime), batch_records=size)
        fold(views)
        batched.append(dump(views.database))

    assert all(found == one_by_one[0] for found in (*one_by_one, *batched))
    assert one_by_one[0]["limits"]


@pytest.mark.parametrize("seed", range(4))
def test_holders_and_queues_are_those_of_the_engine(seed: int) -> None:
    engine = busy_limits(seed)
    views = view_of(engine)

    for key in KEYS:
        state = engine.state("permits", key)
        assert isinstance(state, PermitTables)
        row = state.limits.get((key,))
        held, waiting = (0, 0) if row is None else (row.held, sum(row.waiting))
        holders, queue = views.read(_found, key)
        assert (len(holders), len(queue)) == (held, waiting)
        assert queue == [at[1:] for at, _ in state.queue.prefix((key,))]
        known = views.read(permits.limit, key)
        if known is not None:
            assert (known["held"], known["waiting"], known["max_allowed"]) == (held, waiting, row and row.max)


def _found(connection: object, key: str) -> tuple[list[int], list[tuple[int, int, int]]]:
    """The tickets of the holders of a permit, and the places of those that wait, limited or not."""
    (holders, given), (queue, also) = (
        search.rows(None, backwards=False) for search in (permits.holders_search(key), permits.waiting_search(key))
    )
    execute = getattr(connection, "execute")  # noqa: B009 - of sqlite3
    return (
        [row["ticket"] for row in execute(holders, given)],
        [(row["class"], row["turn"], row["ticket"]) for row in execute(queue, also)],
    )


# Limits ---------------------------------------------------------------------------------------------------------------


def test_a_limit_is_shown_with_its_other_keys_and_its_changes() -> None:
    engine = Engine()
    limit(engine, "gpu", 2, extra='{"team":"ml","max_allowed":9,"big":12345678901234567890123}')
    limit(engine, "gpu", 0, author="bob", extra='{"team":"ml"}')
    request(engine, "tag/gpu", 1)

    found = view_of(engine).read(permits.limit, "tag/gpu")

    assert found is not None
    assert (found["tag"], found["max_allowed"], found["held"], found["waiting"]) == ("gpu", 0, 0, 1)
    assert (found["author"], bytes(found["team"])) == ("bob", b'"ml"')
    assert [(one["author"], one["log"]) for one in found["timeline"]] == [
        ("bob", "Set the limit to 0"),
        ("ann", "Set the limit to 2"),
    ]


def test_only_the_last_changes_of_a_limit_are_shown() -> None:
    engine = Engine()
    for most in range(permits.NOTES_MAX + 3):
        limit(engine, "gpu", most)

    found = view_of(engine).read(permits.limit, "tag/gpu")

    assert found is not None
    assert found["timeline"][0]["log"] == f"Set the limit to {permits.NOTES_MAX + 2}"
    assert len(found["timeline"]) == permits.NOTES_MAX


def test_limits_are_listed_by_kind_and_name_and_removed_ones_are_not() -> None:
    engine = Engine()
    for tag in ("gpu/a", "gpu/b", "other", "removed"):
        limit(engine, tag, 1)
    unlimit(engine, "removed")
    request(engine, "workflow/etl", 1, most=3)
    request(engine, "tree/etl/1", 1, most=3)
    request(engine, "tree/etl/2", 2, most=3)
    give_back(engine, "tree/etl/2", 2)
    request(engine, "tag/nobody limits this", 1)
    views = view_of(engine)

    found = [one["limited"] for one in views.read(permits.limits, PageRequest())["elements"]]
    of_tags = views.read(permits.limits, PageRequest(2), "tag")
    gpus = views.read(permits.limits, PageRequest(), "tag", "gpu/")

    assert found == ["tag/gpu/a", "tag/gpu/b", "tag/other", "tree/etl/1", "workflow/etl"]
    assert [one["tag"] for one in of_tags["elements"]] == ["gpu/a", "gpu/b"]
    assert (of_tags["total_count"], of_tags["page_info"]["has_next_page"]) == (3, True)
    assert [one["tag"] for one in gpus["elements"]] == ["gpu/a", "gpu/b"]
    assert views.read(permits.limit, "tag/removed") is None
    assert views.read(permits.holders, "tag/removed", PageRequest()) is None
    assert views.read(permits.waiting, "tag/nobody limits this", PageRequest(), 0) is None


def test_the_outcome_of_a_change_is_found_by_its_request() -> None:
    engine = Engine()
    limit(engine, "gpu", 1)
    limit(engine, "gpu", 1)
    views = view_of(engine)

    found = [views.read(outcomes, f"request-{number}", "tag/gpu") for number in (1, 2)]

    kinds = {one.kind: one.body["status"] for (one,) in found}
    assert kinds == {"CommandSettled": "UNCHANGED"}


# Holders and queues ---------------------------------------------------------------------------------------------------


def test_holders_are_listed_in_the_order_in_which_they_asked() -> None:
    engine = queued(most=2)
    views = view_of(engine)

    page = views.read(permits.holders, "tag/gpu", PageRequest(1))
    assert page is not None
    rest = views.read(permits.holders, "tag/gpu", PageRequest(1, page["page_info"]["end_cursor"]))
    assert rest is not None

    found = [*page["elements"], *rest["elements"]]
    assert [one["workflow_instance_id"] for one in found] == [1, 2]
    assert [(one["step_id"], one["step_attempt_id"], one["waited_ms"]) for one in found] == [("train", 1, 0)] * 2
    assert (page["total_count"], page["page_info"]["has_next_page"]) == (2, True)
    assert (rest["page_info"]["start_index"], rest["page_info"]["has_next_page"]) == (2, False)


def test_those_that_wait_are_listed_in_the_order_of_the_queue_with_their_places() -> None:
    engine = queued()
    views, now_ms = view_of(engine), engine.clock() + 500

    page = views.read(permits.waiting, "tag/gpu", PageRequest(2), now_ms)
    assert page is not None
    rest = views.read(permits.waiting, "tag/gpu", PageRequest(2, page["page_info"]["end_cursor"]), now_ms)
    assert rest is not None

    found = [*page["elements"], *rest["elements"]]
    assert [(one["place"], one["workflow_instance_id"], one["criticality"]) for one in found] == [
        (1, 4, "HIGH"),
        (2, 2, "MEDIUM"),
        (3, 3, "MEDIUM"),
    ]
    assert [one["waiting_ms"] for one in found] == [500, 2_500, 1_500]
    assert page["total_count"] == 3


def test_an_attempt_that_is_admitted_leaves_the_queue_and_tells_how_long_it_waited() -> None:
    engine = queued()
    engine.advance(2_000)
    give_back(engine, "tag/gpu", 1)
    views = view_of(engine)

    holders = views.read(permits.holders, "tag/gpu", PageRequest())
    waiting = views.read(permits.waiting, "tag/gpu", PageRequest(), 0)

    assert holders is not None
    assert waiting is not None
    assert [(one["workflow_instance_id"], one["waited_ms"]) for one in holders["elements"]] == [(4, 2_000)]
    assert [one["workflow_instance_id"] for one in waiting["elements"]] == [2, 3]


def test_a_cursor_of_another_list_is_refused() -> None:
    views = view_of(queued())

    with pytest.raises(BadCursor):
        views.read(permits.waiting, "tag/gpu", PageRequest(2, cursor_of(["text"])), 0)


# A step ---------------------------------------------------------------------------------------------------------------


def waiting_step(views: Views, instance_id: int, *needs: str, held: int = 0) -> dict[str, object]:
    """A step of an instance that waits for permits and holds some of them, as the view shows it."""
    at_ms = 1_800_000_000_000
    events = [
        changed(StepStatus.EVALUATING_PARAMS, step_id="train"),
        changed(WAITS, step_id="train", permits=needs, at_ms=at_ms),
        *(
            c.PermitReceived(
                run_id=1, step_id="train", attempt=1, iteration=1, limited=needs[count], held=count + 1, at_ms=at_ms
            )
            for count in range(held)
        ),
    ]
    views.folding._written(entries(RUN_EVENTS.name, f"etl/{instance_id}", events), {}, _project)
    found = views.read(steps.attempt, ("etl", instance_id, "train"))
    assert found is not None
    return found


def _project(connection: object, found: object) -> set[str]:
    from kapelle.views.unreadable import fold_entries

    return fold_entries(connection, found)  # type: ignore[arg-type]


def test_a_step_tells_what_it_waits_for_and_in_what_place() -> None:
    found = waiting_step(view_of(queued()), 3, "tag/gpu", "tag/net")

    assert found["waiting_for"] == ("a permit of tag/gpu: limit 1, 1 held, place 3 of 3, since 2023-11-14T22:13:23Z")
    assert found["permits"] == [
        {
            "limited": "tag/gpu",
            "status": "WAITING",
            "since": 1_700_000_003_000,
            "max_allowed": 1,
            "held": 1,
            "waiting": 3,
            "place": 3,
        },
        {"limited": "tag/net", "status": "NOT_REQUESTED"},
    ]
    assert found["wait_permit_time"] == 1_800_000_000_000


def test_a_step_waits_for_the_permit_that_comes_after_those_it_has() -> None:
    found = waiting_step(view_of(queued()), 3, "tag/a", "tag/gpu", held=1)

    assert [one["status"] for one in json.loads(json.dumps(found["permits"]))] == ["HELD", "WAITING"]
    assert str(found["waiting_for"]).startswith("a permit of tag/gpu: limit 1")


def test_a_step_tells_what_it_waits_for_before_the_view_has_seen_the_queue() -> None:
    found = waiting_step(view_of(Engine()), 3, "tag/gpu")

    assert found["waiting_for"] == "a permit of tag/gpu, since 2027-01-15T08:00:00Z"


# Retention ------------------------------------------------------------------------------------------------------------


def test_the_limit_of_a_tree_leaves_with_its_instance() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a")))
    for number in (1, 2):
        engine.start("etl")
        request(engine, f"tree/etl/{number}", number, most=1)
        give_back(engine, f"tree/etl/{number}", number)
        engine.advance(3 * DAY_MS)
    views = view_of(engine)

    aged(engine, views, 4)

    assert [row[0] for row in dump(views.database)["limits"]] == ["tree/etl/2"]


def test_tags_that_nobody_limits_leave_and_of_others_old_changes() -> None:
    engine = Engine()
    for most in range(permits.NOTES_MAX + 5):
        limit(engine, "gpu", most)
    for tag in ("removed", "held"):
        limit(engine, tag, 1)
        request(engine, f"tag/{tag}", 1)
        unlimit(engine, tag)
    give_back(engine, "tag/removed", 1)
    engine.advance(3 * DAY_MS)
    views = view_of(engine)

    aged(engine, views, 2)

    rows = dump(views.database)
    assert [row[0] for row in rows["limits"]] == ["tag/gpu", "tag/held"]
    assert len([row for row in rows["limit_notes"] if row[0] == "tag/gpu"]) == permits.NOTES_MAX
    assert {row[0] for row in rows["limit_notes"]} == {"tag/gpu", "tag/held"}


# Sums and plans -------------------------------------------------------------------------------------------------------


def test_sums_tell_how_many_hold_and_wait_and_who_has_waited_longest() -> None:
    engine = queued()
    began_ms = engine.clock()
    request(engine, "workflow/etl", 1, most=1)
    request(engine, "workflow/etl", 2, most=1)
    request(engine, "tag/unlimited", 1)
    views = view_of(engine)

    (tag,) = views.read(permits.tag_sums)
    kinds = {one.name: one for one in views.read(permits.kind_sums)}

    assert (tag.name, tag.max, tag.held, tag.waiting, tag.oldest_ms) == ("gpu", 1, 1, 3, began_ms - 2_000)
    assert {name: (one.held, one.waiting) for name, one in kinds.items()} == {
        "tag": (1, 3),
        "workflow": (1, 1),
        "tree": (0, 0),
    }
    assert (kinds["tag"].oldest_ms, kinds["workflow"].oldest_ms, kinds["tree"].oldest_ms) == (
        began_ms - 2_000,
        began_ms,
        None,
    )


def test_no_more_than_a_bounded_number_of_tags_have_sums_of_their_own() -> None:
    engine = Engine()
    for number in range(permits.TAGS_SHOWN_MAX + 5):
        limit(engine, f"t{number:03}", 1)

    assert len(view_of(engine).read(permits.tag_sums)) == permits.TAGS_SHOWN_MAX


@pytest.mark.parametrize(
    "search",
    [
        permits.limits_search(),
        permits.limits_search("tag"),
        permits.limits_search("tag", "gpu"),
        permits.holders_search("tag/gpu"),
        permits.waiting_search("tag/gpu"),
    ],
)
def test_no_list_reads_or_sorts_a_whole_table(search: Search) -> None:
    place = [0] * len(search.order)

    with Database(None, "any").reading() as connection:
        for after, backwards in ((None, False), (place, False), (place, True)):
            text, given = search.rows(after, backwards=backwards)
            plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text} LIMIT 5", given)]
            assert [line for line in plan if line.startswith("USE TEMP") or not line.startswith("SEARCH")] == []
        text, given = search.before(place)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", given)]
        assert all(line.startswith("SEARCH") for line in plan), plan


@pytest.mark.parametrize(
    ("statement", "given"),
    [
        (permits.LIMIT, ("tag/a",)),
        (permits.PERMIT, ("tag/a", "etl/1", "train", 1, 1, 1)),
        (permits.OLDEST, ("tag/a",)),
        (permits.OLDEST_OF_KIND, ("tag",)),
        (permits.NOTES, ("tag/a", 5)),
        (permits.OF_KIND, ("tag",)),
    ],
)
def test_no_statement_about_permits_scans_or_sorts_a_table(statement: str, given: tuple[object, ...]) -> None:
    with Database(None, "any").reading() as connection:
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", given)]

    assert [line for line in plan if line.startswith(("SCAN", "USE TEMP"))] == []
    assert plan[0].startswith("SEARCH")
