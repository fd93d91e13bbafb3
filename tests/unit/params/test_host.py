"""One question has one answer: every field and every signal look-up, wherever an expression can stand."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kapelle.processors.definitions import DefinitionRefused, parse_push
from kapelle.processors.params.host import FIELDS, InstanceFacts, ParamsHost
from kapelle.processors.params.stored import typed
from kapelle.processors.sel import ExtensionFailed
from kapelle.processors.wiring import RUN_COMMANDS, SIGNAL_EVENTS, WORKFLOW_COMMANDS, WORKFLOW_EVENTS, WORKFLOW_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import RestartPolicy
from kapelle.testing.engine import Engine, RunHandle

FLOW = "flow"
LONGS = {"SCHEDULED_TIME", "workflow_instance_id", "workflow_run_id"}
TICK_MS = 1_700_000_000_000

# For each kind of initiator: what the start brings, and what is then known of it.
INITIATORS: dict[str, tuple[dict[str, Any], str, str]] = {
    "manual": ({"type": "manual", "user": "somebody else"}, "MANUAL", ""),
    "time": ({"type": "TIME", "timezone": "Asia/Tokyo", "trigger_time": TICK_MS}, "TIME", "Asia/Tokyo"),
    "signal": ({"type": "Signal", "timezone": None}, "SIGNAL", ""),
    "subworkflow": ({"type": "SUBWORKFLOW"}, "SUBWORKFLOW", ""),
}


def asks(field: str) -> str:
    return f"params.getFromInstance('{field}')"


def asking(prefix: str) -> dict[str, Any]:
    """A parameter for each field."""
    return {
        f"{prefix}{field}": {"type": "LONG" if field in LONGS else "STRING", "expression": asks(field)}
        for field in FIELDS
    }


def found(prefix: str, params: dict[str, Any]) -> dict[str, Any]:
    return {field: typed(params[prefix + field]) for field in FIELDS if prefix + field in params}


def definition(**more: Any) -> dict[str, Any]:
    """A workflow that asks every field in its parameters, in those of a step, in a signal and in a condition."""
    signal = {"name": "told", "params": {**asking("o_")}}
    compared = " && ".join(f"{asks(field)} == w_{field}" for field in FIELDS)
    load = {
        "id": "load",
        "type": "shell",
        "params": asking("s_"),
        "signal_outputs": [signal],
        "transition": {"successors": {"same": compared, "other": f"!({compared})"}},
    }
    ends = [{"step": {"id": name, "type": "NoOp"}} for name in ("same", "other")]
    return {
        "properties": {"owner": {"name": "ann", "team": "data"}, "run_strategy": "SEQUENTIAL"},
        "workflow": {
            "id": FLOW,
            "params": asking("w_"),
            "time_triggers": [
                {"type": "CRON", "cron": "0 5 * * *", "timezone": "Europe/Berlin"},
                {"type": "CRON", "cron": "0 9 * * *", "timezone": "Asia/Tokyo"},
            ],
            "steps": [{"step": load}, *ends],
            **more,
        },
    }


def engine_of(**more: Any) -> Engine:
    engine = Engine()
    engine.push(definition(**more))
    return engine


def expected(kind: str, **changed: Any) -> dict[str, Any]:
    _, type_, timezone = INITIATORS[kind]
    return {
        "INITIATOR_TIMEZONE": timezone,
        "INITIATOR_TYPE": type_,
        "INITIATOR_RUNNER_NAME": "tester",
        "SCHEDULED_TIME": TICK_MS if kind == "time" else 0,
        "RUN_POLICY": "START_FRESH_NEW_RUN",
        "owner": "ann",
        "FIRST_TIME_TRIGGER_TIMEZONE": "Europe/Berlin",
        "workflow_id": FLOW,
        "workflow_instance_id": 1,
        "workflow_run_id": 1,
        **changed,
    }


def begun(engine: Engine, initiator: dict[str, Any], **more: Any) -> RunHandle:
    """An instance that was started by a person, by a trigger, or by a step of another workflow."""
    kind = initiator["type"].upper()
    if kind == "MANUAL":
        return engine.start(FLOW, initiator=initiator, **more)
    if kind == "SUBWORKFLOW":
        calls = {"id": "call", "params": {"subworkflow_id": {"type": "STRING", "value": FLOW}}}
        steps = [{"subworkflow": {**calls, "explicit_params": True}}]
        engine.push({"properties": {"owner": "eve"}, "workflow": {"id": "above", "steps": steps}})
        engine.start("above")
    else:
        start = c.Start(engine.request_id(), initiator=json.dumps(initiator), **more)
        engine.send(WORKFLOW_INTERNAL, FLOW, c.StartTriggered("tester", (start,)))
    return engine.runs(FLOW)[-1]


def created(engine: Engine) -> c.InstanceCreated:
    return next(one for one in reversed(engine.events(WORKFLOW_EVENTS, FLOW)) if isinstance(one, c.InstanceCreated))


def restart_by_bob(run: RunHandle) -> None:
    """With new parameters of the workflow, which ask everything."""
    request = c.RestartRun(
        run.engine.request_id(), "bob", RestartPolicy.RESTART_FROM_BEGINNING, None, json.dumps(asking("again_"))
    )
    run.engine.send(RUN_COMMANDS, run.key, request)


def test_every_field_is_expected() -> None:
    assert set(expected("manual")) == set(FIELDS)


@pytest.mark.parametrize("kind", INITIATORS)
def test_a_run_is_told_the_same_everywhere(kind: str) -> None:
    engine = engine_of()

    run = begun(engine, INITIATORS[kind][0])
    engine.task(run, "load").succeed()

    wanted = expected(kind)
    assert found("w_", json.loads(created(engine).params)) == wanted
    assert found("s_", engine.task(run, "load").params) == wanted
    [signal] = [one for one in engine.events(SIGNAL_EVENTS) if isinstance(one, c.SignalAccepted)]
    assert found("o_", json.loads(signal.params)) == wanted
    assert {name: str(status) for name, status in run.steps.items()}["same"] == "SUCCEEDED"


@pytest.mark.parametrize("kind", INITIATORS)
def test_a_restart_is_told_the_same_everywhere(kind: str) -> None:
    engine = engine_of()
    run = begun(engine, INITIATORS[kind][0])
    engine.task(run, "load").fail("it broke", c.Report.FATAL_ERROR)

    restart_by_bob(run)

    wanted = expected(kind, INITIATOR_RUNNER_NAME="bob", RUN_POLICY="RESTART_FROM_BEGINNING", workflow_run_id=2)
    assert created(engine).run_id == 2
    assert found("again_", json.loads(created(engine).params)) == wanted
    assert found("s_", engine.task(run, "load").params) == wanted


@pytest.mark.parametrize("kind", INITIATORS)
def test_a_restart_of_an_instance_that_never_ran_is_told_the_same_everywhere(kind: str) -> None:
    engine = engine_of()
    first = engine.start(FLOW)
    run = begun(engine, INITIATORS[kind][0])
    run.stop()
    changes = json.dumps({"owner": "eve"})
    engine.send(WORKFLOW_COMMANDS, FLOW, c.ChangeProperties(engine.request_id(), "eve", changes))

    restart_by_bob(run)
    first.stop()

    wanted = expected(
        kind,
        INITIATOR_RUNNER_NAME="bob",
        RUN_POLICY="RESTART_FROM_BEGINNING",
        workflow_instance_id=2,
        workflow_run_id=2,
    )
    assert found("again_", json.loads(created(engine).params)) == wanted
    assert found("s_", engine.task(run, "load").params) == wanted


def test_a_run_that_waited_in_the_queue_knows_who_started_it() -> None:
    engine = engine_of()
    first = engine.start(FLOW)
    second = engine.start(FLOW)

    first.stop()

    assert found("s_", engine.task(second, "load").params) == expected("manual", workflow_instance_id=2)


def test_a_dry_run_knows_every_field() -> None:
    wanted = expected("manual", INITIATOR_TYPE="VALIDATION", INITIATOR_RUNNER_NAME="", owner="")

    parse_push(json.dumps(definition(params={f"d_{name}": divides_by(name, value) for name, value in wanted.items()})))

    for name in FIELDS:
        with pytest.raises(DefinitionRefused, match="a divisor other than 0"):
            parse_push(json.dumps(definition(params={"d": divides_by(name, "something else")})))


def divides_by(field: str, value: str | int) -> dict[str, Any]:
    """A parameter that can be evaluated if the field has this value."""
    literal = value if isinstance(value, int) else f"'{value}'"
    return {"type": "LONG", "expression": f"1 / ('' + {asks(field)} == '' + {literal} ? 1 : 0)"}


# Signals --------------------------------------------------------------------------------------------------------------

# What can be asked of a trigger with the parameter `own`, and of its signals `a` and `b`.
QUESTIONS: dict[str, tuple[str, Any]] = {
    "params.getFromSignal('own')": ("LONG", 5),
    "params.getFromSignal('list')": ("LONG_ARRAY", [1, 2]),
    "params.getFromSignal('list').length + params.getFromSignal('list')[1]": ("LONG", 4),
    "params.getFromSignal('map')": ("STRING_MAP", {"value": "kept"}),
    "params.getFromSignal('a', 'n')": ("LONG", 2),
    "params.getFromSignal('b', 'word')": ("STRING", "x"),
    "a__n + b__n": ("LONG", 5),
    "params.getFromSignalOrDefault('own', 7)": ("LONG", 5),
    "params.getFromSignalOrDefault('none', 7)": ("LONG", 7),
    "params.getFromSignalOrDefault('b', 'n', 7)": ("LONG", 3),
    "params.getFromSignalOrDefault('b', 'none', 7)": ("LONG", 7),
    "params.getFromSignalOrDefault('c', 'n', 7)": ("LONG", 7),
    "params.getExecutionEnvironment()": ("STRING", ""),
}
OWN = {
    "own": {"type": "LONG", "expression": "params.getFromSignal('a', 'n') + b__n"},
    "list": {"type": "LONG_ARRAY", "value": [1, 2]},
    "map": {"type": "STRING_MAP", "value": {"value": "kept"}},
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_signals_are_looked_up_the_same_everywhere(question: str) -> None:
    kind, answer = QUESTIONS[question]
    param = {"type": kind, "expression": question}
    step = {"step": {"id": "load", "type": "shell", "params": {"s": param}}}
    trigger = {"definitions": {"a": {}, "b": {}}, "params": OWN}
    engine = engine_of(params={"w": param}, steps=[step], signal_triggers=[trigger])

    engine.announce("a", {"n": 2})
    engine.announce("b", {"n": 3, "word": "x"})

    [run] = engine.runs(FLOW)
    assert typed(json.loads(created(engine).params)["w"]) == answer
    assert typed(engine.task(run, "load").params["s"]) == answer


@pytest.mark.parametrize(
    ("initiator", "question"),
    [
        ({"type": "MANUAL"}, "params.getFromSignal('x')"),
        ({"type": "SIGNAL", "params": {"x": None}}, "params.getFromSignal('x')"),
        ({"type": "SIGNAL", "params": {"x": [{}]}}, "params.getFromSignal('x')"),
        ({"type": "SIGNAL", "signals": {"a": 5}}, "params.getFromSignal('a', 'x')"),
        ({"type": "SIGNAL", "signals": {"a": {"y": 1}}}, "params.getFromSignal('a', 'x')"),
        ({"type": "MANUAL"}, "params.getFromInstance('x')"),
    ],
)
def test_what_is_not_there_is_refused_in_the_same_words_everywhere(initiator: Any, question: str) -> None:
    param = {"w": {"type": "STRING", "expression": question}}
    reasons = [
        _reason(initiator, params=param),
        _reason(initiator, steps=[{"step": {"id": "load", "type": "shell", "params": param}}]),
    ]

    assert reasons[0] == reasons[1]
    assert reasons[0].startswith("Expected")


def _reason(initiator: Any, **more: Any) -> str:
    """Why an instance cannot be created, or why its step fails, without the words that say where."""
    # A workflow with a trigger: a push does not evaluate what only a signal gives.
    engine = Engine()
    whole = definition(**{"params": {}, "steps": [{"step": {"id": "load", "type": "NoOp"}}], **more})
    whole["workflow"]["signal_triggers"] = [{"definitions": {"a": {}}}]
    try:
        engine.push(whole)
    except AssertionError as error:  # a field that does not exist is refused when it is pushed
        return _said(str(error))
    run = begun(engine, initiator, persist_failed_run=True)
    changes = run.changes("load")
    return _said(changes[-1].reason if changes else created(engine).reason)


def _said(reason: str) -> str:
    return "Expected" + reason.rpartition("Expected")[2].rstrip(")")


# Facts ----------------------------------------------------------------------------------------------------------------


def facts(**changed: Any) -> InstanceFacts:
    given = {"initiated_by": "{}", "properties": "{}", "restart": None, "first_timezone": "", **changed}
    return InstanceFacts("etl", 7, 2, "bob", **given)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("workflow_instance_id", {}),
        ("FIRST_TIME_TRIGGER_TIMEZONE", {}),
        ("INITIATOR_TYPE", {"initiated_by": '{"type":"MANUAL"}'}),
        ("owner", {"properties": '{"owner":"ann"}'}),
        ("RUN_POLICY", {"restart": '{"policy":"RESTART_FROM_SPECIFIC"}'}),
    ],
)
def test_only_the_json_of_the_field_that_is_asked_for_is_decoded(field: str, given: dict[str, str]) -> None:
    unreadable: dict[str, Any] = {"initiated_by": 1, "properties": 1, "restart": 1}
    host = ParamsHost(facts(**{**unreadable, **given}), "seed")

    assert host.call("getFromInstance", (field,)) is not None


def test_ids_are_made_again_by_the_same_seed_alone() -> None:
    def ids(seed: str) -> list[Any]:
        host: Callable[..., Any] = ParamsHost(facts(), seed).call
        return [host("nextUniqueId", ()) for _ in range(2)]

    assert ids("one") == ids("one")
    assert len({*ids("one"), *ids("two")}) == 4


def test_a_trigger_has_no_instance_to_ask_about() -> None:
    with pytest.raises(ExtensionFailed, match="getFromInstance"):
        ParamsHost(None, "seed").call("getFromInstance", ("owner",))
