"""What leaves the view besides instances, and what never does: whatever one that is there speaks of."""

import random
from typing import Any

import pytest

from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Report
from kapelle.testing.engine import Engine
from kapelle.views import Views
from kapelle.views.database import Database
from kapelle.views.queries import explanations, instances, lineage, signals, steps, triggers, workflows
from kapelle.views.queries.instance_lists import browse
from kapelle.views.queries.lineage import Direction
from kapelle.views.queries.pages import PageRequest
from kapelle.views.queries.requests import outcomes
from kapelle.views.retention import DAY_MS, Retention
from kapelle.views.schema import BY_AGE
from kapelle.views.unreferenced import SWEEPS
from tests.unit.views.histories import definition, deleted, dump, fold, step
from tests.unit.views.signalled import on, push, say, says, view_of, waits

JOINED = {"x": {"join_keys": ["day"]}, "y": {"join_keys": ["day"]}}


def aged(engine: Engine, views: Views, days: float) -> int:
    """Let go of all that is older than so many days. How much that was."""
    fold(views)
    retention = Retention(views.journal, views.database, round(days * DAY_MS), clock=lambda: engine.clock.now_ms)
    gone, turns = 0, 0
    while retention._ends is not None or turns == 0:
        gone += retention.turn(views.watermark)
        turns += 1
    return gone


def numbers(views: Views, name: str) -> list[int]:
    return [one["sequence"] for one in views.read(signals.of_name, name, PageRequest(200))["elements"]]


def test_old_signals_leave_with_what_was_made_of_them() -> None:
    engine = Engine()
    push(engine, "flow", on({"x": {"match_params": {"day": {"value": 1}}}}))
    for number in range(4):
        say(engine, "x", f"s{number}", day=number % 2)
        say(engine, "x", f"s{number}", day=number % 2)
        engine.advance(DAY_MS)
    views = view_of(engine)

    aged(engine, views, 2.5)

    found = dump(views.database)
    assert numbers(views, "x") == [4, 3]
    for table in ("signals", "offers"):
        assert {row[1] for row in found[table]} <= {3, 4}, table
    assert {row[3] for row in found["trigger_signals"]} <= {3, 4}
    assert views.read(signals.refused, "x", PageRequest(), None)["total_count"] == 2
    assert views.read(signals.signal, "x", 1) is None
    assert [one.kind for one in views.read(outcomes, "x-s0")] == []
    assert [one.kind for one in views.read(outcomes, "x-s3")] == ["SignalAccepted", "SignalDuplicated"]


@pytest.mark.parametrize(
    ("definitions", "step", "stays"),
    [
        ({"x": {}}, {"type": "python"}, "it has started an instance that runs"),
        ({"x": {"join_keys": ["day"]}, "y": {"join_keys": ["day"]}}, None, "a trigger keeps it"),
        ({"z": {}}, None, None),
    ],
)
def test_a_signal_stays_while_something_speaks_of_it(
    definitions: dict[str, Any], step: dict[str, Any] | None, stays: str | None
) -> None:
    engine = Engine()
    push(engine, "flow", on(definitions), step=step)
    say(engine, "x", "1", day=1)
    push(engine, "flow", on(definitions), step=step)
    engine.advance(9 * DAY_MS)
    say(engine, "x", "2", day=2)
    views = view_of(engine)

    aged(engine, views, 2)

    assert numbers(views, "x") == ([2, 1] if stays else [2]), stays


def test_a_signal_stays_with_the_instance_that_took_it() -> None:
    engine = Engine()
    push(engine, "taking", step={"signal_dependencies": [waits("x")], "type": "python"})
    taking = engine.start("taking")
    for number in range(2):
        say(engine, "x", f"{number}")
    engine.advance(9 * DAY_MS)
    views = view_of(engine)
    before = views.read(lineage.of_instance, ("taking", 1), Direction.BOTH, 1)

    aged(engine, views, 30)
    all_there = numbers(views, "x")
    aged(engine, views, 2)

    assert (all_there, numbers(views, "x")) == ([2, 1], [1])
    assert views.read(lineage.of_instance, ("taking", 1), Direction.BOTH, 1) == before
    engine.task(taking, "only").succeed()
    engine.advance(9 * DAY_MS)
    aged(engine, views, 2)
    assert numbers(views, "x") == []


def test_a_signal_stays_with_the_instance_that_announced_it_first_or_again() -> None:
    engine = Engine()
    saying = step("a", "NoOp", "b")
    saying["step"]["signal_outputs"] = [says("x", n=1), says("y", n=1)]
    engine.push(definition("saying", saying, step("b", "python")))
    say(engine, "y", "", n=1)  # its id is made of its parameters: the step announces the same one again
    run = engine.start("saying")
    for name in "xy":
        say(engine, name, "other", n=2)
    engine.advance(9 * DAY_MS)
    views = view_of(engine)
    before = views.read(lineage.of_instance, ("saying", 1), Direction.BOTH, 1)

    aged(engine, views, 2)

    assert [edge.get("is_repetition", False) for edge in before["edges"]] == [False, True]
    assert (numbers(views, "x"), numbers(views, "y")) == ([1], [1])
    assert views.read(lineage.of_instance, ("saying", 1), Direction.BOTH, 1) == before
    engine.task(run, "b").succeed()
    engine.advance(9 * DAY_MS)
    aged(engine, views, 2)
    assert (numbers(views, "x"), numbers(views, "y")) == ([], [])


def test_the_latest_of_a_name_stays_while_somebody_waits_for_the_next() -> None:
    engine = Engine()
    push(engine, "flow", on({"x": {"match_params": {"day": {"value": 1}}}}))
    for number in range(3):
        say(engine, "x", f"{number}", day=2)
    engine.advance(9 * DAY_MS)
    views = view_of(engine)

    aged(engine, views, 2)

    assert numbers(views, "x") == [3]
    explained = views.read(triggers.explained, "flow")
    assert explained is not None
    assert explained["triggers"][0]["missing"][0].startswith("The latest 'x' is 3.")
    push(engine, "flow")
    engine.advance(9 * DAY_MS)
    aged(engine, views, 2)
    assert not views.read(signals.is_known, "x")


def test_what_is_left_of_a_name_is_counted_and_paged_as_it_is() -> None:
    engine = Engine()
    push(engine, "flow", on(JOINED))
    for number in range(12):
        say(engine, "x", f"s{number}", day=number)
        if number % 3:
            say(engine, "y", f"s{number}", day=number)  # the others wait for their partners
        engine.advance(DAY_MS)
    views = view_of(engine)
    aged(engine, views, 4.5)
    expected = [12, 11, 10, 9, 7, 4, 1]

    pages: list[list[int]] = []
    places: list[tuple[int | None, int | None]] = []
    cursor: str | None = None
    while len(pages) < 4:
        page = views.read(signals.of_name, "x", PageRequest(2, cursor))
        pages.append([one["sequence"] for one in page["elements"]])
        places.append((page["page_info"]["start_index"], page["total_count"]))
        cursor = page["page_info"]["end_cursor"]

    assert [number for page in pages for number in page] == expected
    assert places == [(1, 7), (3, 7), (5, 7), (7, 7)]
    backwards = views.read(signals.of_name, "x", PageRequest(2, cursor, backwards=True))
    assert [one["sequence"] for one in backwards["elements"]] == [7, 4]
    assert backwards["page_info"]["start_index"] == 5


def test_a_name_that_has_left_goes_on_with_its_numbers_when_it_is_announced_again() -> None:
    engine = Engine()
    for number in range(3):
        say(engine, "x", f"{number}", day=number)
    engine.advance(60 * DAY_MS)
    views = view_of(engine)
    aged(engine, views, 2)
    assert not views.read(signals.is_known, "x")

    say(engine, "x", "again", day=9)
    fold(views)

    page = views.read(signals.of_name, "x", PageRequest())
    assert ([one["sequence"] for one in page["elements"]], page["total_count"]) == ([4], 1)
    assert page["page_info"]["start_index"] == 1


def test_requests_and_refused_reports_leave_with_the_instance_or_with_age() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a", "python"), run_strategy="PARALLEL"))
    running, ended = engine.start("etl"), engine.start("etl")
    task = engine.task(ended, "a")
    for run in (running, ended):
        run.act("b", Action.SKIP)  # there is no such step: it is refused
    task.begin("w1")
    ended.stop(Action.KILL, "enough")
    engine.advance(3 * DAY_MS)
    views = view_of(engine)
    aged(engine, views, 2)
    engine.send(WORKFLOW_COMMANDS, "nobody's", c.DeactivateWorkflow("late", "ann"))
    task.say(Report.SUCCEEDED, worker="w1")
    fold(views)
    late = dump(views.database)

    engine.advance(3 * DAY_MS)
    aged(engine, views, 2)

    found = dump(views.database)
    assert [(row[3], row[4]) for row in late["refused_reports"]] == [("etl", 2)]
    assert {(row[0], row[1]) for row in late["timeline"]} == {("etl", 1), ("etl", 2)}
    assert {row[4:6] for row in late["requests"]} == {("etl", 1), ("nobody's", None)}
    assert found["refused_reports"] == found["cancellations"] == []
    assert {(row[0], row[1]) for row in found["timeline"]} == {("etl", 1)}
    assert {row[4:6] for row in found["requests"]} == {("etl", 1)}


def test_subscriptions_leave_with_their_instance_or_when_no_signal_is_left_that_they_could_have_got() -> None:
    engine = Engine()
    push(engine, "flow", on({"x": {}}))
    push(engine, "waiting", step={"signal_dependencies": [waits("x", day=7)]})
    run = engine.start("waiting")
    push(engine, "flow", on({"x": {"match_params": {"day": {"value": 1}}}}))
    run.stop(Action.KILL, "enough")
    say(engine, "x", "1", day=3)
    engine.advance(9 * DAY_MS)
    views = view_of(engine)
    before = {row[1].partition("/")[0] for row in dump(views.database)["subscriptions"]}

    aged(engine, views, 2)

    found = dump(views.database)["subscriptions"]
    assert before == {"trigger", "step"}
    assert [(row[1].partition("/")[0], row[3]) for row in found] == [("trigger", 0)]
    assert len(dump(views.database)["triggers"]) == 1


def test_of_the_notes_on_a_workflow_the_latest_stay_however_old(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    for _ in range(3):
        engine.push(definition("etl"))
    engine.advance(9 * DAY_MS)
    views = view_of(engine)
    few = [
        sweep.__class__(
            **{name: _with(getattr(sweep, name), "OFFSET 299", "OFFSET 3") for name in sweep.__struct_fields__}
        )
        for sweep in SWEEPS
    ]
    shown = views.read(workflows.notes, "etl")

    aged(engine, views, 2)
    all_there = views.read(workflows.notes, "etl")
    monkeypatch.setattr("kapelle.views.retention.SWEEPS", few)
    aged(engine, views, 2)

    assert len(shown) > 4
    assert all_there == shown
    assert views.read(workflows.notes, "etl") == shown[:4]
    assert views.read(workflows.overview, "etl") is not None


def _with(value: Any, old: str, new: str) -> Any:
    if isinstance(value, tuple):
        return tuple(_with(one, old, new) for one in value)
    return value.replace(old, new) if isinstance(value, str) else value


def test_a_deleted_workflow_leaves_when_its_instances_have() -> None:
    engine = Engine()
    engine.push(definition("etl", step("a")))
    engine.start("etl")
    deleted(engine, "etl")
    engine.push(definition("other", step("a")))
    engine.advance(9 * DAY_MS)
    views = view_of(engine)

    aged(engine, views, 2)

    found = dump(views.database)
    assert [row[0] for row in found["workflows"]] == ["other"]
    assert {row[0] for table in ("notes", "instances", "counts") for row in found[table]} == {"other"}
    assert [row[0] for row in found["versions"]] == ["other"]
    engine.push(definition("etl", step("a")))
    engine.start("etl")
    fold(views)
    assert [one["workflow_instance_id"] for one in views.read(browse, PageRequest())["elements"]] == [2]


def test_no_walk_by_age_looks_at_what_is_younger_and_none_sorts() -> None:
    database = Database(None, "any")
    with database.writing() as connection:
        for statement in BY_AGE:
            connection.execute(statement)
        plans = {}
        for number, sweep in enumerate(SWEEPS):
            values = {**dict(zip(sweep.order, sweep.start, strict=True)), "before_ms": 1}
            plans[number] = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sweep.look}", values)]
            for statement in sweep.taken:
                plans[number] += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]

    assert [line for plan in plans.values() for line in plan if line.startswith(("SCAN", "USE TEMP"))] == []
    assert all("at_ms<?" in plans[number][0] for number, sweep in enumerate(SWEEPS) if sweep.index)


# What stays is as it was ----------------------------------------------------------------------------------------------


def busy_engine(seed: int) -> Engine:
    """Workflows that start each other by signals, wait for them and for workers, over many days."""
    engine, chance = Engine(partitions=2), random.Random(seed)
    push(engine, "first", on({"x": {}}), step={"signal_outputs": [says("y", day=1)]})
    push(engine, "second", on(JOINED, expiry="40d"), step={"type": "python", "signal_outputs": [says("z", day=2)]})
    push(engine, "third", on({"z": {}}), step={"signal_dependencies": [waits("y", day=1)]})
    for number in range(40):
        match chance.randrange(6):
            case 0 | 1:
                say(engine, chance.choice("xyz"), f"s{chance.randrange(30)}", day=chance.randrange(3))
            case 2:
                engine.start(chance.choice(["first", "second", "third"]))
            case 3:
                for task in engine.tasks()[-2:]:
                    task.say(chance.choice([Report.STARTED, Report.SUCCEEDED, Report.FATAL_ERROR]), worker="w")
            case 4:
                push(engine, "first", on({chance.choice("xz"): {}}), step={"signal_outputs": [says("y", day=number)]})
            case _:
                engine.advance(chance.randrange(1, 4) * DAY_MS)
    return engine


def told(views: Views, at: tuple[str, int]) -> dict[str, Any]:
    """All that the view tells of an instance, and of the signals that it has to do with."""
    way = views.read(lineage.of_instance, at, Direction.BOTH, 1)
    near = [(node["name"], node["sequence"]) for node in way["nodes"] if node["type"] == "SIGNAL"]
    return {
        "run": views.read(instances.run, *at),
        "timeline": views.read(instances.timeline, *at),
        "steps": views.read(steps.latest_of_each, *at),
        "lineage": way["edges"],
        "signals": [views.read(signals.signal, *one) for one in near],
        "verdicts": [
            verdict
            for one in near
            for verdict in (views.read(explanations.explained, *one) or {"verdicts": []})["verdicts"]
            if (verdict["workflow_id"], verdict.get("workflow_instance_id")) == at
        ],
    }


@pytest.mark.parametrize("seed", range(8))
def test_all_that_is_told_of_an_instance_that_stays_is_told_as_before(seed: int) -> None:
    engine = busy_engine(seed)
    views = view_of(engine)
    there = {
        (one["workflow_id"], one["workflow_instance_id"]) for one in views.read(browse, PageRequest(200))["elements"]
    }
    before = {at: told(views, at) for at in there}

    gone = [aged(engine, views, days) for days in (20, 6, 1)]

    left = {
        (one["workflow_id"], one["workflow_instance_id"]) for one in views.read(browse, PageRequest(200))["elements"]
    }
    assert sum(gone) > 0
    assert left < there
    assert {at: told(views, at) for at in left} == {at: before[at] for at in left}
