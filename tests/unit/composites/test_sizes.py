"""Children that do not fit into a record: the step fails with the sizes, and starts none of them."""

import re

import pytest

from kapelle.processors.runs.composites.sizes import START_BYTES_MAX
from kapelle.schemas import contracts as c
from kapelle.testing.engine import Engine, RunHandle
from tests.unit.composites.trees import call, child, foreach, has_children, loop_while, push, row, slow
from tests.unit.runs.flows import BEGINNING, SPECIFIC, I, Json, S, noop, param, reason, refused, step, succeed

LARGE = 330_000  # three of them do not fit into a record
BIG = param("x" * LARGE)


def copied(*names: str, of: str = "big") -> Json:
    return {name: {"type": "STRING", "expression": of} for name in names}


VALUES = param({"type": "MAP", "value": {"i": {"type": "STRING_ARRAY", "expression": "new String[]{big, 'a'}"}}})
TREES = {
    "foreach": foreach("top", noop("leaf"), i=[1], **copied("one", "two")),
    "while": loop_while("top", "true", noop("leaf"), first={"n": 0}, **copied("one", "two")),
    "subworkflow": call("top", "other", **copied("one", "two")),
    "loop values": foreach("top", noop("leaf"), loop_params=VALUES, **copied("one")),
}


def world(*steps: Json, **more: object) -> tuple[Engine, RunHandle]:
    engine = slow()
    push(engine, "small", noop("a"))
    push(engine, "other", noop("leaf"))
    push(engine, "flow", *steps, params={"big": "", **more})
    return engine, engine.start("flow", run_params={"big": BIG})


def goes_on(engine: Engine) -> bool:
    return engine.start("small").status is I.SUCCEEDED


@pytest.mark.parametrize("tree", TREES)
def test_a_step_whose_children_do_not_fit_into_a_record_fails_with_the_sizes(tree: str) -> None:
    engine, run = world(TREES[tree])

    found = re.search(r"within 900,000 bytes, but found ([\d,]+): parameters", reason(run, "top"))

    assert found is not None
    assert int(found[1].replace(",", "")) > START_BYTES_MAX
    assert (run.status, run.steps["top"]) == (I.FAILED, S.FATALLY_FAILED)
    assert not has_children(run, "top")
    assert goes_on(engine)


@pytest.mark.parametrize("inner", ["foreach", "while"])
def test_parameters_that_grow_from_level_to_level_fail_the_inner_step(inner: str) -> None:
    tree = (
        foreach("mid", noop("leaf"), j=[1], **copied("three"))
        if inner == "foreach"
        else loop_while("mid", "true", noop("leaf"), first={"n": 0}, **copied("three"))
    )
    engine, run = world(foreach("top", tree, i=[1], **copied("one")))

    assert child(run, "top").steps["mid"] is S.FATALLY_FAILED
    assert "but found 9" in reason(child(run, "top"), "mid")
    assert goes_on(engine)


def test_a_step_that_ignores_failures_goes_on_without_its_children() -> None:
    tree = foreach("top", noop("leaf"), i=[1], to=["a"], failure_mode="IGNORE_FAILURE", **copied("one", "two"))
    _, run = world(tree, noop("a"))

    assert run.steps == {"top": S.COMPLETED_WITH_ERROR, "a": S.SUCCEEDED}
    assert run.status is I.SUCCEEDED


def test_what_fits_just_so_is_started() -> None:
    _, run = world(foreach("top", noop("leaf"), i=[1], **copied("one")))

    assert run.status is I.SUCCEEDED


def test_values_of_the_next_round_that_do_not_fit_fail_the_step() -> None:
    grow = {"n": {"type": "STRING", "expression": "n + big.substring(0, 90000)"}}
    big = param("x" * 420_000)
    engine = slow()
    push(engine, "small", noop("a"))
    push(
        engine,
        "flow",
        loop_while("top", "true", noop("leaf", **grow), first={"n": ""}, **copied("one")),
        params={"big": ""},
    )
    run = engine.start("flow", run_params={"big": big})

    assert "within 900,000 bytes" in reason(run, "top")
    assert row(run, "top").status is I.SUCCEEDED
    assert run.steps["top"] is S.FATALLY_FAILED
    assert goes_on(engine)


def test_a_restart_in_place_that_does_not_fit_is_refused_and_the_loop_goes_on() -> None:
    _, run = world(foreach("top", step("leaf"), i=[1, 2], **copied("one")))
    succeed(child(run, "top", 1), "leaf")

    child(run, "top", 1).restart(BEGINNING, step_run_params={"leaf": {"more": BIG}})

    assert "within 900,000 bytes" in refused(run)
    assert row(run, "top").status is I.SUCCEEDED
    succeed(child(run, "top", 2), "leaf")
    assert run.status is I.SUCCEEDED


def test_parameters_for_steps_that_a_person_gives_while_a_loop_runs_may_end_it() -> None:
    mid = foreach("mid", step("leaf"), j=[1, 2, 3], concurrency=1)
    engine, run = world(foreach("top", mid, step("side"), i=[1], **copied("one")))
    below = child(run, "top")
    engine.task(below, "side").fail("broken", c.Report.FATAL_ERROR)

    below.restart(SPECIFIC, step_id="side", step_run_params={"leaf": {"more": BIG}})
    succeed(child(below, "mid", 1), "leaf")

    assert "within 900,000 bytes" in reason(below, "mid")
    assert below.steps == {"mid": S.FATALLY_FAILED, "side": S.STARTING}
    assert goes_on(engine)
