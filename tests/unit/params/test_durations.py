"""Durations and counts that are written as text."""

from typing import Any

import pytest

from kapelle.processors.params import BadNumber, duration_ms, number_of

DAY_MS = 86_400_000
VALUES = {"n": 3, "hours": "2h", "zero": 0}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, 10 * DAY_MS),
        (1, 1000),
        (90, 90_000),
        ("90", 90_000),
        (" 90 ", 90_000),
        ("abc 1min", 60_000),
        ("10min 1min", 660_000),
        ("1 d 1 h 1 min 1s 1ms", 90_061_001),
        ("1d", DAY_MS),
        ("1 day", DAY_MS),
        ("2 days", 2 * DAY_MS),
        ("1h", 3_600_000),
        ("1 hour", 3_600_000),
        ("2 hours", 7_200_000),
        ("1min", 60_000),
        ("1 minute", 60_000),
        ("2 minutes", 120_000),
        ("1s", 1000),
        ("1 sec", 1000),
        ("1 second", 1000),
        ("2 seconds", 2000),
        ("1ms", 1),
        ("1 millisecond", 1),
        ("2 milliseconds", 2),
        ("1h30min", 5_400_000),
        ("1 HOUR", 3_600_000),
        ("120 days", 120 * DAY_MS),
        (120 * 86_400, 120 * DAY_MS),
        ("${n}h", 10_800_000),
        ("$hours", 7_200_000),
        ("${n}", 3000),
        ("7200000 milliseconds", 7_200_000),
    ],
)
def test_a_duration_is_read_in_milliseconds(written: int | str | None, expected: int) -> None:
    assert duration_ms(written, VALUES.__getitem__) == expected


@pytest.mark.parametrize(
    "written",
    [
        0,
        -1,
        "0",
        "0s",
        "",
        "soon",
        "1 month",
        "1 year",
        "121 days",
        "121d",
        120 * 86_400 + 1,
        "${zero}",
        "-5",
        True,
        "9" * 30,
    ],
)
def test_a_duration_that_is_none_is_refused(written: Any) -> None:
    with pytest.raises(BadNumber, match="duration"):
        duration_ms(written, VALUES.__getitem__)


def test_a_reference_to_something_else_than_the_workflows_parameters_is_refused() -> None:
    with pytest.raises(BadNumber, match="not 'nothing'"):
        duration_ms("${nothing}h", VALUES.__getitem__)
    with pytest.raises(BadNumber, match="not 'nothing'"):
        number_of("$nothing", VALUES.__getitem__)


@pytest.mark.parametrize(("written", "expected"), [(0, 0), (5, 5), ("5", 5), ("${n}", 3), ("1${n}", 13)])
def test_a_count_is_read(written: int | str, expected: int) -> None:
    assert number_of(written, VALUES.__getitem__) == expected


@pytest.mark.parametrize("written", [-1, "-1", "x", "", "1.5", "1s", True, "9" * 30])
def test_a_count_that_is_none_is_refused(written: Any) -> None:
    with pytest.raises(BadNumber, match="integer"):
        number_of(written, VALUES.__getitem__)
