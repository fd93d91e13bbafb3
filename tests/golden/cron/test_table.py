"""Cron expressions are held to a table that was checked against croniter, Quartz and cron-utils."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Final, TypedDict

import pytest

from kapelle.processors.calendar import BadCron, Schedule, ScheduleType, Times, normalised, times_of

CASES_MIN: Final = 330
ZONES_MIN: Final = 20
OTHERS: Final = {"unix": ("croniter", "cron-utils"), "quartz": ("quartz", "cron-utils")}
LINES: Final = (Path(__file__).parent / "table.jsonl").read_text().splitlines()
REASONS: Final[dict[str, str]] = json.loads(LINES[0])["reasons"]


class Said(TypedDict):
    """What another implementation says, and why it is not the same."""

    says: list[str] | str
    reason: str


class Row(TypedDict, total=False):
    """A question with the answers."""

    form: str
    cron: str
    zone: str
    after: str
    next: list[str] | str


ROWS: Final[list[Row]] = [json.loads(line) for line in LINES[1:]]


def others(row: Row) -> dict[str, Said | str]:
    """The answers of the other implementations, whose names are the keys that are not of the question."""
    return {key: value for key, value in row.items() if key not in Row.__annotations__}  # type: ignore[misc] # as above


def times(row: Row) -> Times:
    return times_of(Schedule(ScheduleType.CRON, normalised(row["cron"]), row["zone"]))


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def shown(at_ms: int) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    return at.replace(tzinfo=None).isoformat(timespec="seconds").removesuffix(":00") + "Z"


def name(row: Row) -> str:
    return f"{row['cron']} {row['zone']} {row['after']}"


@pytest.mark.parametrize("row", [row for row in ROWS if row["next"] != "refused"], ids=name)
def test_the_next_ticks_are_those_of_the_table(row: Row) -> None:
    found: list[int] = []
    at_ms = ms(row["after"])
    while len(found) < max(len(row["next"]), 1) and (tick := times(row).next_after(at_ms)) is not None:
        found.append(tick)
        at_ms = tick

    assert [shown(tick) for tick in found] == row["next"]
    assert [times(row).last_upto(tick) for tick in found] == found
    assert all(times(row).last_upto(after - 1) == before for before, after in pairwise(found))
    assert [times(row).count(ms(row["after"]), tick) for tick in found] == list(range(1, len(found) + 1))


@pytest.mark.parametrize("row", [row for row in ROWS if row["next"] == "refused"], ids=name)
def test_what_the_table_refuses_is_refused(row: Row) -> None:
    with pytest.raises(BadCron):
        times(row)


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_every_difference_from_another_implementation_has_a_reason(row: Row) -> None:
    answers = others(row)

    assert tuple(answers) == OTHERS[row["form"]]
    for said in answers.values():
        if isinstance(said, dict):
            assert said["says"] != row["next"]
            assert said["reason"] in REASONS
        else:
            assert said == "same"


def test_every_case_agrees_with_at_least_one_of_the_others_or_is_about_clocks_lists_or_years() -> None:
    allowed = {"gap-lost", "fold-last", "fold-twice", "year-limit", "list-of-special", "lenient"}

    alone = [row for row in ROWS if all(isinstance(said, dict) for said in others(row).values())]

    reasons = {said["reason"] for row in alone for said in others(row).values() if isinstance(said, dict)}
    assert reasons <= allowed


def test_the_table_is_large_and_of_many_zones() -> None:
    assert len(ROWS) >= CASES_MIN
    assert len({row["zone"] for row in ROWS}) >= ZONES_MIN
    assert len({name(row) + row["form"] for row in ROWS}) == len(ROWS)


def test_every_reason_is_used() -> None:
    used = {said["reason"] for row in ROWS for said in others(row).values() if isinstance(said, dict)}

    assert used == REASONS.keys()
