"""What the view knows of signals: every verdict, every way that a signal went, whatever was folded first."""

import random
from typing import Any

import msgspec
import pytest

from kapelle.processors.signals.windows import WINDOW_MS
from kapelle.processors.wiring import PERMIT_EVENTS, SIGNAL_EVENTS, TRIGGER_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action
from kapelle.testing.engine import Engine
from kapelle.topology.journal import Entry
from kapelle.views import BadCursor, Views
from kapelle.views.database import Database
from kapelle.views.projection import project
from kapelle.views.projection.streams import OTHERS
from kapelle.views.queries import explanations, lineage, signals, triggers
from kapelle.views.queries.lineage import Direction
from kapelle.views.queries.pages import PageRequest, cursor_of
from kapelle.views.queries.requests import outcomes
from tests.unit.views.histories import OneByOne, dump, entries_of, written
from tests.unit.views.signalled import chain, on, push, say, view_of, waits
from tests.unit.views.test_folding import shuffled

JOINED = {"x": {"join_keys": ["day"]}, "y": {"join_keys": ["day"]}}


def verdicts(views: Views, name: str, sequence: int) -> dict[str, dict[str, Any]]:
    """The verdicts on a signal by workflow."""
    found = views.read(explanations.explained, name, sequence)
    assert found is not None
    return {one["workflow_id"]: one for one in found["verdicts"]}


# Folding --------------------------------------------------------------------------------------------------------------


def test_every_event_of_signals_triggers_and_permits_is_known_to_the_view() -> None:
    expected = {stream.name: set(stream.contracts) for stream in (SIGNAL_EVENTS, TRIGGER_EVENTS, PERMIT_EVENTS)}

    assert {name: set(known) for name, known in OTHERS.items()} == expected


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_partitions_makes_no_difference_to_signals(seed: int) -> None:
    engine, chance = Engine(partitions=3), random.Random(seed)
    push(engine, "flow", on(JOINED, expiry="1h"), on({"x": {"match_params": {"day": {"value": 1}}}}))
    for number in range(20):
        say(engine, chance.choice("xyz"), f"s{number % 15}", day=chance.randrange(3))
        engine.advance(chance.randrange(1_000_000))
    push(engine, "flow", on({"z": {}}))
    points = entries_of(engine)

    one_by_one = [dump(written(shuffled(points, chance))) for _ in range(3)]
    batched = [dump(view_of(engine, batch_records=size).database) for size in (1, 7, 1_000)]

    assert all(found == one_by_one[0] for found in (*one_by_one, *batched))
    assert {row[4] for row in one_by_one[0]["trigger_signals"]} >= {"FIRED", "DROPPED"}


def test_ending_one_subscription_looks_at_no_other() -> None:
    with Database(None, "any").reading() as connection:
        plan = connection.execute(
            "EXPLAIN QUERY PLAN UPDATE subscriptions SET ended = 1 WHERE name = ? AND subscription = ? AND ended = ?",
            ("a", "b", 0),
        ).fetchall()

    assert "name=? AND ended=? AND subscription=?" in plan[0]["detail"]


@pytest.mark.parametrize(
    "source",
    ["null", "[1]", '{"workflow_instance_id": 1e400}', '{"workflow_instance_id": 99999999999999999999999}', ""],
)
def test_a_source_that_makes_no_sense_stops_nothing(source: str) -> None:
    event = c.SignalAccepted("a", "id", 1, "{}", "{}", 0, source, (), 0)

    found = dump(written([Entry(SIGNAL_EVENTS.name, 0, 0, "a", event, 0)]))

    assert [row[-3:] for row in found["signals"]] == [(None, None, None)]


# Names and signals ----------------------------------------------------------------------------------------------------


def test_names_are_listed_with_what_there_is_of_each() -> None:
    engine = Engine()
    push(engine, "flow", on({"orders/eu": {}}))
    say(engine, "orders/eu", "1", day=1)
    say(engine, "orders/eu", "1", day=1)
    say(engine, "orders/us", "1", at_ms=engine.clock())
    for number in range(2):
        engine.advance(WINDOW_MS)
        say(engine, "other", f"later-{number}")
    say(engine, "orders/us", "2", at_ms=engine.clock() - 2 * WINDOW_MS)
    say(engine, "other", "3")
    push(engine, "waiting", step={"signal_dependencies": [waits("nobody says")]})
    engine.start("waiting")

    views = view_of(engine)
    page = views.read(signals.names, PageRequest())
    orders = views.read(signals.names, PageRequest(), "orders/")

    assert [(one["name"], one["signals"], one["triggers"], one["waiting_steps"]) for one in page["elements"]] == [
        ("nobody says", 0, 0, 1),
        ("orders/eu", 1, 1, 0),
        ("orders/us", 1, 0, 0),
        ("other", 3, 0, 0),
    ]
    assert [(one["name"], one["duplicates"], one["too_late"]) for one in orders["elements"]] == [
        ("orders/eu", 1, 0),
        ("orders/us", 0, 1),
    ]


def test_signals_of_a_name_are_pages_the_latest_first() -> None:
    engine = Engine()
    for number in range(5):
        say(engine, "a", str(number), n=number)
    views = view_of(engine)

    first = views.read(signals.of_name, "a", PageRequest(2))
    second = views.read(signals.of_name, "a", PageRequest(2, first["page_info"]["end_cursor"]))
    back = views.read(signals.of_name, "a", PageRequest(2, second["page_info"]["start_cursor"], backwards=True))

    assert [one["sequence"] for one in first["elements"]] == [5, 4]
    assert [one["sequence"] for one in second["elements"]] == [3, 2]
    assert [one["sequence"] for one in back["elements"]] == [5, 4]
    assert (second["total_count"], second["page_info"]["start_index"]) == (5, 3)


def test_one_signal_is_found_by_its_number_or_as_the_latest() -> None:
    engine = Engine()
    say(engine, "a", "one", n=1)
    say(engine, "a", "two", n=2)
    views = view_of(engine)

    found = [views.read(signals.signal, "a", sequence) for sequence in (1, 2, None, 3)]

    assert [one and one["signal_id"] for one in found] == ["one", "two", "two", None]


def test_a_cursor_of_another_list_is_refused() -> None:
    views = view_of(Engine())

    with pytest.raises(BadCursor):
        views.read(signals.of_name, "a", PageRequest(2, cursor_of([2**70])))


def test_what_came_of_an_announcement_is_an_outcome_of_its_request() -> None:
    engine = Engine()
    say(engine, "a", "1")
    say(engine, "a", "1")

    found = view_of(engine).read(outcomes, "a-1", "signal/a")

    assert [(one.kind, one.body) for one in found] == [
        ("SignalAccepted", {"signal_id": "1", "sequence": 1}),
        ("SignalDuplicated", {"signal_id": "1", "first_sequence": 1}),
    ]


def test_announcements_in_vain_are_listed_by_id() -> None:
    engine = Engine()
    for signal_id in ("1", "2", "1", "2", "1"):
        say(engine, "a", signal_id)
    views = view_of(engine)

    page = views.read(signals.refused, "a", PageRequest(2), None)
    rest = views.read(signals.refused, "a", PageRequest(2, page["page_info"]["end_cursor"]), None)
    one = views.read(signals.refused, "a", PageRequest(), "2")

    assert [found["duplicate_of"] for found in (*page["elements"], *rest["elements"])] == [1, 2, 1]
    assert [found["signal_id"] for found in one["elements"]] == ["2"]


# Verdicts -------------------------------------------------------------------------------------------------------------


def test_a_signal_that_started_an_instance_tells_which_and_with_whom() -> None:
    engine = Engine()
    push(engine, "alone", on({"x": {}}))
    push(engine, "joined", on(JOINED))
    say(engine, "x", "1", day=7)
    say(engine, "y", "1", day=7)

    found = verdicts(view_of(engine), "x", 1)

    assert (found["alone"]["verdict"], found["alone"]["workflow_instance_id"]) == ("FIRED", 1)
    assert (found["joined"]["start"], found["joined"]["partners"]) == ("CREATED", {"y": 1})
    assert found["joined"]["reason"] == "It started joined/1 with y 1"
    assert bytes(found["joined"]["join_value"]) == b"[7]"


def test_a_signal_that_waits_tells_for_whom() -> None:
    engine = Engine()
    push(engine, "flow", on({**JOINED, "z": {"join_keys": ["day"]}}, expiry="1h"))
    say(engine, "x", "1", day=7)
    say(engine, "y", "1", day=7)

    found = verdicts(view_of(engine), "x", 1)["flow"]

    assert (found["verdict"], found["waiting_for"]) == ("KEPT", ["z"])
    assert found["reason"] == "It waits for z with the join value [7]"
    assert found["expire_time"] == engine.clock() + 3_600_000


def test_a_signal_whose_partners_never_came_has_expired() -> None:
    engine = Engine()
    push(engine, "flow", on(JOINED, expiry="1h"))
    say(engine, "x", "1", day=7)
    engine.advance(3_700_000)

    assert verdicts(view_of(engine), "x", 1)["flow"]["verdict"] == "EXPIRED"


def test_a_signal_that_was_kept_by_a_trigger_that_is_gone_was_dropped() -> None:
    engine = Engine()
    push(engine, "flow", on(JOINED))
    say(engine, "x", "1", day=7)
    push(engine, "flow", on({"z": {}}))

    assert verdicts(view_of(engine), "x", 1)["flow"]["verdict"] == "DROPPED"


def test_signals_that_are_passed_over_or_skipped_tell_why() -> None:
    engine = Engine()
    latest = {"x": {"join_keys": ["day"], "match": "latest"}, "y": {"join_keys": ["day"]}}
    push(engine, "latest", on(latest))
    push(engine, "choosy", on({"x": {}}, condition="x__day > 5"))
    push(engine, "keyless", on({"x": {"join_keys": ["other"]}, "y": {"join_keys": ["other"]}}))
    say(engine, "x", "1", day=1)
    say(engine, "x", "2", day=1)

    found = verdicts(view_of(engine), "x", 1)

    assert {name: one["verdict"] for name, one in found.items()} == {
        "latest": "PASSED_OVER",
        "choosy": "SKIPPED",
        "keyless": "PASSED_OVER",
    }
    assert found["latest"]["reason"] == "Expected the latest signal, but signal 2 is newer"
    assert found["choosy"]["reason"] == "The condition 'x__day > 5' is not true"
    assert "joins by other" in found["keyless"]["reason"]


def test_a_signal_that_does_not_match_tells_which_condition_failed() -> None:
    engine = Engine()
    push(engine, "other-day", on({"x": {"match_params": {"day": {"value": 2, "operator": "="}}}}))
    push(engine, "no-hour", on({"x": {"match_params": {"hour": {"value": 2, "operator": ">"}}}}))
    push(engine, "waiting", step={"signal_dependencies": [waits("x", day=3)]})
    engine.start("waiting")
    say(engine, "x", "1", day=1)
    push(engine, "late", on({"x": {}}))

    found = verdicts(view_of(engine), "x", 1)

    assert {name: one["verdict"] for name, one in found.items()} == dict.fromkeys(
        ("other-day", "no-hour", "waiting"), "NOT_MATCHED"
    )
    assert found["other-day"]["reason"] == "Expected day = 2, but day is 1"
    assert found["no-hour"]["reason"] == "Expected hour > 2, but the signal has no hour"
    assert found["waiting"]["condition"] == {"param": "day", "operator": "=", "value": 3}


def test_subscriptions_are_those_of_the_moment_when_the_signal_came() -> None:
    engine = Engine()
    push(engine, "gone", on({"x": {"match_params": {"day": {"value": 2, "operator": "="}}}}))
    say(engine, "x", "1", day=1)
    push(engine, "gone", on({"z": {}}))
    say(engine, "x", "2", day=1)
    views = view_of(engine)

    assert set(verdicts(views, "x", 1)) == {"gone"}
    assert verdicts(views, "x", 2) == {}


def test_a_step_that_has_a_signal_of_now_or_of_the_past_tells_so() -> None:
    engine = Engine()
    push(engine, "before", step={"signal_dependencies": [waits("x", day=1)]})
    push(engine, "after", step={"signal_dependencies": [waits("x", day=1)]})
    engine.start("before")
    say(engine, "x", "1", day=1)
    engine.start("after")

    found = verdicts(view_of(engine), "x", 1)

    assert {name: (one["verdict"], one["step_id"]) for name, one in found.items()} == {
        "before": ("TAKEN", "only"),
        "after": ("TAKEN", "only"),
    }


def test_a_step_that_was_let_go_has_taken_nothing() -> None:
    engine = Engine()
    push(engine, "flow", step={"signal_dependencies": [waits("x", day=1)]})
    run = engine.start("flow")
    run.act("only", Action.BYPASS)
    say(engine, "x", "1", day=1)

    found = verdicts(view_of(engine), "x", 1)

    assert found == {}


def test_a_start_that_was_asked_for_before_is_told_as_such() -> None:
    engine = Engine()
    push(engine, "flow", on({"x": {}}, dedup_expr="x__day"))
    say(engine, "x", "1", day=1)
    say(engine, "x", "2", day=1)
    views = view_of(engine)

    assert verdicts(views, "x", 1)["flow"]["start"] == "CREATED"
    assert verdicts(views, "x", 2)["flow"]["start"] == "DUPLICATED"
    assert verdicts(views, "x", 2)["flow"]["workflow_instance_id"] == 1


@pytest.mark.parametrize(
    ("unseen", "verdict", "reason"),
    [
        ("triggers.events", "OFFERED", "It was offered; the trigger has not answered yet, or was disarmed meanwhile"),
        ("workflows.events", "FIRED", "It fired; the start is not visible yet"),
        ("runs.events", "OFFERED", "It was offered; the step has not taken it: it no longer waits, or has not"),
    ],
)
def test_what_is_not_visible_yet_is_told_as_such(unseen: str, verdict: str, reason: str) -> None:
    engine = Engine()
    push(engine, "flow", on({"x": {}}))
    push(engine, "waiting", step={"signal_dependencies": [waits("x")]})
    engine.start("waiting")
    say(engine, "x", "1")
    seen = [entry for (stream, _), entries in entries_of(engine).items() if stream != unseen for entry in entries]

    with written(seen).reading() as connection:
        found = explanations.explained(connection, "x", 1)

    assert found is not None
    assert [one["verdict"] for one in found["verdicts"] if one["reason"].startswith(reason)] == [verdict]


def test_a_start_that_was_refused_is_told_with_its_reason() -> None:
    engine = Engine()
    push(engine, "flow", on({"x": {}}))
    say(engine, "x", "1")
    database = Database(None, "any")
    with database.writing() as connection:
        for entry in (entry for entries in entries_of(engine).values() for entry in entries):
            value = entry.value
            if isinstance(value, c.InstanceCreated):
                refusal = c.CommandRefused(value.request_id, "StartInstances", c.Refusal.CONFLICT, "no", 0)
                entry = msgspec.structs.replace(entry, value=refusal)  # noqa: PLW2901 - the same place, another end
            project(OneByOne(connection), entry)

    with database.reading() as connection:
        found = explanations.explained(connection, "x", 1)

    assert found is not None
    assert found["verdicts"][0]["start"] == "REFUSED"
    assert found["verdicts"][0]["reason"] == "It fired, but the start was refused: no"


def test_a_signal_tells_how_often_it_was_repeated_and_by_whom() -> None:
    engine = Engine()
    for _ in range(3):
        say(engine, "x", "1")

    found = view_of(engine).read(explanations.explained, "x", None)

    assert found is not None
    assert (found["status"], found["repetitions"]["count"]) == ("ACCEPTED", 2)
    assert found["repetitions"]["latest"][0]["duplicate_of"] == 1


def test_there_is_nothing_to_explain_of_a_signal_that_never_came() -> None:
    assert view_of(Engine()).read(explanations.explained, "x", 1) is None


# Triggers -------------------------------------------------------------------------------------------------------------


def test_a_trigger_tells_what_waits_for_which_partner_and_when_it_fired() -> None:
    engine = Engine()
    push(engine, "flow", on(JOINED))
    for number, (name, day) in enumerate([("x", 1), ("y", 1), ("x", 2), ("x", 2), ("y", 3)]):
        say(engine, name, str(number), day=day)

    (found,) = view_of(engine).read(triggers.listed, "flow")

    assert found["is_armed"]
    assert [(bytes(one["join_value"]), one["there"], one["waiting_for"]) for one in found["waiting"]] == [
        (b"[2]", {"x": {"next": 2, "count": 2}}, ["y"]),
        (b"[3]", {"y": {"next": 2, "count": 1}}, ["x"]),
    ]
    assert found["latest"]["FIRED"]["signals"] == {"x": 1, "y": 1}
    assert found["latest"]["FIRED"]["workflow_instance_id"] == 1


def test_triggers_that_are_disarmed_are_listed_for_whoever_asks() -> None:
    engine = Engine()
    push(engine, "flow", on({"x": {}}))
    push(engine, "flow", on({"y": {}}))
    views = view_of(engine)

    assert [list(one["signals"]) for one in views.read(triggers.listed, "flow")] == [["y"]]
    both = views.read(triggers.listed, "flow", with_disarmed=True)
    assert [(list(one["signals"]), one["is_armed"]) for one in both] == [(["y"], True), (["x"], False)]


def test_a_workflow_that_did_not_start_tells_what_is_missing() -> None:
    engine = Engine()
    push(engine, "flow", on({"x": {"match_params": {"day": {"value": 2, "operator": "="}}}, "y": {}}))
    say(engine, "x", "1", day=1)

    found = view_of(engine).read(triggers.explained, "flow")

    assert found is not None
    assert found["obstacles"] == []
    assert found["triggers"][0]["missing"] == [
        "The latest 'x' is 1. Expected day = 2, but day is 1",
        "'y' has not been announced yet",
    ]
    assert found["triggers"][0]["seen"]["y"] is None


def test_a_signal_from_before_the_arming_is_told_as_such() -> None:
    engine = Engine()
    say(engine, "x", "1")
    push(engine, "flow", on({"x": {}}))

    found = view_of(engine).read(triggers.explained, "flow")

    assert found is not None
    assert found["triggers"][0]["missing"] == ["The latest 'x' is 1. The trigger was not armed when it arrived"]


@pytest.mark.parametrize(
    ("properties", "pushed", "obstacle"),
    [
        ({"signal_trigger_disabled": True}, [on({"x": {}})], "Its properties disable signal triggers"),
        ({}, [], "Version 1 has no signal trigger that is armed"),
    ],
)
def test_what_keeps_all_signals_away_is_told(properties: dict[str, Any], pushed: list[Any], obstacle: str) -> None:
    engine = Engine()
    push(engine, "flow", *pushed, **properties)

    found = view_of(engine).read(triggers.explained, "flow")

    assert found is not None
    assert found["obstacles"] == [obstacle]


# Lineage --------------------------------------------------------------------------------------------------------------


def edges(found: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(one["from"], one["type"], one["to"]) for one in found["edges"]}


def test_lineage_goes_forward_over_a_chain_a_diamond_and_a_cycle() -> None:
    found = view_of(chain()).read(lineage.of_signal, ("begin", 1), Direction.FORWARD, 20)

    assert edges(found) == {
        ("signal begin 1", "STARTED", "instance first 1"),
        ("instance first 1", "PUBLISHED", "signal left 1"),
        ("instance first 1", "PUBLISHED", "signal right 1"),
        ("signal left 1", "STARTED", "instance second 1"),
        ("signal right 1", "STARTED", "instance second 1"),
        ("instance second 1", "PUBLISHED", "signal done 1"),
        ("signal done 1", "STARTED", "instance third 1"),
        ("signal left 1", "AWAITED", "instance third 1"),
        ("instance third 1", "PUBLISHED", "signal begin 1"),
    }
    assert not found["is_cut"]
    again = [one for one in found["edges"] if one.get("is_repetition")]
    assert [(one["from"], one["step_id"]) for one in again] == [("instance third 1", "only")]


def test_lineage_goes_backward_to_the_same_edges() -> None:
    views = view_of(chain())

    backward = views.read(lineage.of_signal, ("done", 1), Direction.BACKWARD, 20)
    forward = views.read(lineage.of_signal, ("begin", 1), Direction.FORWARD, 20)

    assert edges(backward) == edges(forward)
    assert {one["id"]: one["distance"] for one in backward["nodes"]}["instance first 1"] == -3


def test_lineage_of_an_instance_goes_both_ways() -> None:
    found = view_of(chain()).read(lineage.of_instance, ("second", 1), Direction.BOTH, 1)

    assert {one["id"]: one["distance"] for one in found["nodes"]} == {
        "signal left 1": -1,
        "signal right 1": -1,
        "instance second 1": 0,
        "signal done 1": 1,
    }
    assert found["is_cut"]
    assert {one["id"] for one in found["nodes"] if one["is_cut"]} == {
        "signal left 1",
        "signal right 1",
        "signal done 1",
    }


def test_lineage_that_is_deep_enough_is_not_cut() -> None:
    views = view_of(chain())

    cut = [views.read(lineage.of_signal, ("begin", 1), Direction.FORWARD, depth)["is_cut"] for depth in range(1, 6)]

    assert cut == [True, True, True, False, False]


def test_lineage_stops_at_a_number_of_nodes_and_says_so() -> None:
    found = view_of(chain()).read(lineage._lineage, ("SIGNAL", "begin", 1), Direction.FORWARD, 20, nodes_max=4)

    assert len(found["nodes"]) == 4
    assert found["is_cut"]


def test_lineage_tells_params_of_signals_and_states_of_instances() -> None:
    found = view_of(chain()).read(lineage.of_signal, ("begin", 1), Direction.FORWARD, 1)

    signal, instance = found["nodes"]
    assert bytes(signal["params"]) == b'{"n":1}'
    assert instance["status"] == "SUCCEEDED"
