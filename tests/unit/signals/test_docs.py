"""The examples of the page on signals do what the page says."""

import json
import re
from pathlib import Path
from typing import Any

from kapelle.processors.definitions.forms import DependencyForm, SignalMatchForm, SignalTriggerForm
from kapelle.processors.params.stored import typed
from kapelle.processors.signals.matching import Operator
from kapelle.processors.signals.windows import BUCKET_MS, WINDOW_MS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import StepStatus
from kapelle.testing.engine import Engine
from kapelle.worker import Context, Worker
from tests.unit.signals.announcing import say, starts, told

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "signals.md").read_text(encoding="utf-8")
DAY = 20260701


def example(workflow_id: str) -> dict[str, Any]:
    found = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]
    return next(one for one in found if one["workflow"]["id"] == workflow_id)


def engine_with(*workflow_ids: str) -> Engine:
    engine = Engine()
    for workflow_id in workflow_ids:
        engine.push(example(workflow_id))
    assert engine.refusals() == []
    return engine


def test_the_step_of_the_first_example_announces_its_signal_once() -> None:
    engine = engine_with("load-orders")
    first, second = engine.start("load-orders"), engine.start("load-orders")

    engine.task(first, "load").succeed()
    engine.task(second, "load").succeed()

    [signal] = told(engine, c.SignalAccepted)
    assert (signal.name, json.loads(signal.params), json.loads(signal.payload)) == (
        "orders",
        {"day": DAY},
        {"by": "load"},
    )
    assert len(told(engine, c.SignalDuplicated)) == 1


def test_the_function_of_the_page_announces_what_only_it_knows() -> None:
    [text] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"worker": Worker(), "Context": Context}
    exec(compile(text, "docs/signals.md", "exec"), names)  # noqa: S102 - the project's own page
    engine = engine_with("load-orders")

    run = engine.start("load-orders")
    engine.run_worker(names["worker"])

    assert run.status == "SUCCEEDED"
    assert [(one.name, json.loads(one.params)) for one in told(engine, c.SignalAccepted)] == [
        ("orders", {"day": DAY}),
        ("loaded", {"day": DAY, "table": "customers"}),
        ("loaded", {"day": DAY, "table": "invoices"}),
    ]


def test_the_trigger_of_the_example_joins_the_latest_rates_with_the_orders_of_the_day() -> None:
    engine = engine_with("report")

    for signal_id in ("r1", "r2"):
        say(engine, "rates", signal_id, date=DAY, bank="ecb")
    say(engine, "rates", "r3", date=DAY, bank="other")
    say(engine, "orders", "o1", day=DAY + 1, rows=3)
    say(engine, "orders", "o2", day=DAY, rows=0)
    say(engine, "orders", "o3", day=DAY, rows=5)

    assert starts(engine, "report") == [{"orders": 3, "rates": 2}]
    [created] = told(engine, c.InstanceCreated)
    assert typed(json.loads(created.params)["day"]) == DAY


def test_starts_of_the_same_day_are_one() -> None:
    engine = engine_with("report")

    for _ in range(2):
        say(engine, "rates", date=DAY, bank="fed")
        say(engine, "orders", day=DAY, rows=5)

    assert len(starts(engine, "report")) == 1
    assert len(told(engine, c.StartDuplicated)) == 1


def test_orders_without_rates_are_given_up_after_two_days() -> None:
    engine = engine_with("report")
    say(engine, "orders", day=DAY, rows=5)

    engine.advance(2 * 86_400_000)

    assert [one.name for one in told(engine, c.SignalExpired)] == ["orders"]


def test_the_step_of_the_last_example_waits_for_its_order_and_has_the_address() -> None:
    engine = engine_with("ship")
    say(engine, "address", town="Bern")
    say(engine, "address", town="Basel")
    run = engine.start("ship")
    say(engine, "paid", order=1)
    assert run.steps == {"pack": StepStatus.WAITING_FOR_SIGNALS}

    say(engine, "paid", order=4711)

    assert typed(engine.task(run, "pack").params["town"]) == "Basel"


def test_every_key_and_operator_is_on_the_page() -> None:
    forms = (SignalTriggerForm, SignalMatchForm, DependencyForm)
    keys = {field.alias or name for form in forms for name, field in form.model_fields.items()}

    assert {word for word in keys | set(Operator) if f"`{word}`" not in PAGE and f'"{word}"' not in PAGE} == set()


def test_the_window_on_the_page_is_the_window() -> None:
    assert (WINDOW_MS, WINDOW_MS + BUCKET_MS) == (7 * 86_400_000, 14 * 86_400_000)
