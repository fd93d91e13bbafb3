"""The backfill, without a broker: three at a time, and every day once."""

from pathlib import Path

from examples.backfill.steps import worker
from kapelle.testing import Engine, assert_run, assert_step

WORKFLOW = Path(__file__).with_name("workflow.yaml")
DAYS = [f"2026-01-0{number}" for number in range(1, 8)]


def params(day: str) -> dict[str, dict[str, str]]:
    return {"day": {"type": "STRING", "value": day}}


def test_three_days_run_at_a_time_until_all_are_done(engine: Engine) -> None:
    engine.push(WORKFLOW)
    runs = {day: engine.start("copy-day", run_params=params(day), request_id=f"backfill-{day}") for day in DAYS}

    assert sum(run.status == "IN_PROGRESS" for run in runs.values()) == 3
    engine.run_worker(worker)

    for day, run in runs.items():
        assert_run(run, "SUCCEEDED")
        assert run.params("copy")["rows"] == 1_000 + int(day[-1])


def test_a_day_that_is_started_again_is_the_same_instance(engine: Engine) -> None:
    engine.push(WORKFLOW)
    first = engine.start("copy-day", request_id="backfill-2026-01-01")
    again = engine.start("copy-day", request_id="backfill-2026-01-01")

    assert again.instance_id == first.instance_id


def test_a_day_with_rows_missing_fails_for_good(engine: Engine) -> None:
    engine.push(WORKFLOW)
    run = engine.start("copy-day")

    engine.task(run, "copy").begin()
    engine.task(run, "copy").succeed(rows=3)
    engine.run_worker(worker)

    assert_step(run, "check", "FATALLY_FAILED", attempts=1)
    assert_run(run, "FAILED")
