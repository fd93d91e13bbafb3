"""Nothing that a push accepts, a worker answers or a person asks for makes a decision raise."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kapelle.processors.wiring import RUN_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Report, RestartPolicy
from kapelle.testing.engine import Engine, Refused
from tests.property.runs.worlds import replay_violations
from tests.property.sel.grammar import expressions, programs

WORKFLOW_PARAMS: dict[str, Any] = {
    "x": {"type": "LONG", "value": 5},
    "s": {"type": "STRING", "value": "abc"},
    "flag": {"type": "BOOLEAN", "value": True},
    "d": {"type": "DOUBLE", "value": 2.5},
    "longs": {"type": "LONG_ARRAY", "value": [1, 2]},
    "strings": {"type": "STRING_ARRAY", "value": ["a", "b"]},
    "map": {"type": "STRING_MAP", "value": {"k": "v"}},
}
PLAIN = {"type": "LONG", "value": 1}
SCALARS = ["STRING", "LONG", "DOUBLE", "BOOLEAN"]
TYPES = st.sampled_from([*SCALARS, *(f"{one}_ARRAY" for one in SCALARS), "STRING_MAP", "MAP"])
QUESTIONS = ["params.getFromStep('a', 'y')", "params.getFromStep('y')", "params.getFromInstance('owner')"]
REFERENCES = st.sampled_from(["a__y", "b__y", "first__n", "y", *QUESTIONS])
EXPRESSIONS = st.one_of(programs, REFERENCES, st.tuples(REFERENCES, expressions).map(" + ".join))
# A push rehearses what is written: these are good for as long as it does, and anything afterwards.
LATER = st.fixed_dictionaries(
    {"type": TYPES, "expression": EXPRESSIONS.map(lambda text: f"if (first__n == 1) {{ return 1; }} {text};")}
)
CONDITIONS = st.one_of(EXPRESSIONS, expressions.map(lambda text: f"first__n == 1 || {text}"))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("ynx"), inner, max_size=2)),
    max_leaves=4,
)
DEFINITIONS = st.one_of(
    JSON,
    st.fixed_dictionaries({"type": TYPES, "value": JSON}),
    st.fixed_dictionaries({"type": TYPES, "expression": EXPRESSIONS}),
)
GIVEN = st.one_of(JSON, st.dictionaries(st.sampled_from(["y", "n", "x", "q"]), DEFINITIONS, max_size=2))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def workflow(definition: Any, condition: str, back: str) -> dict[str, Any]:
    first = {"id": "first", "type": "shell", "transition": {"successors": {"a": "true"}}}
    first["params"] = {"n": {"type": "LONG", "value": 1}}
    middle = {"id": "a", "type": "NoOp", "params": {"y": definition}}
    middle["transition"] = {"successors": {"b": condition}}
    last = {"id": "b", "type": "shell", "params": {"y": definition}}
    last["transition"] = {"successors": {"a": f"({back}) && params.getFromStep('step_instance_id') < 9"}}
    return {"id": "flow", "params": WORKFLOW_PARAMS, "steps": [{"step": one} for one in (first, middle, last)]}


def outputs_of(given: Any) -> str:
    return json.dumps(given, allow_nan=True, ensure_ascii=True)


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(
    definition=st.one_of(st.just(PLAIN), LATER, st.fixed_dictionaries({"type": TYPES, "expression": EXPRESSIONS})),
    condition=CONDITIONS,
    back=expressions,
    answers=st.lists(GIVEN, min_size=1, max_size=4),
    is_kept=st.booleans(),
)
def test_no_expression_that_a_push_accepts_makes_a_decision_raise(
    definition: Any, condition: str, back: str, answers: list[Any], is_kept: bool
) -> None:
    engine = Engine()
    try:
        engine.push({"properties": {"owner": "ann"}, "workflow": workflow(definition, condition, back)})
    except Refused:
        return
    run = engine.start("flow")

    for number, answer in enumerate([{"n": {"type": "LONG", "value": 0}}, *answers]):
        task = engine.tasks(run)[-1]
        text = outputs_of(answer) if number == 0 or is_kept else None
        word = c.ReportTask(task.task.token, task.task.step_id, "w", Report.SUCCEEDED, "", text)
        engine.send(RUN_COMMANDS, run.key, word)

    assert replay_violations(engine) == []


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(
    policy=st.sampled_from(list(RestartPolicy)),
    step_id=st.sampled_from(["first", "a", "b", "q", "", None]),
    run_params=GIVEN,
    step_run_params=st.one_of(GIVEN, st.dictionaries(st.sampled_from(["first", "a", "q"]), GIVEN, max_size=2)),
    is_over=st.booleans(),
)
def test_no_restart_however_it_is_written_makes_a_decision_raise(
    policy: RestartPolicy, step_id: str | None, run_params: Any, step_run_params: Any, is_over: bool
) -> None:
    engine = Engine()
    engine.push({"properties": {"owner": "ann"}, "workflow": workflow(PLAIN, "y == 1", "false")})
    run = engine.start("flow")
    engine.task(run, "first").say(Report.SUCCEEDED)
    engine.task(run, "b").fail(report=Report.FATAL_ERROR) if is_over else run.act("b", Action.SKIP)

    command = c.RestartRun("r", "ann", policy, step_id, outputs_of(run_params), outputs_of(step_run_params))
    engine.send(RUN_COMMANDS, run.key, command)
    for task in engine.tasks(run)[-2:]:
        task.say(Report.SUCCEEDED)

    assert replay_violations(engine) == []


@settings(max_examples=100, deadline=None)
@given(
    step_id=st.text(max_size=5),
    action=st.sampled_from(list(Action)),
    report=st.sampled_from(list(Report)),
    text=st.one_of(st.none(), st.text(max_size=10)),
)
def test_no_word_about_a_step_makes_a_decision_raise(
    step_id: str, action: Action, report: Report, text: str | None
) -> None:
    engine = Engine()
    engine.push({"properties": {"owner": "ann"}, "workflow": workflow(PLAIN, "true", "false")})
    run = engine.start("flow")
    token = engine.task(run, "first").task.token

    for named in (step_id, "first", "a"):
        engine.send(RUN_COMMANDS, run.key, c.ActOnStep("r", step_id, named, Action.OTHER, step_id))
        engine.send(RUN_COMMANDS, run.key, c.ReportTask(token, named, step_id, report, step_id, text))
        engine.send(RUN_COMMANDS, run.key, c.ActOnStep("r", step_id, named, action, step_id))

    assert replay_violations(engine) == []


@settings(max_examples=100, deadline=None)
@given(answers=st.lists(GIVEN, min_size=2, max_size=2))
def test_no_answer_of_a_worker_makes_a_decision_raise(answers: list[Any]) -> None:
    engine = Engine()
    engine.push({"properties": {"owner": "ann"}, "workflow": workflow(PLAIN, "y == 1", "y > 1")})
    run = engine.start("flow")

    for answer in answers:
        task = engine.tasks(run)[-1].task
        word = c.ReportTask(task.token, task.step_id, "w", Report.SUCCEEDED, "", outputs_of(answer))
        engine.send(RUN_COMMANDS, run.key, word)

    assert replay_violations(engine) == []
