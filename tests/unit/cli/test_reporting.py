"""How far a restore has come, when it is time to say so, and whether a member does its part."""

from pathlib import Path
from typing import Any

import pytest

from kapelle.cli.member_reports import Every, progress_fields, unready
from kapelle.cli.relays import measured
from kapelle.cli.shutdown import Stopping
from kapelle.topology.metrics import Counters
from kapelle.topology.restore import Progress

UP, DOWN = {"nodeid": 1, "state": "UP"}, {"nodeid": 1, "state": "DOWN"}
BOOTSTRAP = {"nodeid": -1, "state": "INIT"}


def test_shards_that_restore_at_once_are_told_as_one() -> None:
    found = [Progress("counting-0", 1_000, 3_000, 500.0), Progress("counting-1", 2_000, 1_000, 1_500.4)]

    assert progress_fields(found) == {
        "shards": 2,
        "rows": 3_000,
        "rows_left": 4_000,
        "rows_per_s": 2_000,
        "seconds_left": 2,
    }


def test_before_the_first_row_nobody_knows_how_long_it_takes() -> None:
    assert progress_fields([Progress("counting-0", 0, 3_000, 0.0)])["seconds_left"] == "unknown"


def test_it_is_time_once_in_each_interval() -> None:
    times = iter([0.0, 1.9, 2.0, 2.1, 3.9, 4.0])
    due = Every(2.0, lambda: next(times))

    assert [due() for _ in range(5)] == [False, True, False, False, True]


def test_the_metrics_file_of_a_relay_is_there_as_soon_as_it_works_and_says_in_the_end_what_it_did(
    tmp_path: Path,
) -> None:
    file, relayed = tmp_path / "relay.prom", [0]

    with measured(Stopping(), lambda: f"relayed {relayed[0]}", None, file):
        begun = file.read_text()
        relayed[0] = 3

    assert (begun, file.read_text()) == ("relayed 0", "relayed 3")


@pytest.mark.parametrize(
    ("counters", "brokers", "reason"),
    [
        (Counters(), [], "0 of 2 groups have been joined"),
        (Counters(groups_joined=1), [], "1 of 2 groups have been joined"),
        (Counters(groups_joined=2), [UP], ""),
        (Counters(groups_joined=1, shards=2, shards_active=2), [], ""),
        (Counters(groups_joined=2, shards=4, shards_active=3), [UP], "1 of 4 shards are not active"),
        (
            Counters(groups_joined=2, shards=4, shards_active=1, shards_restoring=3, restore_rows_left=70),
            [UP],
            "3 shards are being restored, 70 rows left",
        ),
        (Counters(groups_joined=2, shards=4, shards_active=4), [BOOTSTRAP, DOWN], "no broker is connected"),
        (Counters(groups_joined=2, shards=4, shards_active=4), [BOOTSTRAP], "no broker is connected"),
        (Counters(groups_joined=2, shards=4, shards_active=4), [BOOTSTRAP, DOWN, UP], ""),
    ],
)
def test_a_member_is_ready_when_all_that_it_holds_is_folding(
    counters: Counters, brokers: list[dict[str, Any]], reason: str
) -> None:
    statistics = {"brokers": {str(number): one for number, one in enumerate(brokers)}}

    assert unready(counters, statistics, {}, groups=2) == reason


STEADY, REBALANCING = {"join_state": "steady"}, {"join_state": "wait-join", "state": "up", "stateage": 60_000}
NEW, STANDING_BY = ({"join_state": "init", "state": "up", "stateage": age_ms} for age_ms in (500, 12_000))


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ([STEADY, NEW], "1 of 2 groups have been joined"),
        ([STEADY, REBALANCING], "1 of 2 groups have been joined"),
        ([STEADY, STANDING_BY], ""),
    ],
)
def test_a_member_that_nobody_told_of_its_groups_asks_its_consumers(told: list[dict[str, Any]], reason: str) -> None:
    consumers = {str(number): {"cgrp": one} for number, one in enumerate(told)}

    assert unready(Counters(), {}, consumers, groups=2) == reason
