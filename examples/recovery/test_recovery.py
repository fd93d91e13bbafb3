"""The recovery of a job that fails, without a broker: both branches, and a job that fails again."""

from pathlib import Path

import pytest

from examples.recovery.steps import ORDERS, export_of, worker
from kapelle.testing import Engine, assert_not_run, assert_run, assert_step
from kapelle.testing.engine import RunHandle
from kapelle.worker import Worker

HERE = Path(__file__).parent
DAY = "2026-07-01"


@pytest.fixture
def run(engine: Engine, tmp_path: Path) -> RunHandle:
    for name in ("load.yaml", "repair.yaml", "workflow.yaml"):
        engine.push(HERE / name)
    return engine.start("auto-recovery", run_params={"folder": {"type": "STRING", "value": str(tmp_path)}})


def test_a_job_that_succeeds_needs_no_recovery(engine: Engine, run: RunHandle, tmp_path: Path) -> None:
    export_of(tmp_path, DAY).write_text("\n".join(ORDERS))

    engine.run_worker(worker)

    assert_run(run, "SUCCEEDED")
    assert run.params("status_check")["status"] == "SUCCEEDED"
    for step_id in ("recovery", "job2"):
        assert_not_run(run, step_id)
    assert [one.status for one in engine.runs("load-day")] == ["SUCCEEDED"]


def test_a_job_that_fails_is_repaired_and_run_again(engine: Engine, run: RunHandle, tmp_path: Path) -> None:
    export_of(tmp_path, DAY).write_text("at;12.50")

    engine.run_worker(worker)

    assert_run(run, "SUCCEEDED")
    assert_step(run, "job1", "COMPLETED_WITH_ERROR")
    for step_id in ("recovery", "job2", "report"):
        assert_step(run, step_id, "SUCCEEDED")
    first, second = engine.runs("load-day")
    assert (first.status, second.status) == ("FAILED", "SUCCEEDED")
    assert second.params("load")["rows"] == len(ORDERS)


def test_a_job_that_fails_again_fails_the_run(engine: Engine, run: RunHandle) -> None:
    hopeless = Worker()
    hopeless.add("load_orders", worker.steps["load_orders"].function)

    @hopeless.step("repair_export")
    def repair_export() -> None:
        """Repair nothing."""

    engine.run_worker(hopeless)

    assert_step(run, "job2", "FATALLY_FAILED")
    assert_run(run, "FAILED")
