"""Cron texts that are taken, and those that are refused."""

import pytest

from kapelle.processors.calendar import BadCron, check_cron


@pytest.mark.parametrize(
    "text",
    [
        "0 5 * * *",
        "*/15 0-6,20 1,15 JAN-MAR mon",
        "5/10 * * * 7",
        "0 0 12 * * ?",
        "0 15 10 L-3 * ?",
        "0 15 10 15W * ?",
        "0 15 10 ? * 6#3",
        "0 15 10 ? * FRIL 2026-2030",
        "59 * * * *",
        "0,59 5 * * *",
        "0 0 22-2 ? NOV-FEB FRI-MON",
        "0 0 12 LW,15 * ?",
        "0 0 12 1 1 ? 2020",
        "0 0 29 2 *",
        "0 0 31 2 MON",
    ],
)
def test_a_cron_text_is_taken(text: str) -> None:
    check_cron(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "five, six or seven fields"),
        ("0 5 * * * * * *", "five, six or seven fields"),
        ("60 5 * * *", "the minute from 0 to 59"),
        ("0 24 * * *", "the hour from 0 to 23"),
        ("0 5 0 * *", "the day of month from 1 to 31"),
        ("0 5 * 13 *", "the month from 1 to 12"),
        ("0 5 * * 8", "the day of week from 0 to 7"),
        ("0 5 L * *", "the day of month from 1 to 31"),
        ("5-1 5 * * *", "instead of '5-1'"),
        ("*/0 5 * * *", "instead of '*/0'"),
        ("0,,5 5 * * *", "instead of ''"),
        ("٣ 5 * * *", "the minute from 0 to 59"),
        ("0 0 5 * * ? 1969", "the year from 1970 to 2199"),
        ("* * * * *", "at least two minutes apart"),
        ("0,1 5 * * *", "at least two minutes apart"),
        ("0,59 * * * *", "at least two minutes apart"),
        ("0,30 0 5 * * ?", "at least two minutes apart"),
        ("0 22-2 * * *", "the hour from 0 to 23"),
        ("0 0 12 * * *", "'?' as the day of month or as the day of week"),
        ("0 0 12 ? * ?", "'?' as the day of month or as the day of week"),
        ("0 0 12 1,? * MON", "the day of month from 1 to 31"),
        ("0 0 12 1 1 ? 2030-2026", "the year from 1970 to 2199"),
        ("0 0 30 2 *", "a day that exists in at least one of the years from 1970 to 2199"),
        ("0 0 31 4,6,9,11 *", "a day that exists"),
        ("0 0 12 29 2 ? 2027,2100", "a day that exists"),
        ("0 0 12 ? 2 MON#5 2027", "a day that exists"),
    ],
)
def test_a_wrong_cron_text_is_refused_with_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(BadCron) as refused:
        check_cron(text)

    assert message in str(refused.value)
