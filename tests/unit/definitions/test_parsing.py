"""What a push means: defaults, spellings, exact numbers, what is stored and what is kept beside it."""

import json
from decimal import Decimal
from typing import Any

import pytest

from kapelle.processors.definitions import (
    Backoff,
    BackoffType,
    DefinitionRefused,
    FailureMode,
    RetryPolicy,
    Step,
    StepKind,
    Tag,
    TagNamespace,
    parse_push,
    parse_workflow,
    workflow_json,
)
from kapelle.processors.definitions.models import MatchParam, SignalMatch, TimeTrigger, TimeTriggerType
from kapelle.processors.signals.matching import Operator
from kapelle.schemas.contracts import Criticality
from tests.unit.definitions.samples import FULL, changed, text_of

SMALL = {"workflow": {"id": "small", "steps": [{"step": {"id": "only", "type": "NoOp"}}]}}


def step_of(body: dict[str, Any]) -> Step:
    push = {"workflow": {"id": "small", "steps": [{"step": {"id": "only", "type": "NoOp", **body}}]}}
    return parse_push(text_of(push)).workflow.steps[0]


def test_what_is_not_written_has_its_default() -> None:
    push = parse_push(text_of(SMALL))

    assert push.is_active
    assert push.properties is None
    assert push.metadata_json == "{}"
    assert push.workflow.name == "small"
    assert push.workflow.criticality is Criticality.MEDIUM
    assert push.workflow.timeout is None
    assert push.workflow.instance_step_concurrency is None
    [step] = push.workflow.steps
    assert step == Step(StepKind.STEP, "only", "NoOp", name="only")
    assert step.failure_mode is FailureMode.FAIL_AFTER_RUNNING
    assert step.retry_policy == RetryPolicy(2, 10, 0, Backoff(BackoffType.EXPONENTIAL_BACKOFF))
    assert step.idempotent


def test_every_kind_of_step_is_read_with_its_own_keys() -> None:
    load, fan, none, child, shaped = parse_push(text_of(FULL)).workflow.steps

    assert (load.kind, load.type, load.idempotent, load.timeout) == (StepKind.STEP, "NoOp", False, 90)
    assert load.retry_policy.backoff.type is BackoffType.FIXED_BACKOFF
    assert load.retry_policy.backoff.error_retry_backoff_in_secs == "1 min"
    assert load.retry_policy.platform_retry_limit == "${hours}"
    assert load.failure_mode is FailureMode.FAIL_IMMEDIATELY
    assert load.successors == {"fan": "n > 0", "none": "n == 0"}
    assert load.signal_dependencies[0].match_params["rows"].operator is Operator.GREATER
    assert load.signal_outputs[0].payload == {"by": "us"}
    assert (fan.kind, fan.type, fan.concurrency, fan.strict_ordering) == (StepKind.FOREACH, "FOREACH", 5, True)
    assert (fan.steps[0].kind, fan.steps[0].type, fan.steps[0].condition) == (StepKind.WHILE, "WHILE", "tries < 3")
    assert (none.type, none.sub_type, none.sub_type_version) == ("spark.submit", "sql", "2")
    assert (child.kind, child.type, child.sync, child.explicit_params) == (
        StepKind.SUBWORKFLOW,
        "SUBWORKFLOW",
        False,
        True,
    )
    assert (shaped.kind, shaped.type, shaped.sub_type) == (StepKind.TEMPLATE, "TEMPLATE", "report")


def test_triggers_are_read() -> None:
    workflow = parse_push(text_of(FULL)).workflow

    assert workflow.time_triggers == (
        TimeTrigger(TimeTriggerType.CRON, "0 5 * * *", "Europe/Berlin", "10 min"),
        TimeTrigger(TimeTriggerType.PREDEFINED, "0 0 * * *"),
    )
    [trigger] = workflow.signal_triggers
    assert trigger.definitions["db/users"] == SignalMatch(
        {"rows": MatchParam(10, Operator.GREATER_OR_EQUAL)}, ("date",), is_latest=True
    )
    assert (trigger.condition, trigger.dedup_expr) == (
        "loud",
        "params.getFromSignal('db/raw', 'day')",
    )
    assert (trigger.since_at_ms, trigger.expiry) == (1_769_860_800_000, "2h")


def test_words_are_read_in_any_case() -> None:
    workflow = parse_push(text_of(FULL)).workflow

    assert workflow.criticality is Criticality.HIGH
    assert workflow.tags[1] == Tag("team.data", TagNamespace.PLATFORM, {"cost": Decimal("1.1")})
    assert step_of({"type": "SLEEP"}).type == "Sleep"
    assert step_of({"type": "Spark"}).type == "Spark"


def test_null_means_the_same_as_no_key() -> None:
    nulls = dict.fromkeys(("name", "timeout", "tags", "transition", "retry_policy", "params", "failure_mode"))

    assert step_of(nulls) == step_of({})


def test_a_condition_may_be_true_without_quotes() -> None:
    push = parse_push(text_of(changed("workflow.steps[0].step.transition.successors.fan", True)))

    assert push.workflow.steps[0].successors["fan"] == "true"


def test_what_a_template_may_give_is_not_missed_before_the_step_begins() -> None:
    assert step_of({"type": "Kubernetes", "sub_type": "shell"}).sub_type == "shell"


def test_signals_of_a_step_may_be_wrapped_in_an_object() -> None:
    dependency = {"name": "raw"}

    assert step_of({"signal_dependencies": {"definitions": [dependency]}}) == step_of(
        {"signal_dependencies": [dependency]}
    )


def test_the_workflow_is_stored_as_it_was_pushed_in_compact_form() -> None:
    push = parse_push(text_of(FULL))

    assert json.loads(push.workflow_json) == FULL["workflow"]
    assert ": " not in push.workflow_json.replace(" : ", "")[:40]
    assert parse_workflow(push.workflow_json) == push.workflow


def test_decimals_are_kept_to_the_last_digit() -> None:
    number = "0.1234567890123456789012345678901234567890"
    text = text_of(changed("workflow.params.rate.value", 0.5)).replace('"value": 0.5', f'"value": {number}')

    push = parse_push(text)

    assert push.workflow.params["rate"].value == Decimal(number)
    assert number in push.workflow_json
    assert parse_workflow(push.workflow_json).params["rate"].value == Decimal(number)


def test_parameters_keep_the_order_in_which_they_are_evaluated() -> None:
    push = parse_push(text_of(FULL))

    assert list(push.workflow.params) == list(FULL["workflow"]["params"])
    assert list(parse_workflow(push.workflow_json).params) == list(FULL["workflow"]["params"])


def test_what_the_engine_does_not_know_is_kept_as_metadata() -> None:
    push = parse_push(text_of(FULL))

    assert json.loads(push.metadata_json) == {"git_info": {"branch": "main", "commit": "abc"}, "ticket": 12}
    assert not push.is_active


def test_a_stored_workflow_is_parsed_once() -> None:
    stored = parse_push(text_of(FULL)).workflow_json

    assert parse_workflow(stored) is parse_workflow(str(stored.encode(), "utf-8"))


def test_a_stored_workflow_that_is_no_workflow_is_refused() -> None:
    with pytest.raises(DefinitionRefused, match=r"workflow\.steps: Expected a value"):
        parse_workflow('{"id": "etl"}')


def test_a_workflow_written_from_its_model_is_the_same_workflow() -> None:
    workflow = parse_push(text_of(FULL)).workflow

    assert parse_workflow(workflow_json(workflow)) == workflow


def test_a_parameter_that_only_a_signal_can_tell_does_not_stop_a_push() -> None:
    push = parse_push(
        text_of(changed("workflow.params.place", {"type": "STRING", "value": "${db__region} of $region"}))
    )

    assert "place" in push.workflow.params


def test_a_timeout_may_depend_on_what_only_a_start_or_a_loop_can_tell() -> None:
    push = parse_push(text_of(changed("workflow.timeout", "${region} h ${given_at_start} min")))

    assert push.workflow.timeout == "${region} h ${given_at_start} min"
    assert push.workflow.steps[1].steps[0].steps[0].timeout == "${tries}s"


def test_a_workflow_with_a_cycle_is_accepted() -> None:
    steps = [
        {"step": {"id": "ask", "type": "NoOp", "transition": {"successors": {"wait": "true"}}}},
        {"step": {"id": "wait", "type": "Sleep", "transition": {"successors": {"ask": "true", "end": "false"}}}},
        {"step": {"id": "end", "type": "NoOp", "transition": {"predecessors": ["wait"]}}},
    ]

    assert parse_push(text_of({"workflow": {"id": "loop", "steps": steps}})).workflow.steps[1].id == "wait"


def test_the_graphs_of_inner_blocks_are_checked_too() -> None:
    inner = "workflow.steps[1].foreach.steps[0].while.steps[0].step.transition"

    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text_of(changed(inner, {"successors": {"load": "true"}})))

    assert refused.value.problems[0].path == f"{inner}.successors.load"


def test_a_sideways_edge_into_a_cycle_is_refused_by_its_name() -> None:
    def step(name: str, *after: str) -> dict[str, Any]:
        return {
            "step": {"id": name, "type": "NoOp", "transition": {"successors": dict.fromkeys(after, "true")}},
        }

    steps = [step("start", "write", "check"), step("write", "check"), step("check", "write")]

    with pytest.raises(DefinitionRefused) as refused:
        parse_push(text_of({"workflow": {"id": "loop", "steps": steps}}))

    assert str(refused.value) == (
        "workflow.steps: Expected loops that begin at one step, but found the edge from 'start' to 'check', which"
        " enters the cycle of 'write', 'check' past 'write' (lead 'start' to 'write' instead, or give 'start' a copy of"
        " 'check' of its own)"
    )


VALIDATED = {
    "STRING_ARRAY": ["a", "b", "c"],
    "LONG_ARRAY": [1, 2, 3],
    "DOUBLE_ARRAY": [0.5, 1.5, 2.5],
    "BOOLEAN_ARRAY": [True, False, True],
}


@pytest.mark.parametrize("kind", VALIDATED)
def test_validators_as_definitions_of_maestro_have_them_are_accepted(kind: str) -> None:
    validated = {"type": kind, "expression": "given", "validator": "param!=null && param.size() > 2"}
    fan = {
        "id": "fan",
        "params": {
            "loop_params": {"type": "MAP", "value": {"i": validated}},
            "given": {"type": kind, "value": VALIDATED[kind]},
        },
        "steps": [{"step": {"id": "only", "type": "NoOp"}}],
    }

    push = parse_push(text_of({"workflow": {"id": "small", "steps": [{"foreach": fan}]}}))

    assert push.workflow.steps[0].params["loop_params"].value["i"].validator == "param!=null && param.size() > 2"


def test_a_parameter_of_the_system_stays_as_strict_as_it_is() -> None:
    child = {"id": "c", "params": {"subworkflow_id": {"type": "STRING", "value": "other", "mode": "MUTABLE"}}}

    with pytest.raises(DefinitionRefused, match="MUTABLE is less strict than its mode MUTABLE_ON_START"):
        parse_push(text_of({"workflow": {"id": "small", "steps": [{"subworkflow": child}]}}))
