"""`kapelle schedule preview`: the next times of a schedule, without a server, and what is wrong with one."""

import json

import pytest
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from tests.tidy.files import REPOSITORY

PAGE = REPOSITORY / "docs" / "schedules.md"


def preview(*words: str) -> Result:
    return CliRunner().invoke(cli, ["schedule", "preview", *words], prog_name="kapelle")


def lines(*words: str) -> list[list[str]]:
    """The lines below the heads: local time, UTC and the note."""
    told = preview(*words)
    assert told.exit_code == 0, told.stderr
    return [[cell for cell in line.split("  ") if cell] for line in told.stdout.splitlines()[1:]]


def test_the_preview_of_the_page_is_what_the_command_says() -> None:
    told = preview("30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-03-28", "--count", "3")

    assert told.stdout in PAGE.read_text()


def test_a_time_that_the_clock_shows_twice_counts_once_and_says_so() -> None:
    found = lines("30 2 * * *", "--tz", "Europe/Berlin", "--from", "2026-10-25", "-n", "2")

    assert found == [
        [
            "Sun 2026-10-25 02:30:00 +02:00",
            "2026-10-25T00:30:00Z",
            "the clock shows this time twice: only the first counts",
        ],
        ["Mon 2026-10-26 02:30:00 +01:00", "2026-10-26T01:30:00Z"],
    ]


def test_a_schedule_with_a_time_in_every_hour_follows_elapsed_time_without_a_note() -> None:
    autumn = lines("0 * * * *", "--tz", "Europe/Berlin", "--from", "2026-10-25T01:00", "-n", "4")
    spring = lines("0 * * * *", "--tz", "Europe/Berlin", "--from", "2026-03-29T01:00", "-n", "2")

    assert [local[15:] for local, _ in autumn] == [
        "01:00:00 +02:00",
        "02:00:00 +02:00",
        "02:00:00 +01:00",
        "03:00:00 +01:00",
    ]
    assert [local[15:] for local, _ in spring] == ["01:00:00 +01:00", "03:00:00 +02:00"]


def test_an_interval_is_counted_from_the_beginning_and_is_shown_as_json() -> None:
    told = json.loads(preview("--every", "90m", "--from", "2026-01-01T12:00", "-n", "2", "-o", "json").stdout)

    assert told["timezone"] == "UTC"
    assert [time["utc"] for time in told["times"]] == ["2026-01-01T12:00:00Z", "2026-01-01T13:30:00Z"]


@pytest.mark.parametrize(
    ("cron", "first"),
    [
        ("@monthly", "Sun 2026-02-01 00:00:00 +00:00"),
        ("0 0 12 ? * 6#3", "Fri 2026-01-16 12:00:00 +00:00"),
        ("0 0 12 L * ? 2027", "Sun 2027-01-31 12:00:00 +00:00"),
    ],
)
def test_names_and_both_forms_of_cron_are_read(cron: str, first: str) -> None:
    assert lines(cron, "--from", "2026-01-02", "-n", "1")[0][0] == first


def test_without_a_beginning_the_times_are_those_after_now() -> None:
    assert len(lines("@daily")) == 10


def test_a_schedule_that_has_ended_has_no_times() -> None:
    told = preview("0 0 12 1 1 ? 2020", "--from", "2026-01-01")

    assert (told.exit_code, "there are no times after that" in told.stderr) == (0, True)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("61 * * * *",), "CRON: Expected the minute from 0 to 59"),
        (("0 0 30 2 *",), "CRON: Expected a day that exists"),
        (("* * * * *",), "CRON: Expected times that are at least two minutes apart"),
        (("*/30 0 0 * * ?",), "CRON: Expected times that are at least two minutes apart"),
        (("@dayly",), "CRON: Expected a cron text or one of @hourly"),
        (("daily",), "CRON: Expected five, six or seven fields"),
        (("--every", "1x"), "--every: Expected a duration from 2 minutes"),
        (("--every", "10s"), "--every: Expected a duration from 2 minutes"),
        (("@daily", "--tz", "Europe/Berln"), "--tz: Expected a time zone such as 'Europe/Berlin'"),
        (("@daily", "--from", "tomorrow"), "--from: Expected an ISO date or date-time"),
        (("@daily", "--every", "1d"), "Expected CRON or --every, but found both"),
        ((), "Expected CRON or --every, but found none"),
    ],
)
def test_what_is_wrong_is_named_by_its_option(words: tuple[str, ...], reason: str) -> None:
    told = preview(*words)

    assert told.exit_code == 2
    assert reason in told.stderr
