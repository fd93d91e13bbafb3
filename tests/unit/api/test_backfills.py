"""Backfills by HTTP: planned, started, continued, paused, cancelled and shown."""

from typing import Any

import pytest

from tests.integration.api.places import Place, step, until
from tests.unit.api.test_schedules import DAILY, HOURLY, push

JANUARY = {"from": "2026-01-01", "to": "2026-01-20"}
DAY_MS = 86_400_000


def start(api: Place, name: str, expected: int = 201, **body: Any) -> Any:
    return api.call("POST", f"/workflows/{name}/backfills", expected, json={**JANUARY, **body})


def get(api: Place, name: str, backfill_id: str) -> Any:
    return api.get(f"/workflows/{name}/backfills/{backfill_id}")


def act(api: Place, name: str, backfill_id: str, action: str, expected: int = 200, **body: Any) -> Any:
    return api.call("PUT", f"/workflows/{name}/backfills/{backfill_id}/actions/{action}", expected, json=body)


def completed(api: Place, name: str, backfill_id: str) -> Any:
    def look() -> Any:
        found = get(api, name, backfill_id)
        return found if found["status"] == "COMPLETED" else None

    return until(look, f"backfill {backfill_id} to be completed")


def slow(api: Place, concurrency: int, **body: Any) -> tuple[str, str, str]:
    """A backfill whose instances wait for a worker: its workflow, its id and the type of its tasks."""
    name = push(api)
    kind = f"slow-{name}"
    api.push(step("only", kind), workflow_id=name)
    backfill_id = start(api, name, every="1d", concurrency=concurrency, **body)["backfill_id"]
    until(lambda: get(api, name, backfill_id)["counts"] == {"IN_PROGRESS": concurrency}, "its instances to run")
    return name, backfill_id, kind


# Starting -------------------------------------------------------------------------------------------------------------


def test_a_backfill_of_the_only_trigger_starts_one_instance_for_each_time(api: Place) -> None:
    name = push(api, DAILY)

    started = start(api, name, concurrency=4, params={"day": {"type": "STRING", "value": "x"}})
    found = completed(api, name, started["backfill_id"])

    assert (started["outcome"], started["total"], started["by"]) == ("DONE", 20, "anonymous")
    assert (found["from"], found["to"]) == (1767222000000, 1767222000000 + 20 * DAY_MS - 1)
    assert (found["trigger_id"], found["concurrency"]) == (started["trigger_id"], 4)
    assert (found["decided"], found["existing"], found["slots_left"]) == (20, 0, 0)
    assert found["counts"] == {"SUCCEEDED": 20}
    assert found["params"] == {"day": {"type": "STRING", "value": "x"}}
    instance = api.get(f"/workflows/{name}/instances/1")
    assert (instance["backfill_id"], instance["scheduled_at"]) == (found["backfill_id"], found["from"])


def test_a_dry_run_shows_what_would_be_started_and_starts_nothing(api: Place) -> None:
    name = push(api, DAILY)

    plan = start(api, name, 200, dry_run=True, order="newest")
    again = start(api, name, 200, dry_run=True)

    assert (plan["total"], plan["existing"], len(plan["slots"])) == (20, 0, 20)
    assert plan["backfill_id"] == again["backfill_id"]
    assert plan["slots"] == again["slots"][::-1]
    assert plan["slots"][-1] == {
        "scheduled_at": 1767222000000,
        "local": "2026-01-01T00:00:00+01:00",
        "is_existing": False,
        "workflow_instance_id": None,
    }
    assert api.get(f"/workflows/{name}/instances")["total_count"] == 0
    assert api.get(f"/workflows/{name}/backfills")["elements"] == []


def test_a_dry_run_shows_the_first_and_the_last_of_many_slots_and_which_exist(api: Place) -> None:
    name = push(api, DAILY)
    completed(api, name, start(api, name, to="2026-01-02")["backfill_id"])

    plan = start(api, name, 200, to="2026-03-31", dry_run=True)

    assert (plan["total"], plan["existing"], len(plan["slots"])) == (90, 2, 20)
    assert [slot["is_existing"] for slot in plan["slots"][:3]] == [True, True, False]
    assert plan["slots"][-1]["local"] == "2026-03-31T00:00:00+02:00"


def test_the_same_request_again_continues_and_starts_nothing_twice(api: Place) -> None:
    name = push(api, DAILY)
    first = start(api, name)
    completed(api, name, first["backfill_id"])

    again = start(api, name)
    found = completed(api, name, again["backfill_id"])
    wider = completed(api, name, start(api, name, to="2026-01-25")["backfill_id"])

    assert again["backfill_id"] == first["backfill_id"]
    assert (found["started"], found["existing"]) == (0, 20)
    assert (wider["started"], wider["existing"]) == (5, 20)
    assert api.get(f"/workflows/{name}/instances")["total_count"] == 25


def test_a_repeated_request_id_starts_a_backfill_once(api: Place) -> None:
    name = push(api, DAILY)

    started = start(api, name, request_id=f"{name}-once")
    completed(api, name, started["backfill_id"])
    repeated = start(api, name, 200, request_id=f"{name}-once")

    assert started["request_id"] == repeated["request_id"] == f"{name}-once"
    assert (repeated["outcome"], repeated["message"]) == ("UNCHANGED", "The request was already carried out")
    assert get(api, name, started["backfill_id"])["started"] == 20


def test_the_times_are_those_of_an_interval_a_cron_text_or_a_trigger(api: Place) -> None:
    name = push(api, HOURLY, DAILY)
    trigger_id = api.get(f"/workflows/{name}/schedules")["schedules"][1]["trigger_id"]

    plans = [
        start(api, name, 200, dry_run=True, timezone="Europe/Berlin", **times)
        for times in ({"every": "12h"}, {"cron": "0 0 * * MON"}, {"trigger_id": trigger_id}, {"every": 7200})
    ]

    assert [plan["total"] for plan in plans] == [40, 3, 20, 240]
    assert [plan["slots"][0]["local"] for plan in plans] == [
        "2026-01-01T00:00:00+01:00",
        "2026-01-05T00:00:00+01:00",
        "2026-01-01T00:00:00+01:00",
        "2026-01-01T00:00:00+01:00",
    ]


def test_whole_days_and_weeks_are_those_of_the_clock(api: Place) -> None:
    name = push(api)
    spring = {"from": "2026-03-28T06:30", "to": "2026-04-12", "timezone": "Europe/Berlin", "dry_run": True}

    daily, weekly = (start(api, name, 200, every=every, **spring)["slots"] for every in ("1d", "7d"))

    assert [slot["local"] for slot in daily[:3]] == [
        "2026-03-28T06:30:00+01:00",
        "2026-03-29T06:30:00+02:00",
        "2026-03-30T06:30:00+02:00",
    ]
    assert [slot["local"][:10] for slot in weekly] == ["2026-03-28", "2026-04-04", "2026-04-11"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"from": "yesterday"}, "from: Expected an ISO date or date-time"),
        ({"to": "2026-02-30"}, "to: Expected an ISO date or date-time"),
        ({"to": "2025-01-01"}, "Expected a period that begins before it ends"),
        ({"every": "1s"}, "every: Expected a duration from 2 minutes"),
        ({"every": "1d", "cron": "@daily"}, "Expected one of every, cron and trigger_id, but found every and cron"),
        ({"cron": "0 0 31 2 *"}, "cron: Expected"),
        ({"timezone": "Mars/Olympus"}, "timezone: Expected a time zone"),
        ({"from": "1970-01-01", "to": "2199-12-31", "every": "10m"}, "Expected a period with 1 to 100,000 slots"),
        ({"cron": "0 0 1 2 *"}, "Expected a period with 1 to 100,000 slots, but found 0"),
        ({"concurrency": 0}, "body.concurrency"),
        ({"concurrency": 101}, "body.concurrency"),
        ({"order": "random"}, "body.order"),
        ({"backfill_id": "a/b"}, "body.backfill_id"),
        ({"params": [1]}, "body.params"),
        ({"from": True}, "body.from"),
        ({"unknown": 1}, "body.unknown"),
        ({"params": {"day": {"type": "NOTHING", "value": 1}}}, "day"),
    ],
)
def test_a_backfill_that_is_not_valid_is_refused_before_anything_is_started(
    api: Place, body: dict[str, Any], reason: str
) -> None:
    name = push(api, DAILY)

    refused = start(api, name, 400, **body)

    assert any(reason in text for text in (refused["detail"], *refused["errors"])), refused
    assert api.get(f"/workflows/{name}/backfills")["total_count"] == 0


def test_a_backfill_without_times_needs_a_workflow_with_one_time_trigger(api: Place) -> None:
    none, two = push(api), push(api, HOURLY, DAILY)

    assert f"workflow {none!r} has time triggers none" in start(api, none, 400)["detail"]
    assert "Expected every, cron or trigger_id" in start(api, two, 400)["detail"]


def test_what_does_not_exist_is_not_found(api: Place) -> None:
    name = push(api, DAILY)

    start(api, "nobody", 404)
    start(api, name, 404, trigger_id="nothing")
    api.get("/workflows/nobody/backfills", 404)
    api.get("/workflows/nobody/backfills/b", 404)
    api.get(f"/workflows/{name}/backfills/b", 404)
    act(api, name, "b", "pause", 404)
    act(api, "nobody", "b", "pause", 404)


def test_another_backfill_with_the_same_id_is_a_conflict(api: Place) -> None:
    name = push(api, DAILY)
    start(api, name, backfill_id="mine")

    refused = start(api, name, 409, backfill_id="mine", to="2026-01-21")

    assert "choose another id" in refused["detail"]


def test_a_rerun_starts_the_times_again_that_have_instances(api: Place) -> None:
    name = push(api, DAILY)
    completed(api, name, start(api, name)["backfill_id"])

    rerun = completed(api, name, start(api, name, rerun=True)["backfill_id"])

    assert (rerun["rerun"], rerun["started"], rerun["existing"]) == (True, 20, 0)


# Acting ---------------------------------------------------------------------------------------------------------------


def test_a_backfill_is_paused_resumed_and_cancelled(api: Place) -> None:
    name, backfill_id, _ = slow(api, concurrency=2)

    paused = act(api, name, backfill_id, "pause", reason="the disk is full")
    again = act(api, name, backfill_id, "pause")
    resumed = act(api, name, backfill_id, "resume")
    cancelled = act(api, name, backfill_id, "cancel")
    late = act(api, name, backfill_id, "resume", 409)

    assert (paused["status"], paused["outcome"], paused["reason"]) == ("PAUSED", "DONE", "the disk is full")
    assert (again["outcome"], again["message"]) == ("UNCHANGED", "The backfill is PAUSED already")
    assert resumed["status"] == "RUNNING"
    assert (cancelled["status"], cancelled["ended_at"] is not None) == ("CANCELLED", True)
    assert "start it again to continue it" in late["detail"]
    assert cancelled["counts"] == {"IN_PROGRESS": 2}


def test_a_cancelled_backfill_can_stop_its_instances(api: Place) -> None:
    name, backfill_id, _ = slow(api, concurrency=3)

    act(api, name, backfill_id, "cancel", stop_running=True)

    def look() -> bool:
        return bool(get(api, name, backfill_id)["counts"] == {"STOPPED": 3})

    assert until(look, "its instances to be stopped")
    assert api.call(
        "PUT", f"/workflows/{name}/backfills/{backfill_id}/actions/pause", 400, json={"stop_running": True}
    )["detail"].startswith("Expected `stop_running` only with the action cancel")


def test_the_next_instance_starts_when_one_ends(api: Place) -> None:
    name, backfill_id, kind = slow(api, concurrency=1, to="2026-01-02", order="newest")

    (first,) = api.take(kind)
    api.report(first, "SUCCEEDED")
    (second,) = api.take(kind)
    api.report(second, "SUCCEEDED")
    found = completed(api, name, backfill_id)
    runs = api.get(f"/workflows/{name}/instances", backfill_id=backfill_id)["elements"]

    assert (found["order"], found["counts"]) == ("newest", {"SUCCEEDED": 2})
    assert [run["scheduled_at"] for run in runs] == [1767225600000, 1767225600000 + DAY_MS]


# Lists ----------------------------------------------------------------------------------------------------------------


def test_backfills_are_listed_page_by_page_the_latest_first(api: Place) -> None:
    name = push(api, DAILY)
    for number in range(3):
        start(api, name, backfill_id=f"b{number}", to=f"2026-01-0{number + 1}")

    page = api.get(f"/workflows/{name}/backfills", limit=2)
    rest = api.get(f"/workflows/{name}/backfills", limit=2, cursor=page["page_info"]["end_cursor"])

    assert [one["backfill_id"] for one in (*page["elements"], *rest["elements"])] == ["b2", "b1", "b0"]
    assert page["total_count"] == 3


def test_instances_are_found_by_their_backfill(api: Place) -> None:
    name = push(api, DAILY)
    backfill_id = start(api, name)["backfill_id"]
    completed(api, name, backfill_id)
    api.start(name)

    found = api.get(f"/workflows/{name}/instances", backfill_id=backfill_id, limit=5)

    assert found["total_count"] == 20
    assert {run["backfill_id"] for run in found["elements"]} == {backfill_id}
    assert api.get("/workflows/instances", backfill_id=backfill_id, workflow_id=name)["total_count"] == 20
    assert api.get(f"/workflows/{name}/instances", backfill_id="other")["elements"] == []
