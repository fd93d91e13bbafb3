"""Schedules by HTTP: the ticks of time triggers, pauses, and previews."""

import uuid
from itertools import pairwise
from typing import Any

import httpx
import pytest

from tests.integration.api.places import Place, definition, step

HOURLY = {"type": "CRON", "cron": "0 * * * *", "timezone": "Europe/Berlin"}
DAILY = {"type": "PREDEFINED", "expression": "@daily", "timezone": "Europe/Berlin", "fuzzy_max_delay": "10 min"}
EVERY = {"type": "INTERVAL", "interval": "90m", "catch_up": "ALL"}
SPRING: dict[str, Any] = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "from": "2026-03-28"}


def push(api: Place, *triggers: dict[str, Any], workflow_id: str | None = None, **properties: Any) -> str:
    """A workflow with time triggers, under an id that nobody else has."""
    name = workflow_id or f"wf-{uuid.uuid4().hex[:12]}"
    request = definition(name, step("only"), run_strategy="PARALLEL", **properties)
    request["workflow"]["time_triggers"] = list(triggers)
    api.call("POST", "/workflows", json=request)
    return name


def schedules(api: Place, name: str, **params: Any) -> Any:
    return api.get(f"/workflows/{name}/schedules", **params)["schedules"]


def act(api: Place, name: str, action: str, expected: int = 200, **body: Any) -> Any:
    return api.call("PUT", f"/workflows/{name}/schedules/actions/{action}", expected, json=body)


# Reading --------------------------------------------------------------------------------------------------------------


def test_time_triggers_are_listed_in_the_order_of_the_definition_with_their_next_ticks(api: Place) -> None:
    name = push(api, HOURLY, DAILY, EVERY)

    hourly, daily, every = schedules(api, name)

    assert [one["state"] for one in (hourly, daily, every)] == ["ARMED"] * 3
    assert (hourly["type"], hourly["cron"], hourly["timezone"]) == ("CRON", "0 * * * *", "Europe/Berlin")
    assert (daily["cron"], daily["fuzzy_max_delay_ms"], daily["catch_up"]) == ("0 0 * * *", 600_000, "LATEST")
    assert (every["type"], every["interval"], every["interval_ms"]) == ("INTERVAL", "90m", 5_400_000)
    assert (every["cron"], every["catch_up"]) == (None, "ALL")
    times = [tick["scheduled_at"] for tick in hourly["next"]]
    assert [second - first for first, second in pairwise(times)] == [3_600_000] * 4
    assert all(0 <= tick["due_at"] - tick["scheduled_at"] < 600_000 for tick in daily["next"])
    assert (hourly["last"], hourly["started"]) == ([], 0)


def test_one_time_trigger_shows_as_many_ticks_as_are_asked_for(api: Place) -> None:
    name = push(api, HOURLY)
    (one,) = schedules(api, name, next=2)
    path = f"/workflows/{name}/schedules/{one['trigger_id']}"

    found = api.get(path, next=100, last=100)

    assert len(one["next"]) == 2
    assert len(found["next"]) == 100
    assert found["next"][:2] == one["next"]
    for params in ({"next": 0}, {"next": 101}, {"last": 0}, {"last": "many"}):
        assert api.get(path, 400, **params)["errors"]


def test_what_does_not_exist_is_not_found(api: Place) -> None:
    name = push(api, HOURLY)

    for path in ("/workflows/nobody/schedules", "/workflows/nobody/schedules/t", f"/workflows/{name}/schedules/t"):
        api.get(path, 404)
    assert api.get(f"/workflows/{name}/schedules/t", 404)["detail"] == (
        f"Expected a time trigger of workflow {name!r}, but found 't'"
    )
    act(api, "nobody", "pause", 404)
    act(api, "nobody", "resume", 404)
    assert "Expected a time trigger of version 1" in act(api, name, "pause", 404, trigger_id="t")["detail"]


def test_triggers_of_earlier_versions_are_listed_on_demand(api: Place) -> None:
    name = push(api, HOURLY)
    push(api, EVERY, workflow_id=name)

    assert [one["type"] for one in schedules(api, name)] == ["INTERVAL"]
    assert [one["state"] for one in schedules(api, name, with_disarmed=True)] == ["ARMED", "INACTIVE"]


def test_a_version_is_enriched_with_the_next_times_of_its_triggers(api: Place) -> None:
    name = push(api, DAILY, HOURLY)
    daily, hourly = (one["next"][0]["scheduled_at"] for one in schedules(api, name))

    found = api.get(f"/workflows/{name}/versions/active", enriched=True)["enriched_extras"]

    assert found == {"next_execution_time": min(daily, hourly), "next_execution_times": [daily, hourly]}
    assert "enriched_extras" not in api.get(f"/workflows/{name}/versions/active")


def test_metrics_name_what_becomes_of_ticks(api: Place) -> None:
    text = httpx.get(f"{api.url}/api/v3/metrics").text

    assert "# TYPE kapelle_schedule_lateness_seconds histogram" in text


# Pausing --------------------------------------------------------------------------------------------------------------


def test_all_time_triggers_are_paused_and_resumed(api: Place) -> None:
    name = push(api, HOURLY, DAILY)

    paused = act(api, name, "pause", reason="a move")
    again = act(api, name, "pause")
    found = schedules(api, name)
    resumed = act(api, name, "resume")
    after = schedules(api, name)
    none = act(api, name, "resume")

    assert (paused["status"], paused["workflow_id"], paused["trigger_id"]) == ("DONE", name, None)
    assert (again["status"], none["status"]) == ("UNCHANGED", "UNCHANGED")
    assert again["message"] == "The time triggers of the workflow are paused already"
    assert [(one["state"], one["paused"]["scope"], one["paused"]["reason"]) for one in found] == [
        ("PAUSED", "WORKFLOW", "a move")
    ] * 2
    assert found[0]["paused"]["by"] == "anonymous"
    assert resumed["status"] == "DONE"
    assert [one["state"] for one in after] == ["ARMED", "ARMED"]


def test_one_time_trigger_is_paused_and_resumed(api: Place) -> None:
    name = push(api, HOURLY, DAILY)
    trigger_id = schedules(api, name)[1]["trigger_id"]

    done = act(api, name, "pause", trigger_id=trigger_id)
    found = schedules(api, name)
    act(api, name, "resume", trigger_id=trigger_id)

    assert done["trigger_id"] == trigger_id
    assert [one["state"] for one in found] == ["ARMED", "PAUSED"]
    assert found[1]["paused"]["scope"] == "TRIGGER"
    assert [one["state"] for one in schedules(api, name)] == ["ARMED", "ARMED"]


def test_one_of_all_paused_triggers_cannot_be_resumed_alone(api: Place) -> None:
    name = push(api, HOURLY)
    (one,) = schedules(api, name)
    act(api, name, "pause")

    assert "resume the workflow" in act(api, name, "resume", 409, trigger_id=one["trigger_id"])["detail"]


def test_a_repeated_pause_has_the_same_request_id_and_counts_once(api: Place) -> None:
    name = push(api, HOURLY)

    first = act(api, name, "pause", request_id=f"{name}-once")
    act(api, name, "resume")
    repeated = act(api, name, "pause", request_id=f"{name}-once")

    assert first["request_id"] == repeated["request_id"] == f"{name}-once"
    assert [one["state"] for one in schedules(api, name)] == ["ARMED"]


@pytest.mark.parametrize("body", [{"trigger_id": ""}, {"trigger_id": 5}, {"reason": ["x"]}, {"unknown": 1}, [1]])
def test_a_pause_that_is_not_valid_is_refused(api: Place, body: Any) -> None:
    name = push(api, HOURLY)

    for action in ("pause", "resume"):
        refused = api.call("PUT", f"/workflows/{name}/schedules/actions/{action}", 400, json=body)
        assert refused["errors"]


# Previews -------------------------------------------------------------------------------------------------------------


def test_a_preview_shows_the_next_times_in_utc_and_on_the_clock_of_the_zone(api: Place) -> None:
    found = api.get("/schedules/preview", count=3, **SPRING)

    assert (found["type"], found["cron"], found["timezone"]) == ("CRON", "30 2 * * *", "Europe/Berlin")
    assert [(one["utc"], one["local"]) for one in found["times"]] == [
        ("2026-03-28T01:30:00Z", "2026-03-28T02:30:00+01:00"),
        ("2026-03-29T01:00:00Z", "2026-03-29T03:00:00+02:00"),
        ("2026-03-30T00:30:00Z", "2026-03-30T02:30:00+02:00"),
    ]
    assert [one["note"] for one in found["times"]] == [None, "moved: the clock skips from 02:00 to 03:00", None]


def test_a_preview_of_an_interval_begins_where_it_is_asked_for(api: Place) -> None:
    since: dict[str, Any] = {"from": "2026-01-01T12:00"}

    found = api.get("/schedules/preview", interval="90m", count=2, **since)

    assert (found["interval"], found["interval_ms"]) == ("90m", 5_400_000)
    assert [one["utc"] for one in found["times"]] == ["2026-01-01T12:00:00Z", "2026-01-01T13:30:00Z"]


def test_a_preview_without_a_beginning_is_from_now_on(api: Place) -> None:
    found = api.get("/schedules/preview", cron="@hourly")

    assert len(found["times"]) == 10
    assert 0 <= found["times"][0]["scheduled_at"] - found["from"] <= 3_600_000


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({}, "Expected a cron text or an interval, but found none"),
        ({"cron": "0 5 * * *", "interval": "1d"}, "Expected a cron text or an interval, but found both"),
        ({"cron": "0 25 * * *"}, "cron: Expected"),
        ({"cron": "* * * * *"}, "at least two minutes apart"),
        ({"cron": "0 0 31 2 *"}, "cron: Expected"),
        ({"cron": "@never"}, "cron: Expected a cron text or one of @hourly"),
        ({"interval": "1m"}, "interval: Expected a duration from 2 minutes"),
        ({"cron": "@daily", "timezone": "Mars/Olympus"}, "timezone: Expected a time zone"),
        ({"cron": "@daily", "from": "tomorrow"}, "from: Expected an ISO date"),
        ({"cron": "@daily", "from": "9999-01-01"}, "from: Expected an ISO date"),
        ({"cron": "@daily", "count": 0}, "count"),
        ({"cron": "@daily", "count": 1_001}, "count"),
    ],
)
def test_a_preview_that_is_not_valid_is_refused_with_the_reason(
    api: Place, params: dict[str, Any], reason: str
) -> None:
    refused = api.get("/schedules/preview", 400, **params)

    assert any(reason in text for text in (refused["detail"], *refused["errors"])), refused
