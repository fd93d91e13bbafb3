"""subworkflow: which instance is started with what, and what its end makes of the step."""

import json
from typing import Any

import pytest

from kapelle.processors.wiring import WORKFLOW_EVENTS, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action
from kapelle.testing.engine import Engine, RunHandle
from tests.unit.composites.trees import call, child, fan, foreach, has_children, push, row
from tests.unit.runs.flows import I, Json, S, fail, noop, pushed, reason, step, succeed, value_of


def text(expression: str) -> Json:
    return {"type": "STRING", "expression": expression}


def called(*steps: Json, other: Json | None = None, **more: Any) -> RunHandle:
    """A run whose step `sub` calls the workflow `other`, which has these steps."""
    engine = pushed(call("sub", "other", to=["after"], **more), noop("after"), params=other or {})
    return push(engine, "other", *steps).start("flow")


# Waiting ------------------------------------------------------------------------------------------------------------


def test_a_step_waits_for_the_end_of_its_child() -> None:
    run = called(step("c"))
    before = run.steps

    succeed(child(run, "sub"), "c")

    assert before == {"sub": S.RUNNING}
    assert run.steps == {"sub": S.SUCCEEDED, "after": S.SUCCEEDED}


@pytest.mark.parametrize("how", ["FAILED", "STOPPED", "TIMED_OUT"])
def test_the_end_of_the_child_is_that_of_the_step(how: str) -> None:
    run = called(step("c", timeout=60))
    if how == "FAILED":
        fail(child(run, "sub"), "c", "no space left")
    elif how == "STOPPED":
        run.engine.runs("other")[0].stop()
    else:
        run.engine.advance(60_000)

    expected = {"FAILED": S.FATALLY_FAILED, "STOPPED": S.STOPPED, "TIMED_OUT": S.TIMED_OUT}

    assert run.steps == {"sub": expected[how]}
    assert reason(run, "sub").startswith(f"other/1 {how}")


def test_a_child_that_is_killed_by_its_own_address_fails_the_step() -> None:
    run = called(step("c"))

    run.engine.runs("other")[0].stop(Action.KILL)

    assert run.steps == {"sub": S.FATALLY_FAILED}


def test_a_failed_child_is_not_tried_again() -> None:
    run = called(step("c"))

    fail(child(run, "sub"), "c")

    assert len(run.engine.runs("other")) == 1
    assert run.status is I.FAILED


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("IGNORE_FAILURE", {"sub": S.COMPLETED_WITH_ERROR, "after": S.SUCCEEDED, "b": S.STARTING}),
        ("FAIL_IMMEDIATELY", {"sub": S.FATALLY_FAILED, "b": S.STOPPED}),
        ("FAIL_AFTER_RUNNING", {"sub": S.FATALLY_FAILED, "b": S.STARTING}),
    ],
)
def test_a_failed_child_counts_as_the_failure_mode_says(mode: str, expected: dict[str, S]) -> None:
    engine = pushed(call("sub", "other", to=["after"], failure_mode=mode), noop("after"), step("b"))
    run = push(engine, "other", step("c")).start("flow")

    fail(child(run, "sub"), "c")

    assert run.steps == expected


def test_an_asynchronous_step_is_done_as_soon_as_its_child_exists() -> None:
    run = called(step("c"), sync=False)

    assert run.status is I.SUCCEEDED
    assert child(run, "sub").status is I.IN_PROGRESS


def test_nobody_waits_for_the_end_of_an_asynchronous_child() -> None:
    run = called(step("c"), sync=False)
    before = run.events()

    fail(child(run, "sub"), "c")

    assert run.events() == before


# Which instance -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "expected"), [("active", 2), ("latest", 3), ("1", 1)])
def test_the_version_can_be_chosen(version: str, expected: int) -> None:
    engine = pushed(call("sub", "other", subworkflow_version=version))
    for is_active in (True, True, False):
        engine.push(
            {
                "properties": {"owner": "ann"},
                "is_active": is_active,
                "workflow": {"id": "other", "steps": [noop("c")]},
            }
        )

    run = engine.start("flow")

    found = child(run, "sub").row
    assert found is not None
    assert found.version == expected


def test_the_workflow_can_be_computed() -> None:
    engine = pushed(call("sub", "${which}-flow"), params={"which": "other"})

    run = push(engine, "other-flow", noop("c")).start("flow")

    assert child(run, "sub").workflow_id == "other-flow"


def test_a_child_knows_what_started_it() -> None:
    run = called(noop("c", x=text("params.getFromInstance('INITIATOR_TYPE')")))

    assert value_of(child(run, "sub"), "c", "x") == "SUBWORKFLOW"


def test_the_queue_of_the_child_decides_when_it_runs() -> None:
    engine = push(pushed(call("sub", "other")), "other", step("c"), strategy="SEQUENTIAL")
    busy = engine.start("other")
    run = engine.start("flow")
    before = run.steps, engine.runs("other")[1].status

    succeed(busy, "c")
    succeed(child(run, "sub"), "c")

    assert before == ({"sub": S.RUNNING}, I.CREATED)
    assert run.status is I.SUCCEEDED


def test_a_child_that_its_strategy_does_not_let_in_stops_the_step() -> None:
    engine = push(pushed(call("sub", "other")), "other", step("c"), strategy="FIRST_ONLY")
    engine.start("other")

    run = engine.start("flow")

    assert run.steps == {"sub": S.STOPPED}
    assert run.status is I.STOPPED


def test_a_child_that_another_instance_displaces_stops_the_step() -> None:
    engine = push(pushed(call("sub", "other")), "other", step("c"), strategy="LAST_ONLY")
    run = engine.start("flow")

    engine.start("other")

    assert run.steps == {"sub": S.STOPPED}


def test_a_child_that_is_stopped_in_the_queue_stops_the_step() -> None:
    engine = push(pushed(call("sub", "other")), "other", step("c"), strategy="SEQUENTIAL")
    engine.start("other")
    run = engine.start("flow")

    engine.runs("other")[1].stop()

    assert run.steps == {"sub": S.STOPPED}


# No instance --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [True, False])
def test_a_workflow_that_does_not_exist_fails_the_step_with_the_reason(sync: bool) -> None:
    run = pushed(call("sub", "nobody", sync=sync)).start("flow")

    assert run.steps == {"sub": S.FATALLY_FAILED}
    assert "nobody" in reason(run, "sub")


def test_a_workflow_without_an_active_version_fails_the_step_with_the_reason() -> None:
    engine = pushed(call("sub", "other"))
    engine.push({"properties": {"owner": "ann"}, "is_active": False, "workflow": {"id": "other", "steps": [noop("c")]}})

    run = engine.start("flow")

    assert run.steps == {"sub": S.FATALLY_FAILED}
    assert "active" in reason(run, "sub")


def test_a_version_that_does_not_exist_fails_the_step() -> None:
    run = called(noop("c"), subworkflow_version="7")

    assert run.steps == {"sub": S.FATALLY_FAILED}


def test_parameters_that_the_child_refuses_fail_the_step_with_the_child_s_reason() -> None:
    engine = pushed(call("sub", "other", fixed=2))
    push(engine, "other", noop("c"), params={"fixed": {"type": "LONG", "value": 1, "mode": "CONSTANT"}})

    run = engine.start("flow")

    assert run.steps == {"sub": S.FATALLY_FAILED}
    assert "fixed" in reason(run, "sub")
    assert engine.runs("other") == []


def test_a_parameter_of_another_type_fails_the_step() -> None:
    engine = pushed(call("sub", "other", x="seven"))

    run = push(engine, "other", noop("c"), params={"x": 1}).start("flow")

    assert run.steps == {"sub": S.FATALLY_FAILED}


def test_parameters_that_cannot_be_evaluated_fail_the_step() -> None:
    engine = pushed(call("sub", "other", y=0))

    run = push(engine, "other", noop("c"), params={"x": "=1 / y", "y": 1}).start("flow")

    assert run.steps == {"sub": S.FATALLY_FAILED}
    assert engine.runs("other") == []


@pytest.mark.parametrize("name", ["", "a/b"])
def test_an_id_that_no_workflow_can_have_fails_the_step(name: str) -> None:
    engine = pushed(call("sub", "${which}"), params={"which": name})

    run = engine.start("flow")

    assert run.steps == {"sub": S.FATALLY_FAILED}


def test_a_refused_child_counts_as_the_failure_mode_says() -> None:
    run = pushed(call("sub", "nobody", failure_mode="IGNORE_FAILURE")).start("flow")

    assert run.steps == {"sub": S.COMPLETED_WITH_ERROR}


DECLARED: Json = {
    "STRING": "",
    "DOUBLE": 0.5,
    "BOOLEAN": False,
    "STRING_MAP": {"other": "1"},
    "MAP": {"m": {"type": "STRING_MAP", "value": {}}},
}


# Parameters ---------------------------------------------------------------------------------------------------------


def test_the_child_gets_all_parameters_of_the_workflow_and_of_the_step() -> None:
    run = called(noop("c", x=text("a + b")), other={"a": "flow "}, b="step")

    assert value_of(child(run, "sub"), "c", "x") == "flow step"


def test_with_explicit_params_the_child_gets_those_of_the_step_alone() -> None:
    run = called(noop("c", x=text("b")), noop("d", x=text("a")), other={"a": "flow"}, b="step", explicit_params=True)

    assert child(run, "sub").steps == {"c": S.SUCCEEDED, "d": S.INTERNALLY_FAILED}


def test_the_parameters_that_name_the_workflow_are_not_passed_on() -> None:
    run = called(noop("c", x=text("subworkflow_id")))

    assert child(run, "sub").steps == {"c": S.INTERNALLY_FAILED}


def test_system_parameters_are_those_of_the_parent() -> None:
    run = called(
        noop("c", at="=RUN_TS", param=text("workflow_id"), real=text("params.getFromInstance('workflow_id')")),
        other={"began": "=RUN_TS"},
    )

    found = child(run, "sub").params("c")

    assert run.row is not None
    assert found == {"at": json.loads(run.row.params)["began"], "param": "flow", "real": "other"}


def test_a_parameter_of_the_child_is_overridden_and_the_rest_keep_what_they_are() -> None:
    engine = pushed(call("sub", "other", x=41))

    run = push(engine, "other", noop("c", got="=x + y"), params={"x": 1, "y": "=x + 1"}).start("flow")

    assert value_of(child(run, "sub"), "c", "got") == 41 + 42


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"type": "STRING", "value": "a $$b ${x}"}, "STRING"),
        ({"type": "STRING_ARRAY", "value": ["$$a", "b"]}, "STRING_ARRAY"),
        ({"type": "LONG_ARRAY", "value": [1, 2]}, "LONG_ARRAY"),
        ({"type": "LONG_ARRAY", "value": []}, "LONG_ARRAY"),
        ({"type": "DOUBLE", "value": 1.0}, "DOUBLE"),
        ({"type": "BOOLEAN", "value": True}, "BOOLEAN"),
        ({"type": "STRING_MAP", "value": {"k": "$$v"}}, "STRING_MAP"),
        ({"type": "STRING_MAP", "value": {}}, "STRING_MAP"),
        ({"type": "STRING_MAP", "value": {"$$k": "${x}"}}, "STRING_MAP"),
        ({"type": "MAP", "value": {"k": {"type": "STRING", "value": "$$v"}}}, "MAP"),
        ({"type": "MAP", "value": {"m": {"type": "STRING_MAP", "value": {"k": "$$v"}}}}, "MAP"),
    ],
)
@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.parametrize("is_of_step", [True, False])
def test_values_arrive_as_they_are_with_their_types(
    given: Json, kind: str, is_declared: bool, is_of_step: bool
) -> None:
    declared = {"p": {"type": kind, "value": DECLARED.get(kind, [])}} if is_declared else {}
    of_step: dict[str, Any] = {"p": given} if is_of_step else {}
    engine = pushed(
        call("sub", "other", **of_step),
        noop("here", **({} if is_of_step else {"p": {"type": kind, "expression": "return p;"}})),
        params={"x": "filled", **({} if is_of_step else {"p": given})},
    )
    seen = noop("c", p={"type": kind, "expression": "return p;"})

    run = push(engine, "other", seen, params=declared).start("flow")

    assert run.steps["sub"] is S.SUCCEEDED, reason(run, "sub")
    found = value_of(child(run, "sub"), "c", "p")
    expected = value_of(run, "sub" if is_of_step else "here", "p")
    if is_declared:
        base: dict[str, Any] = {"STRING_MAP": {"other": "1"}, "MAP": {"m": {}}}
        expected = {**base[kind], **expected} if kind in base else expected
    assert found == expected


# Trees --------------------------------------------------------------------------------------------------------------


def test_a_workflow_may_call_itself_to_nine_levels_below_the_root() -> None:
    engine = pushed(call("sub", "flow"))

    run = engine.start("flow")

    found = engine.runs("flow")
    assert len(found) == 10
    assert [one.status for one in found] == [I.FAILED] * 10
    deepest = found[-1]
    assert deepest.steps == {"sub": S.FATALLY_FAILED}
    assert "at most 9 ancestors" in reason(deepest, "sub")
    assert not has_children(deepest, "sub")
    assert run.steps == {"sub": S.FATALLY_FAILED}


def test_loops_count_as_levels_too() -> None:
    engine = pushed(foreach("loop", call("sub", "flow"), i=[1]))

    run = engine.start("flow")

    assert run.status is I.FAILED
    assert len(engine.runs("flow")) == 5


def test_the_step_at_the_limit_fails_as_its_failure_mode_says() -> None:
    engine = pushed(call("sub", "flow", failure_mode="IGNORE_FAILURE"))

    run = engine.start("flow")

    assert run.status is I.SUCCEEDED
    assert engine.runs("flow")[-1].steps == {"sub": S.COMPLETED_WITH_ERROR}


def test_a_child_that_calls_a_workflow_in_a_loop_of_iterations() -> None:
    engine = pushed(foreach("loop", call("sub", "other", x="=i * 10"), i=[1, 2]))
    push(engine, "other", noop("c", got="=x + loop_index"), params={"x": 0})

    run = engine.start("flow")

    assert [value_of(child(child(run, "loop", number), "sub"), "c", "got") for number in (1, 2)] == [10, 21]


# Once ---------------------------------------------------------------------------------------------------------------


def sent(engine: Engine) -> list[tuple[str, Any]]:
    """The commands of processors to workflows that took their topic."""
    return list(engine.history(WORKFLOW_INTERNAL, 0))


def test_a_start_that_comes_twice_gives_one_child() -> None:
    engine = Engine(same_cycle=False)
    push(engine, "flow", call("sub", "other"))
    push(engine, "other", step("c"))
    run = engine.start("flow")
    key, start = next((key, one) for key, one in sent(engine) if isinstance(one, c.StartChild))

    engine.send(WORKFLOW_INTERNAL, key, start)
    succeed(child(run, "sub"), "c")

    assert len(engine.runs("other")) == 1
    assert row(run, "sub").child == "other/1"
    assert run.status is I.SUCCEEDED


def test_the_child_is_told_its_parent_by_the_engine_alone() -> None:
    engine = push(pushed(step("a")), "other", step("c"))
    run = engine.start("flow")

    claimed = {"type": "SUBWORKFLOW", "ancestors": [{"workflow_id": "flow", "instance_id": 1, "step_id": "a"}]}
    engine.send(
        WORKFLOW_INTERNAL,
        "other",
        c.StartInstances("ann", (c.Start("r", initiator=str(claimed).replace("'", '"')),)),
    )

    created = [one for one in engine.events(WORKFLOW_EVENTS, "other") if isinstance(one, c.InstanceCreated)]
    assert [one.parent for one in created] in ([], [None])
    assert run.steps == {"a": S.STARTING}


def test_the_counts_of_a_step_are_those_of_its_one_child() -> None:
    run = called(step("c"))

    found = fan(run, "sub")

    assert (found.total, found.running, found.next) == (1, 1, 2)


def test_a_child_that_is_killed_in_its_queue_fails_the_step() -> None:
    engine = push(pushed(call("sub", "other")), "other", step("c"), strategy="SEQUENTIAL")
    busy = engine.start("other")
    run = engine.start("flow")

    run.child("sub").stop(Action.KILL)

    assert run.steps == {"sub": S.FATALLY_FAILED}
    assert (run.status, busy.status) == (I.FAILED, I.IN_PROGRESS)


def test_a_workflow_that_calls_itself_and_runs_its_last_instance_only_stops_itself() -> None:
    engine = push(Engine(), "flow", call("sub", "flow"), strategy="LAST_ONLY")

    run = engine.start("flow")

    assert [one.status for one in engine.runs("flow")] == [I.STOPPED, I.STOPPED]
    assert run.steps == {"sub": S.STOPPED}
    assert engine.start("flow").status is I.STOPPED
