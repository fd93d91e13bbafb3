"""Time triggers: what is read, what is refused, and the schedules that they mean."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kapelle.processors.calendar import Schedule, ScheduleType
from kapelle.processors.definitions import (
    CatchUp,
    DefinitionRefused,
    TimeTrigger,
    fuzzy_max_delay_ms,
    parse_push,
    parse_workflow,
    schedule_from,
    workflow_json,
    yaml_push,
)

PATH = "workflow.time_triggers"
DAILY = {"type": "CRON", "cron": "0 5 * * *"}
EVERY = {"type": "INTERVAL", "interval": "90m"}
INTERVAL = "a duration from 2 minutes to 120 days"
DELAY = "a duration from 1 second to 24 hours"
INSTANT = "a time in the years from 1970 to 2199"


def push(*triggers: dict[str, Any]) -> tuple[TimeTrigger, ...]:
    step = {"step": {"id": "only", "type": "NoOp"}}
    text = json.dumps({"workflow": {"id": "w", "time_triggers": list(triggers), "steps": [step]}})
    workflow = parse_push(text).workflow
    assert parse_workflow(workflow_json(workflow)) == workflow
    return workflow.time_triggers


def schedule(trigger: dict[str, Any]) -> Schedule:
    [read] = push(trigger)
    return schedule_from(read)


def refusal(*triggers: dict[str, Any]) -> str:
    with pytest.raises(DefinitionRefused) as refused:
        push(*triggers)
    [problem] = refused.value.problems
    return str(problem)


def ms(text: str) -> int:
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def test_a_cron_trigger_means_its_normalised_text_in_its_zone() -> None:
    found = schedule({"type": "cron", "cron": " 0 5 * *  mon-Fri ", "timezone": "Europe/Berlin"})

    assert found == Schedule(ScheduleType.CRON, "0 5 * * MON-FRI", "Europe/Berlin")


@pytest.mark.parametrize(
    ("expression", "cron"),
    [
        ("@hourly", "0 * * * *"),
        ("Daily", "0 0 * * *"),
        ("@MIDNIGHT", "0 0 * * *"),
        ("weekly", "0 0 * * 0"),
        ("@Monthly", "0 0 1 * *"),
        ("yearly", "0 0 1 1 *"),
        ("annually", "0 0 1 1 *"),
    ],
)
def test_a_predefined_trigger_means_its_cron_text(expression: str, cron: str) -> None:
    assert schedule({"type": "PREDEFINED", "expression": expression}) == Schedule(ScheduleType.CRON, cron)


def test_of_two_names_of_a_cron_text_the_usual_one_is_written() -> None:
    step = {"step": {"id": "only", "type": "NoOp"}}
    triggers = [{"type": "PREDEFINED", "expression": name} for name in ("midnight", "annually")]
    text = json.dumps({"workflow": {"id": "w", "time_triggers": triggers, "steps": [step]}})

    written = json.loads(workflow_json(parse_push(text).workflow))["time_triggers"]

    assert [trigger["expression"] for trigger in written] == ["@daily", "@yearly"]


def test_a_cron_trigger_may_have_a_start() -> None:
    found = schedule({**DAILY, "timezone": "Asia/Tokyo", "start": "2026-02-01"})

    assert found.start_ms == ms("2026-02-01T00:00+09:00")


@pytest.mark.parametrize(
    ("interval", "expected_ms"),
    [
        ("90m", 5_400_000),
        (5400, 5_400_000),
        ("5400", 5_400_000),
        ("1h 30 min", 5_400_000),
        ("1 DAY2h", 93_600_000),
        (120, 120_000),
        ("120 days", 10_368_000_000),
    ],
)
def test_an_interval_is_a_duration_in_text_or_in_seconds(interval: int | str, expected_ms: int) -> None:
    assert schedule({"type": "INTERVAL", "interval": interval}).interval_ms == expected_ms


def test_an_interval_is_counted_from_its_anchor_and_begins_at_its_start() -> None:
    found = schedule({**EVERY, "timezone": "Europe/Berlin", "start": "2026-07-01T12:00", "anchor": "2026-01-01T00:15"})

    assert (found.start_ms, found.anchor_ms) == (ms("2026-07-01T12:00+02:00"), ms("2026-01-01T00:15+01:00"))


def test_an_interval_without_an_anchor_is_counted_from_its_start() -> None:
    found = schedule({**EVERY, "start": "2026-07-01T12:07"})

    assert (found.start_ms, found.anchor_ms) == (ms("2026-07-01T12:07"),) * 2


def test_an_interval_without_anchor_and_start_is_counted_from_1970_in_its_zone() -> None:
    found = schedule({**EVERY, "timezone": "America/New_York"})

    assert (found.start_ms, found.anchor_ms) == (None, 5 * 3_600_000)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2026-01-31", "2026-01-31T00:00+01:00"),
        ("2026-01-31T12:00:30.5", "2026-01-31T12:00:30.500+01:00"),
        ("2026-01-31T12:00Z", "2026-01-31T12:00Z"),
        ("2026-01-31T12:00-08:00", "2026-01-31T12:00-08:00"),
        (1_800_000_000_000, "2027-01-15T08:00Z"),
        ("2026-03-29T02:30", "2026-03-29T01:00Z"),  # skipped: the end of the gap
        ("2026-10-25T02:30", "2026-10-25T00:30Z"),  # twice: the first
    ],
)
def test_a_start_is_read_on_the_clock_of_the_zone(written: int | str, expected: str) -> None:
    assert schedule({**EVERY, "timezone": "Europe/Berlin", "start": written}).start_ms == ms(expected)


@pytest.mark.parametrize(
    ("written", "expected"), [("all", CatchUp.ALL), ("Latest", CatchUp.LATEST), ("NONE", CatchUp.NONE)]
)
def test_what_is_caught_up_is_said_in_any_case(written: str, expected: CatchUp) -> None:
    [trigger] = push({**DAILY, "catch_up": written})

    assert trigger.catch_up is expected


def test_the_latest_time_is_caught_up_unless_something_else_is_said() -> None:
    [trigger] = push(DAILY)

    assert trigger.catch_up is CatchUp.LATEST


@pytest.mark.parametrize(("written", "expected"), [(None, 0), (1, 1000), ("10 min", 600_000), ("24h", 86_400_000)])
def test_the_maximum_of_the_delay_is_a_duration(written: int | str | None, expected: int) -> None:
    [trigger] = push({**DAILY, "fuzzy_max_delay": written})

    assert fuzzy_max_delay_ms(trigger) == expected


def test_the_schedule_of_a_trigger_is_of_its_times_alone() -> None:
    [trigger] = push({**DAILY, "catch_up": "ALL", "fuzzy_max_delay": 60})

    assert schedule_from(trigger).id == schedule(DAILY).id


def test_triggers_of_the_yaml_form_are_the_same() -> None:
    text = """
    Workflow:
      id: w
      time_triggers:
        - {type: cron, cron: 0 5 * * *, catch_up: none}
        - {type: interval, interval: 90m, start: 2026-01-31, timezone: Europe/Berlin}
      jobs: [{job: {id: only, type: NoOp}}]
    """
    triggers = parse_push(yaml_push(text)).workflow.time_triggers

    assert triggers == push(
        {**DAILY, "catch_up": "NONE"}, {**EVERY, "start": "2026-01-31", "timezone": "Europe/Berlin"}
    )


@pytest.mark.parametrize(
    ("trigger", "key", "expected"),
    [
        ({"type": "CRON"}, "cron", "five, six or seven fields such as '0 5 * * *', but found nothing"),
        ({"type": "CRON", "cron": ""}, "cron", "five, six or seven fields such as '0 5 * * *', but found \"\""),
        ({"type": "CRON", "cron": "0 0 30 2 *"}, "cron", "a day that exists in at least one of the years from 1970"),
        ({"type": "CRON", "cron": "0 0 5 * * *"}, "cron", "'?' as the day of month or as the day of week"),
        ({"type": "PREDEFINED"}, "expression", "one of @hourly, @daily, @weekly, @monthly, @yearly, @midnight"),
        ({"type": "PREDEFINED", "expression": "@@daily"}, "expression", "one of @hourly"),
        ({"type": "DAILY"}, "type", "one of CRON, PREDEFINED, INTERVAL"),
        ({**DAILY, "timezone": "Berlin"}, "timezone", "a time zone such as 'Europe/Berlin'"),
        ({**DAILY, "catch_up": "SOME"}, "catch_up", "one of ALL, LATEST, NONE"),
        ({**DAILY, "catch_up": True}, "catch_up", "one of ALL, LATEST, NONE"),
        ({**DAILY, "fuzzy_max_delay": 0}, "fuzzy_max_delay", DELAY),
        ({**DAILY, "fuzzy_max_delay": "999 ms"}, "fuzzy_max_delay", DELAY),
        ({**DAILY, "fuzzy_max_delay": "25h"}, "fuzzy_max_delay", DELAY),
        ({**DAILY, "fuzzy_max_delay": "${delay} s"}, "fuzzy_max_delay", DELAY),
        ({**DAILY, "fuzzy_max_delay": "about 5 min"}, "fuzzy_max_delay", DELAY),
        ({**DAILY, "interval": 600}, "interval", "no interval, which only triggers of the type INTERVAL have"),
        ({**DAILY, "anchor": 0}, "anchor", "no anchor, which only triggers of the type INTERVAL have"),
        ({**DAILY, "expression": "@daily"}, "expression", "no expression, which only triggers of the type PREDEFINED"),
        ({**EVERY, "cron": "0 5 * * *"}, "cron", "no cron, which only triggers of the type CRON have"),
        ({"type": "INTERVAL"}, "interval", f"{INTERVAL} such as '90m' or 5400, without parameters, but found nothing"),
        ({**EVERY, "interval": 119}, "interval", INTERVAL),
        ({**EVERY, "interval": "119999 ms"}, "interval", INTERVAL),
        ({**EVERY, "interval": "121 days"}, "interval", INTERVAL),
        ({**EVERY, "interval": "1h and 30m"}, "interval", INTERVAL),
        ({**EVERY, "interval": "-5m"}, "interval", INTERVAL),
        ({**EVERY, "interval": "${n}m"}, "interval", INTERVAL),
        ({**EVERY, "interval": ""}, "interval", INTERVAL),
        ({**EVERY, "interval": "9" * 200}, "interval", INTERVAL),
        ({**EVERY, "interval": 1.5}, "interval", "an integer from 0, or text"),
        ({**EVERY, "start": "tomorrow"}, "start", INSTANT),
        ({**EVERY, "start": "2026-02-30T00:00"}, "start", INSTANT),
        ({**EVERY, "start": "1969-12-31T23:59"}, "start", INSTANT),
        ({**EVERY, "start": "2200-01-01"}, "start", INSTANT),
        ({**EVERY, "start": "0001-01-01T00:00+14:00"}, "start", INSTANT),
        ({**EVERY, "start": -1}, "start", INSTANT),
        ({**EVERY, "start": 10**16}, "start", INSTANT),
        ({**EVERY, "start": True}, "start", "a time such as '2026-01-31T12:00', or milliseconds since 1970"),
        ({**EVERY, "anchor": "noon"}, "anchor", INSTANT),
        ({**EVERY, "anchor": {}}, "anchor", "a time such as '2026-01-31T12:00', or milliseconds since 1970"),
        ({**DAILY, "start": "soon"}, "start", INSTANT),
        (
            {"type": "CRON", "cron": "0 0 5 1 1 ? 2020", "start": "2021-01-01"},
            "start",
            "a start that is not after the last time of the trigger",
        ),
        ({**DAILY, "catchup": "ALL"}, "catchup", "the key 'catch_up'"),
    ],
)
def test_a_wrong_trigger_is_refused_at_its_path_with_what_would_be_right(
    trigger: dict[str, Any], key: str, expected: str
) -> None:
    assert refusal(trigger).startswith(f"{PATH}[0].{key}: Expected {expected}")


def test_a_zone_that_is_wrong_is_the_only_problem_of_a_start() -> None:
    assert refusal({**EVERY, "start": "2026-01-01", "timezone": "Mars"}).startswith(f"{PATH}[0].timezone")


def test_two_triggers_with_the_same_times_are_refused() -> None:
    same = {"type": "PREDEFINED", "expression": "@daily", "catch_up": "ALL"}

    message = refusal({"type": "CRON", "cron": "0 0 * * *"}, DAILY, same)

    assert message == f'{PATH}[2]: Expected each schedule once, and {PATH}[0] has this one, but found "0 0 * * *"'


def test_two_triggers_with_the_same_text_in_other_zones_are_two_schedules() -> None:
    assert len(push(DAILY, {**DAILY, "timezone": "Asia/Tokyo"})) == 2


def test_a_workflow_has_at_most_two_hundred_time_triggers() -> None:
    triggers = [{"type": "CRON", "cron": f"{n % 60} {n // 60} * * *"} for n in range(201)]

    assert len(push(*triggers[:200])) == 200
    assert refusal(*triggers) == f"{PATH}: Expected at most 200 time triggers, but found 201"


def test_a_stored_trigger_with_a_key_that_was_ignored_once_is_still_read() -> None:
    text = json.dumps({"id": "w", "time_triggers": [{**DAILY, "interval": 600}], "steps": []})

    assert parse_workflow(text).time_triggers == push(DAILY)


@pytest.mark.parametrize(
    ("trigger", "seconds"),
    [
        ({"type": "CRON", "cron": "*/10 * * * *"}, 600),
        ({"type": "CRON", "cron": "0,50 * * * *"}, 600),
        ({"type": "CRON", "cron": "0 5,6 * * *"}, 3_600),
        ({"type": "CRON", "cron": "0 1,23 * * *"}, 7_200),
        ({"type": "PREDEFINED", "expression": "@hourly"}, 3_600),
        ({"type": "INTERVAL", "interval": "90m"}, 5_400),
    ],
)
def test_a_delay_is_not_longer_than_the_shortest_time_between_two_ticks(trigger: dict[str, Any], seconds: int) -> None:
    [read] = push({**trigger, "fuzzy_max_delay": seconds})
    assert fuzzy_max_delay_ms(read) == seconds * 1_000

    refused = refusal({**trigger, "fuzzy_max_delay": seconds + 1})

    assert refused.startswith(f"{PATH}[0].fuzzy_max_delay: Expected a duration up to {seconds} seconds")
