"""Trees of every shape push and end as they should: loops in loops, subworkflows in loops, loops in subworkflows."""

from typing import Any

from kapelle.processors.wiring import RUN_EVENTS
from kapelle.schemas import contracts as c
from kapelle.testing.engine import Engine, RunHandle
from tests.unit.runs.flows import I, S, noop

Json = dict[str, Any]


def engine_with(*workflows: Json) -> Engine:
    """An engine that knows these workflows."""
    engine = Engine(partitions=2)
    for one in workflows:
        engine.push({"properties": {"owner": "ann", "run_strategy": "PARALLEL"}, "workflow": one})
    return engine


def loop(step_id: str, steps: list[Json], to: str | None = None, /, **values: list[Any]) -> Json:
    kinds = {int: "LONG_ARRAY", str: "STRING_ARRAY"}
    arrays = {name: {"type": kinds[type(found[0])], "value": found} for name, found in values.items()}
    params = {"loop_params": {"type": "MAP", "value": arrays}}
    return {"foreach": {"id": step_id, "params": params, "steps": steps, "transition": after(to)}}


def call(step_id: str, workflow_id: str, to: str | None = None, /, **params: Json) -> Json:
    given = {"subworkflow_id": {"type": "STRING", "value": workflow_id}, **params}
    return {"subworkflow": {"id": step_id, "params": given, "transition": after(to)}}


def after(to: str | None) -> Json:
    return {"successors": {} if to is None else {to: "true"}}


def long(expression: str) -> Json:
    return {"type": "LONG", "expression": expression}


def text(expression: str) -> Json:
    return {"type": "STRING", "expression": expression}


def ended(engine: Engine) -> int:
    """How many instances of all levels have succeeded. None may have ended otherwise."""
    statuses = [event.status for event in engine.events(RUN_EVENTS) if isinstance(event, c.RunEnded)]
    assert set(statuses) == {I.SUCCEEDED}
    return len(statuses)


def run_of(engine: Engine, workflow_id: str) -> RunHandle:
    run = engine.start(workflow_id)
    assert run.status is I.SUCCEEDED
    return run


def test_a_loop_has_one_iteration_for_each_combination_and_its_values_are_read_behind_it() -> None:
    inner = noop("say", said=text("name + ':' + number"))
    outer = [loop("each", [inner], "read", number=[1, 2, 3], name=["a", "b"])]
    read = noop("read", all={"type": "STRING_ARRAY", "expression": "params.getFromForeach('each', 'say', 'said')"})
    engine = engine_with({"id": "combined", "steps": [*outer, read]})

    run = run_of(engine, "combined")

    assert ended(engine) == 1 + 6
    assert sorted(run.params("read")["all"]) == ["a:1", "a:2", "a:3", "b:1", "b:2", "b:3"]


def test_a_loop_in_a_loop_sees_the_values_of_both() -> None:
    inner = loop("columns", [noop("cell", at=long("row * 10 + column"))], column=[1, 2])
    engine = engine_with({"id": "table", "steps": [loop("rows", [noop("head", "columns"), inner], row=[1, 2, 3])]})

    run_of(engine, "table")

    assert ended(engine) == 1 + 3 + 6


def test_a_loop_that_calls_a_workflow_gives_each_child_its_values() -> None:
    child = {
        "id": "child",
        "params": {"day": {"type": "LONG", "value": 0}},
        "steps": [noop("work", twice=long("day * 2"))],
    }
    called = call("call", "child", "take", day=long("d"))
    taken = noop("take", got=long("params.getFromSubworkflow('call', 'work', 'twice')"))
    engine = engine_with(child, {"id": "days", "steps": [loop("each", [called, taken], d=[1, 2, 3])]})

    run_of(engine, "days")

    assert ended(engine) == 1 + 3 + 3
    assert [one.params("work")["twice"] for one in engine.runs("child")] == [2, 4, 6]


def test_a_workflow_that_is_called_may_have_loops_and_call_others() -> None:
    leaf = {"id": "leaf", "steps": [noop("only")]}
    branch = {"id": "branch", "steps": [loop("each", [call("call", "leaf")], n=[1, 2]), call("once", "leaf")]}
    trunk = {"id": "trunk", "steps": [call("first", "branch", "second"), call("second", "branch")]}
    engine = engine_with(leaf, branch, trunk)

    run = run_of(engine, "trunk")

    assert run.steps == {"first": S.SUCCEEDED, "second": S.SUCCEEDED}
    assert ended(engine) == 1 + 2 * (1 + 2 + 2 + 1)


def test_rounds_go_on_until_their_condition_is_false_and_may_have_loops_and_calls_in_them() -> None:
    child = {"id": "child", "steps": [noop("only")]}
    rounds = {
        "id": "rounds",
        "condition": "n < 4",
        "params": {"loop_params": {"type": "MAP", "value": {"n": {"type": "LONG", "value": 1}}}},
        "steps": [noop("next", n=long("n + 1")), loop("each", [noop("inner")], i=[1, 2]), call("call", "child")],
    }
    engine = engine_with(child, {"id": "polling", "steps": [{"while": rounds}]})

    run_of(engine, "polling")

    assert ended(engine) == 1 + 3 * (1 + 2 + 1)


def test_a_loop_of_a_thousand_iterations_ends() -> None:
    engine = engine_with({"id": "large", "steps": [loop("each", [noop("only")], n=list(range(1_000)))]})

    run_of(engine, "large")

    assert ended(engine) == 1 + 1_000
