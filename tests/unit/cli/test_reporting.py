"""How far a restore has come, all shards together, and when it is time to say so."""

from kapelle.cli.reporting import Every, progress_fields
from kapelle.topology.restore import Progress


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
