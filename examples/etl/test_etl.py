"""The ETL chain, without a broker and without waiting."""

from pathlib import Path

from examples.etl.steps import worker
from kapelle.testing import Engine, assert_not_run, assert_run, assert_step

WORKFLOW = Path(__file__).with_name("workflow.yaml")
SECOND_MS = 1_000


def test_a_late_export_is_tried_again_and_loaded(engine: Engine, tmp_path: Path) -> None:
    engine.push(WORKFLOW)
    run = engine.start("sales-etl", run_params={"folder": {"type": "STRING", "value": str(tmp_path)}})

    engine.run_worker(worker)
    assert_step(run, "extract", "USER_FAILED", attempts=1)
    engine.advance(SECOND_MS)
    engine.run_worker(worker)

    assert_run(run, "SUCCEEDED")
    assert_step(run, "extract", "SUCCEEDED", attempts=2)
    assert_not_run(run, "nothing_sold")
    assert run.params("load")["countries"] == 3


def test_a_day_without_orders_loads_nothing(engine: Engine) -> None:
    engine.push(WORKFLOW)
    run = engine.start("sales-etl")

    engine.task(run, "extract").begin()
    engine.task(run, "extract").succeed(rows=0)

    assert_run(run, "SUCCEEDED")
    assert_step(run, "nothing_sold", "SUCCEEDED")
    assert_not_run(run, "load")
