"""Parameters become values: each once, what it needs first, with where it came from."""

import sys
from decimal import Decimal
from typing import Any

import pytest

from kapelle.processors.params import (
    STEP_DEFAULTS,
    WORKFLOW_DEFAULTS,
    WORKFLOW_START,
    BadDefinition,
    Context,
    CyclicReference,
    Evaluated,
    EvaluationFailed,
    NotConvertible,
    ParamError,
    ParamsTooLarge,
    StepScope,
    UnknownReference,
    ValidatorFailed,
    WorkflowScope,
    check_validator,
    definitions_of,
    evaluate,
    merged,
)
from kapelle.processors.sel import Budget, Extension, ExtensionFailed, Sel, Value

NOW_MS = 1_700_000_000_000
SEL = Sel()
UNBOUNDED = Budget(10**9, 10**9)


class Engine(Extension):
    """An instance that a signal started."""

    def __init__(self, **instance: Value) -> None:
        self.instance = {"owner": "ada", "workflow_id": "etl", "workflow_instance_id": 7, **instance}

    def call(self, function: str, args: tuple[Value, ...]) -> Value:
        if function == "getFromInstance":
            return self.instance.get(args[0], "")
        if function == "getFromStep" and len(args) == 1:
            return {"step_id": "load", "step_attempt_id": 2, "step_instance_uuid": "u-1"}[args[0]]
        if function == "getFromSignal" and args == ("ready", "day"):
            return 20240101
        raise ExtensionFailed(f"Expected something else than {function}{args}")


def context(**more: Any) -> Context:
    return Context(SEL, NOW_MS, "etl/7/1", Engine(), **more)


def definitions(raw: dict[str, Any]) -> Any:
    return definitions_of({name: body if isinstance(body, dict) else _short(body) for name, body in raw.items()})


def _short(body: Any) -> dict[str, Any]:
    kinds = {bool: "BOOLEAN", int: "LONG", str: "STRING"}
    if isinstance(body, str) and body.startswith("="):
        return {"type": "LONG", "expression": body[1:]}
    return {"type": kinds[type(body)], "value": body}


def in_workflow(raw: dict[str, Any], **more: Any) -> dict[str, Evaluated]:
    given = context(**more)
    return evaluate(definitions(raw), WorkflowScope("etl", given.extension), given)


def in_step(
    raw: dict[str, Any], workflow: dict[str, Any] | None = None, steps: dict[str, dict[str, Any]] | None = None
) -> dict[str, Evaluated]:
    given = context()
    finished = {step: in_workflow(params) for step, params in (steps or {}).items()}
    scope = StepScope("load", in_workflow(workflow or {}), finished, given.extension)
    return evaluate(definitions(raw), scope, given)


def values(params: dict[str, Evaluated]) -> dict[str, Any]:
    return {name: param.value for name, param in params.items()}


def test_what_a_parameter_needs_is_evaluated_first_and_the_order_stays() -> None:
    made = in_workflow({"c": "=b * 2", "b": "=a + 1", "a": 1})

    assert values(made) == {"c": 4, "b": 2, "a": 1}
    assert list(made) == ["c", "b", "a"]


def test_literals_and_expressions_refer_to_each_other() -> None:
    made = in_workflow(
        {
            "greeting": "hello $name from ${place}",
            "name": {"type": "STRING", "expression": '"ada".toUpperCase()'},
            "place": "here",
            "list": {"type": "STRING_ARRAY", "value": ["$name", "x"]},
            "map": {"type": "STRING_MAP", "value": {"$name": "${list}"}},
            "nested": {
                "type": "MAP",
                "value": {"a": {"type": "STRING", "value": "$name"}, "b": {"type": "LONG", "expression": "1 + 1"}},
            },
        }
    )

    assert values(made) == {
        "greeting": "hello ADA from here",
        "name": "ADA",
        "place": "here",
        "list": ["ADA", "x"],
        "map": {"ADA": '["ADA","x"]'},
        "nested": {"a": "ADA", "b": 2},
    }


def test_inserted_text_is_not_looked_at_again() -> None:
    assert in_workflow({"a": "$b", "b": "$$c"})["a"].value == "$c"


def test_a_cycle_is_named() -> None:
    with pytest.raises(CyclicReference, match="a -> b -> c -> a") as caught:
        in_workflow({"a": "=b", "b": "=c", "c": "=a"})

    assert caught.value.cycle == ("a", "b", "c")


def test_a_cycle_is_named_without_what_led_to_it() -> None:
    with pytest.raises(CyclicReference) as caught:
        in_workflow({"start": "=a", "a": "$b", "b": "${a}"})

    assert caught.value.cycle == ("a", "b")


def test_a_parameter_that_refers_to_itself_is_a_cycle() -> None:
    with pytest.raises(CyclicReference, match="a -> a"):
        in_workflow({"a": "=a + 1"})
    with pytest.raises(CyclicReference, match="a -> a"):
        in_workflow({"a": {"type": "LONG", "expression": "params.get('a')"}})


def test_an_unknown_reference_names_both_parameters() -> None:
    with pytest.raises(UnknownReference, match=r"workflow 'etl' to know 'nowhere', to which parameter 'a' refers"):
        in_workflow({"a": "=nowhere"})
    with pytest.raises(UnknownReference, match="'gone'"):
        in_workflow({"a": "$gone"})


def test_a_chain_of_any_length_needs_no_recursion() -> None:
    count = 5_000
    raw = {f"p{n}": f"=p{n + 1} + 1" for n in range(count)}

    assert in_workflow({**raw, f"p{count}": 0}, budget=UNBOUNDED)["p0"].value == count


def test_a_parameter_of_the_starting_signal_is_found_by_its_two_names() -> None:
    assert in_workflow({"a": "=ready__day"})["a"].value == 20240101
    assert in_workflow({"a": "day ${ready__day}"})["a"].value == "day 20240101"
    with pytest.raises(UnknownReference, match="ready__nothing"):
        in_workflow({"a": "=ready__nothing"})


def test_params_get_in_a_workflow_waits_for_the_parameter() -> None:
    made = in_workflow({"a": {"type": "LONG", "expression": "params.get('b') + params['c']"}, "b": "=c + 1", "c": 1})

    assert made["a"].value == 3


def test_params_get_of_a_computed_name_sees_only_what_has_its_value() -> None:
    raw = {"a": 1, "b": {"type": "LONG", "expression": "params.get('' + 'a')"}}
    assert in_workflow(raw)["b"].value == 1

    late = {"b": {"type": "LONG", "expression": "params.get('' + 'a')"}, "a": 1}
    with pytest.raises(EvaluationFailed, match="refer to it by its name"):
        in_workflow(late)


def test_params_contains_key_knows_all_parameters() -> None:
    raw = {"b": {"type": "BOOLEAN", "expression": "params.containsKey('a') && !params.containsKey('z')"}, "a": 1}

    assert in_workflow(raw)["b"].value is True


def test_a_counter_in_a_step_counts_from_the_workflows() -> None:
    assert values(in_step({"i": "=i + 1", "j": "=i * 10"}, {"i": 5})) == {"i": 6, "j": 60}
    assert values(in_step({"j": "=i * 10", "i": "=i + 1"}, {"i": 5})) == {"j": 50, "i": 6}


def test_a_step_finds_its_own_the_workflows_and_finished_steps_parameters() -> None:
    made = in_step(
        {"a": "=load__b + w + extract__rows", "b": 1, "c": "${extract__rows}", "d": "=ready__day"},
        {"w": 10},
        {"extract": {"rows": 100}},
    )

    assert values(made) == {"a": 111, "b": 1, "c": "100", "d": 20240101}


@pytest.mark.parametrize("reference", ["extract__nothing", "load__nothing", "nobody__x", "nothing"])
def test_what_a_step_cannot_find_is_an_unknown_reference(reference: str) -> None:
    with pytest.raises(UnknownReference, match=reference):
        in_step({"a": f"={reference}"}, {}, {"extract": {"rows": 1}})


def test_a_step_whose_id_ends_in_an_underscore_is_found() -> None:
    assert in_step({"a": "=extract___rows"}, {}, {"extract_": {"rows": 1}})["a"].value == 1
    assert in_step({"a": "=extract___rows"}, {}, {"extract": {"_rows": 2}})["a"].value == 2
    with pytest.raises(ParamError, match="both 'extract' and 'extract_' exist"):
        in_step({"a": "=extract___rows"}, {}, {"extract": {"_rows": 2}, "extract_": {"rows": 1}})


def test_params_in_a_step_is_all_of_the_workflow() -> None:
    raw = {"a": {"type": "LONG", "expression": "params.get('w') + params['v']"}, "w": 99}

    assert in_step(raw, {"w": 1, "v": 2})["a"].value == 3


def test_params_in_a_step_reaches_finished_steps_by_any_name() -> None:
    raw = {"a": {"type": "LONG", "expression": "params['job' + '.' + '2__rows']"}}

    assert in_step(raw, {}, {"job.2": {"rows": 7}})["a"].value == 7


def test_a_result_is_converted_and_the_conversion_noted() -> None:
    made = in_workflow({"a": {"type": "STRING", "expression": "1 + 1"}, "b": {"type": "LONG", "expression": "'7'"}})

    assert values(made) == {"a": "2", "b": 7}
    assert made["a"].notes == ("LONG 2 was taken as STRING",)
    assert made["b"].as_json()["info"] == ["STRING '7' was taken as LONG"]


def test_a_result_that_does_not_fit_is_refused() -> None:
    with pytest.raises(NotConvertible, match="Expected LONG for parameter 'a'"):
        in_workflow({"a": "='seven'"})


def test_a_failing_expression_says_which_parameter_and_where() -> None:
    with pytest.raises(EvaluationFailed, match=r"parameter 'a'.*divisor.*line 1, column 5") as caught:
        in_workflow({"a": "=1 + 1/0"})

    assert caught.value.error.kind == "BadValue"


def test_an_expression_that_is_not_sel_says_which_parameter() -> None:
    with pytest.raises(EvaluationFailed, match="parameter 'a'"):
        in_workflow({"a": "=1 +"})


def test_a_decimal_stays_exact_and_is_a_double_in_an_expression() -> None:
    made = in_workflow(
        {"d": {"type": "DOUBLE", "value": Decimal("1.10")}, "t": "$d", "e": {"type": "DOUBLE", "expression": "d * 2"}}
    )

    assert (str(made["d"].value), made["t"].value, made["e"].value) == ("1.10", "1.10", 2.2)


def test_empty_arrays_keep_their_type_in_expressions() -> None:
    made = in_workflow({"e": {"type": "LONG_ARRAY", "value": []}, "f": {"type": "LONG_ARRAY", "expression": "e"}})

    assert made["f"].value == []


@pytest.mark.parametrize(
    ("kind", "value", "validator"),
    [
        ("LONG", 5, "value > 0"),
        ("LONG", 5, "p > 0 && p < 10"),
        ("STRING", "abc", "value.startsWith('a')"),
        ("STRING_ARRAY", ["a"], "value.length > 0"),
        ("LONG_ARRAY", [1, 2, 3], "param!=null && param.size() > 2"),
        ("STRING_MAP", {"a": "b"}, "param.size() == 1"),
        ("LONG", 5, "@Min(0)"),
        ("LONG", 5, "@Max(5)"),
        ("STRING", "a", "@NotEmpty"),
        ("LONG", 5, ""),
    ],
)
def test_a_value_that_satisfies_its_validator_is_taken(kind: str, value: Any, validator: str) -> None:
    made = in_workflow({"p": {"type": kind, "value": value, "validator": validator}})

    assert made["p"].value == value


@pytest.mark.parametrize(
    ("kind", "value", "validator"),
    [
        ("LONG", -5, "value > 0"),
        ("STRING", "abc", "value.length() > 3"),
        ("STRING_ARRAY", ["a", "b"], "param!=null && param.size() > 2"),
        ("LONG", -1, "@Min(0)"),
        ("LONG", 6, "@Max(5)"),
        ("STRING", "", "@NotEmpty"),
        ("STRING", " ", "@NotBlank"),
        ("LONG", 0, "@Positive"),
        ("STRING_MAP", {}, "@NotEmpty"),
    ],
)
def test_a_value_that_its_validator_refuses_is_refused(kind: str, value: Any, validator: str) -> None:
    with pytest.raises(ValidatorFailed, match="'p'") as caught:
        in_workflow({"p": {"type": kind, "value": value, "validator": validator}})

    assert caught.value.validator == validator


def test_a_validator_sees_the_evaluated_value_and_those_in_maps_are_enforced_too() -> None:
    with pytest.raises(ValidatorFailed):
        in_workflow({"p": {"type": "LONG", "expression": "1 - 2", "validator": "value >= 0"}})
    with pytest.raises(ValidatorFailed, match=r"'m\.a'"):
        in_workflow({"m": {"type": "MAP", "value": {"a": {"type": "LONG", "value": 1, "validator": "a > 1"}}}})


@pytest.mark.parametrize("validator", ["value + 1", "value > other", "@Nonsense", "value >"])
def test_a_validator_that_cannot_be_evaluated_is_refused(validator: str) -> None:
    definition = definitions({"p": {"type": "LONG", "value": 1, "validator": validator}})["p"]

    with pytest.raises((BadDefinition, EvaluationFailed)):
        in_workflow({"p": {"type": "LONG", "value": 1, "validator": validator}})
    if validator != "value + 1":
        with pytest.raises((BadDefinition, EvaluationFailed)):
            check_validator("p", definition, SEL)


def test_an_evaluated_parameter_says_which_layer_set_it() -> None:
    given = {
        "system defaults": WORKFLOW_DEFAULTS,
        "definition": definitions({"x": 1}),
        "run params": definitions({"y": 2}),
    }
    ctx = context()

    made = evaluate(merged(WORKFLOW_START, given), WorkflowScope("etl", ctx.extension), ctx)

    assert (made["RUN_TS"].layer, made["x"].layer, made["y"].layer) == (
        "system defaults",
        "workflow definition",
        "run params",
    )
    assert made["y"].as_json() == {
        "type": "LONG",
        "value": 2,
        "mode": "MUTABLE",
        "source": "LAUNCH",
        "layer": "run params",
        "evaluated_result": 2,
        "evaluated_time": NOW_MS,
    }


def test_the_system_defaults_are_the_times_of_the_run() -> None:
    ctx = Context(
        SEL, NOW_MS, "s", Engine(INITIATOR_TIMEZONE="Asia/Tokyo", FIRST_TIME_TRIGGER_TIMEZONE="Europe/Berlin")
    )
    defaults = merged(WORKFLOW_START, {"system defaults": WORKFLOW_DEFAULTS})

    made = values(evaluate(defaults, WorkflowScope("etl", ctx.extension), ctx))

    assert made == {
        "DSL_DEFAULT_TZ": "Europe/Berlin",
        "WORKFLOW_CRON_TIMEZONE": "Asia/Tokyo",
        "RUN_TS": NOW_MS,
        "TARGET_RUN_DATE": "20231115",
        "TARGET_RUN_HOUR": "07",
        "DERIVED_RUN_TS": 1_699_999_200_000,
        "DERIVED_RUN_DATE_US_PACIFIC": "20231114",
        "DERIVED_RUN_DATE_US_PACIFIC_MINUS_ONE": "20231113",
        "DERIVED_RUN_DATE_UTC": "20231114",
        "DERIVED_RUN_DATE_UTC_MINUS_ONE": "20231113",
        "DERIVED_RUN_DATE_UTC_PLUS_ONE": "20231115",
        "DERIVED_RUN_DATE_UTC_MINUS_ONE_HOUR": "20231114",
        "DERIVED_RUN_DATE_UTC_PLUS_ONE_HOUR": "20231114",
        "DERIVED_RUN_HOUR_US_PACIFIC": "14",
        "DERIVED_RUN_HOUR_UTC": "22",
        "DERIVED_RUN_HOUR_UTC_MINUS_ONE_HOUR": "21",
        "DERIVED_RUN_HOUR_UTC_PLUS_ONE_HOUR": "23",
        "LOCAL_RUN_DATE": "20231115",
        "RUN_DATE": "20231114",
        "RUN_DATE_MINUS_1": "20231113",
        "RUN_DATE_MINUS_7": "20231107",
        "owner": "ada",
        "workflow_id": "etl",
    }


def test_the_zone_of_a_run_is_utc_when_nobody_names_one() -> None:
    ctx = context()
    defaults = merged(WORKFLOW_START, {"system defaults": WORKFLOW_DEFAULTS})

    made = values(evaluate(defaults, WorkflowScope("etl", ctx.extension), ctx))

    assert (made["DSL_DEFAULT_TZ"], made["WORKFLOW_CRON_TIMEZONE"]) == ("UTC", "UTC")


def test_the_reserved_parameters_of_a_step_come_from_the_engine() -> None:
    ctx = context()

    made = evaluate(STEP_DEFAULTS, StepScope("load", {}, {}, ctx.extension), ctx)

    assert values(made) == {
        "workflow_instance_id": 7,
        "step_instance_uuid": "u-1",
        "step_attempt_id": 2,
        "step_id": "load",
    }


def test_ids_and_random_numbers_are_the_same_in_a_replay_and_differ_between_parameters() -> None:
    raw = {name: {"type": "STRING", "expression": "UUID.randomUUID().toString() + Math.random()"} for name in "ab"}

    first, second = values(in_workflow(raw)), values(in_workflow(raw))

    assert first == second
    assert first["a"] != first["b"]


def test_values_that_are_too_large_together_are_refused() -> None:
    with pytest.raises(ParamsTooLarge, match="within 100 characters") as caught:
        in_workflow({"a": "x" * 60, "b": "y" * 60}, chars_max=100)

    assert caught.value.chars > 120
    assert caught.value.name == "b"


def test_the_largest_values_together_are_750_000_characters() -> None:
    in_workflow({"a": "x" * 740_000})
    with pytest.raises(ParamsTooLarge):
        in_workflow({"a": "x" * 760_000})


def test_the_parameters_of_three_hundred_steps_take_work_linear_in_their_number() -> None:
    def calls(steps: int) -> int:
        """How many calls the evaluation makes: the same on every machine, however busy it is."""
        raw = {f"p{n}": f"=p{n + 1} + {n % 7}" if n % 10 else n for n in range(steps * 10)}
        raw[f"p{steps * 10}"] = 0
        given, parsed = context(budget=UNBOUNDED), definitions(raw)
        scope = WorkflowScope("etl", given.extension)
        evaluate(parsed, scope, given)  # compiled once, as in an engine
        counted = 0

        def count(_frame: object, event: str, _arg: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            evaluate(parsed, scope, given)
        finally:
            sys.setprofile(None)
        return counted

    # The programs of both must fit the cache, or compiling them again would be counted.
    assert calls(300) / calls(30) < 10 * 1.2
