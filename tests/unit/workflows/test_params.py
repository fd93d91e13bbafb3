"""No more parameters are evaluated than can be asked for, and those to the values that all of them would have."""

import json
from typing import Any

import msgspec
import pytest

from kapelle.processors.params import (
    SEL,
    WORKFLOW_DEFAULTS,
    WORKFLOW_START,
    Context,
    WorkflowScope,
    definitions_of,
    evaluate,
    merged,
    new_budget,
)
from kapelle.processors.params.host import InstanceFacts, ParamsHost
from kapelle.processors.workflows.params import NewRun, params_of, prepared

NOW_MS = 1_700_000_000_000
FACTS = InstanceFacts("etl", 7, 1, "bob", '{"type":"MANUAL"}', '{"owner":"ann"}', None, "")

DATES = {"TARGET_RUN_DATE", "TARGET_RUN_HOUR", "DERIVED_RUN_TS"}
ZONES = {"DSL_DEFAULT_TZ", "WORKFLOW_CRON_TIMEZONE"}
ALL = set(WORKFLOW_DEFAULTS) - {"job_template_version"}


def definition(params: dict[str, Any], step: dict[str, Any] | None = None, **workflow: Any) -> str:
    whole = {"id": "etl", "params": params, "steps": [{"step": {"id": "load", "type": "NoOp", **(step or {})}}]}
    return json.dumps({**whole, **workflow})


def new_run(text: str) -> NewRun:
    zone = prepared(text).workflow.first_timezone
    return NewRun(msgspec.structs.replace(FACTS, first_timezone=zone), NOW_MS, new_budget())


def in_full(text: str, run_params: dict[str, Any]) -> dict[str, Any]:
    """Every parameter there is, evaluated."""
    layers = {
        "system defaults": WORKFLOW_DEFAULTS,
        "definition": prepared(text).workflow.params,
        "run params": definitions_of(run_params),
    }
    host = ParamsHost(FACTS, FACTS.name)
    context = Context(SEL, now_ms=NOW_MS, seed=FACTS.name, extension=host)
    found = evaluate(merged(WORKFLOW_START, layers), WorkflowScope("etl", host), context)
    return {name: (one.value, one.layer, one.definition.mode) for name, one in found.items()}


def expression(text: str) -> dict[str, str]:
    return {"type": "STRING", "expression": text}


CASES: list[tuple[str, str, dict[str, Any], set[str]]] = [
    ("nothing refers to a default", definition({"a": {"type": "LONG", "value": 1}}), {}, set()),
    ("an expression", definition({"a": expression("RUN_DATE")}), {}, {"RUN_DATE"}),
    ("a text", definition({"a": {"type": "STRING", "value": "x-${RUN_DATE}"}}), {}, {"RUN_DATE"}),
    ("a text after a line break", definition({"a": {"type": "STRING", "value": "x\n$RUN_DATE"}}), {}, {"RUN_DATE"}),
    ("a name that holds another", definition({"a": expression("LOCAL_RUN_DATE")}), {}, {"LOCAL_RUN_DATE", *ZONES}),
    (
        "by way of others",
        definition({"a": expression("DERIVED_RUN_HOUR_UTC")}),
        {},
        {"DERIVED_RUN_HOUR_UTC"} | DATES | ZONES,
    ),
    ("the key of a map", definition({"a": {"type": "STRING_MAP", "value": {"$owner": "x"}}}), {}, {"owner"}),
    ("inside of a map", definition({"a": {"type": "MAP", "value": {"b": expression("RUN_DATE")}}}), {}, {"RUN_DATE"}),
    (
        "a parameter of a step",
        definition({}, {"params": {"b": expression("RUN_DATE_MINUS_1")}}),
        {},
        {"RUN_DATE_MINUS_1"},
    ),
    ("a time-out", definition({}, {"timeout": "${TARGET_RUN_HOUR} hours"}), {}, {"TARGET_RUN_HOUR"} | ZONES),
    ("a literal name", definition({"a": expression("params.get('RUN_DATE')")}), {}, {"RUN_DATE"}),
    (
        "a literal index",
        definition({"a": expression('params["owner"] + params.getFromInstance("owner")')}),
        {},
        {"owner"},
    ),
    ("a computed name", definition({"a": expression("params.get('RUN' + '_DATE')")}, {}), {}, ALL),
    (
        "a variable name",
        definition({}, {"params": {"b": expression("String n = 'owner'; return params[n];")}}),
        {},
        ALL,
    ),
    ("a redefined default", definition({"RUN_DATE": expression("'20200101'")}), {}, {"RUN_DATE"}),
    ("an overridden default", definition({}), {"RUN_DATE": {"type": "STRING", "value": "x"}}, {"RUN_DATE"}),
    ("a run parameter", definition({}), {"a": expression("RUN_DATE_MINUS_7")}, {"RUN_DATE_MINUS_7"}),
    ("a run parameter with a computed name", definition({}), {"a": expression("params.get('R' + 'UN_TS')")}, ALL),
    (
        "a nested run parameter",
        definition({}),
        {"a": {"type": "MAP", "value": {"b": {"type": "STRING", "value": "$RUN_DATE"}}}},
        {"RUN_DATE"},
    ),
    (
        "an override of the run time",
        definition({"a": expression("RUN_DATE")}),
        {"RUN_TS": {"type": "LONG", "value": 0}},
        {"RUN_DATE"},
    ),
]


@pytest.mark.parametrize(
    ("text", "run_params", "defaults"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_evaluated_is_what_all_would_be_restricted_to_what_is_needed(
    text: str, run_params: dict[str, Any], defaults: set[str]
) -> None:
    found = params_of(text, definitions_of(run_params), run=new_run(text))

    own = {*prepared(text).workflow.params, *run_params}
    assert set(found) == defaults | {"RUN_TS"} | own
    whole = in_full(text, run_params)
    shown = {name: (one.value, one.layer, one.definition.mode) for name, one in found.items()}
    assert shown == {name: whole[name] for name in found}
    assert list(found) == [name for name in whole if name in found]


def test_what_only_step_run_params_mention_is_evaluated() -> None:
    also = {"load": {"x": {"type": "STRING", "value": "$RUN_DATE"}}}

    found = params_of(definition({}), {}, run=new_run(definition({})), also=also)

    assert set(found) == {"RUN_TS", "RUN_DATE"}


def test_a_definition_is_prepared_once() -> None:
    text = definition({"a": {"type": "LONG", "value": 1}})

    assert prepared(text) is prepared("".join(text))


def test_the_zone_of_the_first_time_trigger_is_the_default_zone() -> None:
    triggers = [{"type": "CRON", "cron": "0 5 * * *", "timezone": "Asia/Tokyo"}]
    text = definition({"a": expression("TARGET_RUN_HOUR")}, time_triggers=triggers)

    found = params_of(text, {}, run=new_run(text))

    assert (found["DSL_DEFAULT_TZ"].value, found["a"].value) == ("Asia/Tokyo", "07")
