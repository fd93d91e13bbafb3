"""Workflows built in Python are the JSON that one would write by hand, and the engine takes them."""

import json
from decimal import Decimal

import pytest

from kapelle.client import (
    LAST_ONLY,
    PARALLEL,
    Announce,
    BadWorkflow,
    Delay,
    Match,
    On,
    Param,
    Retry,
    WaitFor,
    Workflow,
    expression,
)
from kapelle.processors.definitions import Rule, RunStrategy, StepKind, graph_of, merged_properties, parse_push


def test_a_small_workflow_is_the_json_of_the_manual() -> None:
    etl = Workflow("etl", owner="ann", run_strategy=PARALLEL(3))
    load = etl.step("load", "NoOp", params={"n": 3})
    report = etl.step("report", "NoOp")
    none = etl.step("none", "NoOp")
    load.when("n > 0", report)
    load.when("n == 0", none)

    assert json.loads(etl.to_json()) == {
        "properties": {"owner": "ann", "run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 3}},
        "workflow": {
            "id": "etl",
            "steps": [
                {
                    "step": {
                        "id": "load",
                        "type": "NoOp",
                        "params": {"n": {"type": "LONG", "value": 3}},
                        "transition": {"successors": {"report": "n > 0", "none": "n == 0"}},
                    }
                },
                {"step": {"id": "report", "type": "NoOp"}},
                {"step": {"id": "none", "type": "NoOp"}},
            ],
        },
    }
    assert parse_push(etl.to_json()).workflow.steps[0].successors == {"report": "n > 0", "none": "n == 0"}


def everything() -> Workflow:
    flow = Workflow(
        "all",
        owner="ann",
        run_strategy=LAST_ONLY,
        name="All of it",
        description="every option",
        tags=["daily"],
        timeout="${hours}h",
        criticality="HIGH",
        instance_step_concurrency=5,
        step_concurrency=50,
        params={"hours": 2, "rate": Decimal("0.10"), "day": expression("RUN_DATE"), "list": ["a", "b"]},
    )
    flow.at("0 5 * * *", timezone="Europe/Berlin", fuzzy_max_delay="10 min").at("@daily")
    flow.on("raw", condition="loud", params={"loud": True})
    flow.on(
        On("a", {"rows": Match(">=", 10)}, ("day",), latest=True),
        On("b", {"region": Match("in", ["us", "eu"]), "table": Match("prefix", "raw.")}, ("date",)),
        dedup="a__day",
        since="earliest",
        expiry="2 days",
    )
    first = flow.step(
        "first",
        "spark",
        name="First",
        retry=Retry(errors=3, timeouts="${hours}", error_delay=Delay(10, 3, "5 min")),
        idempotent=False,
        failure_mode="IGNORE_FAILURE",
        timeout=90,
        tags=["heavy"],
        waits_for=[WaitFor("raw", {"rows": Match(">", 5), "region": "us"})],
        announces=[Announce("done", {"n": expression("hours", "LONG")})],
    )
    fan = flow.foreach("fan", {"i": [1, 2]}, concurrency=5, strict_ordering=True, params={"color": "red"})
    again = fan.repeat_while("again", "tries < 3", values={"tries": 0})
    again.step("work", "Sleep", params={"tries": expression("tries + 1", "LONG"), "sleep_seconds": 1})
    child = flow.subworkflow("child", "other", version="latest", sync=False)
    last = flow.step("last", "NoOp", retry=Retry(platform=0, platform_delay=Delay(5)))
    first >> [fan, child] >> last
    return flow


def test_every_option_reaches_the_engine() -> None:
    push = parse_push(everything().to_json())

    assert push.properties is not None
    properties = merged_properties(None, push.properties, is_push=True)
    assert (properties.owner, properties.step_concurrency) == ("ann", 50)
    assert properties.run_strategy == RunStrategy(Rule.LAST_ONLY, 1)
    workflow = push.workflow
    assert (workflow.name, workflow.timeout, workflow.instance_step_concurrency) == ("All of it", "${hours}h", 5)
    assert workflow.params["rate"].value == Decimal("0.10")
    assert [trigger.cron for trigger in workflow.time_triggers] == ["0 5 * * *", "0 0 * * *"]
    assert [list(trigger.definitions) for trigger in workflow.signal_triggers] == [["raw"], ["a", "b"]]
    joined = workflow.signal_triggers[1]
    assert (joined.since_at_ms, joined.expiry, joined.definitions["a"].is_latest) == (0, "2 days", True)
    assert joined.definitions["b"].match_params["region"].value == ("us", "eu")
    first, fan, child, last = workflow.steps
    assert (first.type, first.idempotent, first.retry_policy.timeout_retry_limit) == ("spark", False, "${hours}")
    assert first.retry_policy.backoff.error_retry_limit_in_secs == "5 min"
    assert first.signal_dependencies[0].match_params["region"].param.value == "us"
    assert (fan.kind, fan.concurrency, fan.steps[0].steps[0].id) == (StepKind.FOREACH, 5, "work")
    assert (child.sync, child.params["subworkflow_version"].value) == (False, "latest")
    assert last.retry_policy.platform_retry_limit == 0


def test_steps_are_joined_in_chains_and_fans() -> None:
    flow = Workflow("chain", owner="ann")
    a, b, c, d = (flow.step(name, "NoOp") for name in "abcd")

    a >> b >> [c]
    [b, c] >> d

    assert graph_of(parse_push(flow.to_json()).workflow.steps).predecessors == {
        "a": (),
        "b": ("a",),
        "c": ("b",),
        "d": ("b", "c"),
    }


def test_a_step_may_lead_back() -> None:
    flow = Workflow("loop", owner="ann", params={"done": False})
    ask, wait, end = flow.step("ask", "NoOp"), flow.step("wait", "Sleep"), flow.step("end", "NoOp")

    ask.when("done", end)
    ask.otherwise(wait) >> ask

    steps = parse_push(flow.to_json()).workflow.steps
    assert steps[0].successors == {"end": "done", "wait": "!((done))"}
    assert graph_of(steps).loops["ask"].body == {"ask", "wait"}


@pytest.mark.parametrize(
    ("value", "definition"),
    [
        ("x", {"type": "STRING", "value": "x"}),
        (True, {"type": "BOOLEAN", "value": True}),
        (1, {"type": "LONG", "value": 1}),
        (0.5, {"type": "DOUBLE", "value": 0.5}),
        ([1, 2], {"type": "LONG_ARRAY", "value": [1, 2]}),
        ((1, 0.5), {"type": "DOUBLE_ARRAY", "value": [1, 0.5]}),
        ([], {"type": "STRING_ARRAY", "value": []}),
        ({"a": "b"}, {"type": "STRING_MAP", "value": {"a": "b"}}),
        ({"a": 1}, {"type": "MAP", "value": {"a": {"type": "LONG", "value": 1}}}),
        (
            Param("LONG", value=1, mode="CONSTANT", validator="value > 0", tags=("t",)),
            {"type": "LONG", "value": 1, "mode": "CONSTANT", "validator": "value > 0", "tags": ["t"]},
        ),
    ],
)
def test_a_plain_value_becomes_a_parameter_of_its_type(value: object, definition: dict[str, object]) -> None:
    flow = Workflow("typed", owner="ann", params={"p": value})  # type: ignore[dict-item]
    flow.step("only", "NoOp")

    assert json.loads(flow.to_json())["workflow"]["params"] == {"p": definition}
    parse_push(flow.to_json())


def test_a_second_step_of_the_same_id_is_refused_at_once() -> None:
    flow = Workflow("twice", owner="ann")
    flow.foreach("a", {"i": [1]}).step("b", "NoOp")

    with pytest.raises(BadWorkflow, match="'b' is the id of another step"):
        flow.step("b", "NoOp")


def test_steps_of_different_blocks_cannot_be_joined() -> None:
    flow = Workflow("blocks", owner="ann")
    inner = flow.foreach("loop", {"i": [1]}).step("inner", "NoOp")

    with pytest.raises(BadWorkflow, match="Expected 'inner' in the same workflow or loop as 'outer'"):
        flow.step("outer", "NoOp") >> inner


def test_loops_and_children_stand_inside_each_other() -> None:
    flow = Workflow("nested", owner="ann")
    fan = flow.foreach("fan", {"day": [1, 2], "region": expression("regions", "STRING_ARRAY")}, params={"color": "red"})
    load = fan.step("load", "NoOp")
    poll = fan.repeat_while("poll", "tries < 3", values={"tries": 0})
    ask = poll.step("ask", "NoOp", params={"tries": expression("tries + 1", "LONG")})
    child = poll.subworkflow(
        "child",
        expression("'etl-' + region"),
        version=3,
        explicit_params=True,
        params={"told": expression("day", "LONG")},
    )
    load >> poll
    ask >> child

    [outer] = parse_push(flow.to_json()).workflow.steps

    made = outer.steps[1].steps[1]
    assert [step.id for step in outer.steps] == ["load", "poll"]
    assert (made.sync, made.explicit_params, list(made.params)) == (
        True,
        True,
        ["subworkflow_id", "subworkflow_version", "told"],
    )
    assert (made.params["subworkflow_id"].expression, made.params["subworkflow_version"].value) == (
        "'etl-' + region",
        "3",
    )


def test_what_a_loop_or_a_child_is_given_as_an_argument_is_not_given_as_a_parameter_too() -> None:
    flow = Workflow("twice", owner="ann")

    with pytest.raises(BadWorkflow, match="Expected 'loop_params' as an argument alone"):
        flow.foreach("fan", {"i": [1]}, params={"loop_params": {"i": 1}})
    with pytest.raises(BadWorkflow, match="Expected 'subworkflow_id' as an argument alone"):
        flow.subworkflow("child", "other", params={"subworkflow_id": "another"})


def test_what_cannot_be_meant_is_refused_at_once() -> None:
    flow = Workflow("wrong", owner="ann")
    a, b = flow.step("a", "NoOp"), flow.step("b", "NoOp")
    a >> b

    with pytest.raises(BadWorkflow, match="but found a second"):
        a.when("x", b)
    with pytest.raises(BadWorkflow, match="before otherwise"):
        b.otherwise(a)
    with pytest.raises(BadWorkflow, match="of one type"):
        flow.step("c", "NoOp", params={"p": [1, "x"]})
    with pytest.raises(BadWorkflow, match="but found object"):
        flow.step("d", "NoOp", params={"p": object()})  # type: ignore[dict-item]
    with pytest.raises(BadWorkflow, match="both or neither"):
        Param("LONG")
    with pytest.raises(BadWorkflow, match="PARALLEL only"):
        LAST_ONLY(3)
