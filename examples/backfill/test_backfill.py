"""The backfill, without a broker: three at a time, and every day once."""

from pathlib import Path

from examples.backfill.steps import worker
from kapelle.testing import Engine, assert_run, assert_step

WORKFLOW = Path(__file__).with_name("workflow.yaml")


def test_three_days_run_at_a_time_until_all_are_done(engine: Engine) -> None:
    engine.push(WORKFLOW)
    backfill = engine.backfill("copy-day", "2026-01-01", "2026-01-07", every="1d", concurrency=3)

    assert len(backfill.instances) == 3
    engine.run_worker(worker)

    assert backfill.status == "COMPLETED"
    for day, run in enumerate(engine.runs("copy-day"), 1):
        assert_run(run, "SUCCEEDED")
        assert run.params("copy")["day"] == f"2026-01-0{day}"
        assert run.params("copy")["rows"] == 1_000 + day


def test_a_longer_period_starts_only_the_days_that_are_missing(engine: Engine) -> None:
    engine.push(WORKFLOW)
    engine.backfill("copy-day", "2026-01-01", "2026-01-03", every="1d", concurrency=3)
    engine.run_worker(worker)

    longer = engine.backfill("copy-day", "2026-01-01", "2026-01-05", every="1d", concurrency=3)

    assert len(longer.instances) == 2


def test_a_day_with_rows_missing_fails_for_good(engine: Engine) -> None:
    engine.push(WORKFLOW)
    run = engine.start("copy-day")

    engine.task(run, "copy").begin()
    engine.task(run, "copy").succeed(rows=3)
    engine.run_worker(worker)

    assert_step(run, "check", "FATALLY_FAILED", attempts=1)
    assert_run(run, "FAILED")
