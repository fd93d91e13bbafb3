"""`kapelle trigger`, `kapelle schedule` and `kapelle backfill`: what they say of a real server, right and wrong."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.backfills import Interrupted, Lines, follow
from kapelle.cli.text.schedules import show_list, show_schedule
from kapelle.client import BackfillRecord, NextTick, PastTick, Paused, ScheduleRecord
from tests.integration.api.places import Json, Place, embedded_place, step

JANUARY = ("--from", "2026-01-01", "--to", "2026-01-05")
NOON = {"type": "CRON", "cron": "0 12 * * *", "timezone": "Europe/Berlin"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory: Path = tmp_path_factory.mktemp("api")
    with embedded_place(directory) as found:
        yield found


def kapelle(place: Place, *words: str) -> Result:
    return CliRunner().invoke(cli, [*words, "--url", place.url], prog_name="kapelle")


def found(place: Place, *words: str) -> Any:
    told = kapelle(place, *words, "-o", "json")
    assert told.exit_code == 0, told.stderr
    return json.loads(told.stdout)


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def pushed(place: Place, *steps: Json, triggers: tuple[Json, ...] = (NOON,), **more: Any) -> str:
    """A workflow with time triggers."""
    name = f"wf-{uuid.uuid4().hex[:12]}"
    workflow = {"id": name, "time_triggers": list(triggers), "steps": list(steps) or [step("only")], **more}
    place.call("POST", "/workflows", json={"properties": {"owner": "ann"}, "workflow": workflow})
    return name


# Time triggers --------------------------------------------------------------------------------------------------------


def test_time_triggers_are_listed_beside_signal_triggers(place: Place) -> None:
    name = pushed(place, signal_triggers=[{"definitions": {"raw": {}}}])
    lone = pushed(place)

    both = kapelle(place, "trigger", "list", name)
    only = kapelle(place, "trigger", "list", lone)
    as_json = found(place, "trigger", "list", name)

    (heads, first, _, others, signal) = lines(both.stdout)
    assert heads == ["TIME", "TRIGGER", "TIMES", "ZONE", "STATE", "NEXT", "LAST"]
    assert first[1:8] == ["0", "12", "*", "*", "*", "Europe/Berlin", "ARMED"]
    assert (others[:3], signal[1:3]) == (["TRIGGER", "SIGNALS", "STATE"], ["raw", "armed"])
    assert len(lines(only.stdout)) == 2
    assert [len(as_json[key]) for key in ("schedules", "triggers")] == [1, 1]


def test_a_time_trigger_is_shown_with_its_next_ticks(place: Place) -> None:
    name = pushed(place, triggers=({**NOON, "catch_up": "ALL", "fuzzy_max_delay": "10 min"},))

    shown = kapelle(place, "trigger", "show", name)
    [schedule] = found(place, "trigger", "show", name, "-n", "7")
    lone = found(place, "trigger", "show", name, "--trigger", schedule["trigger_id"])

    rows = lines(shown.stdout)
    assert rows[0] == ["time", "trigger", schedule["trigger_id"]]
    assert ["catch-up", "ALL"] in rows
    assert ["fuzzy", "delay", "at", "most", "10", "min", "0", "s"] in rows
    assert [row[2] for row in rows[rows.index(["NEXT", "UTC", "STARTS"]) + 1 :]] == ["12:00:00"] * 5
    assert len(schedule["next"]) == 7
    assert len(lone) == 1


def test_time_triggers_of_earlier_versions_are_listed_if_that_is_wanted(place: Place) -> None:
    name = pushed(place)
    trigger = {"type": "INTERVAL", "interval": "90m"}
    later = {"workflow": {"id": name, "time_triggers": [trigger], "steps": [step("only")]}}
    place.call("POST", "/workflows", json=later)

    [only] = found(place, "trigger", "list", name)["schedules"]
    both = found(place, "trigger", "list", name, "--all")["schedules"]

    assert (only["interval"], len(both)) == ("90m", 2)


def test_a_workflow_without_time_triggers_says_so(place: Place) -> None:
    told = kapelle(place, "trigger", "show", place.push())

    assert (told.exit_code, told.stdout) == (0, "")
    assert "the workflow has no time triggers" in told.stderr


def test_time_triggers_are_paused_and_resumed(place: Place) -> None:
    name = pushed(place)
    [schedule] = found(place, "trigger", "show", name)

    paused = kapelle(place, "schedule", "pause", name, "--reason", "holidays")
    shown = kapelle(place, "trigger", "show", name)
    again = kapelle(place, "schedule", "pause", name)
    resumed = kapelle(place, "schedule", "resume", name)
    one = kapelle(place, "schedule", "pause", name, "--trigger", schedule["trigger_id"])

    assert (paused.exit_code, paused.stdout) == (0, f"{name}: all time triggers are paused\n")
    assert "all time triggers of the workflow, by" in shown.stdout
    assert ": holidays" in shown.stdout
    assert "paused already" in again.stderr
    assert resumed.stdout == f"{name}: all time triggers are resumed\n"
    assert one.stdout == f"{name}: time trigger {schedule['trigger_id']} is paused\n"
    assert found(place, "trigger", "show", name)[0]["paused"]["scope"] == "TRIGGER"


def test_unknown_workflows_and_time_triggers_are_not_found(place: Place) -> None:
    name = pushed(place)

    for words in (("show", name, "--trigger", "nobody"), ("show", "nobody"), ("list", "nobody")):
        told = kapelle(place, "trigger", *words)
        assert (told.exit_code, "nobody" in told.stderr) == (3, True)
    told = kapelle(place, "schedule", "pause", name, "--trigger", "nobody")
    assert (told.exit_code, "Expected a time trigger of version 1" in told.stderr) == (3, True)


def test_the_outcome_of_each_tick_is_shown_in_the_zone_of_the_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    at_ms = 1_774_746_000_000  # 2026-03-29T01:00:00Z
    schedule = ScheduleRecord(
        trigger_id="5c0b3a1f2e4d6978",
        type="CRON",
        cron="30 2 * * *",
        timezone="Europe/Berlin",
        state="PAUSED",
        paused=Paused(by="ann", at=at_ms, reason="holidays", scope="TRIGGER"),
        next=[NextTick(at_ms, at_ms + 1_000)],
        last=[
            PastTick("STARTED", scheduled_at=at_ms, workflow_instance_id=12, status="FAILED", late_ms=90_000),
            PastTick("PASSED_OVER", count=3, from_=at_ms - 172_800_000, to=at_ms, reason="only the latest"),
            PastTick("REFUSED", scheduled_at=at_ms, reason="too large"),
        ],
        started=1,
        passed_over=3_000,
    )

    show_list([schedule])
    show_schedule(schedule)

    said = capsys.readouterr().out
    assert "Sun 2026-03-29 03:00:00 +02:00  2026-03-29T01:00:00Z  2026-03-29T01:00:01Z" in said
    assert "Sun 2026-03-29 03:00:00 +02:00                                    started        12        FAILED" in said
    assert "1 min 30 s" in said
    assert "Fri 2026-03-27 02:00:00 +01:00 to Sun 2026-03-29 03:00:00 +02:00  3 passed over" in said
    assert "this time trigger, by ann at" in said
    assert "1 started, 3,000 passed over" in said
    assert "started 12 FAILED" in said


# Backfills ------------------------------------------------------------------------------------------------------------


def test_a_dry_run_shows_what_would_be_started_and_starts_nothing(place: Place) -> None:
    name = pushed(place)

    told = kapelle(place, "backfill", "start", name, *JANUARY, "--dry-run")

    rows = lines(told.stdout)
    assert rows[0] == ["SCHEDULED", "TIME", "UTC", "INSTANCE"]
    assert rows[1] == ["Thu", "2026-01-01", "12:00:00", "+01:00", "2026-01-01T11:00:00Z", "would", "be", "started"]
    assert len(rows) == 6
    assert "nothing was started: 5 of 5 scheduled times would be started; backfill " in told.stderr
    assert found(place, "run", "list", name)["elements"] == []
    assert found(place, "backfill", "list", name)["elements"] == []


def test_a_backfill_is_followed_to_its_end_and_fills_gaps_when_it_is_started_again(place: Place) -> None:
    name = pushed(place)

    started = kapelle(place, "backfill", "start", name, *JANUARY, "--concurrency", "3")
    again = kapelle(place, "backfill", name, "--from", "2026-01-01", "--to", "2026-01-06", "--id", "wider")
    as_json = kapelle(
        place, "backfill", "start", name, "--from", "2026-01-01", "--to", "2026-01-06", "--id", "wider", "-o", "json"
    )
    plan = kapelle(place, "backfill", "start", name, "--from", "2026-01-06", "--to", "2026-01-07", "--dry-run")

    assert started.exit_code == 0, started.stderr
    assert started.stdout.endswith("COMPLETED: 5 SUCCEEDED\n")
    assert "5 scheduled times, 3 at a time" in started.stderr
    assert "COMPLETED 5 of 5: 5 SUCCEEDED" in started.stderr
    assert json.loads(as_json.stdout)["counts"] == {"SUCCEEDED": 1}
    assert again.stdout == f"{name} wider COMPLETED: 1 SUCCEEDED, 5 existing\n"
    assert "exists: 6" in plan.stdout
    assert "1 of 2 scheduled times would be started, 1 have an instance" in plan.stderr
    instances = found(place, "run", "list", name, "--backfill", "wider")["elements"]
    assert [one["workflow_instance_id"] for one in instances] == [6]


def test_backfills_are_listed_and_shown(place: Place) -> None:
    name = pushed(place)
    kapelle(place, "backfill", "start", name, *JANUARY, "-p", "source=archive", "--order", "newest", "--id", "mine")

    listed = lines(kapelle(place, "backfill", "list", name).stdout)
    shown = lines(kapelle(place, "backfill", "show", name, "mine").stdout)

    assert listed[0] == ["BACKFILL", "STATUS", "FROM", "TO", "TIMES", "DONE", "OF", "AUTHOR", "STARTED"]
    assert listed[1][:2] == ["mine", "COMPLETED"]
    assert ["status", "COMPLETED"] in shown
    assert ["order", "newest", "first,", "1", "at", "a", "time"] in shown
    assert ["progress", "5", "of", "5", "done,", "0", "not", "started"] in shown
    assert ["instances", "5", "SUCCEEDED"] in shown
    assert any("archive" in " ".join(line) for line in shown)


def test_a_backfill_is_paused_resumed_and_cancelled(place: Place) -> None:
    name = pushed(place, step("load", f"kind-{uuid.uuid4().hex[:8]}"))

    started = kapelle(place, "backfill", "start", name, *JANUARY, "--id", "mine", "--no-wait")
    paused = kapelle(place, "backfill", "pause", name, "mine", "--reason", "full")
    resumed = kapelle(place, "backfill", "resume", name, "mine")
    late = kapelle(place, "backfill", "show", name, "mine", "--watch", "--timeout", "0.1")
    cancelled = kapelle(place, "backfill", "cancel", name, "mine", "--stop-running")
    ended = kapelle(place, "backfill", "show", name, "mine", "--watch")

    assert (started.exit_code, started.stdout) == (0, f"{name} mine\n")
    assert f"kapelle backfill show {name} mine --watch" in started.stderr
    assert paused.stdout == f"{name} mine is PAUSED\n"
    assert resumed.stdout == f"{name} mine is RUNNING\n"
    assert (late.exit_code, "to end within 0.1 s, but it is RUNNING" in late.stderr) == (5, True)
    assert cancelled.stdout == f"{name} mine is CANCELLED\n"
    assert (ended.exit_code, "mine is CANCELLED" in ended.stderr) == (1, True)


def test_failed_instances_give_a_failure_and_the_command_that_lists_them(place: Place) -> None:
    kind = f"kind-{uuid.uuid4().hex[:8]}"
    name = pushed(place, step("load", kind))
    kapelle(place, "backfill", "start", name, "--from", "2026-01-01", "--to", "2026-01-01", "--id", "mine", "--no-wait")
    place.report(place.take(kind)[0], "FATAL_ERROR")

    told = kapelle(place, "backfill", "show", name, "mine", "--watch")

    assert (told.exit_code, told.stdout) == (1, f"{name} mine COMPLETED: 1 FAILED\n")
    assert f"kapelle run list {name} --backfill mine --status FAILED" in told.stderr
    assert len(found(place, "run", "list", name, "--backfill", "mine", "--status", "FAILED")["elements"]) == 1


def test_ten_million_times_are_refused_before_anything_is_started(place: Place) -> None:
    name = pushed(place)

    told = kapelle(place, "backfill", "start", name, "--from", "1990-01-01", "--to", "2028-01-10", "--every", "2m")

    assert told.exit_code == 1
    assert "Expected a period with 1 to 100,000 slots, but found 10,000,080" in told.stderr
    assert found(place, "backfill", "list", name)["elements"] == []
    assert found(place, "run", "list", name)["elements"] == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--from", "2026-01-02", "--to", "2026-01-01"), "a period that begins before it ends"),
        (("--from", "yesterday", "--to", "2026-01-01"), "from: Expected an ISO date"),
        ((*JANUARY, "--cron", "61 * * * *"), "cron: Expected the minute from 0 to 59"),
        ((*JANUARY, "--every", "1x"), "every: Expected a duration"),
        ((*JANUARY, "--every", "1d", "--tz", "Europe/Berln"), "timezone: Expected a time zone"),
        ((*JANUARY, "--trigger", "nobody"), "Expected a time trigger of workflow"),
        ((*JANUARY, "--every", "1d", "--cron", "@daily"), "Expected at most one of --every, --cron and --trigger"),
        ((*JANUARY, "--concurrency", "101"), "less than or equal to 100"),
        (("--from", "2026-01-01"), "Missing option '--to'"),
    ],
)
def test_wrong_words_are_refused_with_the_reason(place: Place, words: tuple[str, ...], reason: str) -> None:
    told = kapelle(place, "backfill", "start", pushed(place), *words)

    assert told.exit_code != 0
    assert reason in told.stderr


def test_a_workflow_with_several_time_triggers_needs_the_name_of_one(place: Place) -> None:
    name = pushed(place, triggers=(NOON, {"type": "PREDEFINED", "expression": "@daily"}))
    [_, daily] = [one["trigger_id"] for one in found(place, "trigger", "list", name)["schedules"]]

    told = kapelle(place, "backfill", "start", name, *JANUARY)
    named = kapelle(place, "backfill", "start", name, *JANUARY, "--trigger", daily)

    assert told.exit_code != 0
    assert "Expected every, cron or trigger_id" in told.stderr
    assert named.exit_code == 0, named.stderr


def test_a_word_that_is_no_command_is_a_workflow_only_with_a_period(place: Place) -> None:
    told = kapelle(place, "backfill", "pasue", "etl", "mine")

    assert told.exit_code == 2
    assert "No such command 'pasue'" in told.stderr


# Progress -------------------------------------------------------------------------------------------------------------


def record(status: str, ended: int) -> BackfillRecord:
    counts = {"SUCCEEDED": ended}
    return BackfillRecord("etl", "b1", status, 100, 0, 0, decided=ended, started=ended, counts=counts)


def test_progress_has_a_line_for_each_tenth_and_each_status(capsys: pytest.CaptureFixture[str]) -> None:
    told = Lines()

    for ended in range(31):
        told.show(record("RUNNING", ended))
    told.show(record("PAUSED", 30))

    said = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in said] == [
        *(f"RUNNING {ended} of 100" for ended in (0, 10, 20, 30)),
        "PAUSED 30 of 100",
    ]


class Interrupting:
    """A client whose user presses Ctrl-C."""

    @property
    def backfills(self) -> "Interrupting":
        return self

    def watch(self, *_: object, **__: object) -> Iterator[BackfillRecord]:
        yield record("RUNNING", 1)
        raise KeyboardInterrupt


def test_ctrl_c_ends_the_following_and_not_the_backfill() -> None:
    with pytest.raises(Interrupted):
        follow(Interrupting(), ("etl", "b1"), None)  # type: ignore[arg-type] # as much of a client as is needed
