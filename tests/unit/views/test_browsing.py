"""Finding instances: every filter, pages that neither skip nor repeat, and statements that never read a whole table."""

import itertools
import json
import random
from typing import Any

import pytest

from kapelle.processors.wiring import WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import RestartPolicy
from kapelle.testing.engine import Engine, RunHandle
from kapelle.views import Views
from kapelle.views.database import Database
from kapelle.views.labels import initiator_label, param_label, tag_label
from kapelle.views.queries.instance_lists import COUNTED_MAX, LOOKED_MAX, Filters, InstanceSearch, browse, counts
from kapelle.views.queries.pages import Page, PageRequest
from tests.unit.views.histories import TYPE, definition, deleted, fold, step, used_engine, view_of

STATUSES = ("SUCCEEDED", "FAILED", "STOPPED", "CREATED", "IN_PROGRESS")
FROM_BEGINNING = RestartPolicy.RESTART_FROM_BEGINNING
Key = tuple[str, int]


def keys(page: Page) -> list[Key]:
    return [(one["workflow_id"], one["workflow_instance_id"]) for one in page["elements"]]


def started(engine: Engine, workflow_id: str, **fields: Any) -> RunHandle:
    """An instance that a person or a time trigger has started."""
    if fields["initiator"]["type"] == "manual":
        return engine.start(workflow_id, **fields)
    texts: dict[str, Any] = {name: json.dumps(value) for name, value in fields.items()}
    start = c.Start(engine.request_id(), **texts)
    engine.send(WORKFLOW_INTERNAL, workflow_id, c.StartTriggered("tester", (start,)))
    return engine.runs(workflow_id)[-1]


def labelled_engine(seed: int, instances: int = 60) -> Engine:
    """An engine with instances of three workflows that differ in all that one may ask for."""
    chance, engine = random.Random(seed), Engine(partitions=3)
    for name in ("one", "two", "three"):
        pushed = definition(name, step("a", TYPE), run_strategy="PARALLEL", tags=[f"of-{name}", "common"])
        pushed["workflow"] |= {"params": {"day": {"type": "LONG", "value": 0}}, "tags": [f"defined-{name}"]}
        engine.push(pushed)
    for number in range(instances):
        run = started(
            engine,
            chance.choice(["one", "two", "three"]),
            run_params={"day": {"type": "LONG", "value": chance.randrange(4)}},
            runtime_tags=chance.choice([[], ["nightly"], [{"name": "nightly"}, "late"]]),
            initiator={"type": chance.choice(["manual", "time"])},
        )
        match number % 4:
            case 0:
                engine.task(run, "a").succeed()
            case 1:
                run.stop()
        if chance.random() < 0.5:
            engine.advance(chance.randrange(2_000))
    return engine


def all_pages(views: Views, filters: Filters, limit: int, *, backwards: bool = False) -> list[Key]:
    """All that the pages show, one after the other, newest first."""
    found: list[Key] = []
    cursor: str | None = None
    while True:
        page = views.read(browse, PageRequest(limit, cursor, backwards), filters)
        info = page["page_info"]
        found = keys(page) + found if backwards else found + keys(page)
        if not info["has_previous_page" if backwards else "has_next_page"]:
            return found
        cursor = info["start_cursor" if backwards else "end_cursor"]


def expected(views: Views, filters: Filters) -> list[Key]:
    """The same, by looking at every instance."""
    with views.database.reading() as connection:
        rows = connection.execute("SELECT * FROM instances WHERE created_at_ms IS NOT NULL").fetchall()
        labels: dict[Key, set[str]] = {}
        for label in connection.execute("SELECT * FROM labels"):
            labels.setdefault((label["workflow_id"], label["instance_id"]), set()).add(label["label"])
    found = [
        (row["created_at_ms"], row["workflow_id"], row["instance_id"])
        for row in rows
        if (not filters.statuses or row["status"] in filters.statuses)
        and filters.workflow_id in (None, row["workflow_id"])
        and set(filters.labels) <= labels.get((row["workflow_id"], row["instance_id"]), set())
        and (filters.since_ms is None or row["created_at_ms"] >= filters.since_ms)
        and (filters.until_ms is None or row["created_at_ms"] < filters.until_ms)
    ]
    return [(workflow_id, instance_id) for _, workflow_id, instance_id in sorted(found, reverse=True)]


def some_filters(chance: random.Random, times: list[int]) -> Filters:
    labels = [tag_label("nightly"), tag_label("of-two"), param_label("day", "1"), initiator_label("manual")]
    return Filters(
        statuses=tuple(chance.sample(STATUSES, chance.randrange(4))),
        workflow_id=chance.choice([None, "one", "two", "nobody's"]),
        labels=tuple(chance.sample(labels, chance.randrange(3))),
        since_ms=chance.choice([None, chance.choice(times)]),
        until_ms=chance.choice([None, chance.choice(times)]),
    )


@pytest.mark.parametrize(("few", "looked"), [(0, 10_000), (0, 5), (2_000, 10_000)])
def test_pages_show_what_a_look_at_every_instance_would_find(
    few: int, looked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kapelle.views.queries.instance_lists.FEW", few)
    monkeypatch.setattr("kapelle.views.queries.instance_lists.LOOKED_MAX", looked)
    views, chance = view_of(labelled_engine(few)), random.Random(few)
    with views.database.reading() as connection:
        times = [row[0] for row in connection.execute("SELECT created_at_ms FROM instances")]
    found_any = 0

    for _ in range(120):
        filters, limit = some_filters(chance, times), chance.randrange(1, 9)
        wanted = expected(views, filters)
        page = views.read(browse, PageRequest(limit), filters)
        assert all_pages(views, filters, limit) == wanted, filters
        assert all_pages(views, filters, limit, backwards=True) == wanted, filters
        assert page["total_count"] == len(wanted), filters
        found_any += bool(wanted)

    assert found_any > 20


def test_instances_are_found_by_the_tags_of_their_start_their_version_and_their_workflow() -> None:
    views = view_of(labelled_engine(3))

    found = {
        name: len(all_pages(views, Filters(labels=(tag_label(name),)), 50))
        for name in ("nightly", "of-two", "defined-two", "common", "unknown")
    }

    of_two = len(all_pages(views, Filters(workflow_id="two"), 50))
    assert 0 < found["nightly"] < 60
    assert found["of-two"] == found["defined-two"] == of_two > 0
    assert (found["common"], found["unknown"]) == (60, 0)


def test_an_instance_is_found_by_the_parameters_of_each_of_its_runs() -> None:
    engine = Engine()
    pushed = definition("etl", step("a"))
    pushed["workflow"]["params"] = {"day": {"type": "LONG", "value": 1}, "who": {"type": "STRING", "value": "ann=b"}}
    engine.push(pushed)
    run = engine.start("etl")
    run.restart(FROM_BEGINNING, run_params={"day": {"type": "LONG", "value": 2}})
    views = view_of(engine)

    found = {
        text: keys(views.read(browse, PageRequest(), Filters(labels=(param_label(*text.split(" ")),))))
        for text in ("day 1", "day 2", "day 3", "who ann=b")
    }

    assert found == {"day 1": [("etl", 1)], "day 2": [("etl", 1)], "day 3": [], "who ann=b": [("etl", 1)]}


def test_pages_neither_skip_nor_repeat_while_instances_come_and_end() -> None:
    engine, chance = labelled_engine(5), random.Random(5)
    views = view_of(engine)
    before = all_pages(views, Filters(), 50)
    shown: list[Key] = []
    cursor: str | None = None

    while True:
        page = views.read(browse, PageRequest(7, cursor))
        shown += keys(page)
        cursor = page["page_info"]["end_cursor"]
        for _ in range(3):
            engine.task(engine.start(chance.choice(["one", "two", "three"])), "a").succeed()
        fold(views)
        if not page["page_info"]["has_next_page"]:
            break

    assert shown == before


def test_counts_are_those_of_the_instances_whatever_is_deleted() -> None:
    engine = used_engine(4, operations=60)
    views = view_of(engine)
    for name in ("wf-1", "wf-1"):
        with views.database.reading() as connection:
            rows = connection.execute(
                "SELECT workflow_id, status, COUNT(*) AS n FROM instances WHERE created_at_ms IS NOT NULL GROUP BY 1, 2"
            ).fetchall()
        by_hand: dict[str, dict[str, int]] = {}
        for row in rows:
            by_hand.setdefault(row["workflow_id"], {})[row["status"]] = row["n"]
        assert {one: views.read(counts, one) for one in by_hand} == by_hand
        assert sum(views.read(counts).values()) == sum(row["n"] for row in rows) > 0
        deleted(engine, name)
        fold(views)

    assert views.read(counts, "wf-1") == {}
    assert views.read(browse, PageRequest(), Filters(workflow_id="wf-1"))["total_count"] == 0


# What it costs -------------------------------------------------------------------------------------------------------


def every_filter() -> list[Filters]:
    return [
        Filters(statuses=statuses, workflow_id=workflow_id, labels=labels, since_ms=since_ms, until_ms=until_ms)
        for statuses, workflow_id, labels, since_ms, until_ms in itertools.product(
            [(), ("FAILED",), ("FAILED", "STOPPED")],
            [None, "etl"],
            [(), ("tag:a",), ("tag:a", "tag:b")],
            [None, 1],
            [None, 2],
        )
    ]


@pytest.mark.parametrize("few", [-1, 2_000])
def test_no_list_of_instances_reads_or_sorts_a_whole_table(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.views.queries.instance_lists.FEW", few)
    bad: list[tuple[Filters, list[str]]] = []

    with filled(200).reading() as connection:
        for filters in every_filter():
            looking = InstanceSearch(connection, filters)
            for after, newer in itertools.product((None, (1, "etl", 1)), (False, True)):
                text, values = looking.statement(after, newer=newer)
                plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text} LIMIT 50", values)]
                if any(line.startswith(("SCAN", "USE TEMP")) for line in plan):
                    bad.append((filters, plan))

    assert bad == []


def filled(count: int) -> Database:
    """A view with so many instances, made by hand: three of a hundred have failed, one of ten is of `etl`."""
    database = Database(None, "any")
    with database.writing() as connection:
        rows = [
            ("etl" if number % 10 == 0 else f"wf-{number % 7}", number, "FAILED" if number % 100 < 3 else "SUCCEEDED")
            for number in range(1, count + 1)
        ]
        connection.executemany(
            """INSERT INTO instances (workflow_id, instance_id, run_id, status, grade, created_at_ms)
            VALUES (?1, ?2, 1, ?3, 7, 1700000000000 + ?2 / 3)""",
            [(*row,) for row in rows],
        )
        connection.executemany(
            "INSERT INTO labels VALUES (?1, 1700000000000 + ?3 / 3, ?2, ?3)",
            [(f"tag:{number % 2}", workflow_id, number) for workflow_id, number, _ in rows],
        )
        connection.executemany(
            "INSERT INTO runs (workflow_id, instance_id, run_id, status, rank) VALUES (?1, ?2, 1, ?3, 3)", rows
        )
    return database


def work(database: Database, filters: Filters, wanted: PageRequest) -> int:
    """How many instructions SQLite needs for a page."""
    done = 0

    def tick() -> int:
        nonlocal done
        done += 1
        return 0

    with database.reading() as connection:
        connection.set_progress_handler(tick, 10)
        browse(connection, wanted, filters)
        connection.set_progress_handler(None, 0)
    return done * 10


def test_a_page_costs_the_same_however_many_instances_there_are() -> None:
    asked = [
        Filters(),
        Filters(statuses=("FAILED",)),
        Filters(statuses=("FAILED", "STOPPED", "SUCCEEDED")),
        Filters(workflow_id="etl", statuses=("FAILED",)),
        Filters(workflow_id="etl"),
    ]
    small, large = filled(5_000), filled(40_000)

    costs = [(work(small, one, PageRequest(50)), work(large, one, PageRequest(50))) for one in asked]

    assert all(many < 1.2 * few + 500 for few, many in costs), costs


def test_a_label_together_with_all_else_costs_no_more_than_what_is_looked_at_for_a_page() -> None:
    database = filled(80_000)
    asked = [
        Filters(labels=("tag:1",), statuses=("FAILED",)),
        Filters(labels=("tag:1",), statuses=("STOPPED",)),
        Filters(labels=("tag:0", "tag:1")),
        Filters(labels=("tag:1",), workflow_id="etl", statuses=("SUCCEEDED",)),
        Filters(labels=("tag:none",)),
    ]

    costs = [work(database, one, PageRequest(50)) for one in asked]

    assert [one for one in costs if one > 40 * LOOKED_MAX] == [], costs


def test_a_page_is_short_where_too_many_would_have_to_be_looked_at_and_the_next_one_goes_on() -> None:
    database = filled(45_000)
    filters = Filters(labels=("tag:1", "tag:none"))
    pages: list[Page] = []
    cursor: str | None = None

    with database.reading() as connection:
        while not pages or pages[-1]["page_info"]["has_next_page"]:
            pages.append(browse(connection, PageRequest(50, cursor), filters))
            cursor = pages[-1]["page_info"]["end_cursor"]

    assert [len(page["elements"]) for page in pages] == [0, 0, 0]
    assert [page["total_count"] for page in pages] == [None] * 3


def test_what_there_are_very_many_of_is_not_counted_to_the_end() -> None:
    database = filled(2 * COUNTED_MAX + 1_000)

    with database.reading() as connection:
        labelled = browse(connection, PageRequest(50), Filters(labels=("tag:1",)))
        whole = browse(connection, PageRequest(50), Filters())
        first = browse(connection, PageRequest(1, None, backwards=True), Filters())
        deep = browse(connection, PageRequest(1, first["page_info"]["start_cursor"], backwards=True), Filters())

    assert (labelled["total_count"], labelled["page_info"]["start_index"]) == (None, 1)
    assert whole["total_count"] == 2 * COUNTED_MAX + 1_000
    assert (deep["page_info"]["start_index"], deep["page_info"]["has_previous_page"]) == (None, True)
