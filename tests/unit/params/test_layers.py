"""The layers by name, their order, and what comes out of them."""

from typing import Any

import pytest

from kapelle.processors.params import (
    STEP,
    STEP_DEFAULTS,
    TYPE_DEFAULTS,
    WORKFLOW_DEFAULTS,
    WORKFLOW_RESTART,
    WORKFLOW_START,
    Context,
    MergeRefused,
    MissingParam,
    Mode,
    Source,
    StepScope,
    definitions_of,
    evaluate,
    injected,
    merged,
)
from kapelle.processors.sel import Extension, Sel


def params(**raw: Any) -> Any:
    return definitions_of({name: {"type": "LONG", "value": v} if isinstance(v, int) else v for name, v in raw.items()})


def test_the_seven_layers_of_a_step_are_visible_by_name_and_in_order() -> None:
    names = list(dict.fromkeys(layer.name for _, layer in STEP))

    assert names == [
        "reserved general",
        "typed defaults",
        "injected by the step runtime",
        "workflow and step info",
        "undefined user params",
        "step definition",
        "run and restart overrides",
    ]


def test_each_layer_of_a_step_is_named_by_the_parameter_it_set() -> None:
    made = merged(
        STEP,
        {
            "step defaults": STEP_DEFAULTS,
            "type defaults": TYPE_DEFAULTS["SUBWORKFLOW"],
            "injected": params(image=1),
            "info": params(info=1),
            "definition": params(subworkflow_id={"type": "STRING", "value": "w"}, mine=1, both=1, all=1),
            "run params": params(extra=2, both=2, all=2),
            "restart params": params(all=3),
        },
    )

    assert {name: made[name].layer for name in made} == {
        "workflow_instance_id": "reserved general",
        "step_instance_uuid": "reserved general",
        "step_attempt_id": "reserved general",
        "step_id": "reserved general",
        "subworkflow_id": "step definition",
        "subworkflow_version": "typed defaults",
        "image": "injected by the step runtime",
        "info": "workflow and step info",
        "extra": "undefined user params",
        "mine": "step definition",
        "both": "run and restart overrides",
        "all": "run and restart overrides",
    }
    assert (made["both"].value, made["all"].value) == (2, 3)
    assert made["extra"].source is Source.LAUNCH


def test_the_order_of_first_appearance_stays() -> None:
    given = {"definition": params(b=1, a=1), "run params": params(a=2, c=3, b=4)}

    assert list(merged(WORKFLOW_START, given)) == ["b", "a", "c"]


def test_a_workflow_starts_with_defaults_then_definition_then_run_params() -> None:
    made = merged(
        WORKFLOW_START,
        {
            "system defaults": WORKFLOW_DEFAULTS,
            "definition": params(x=1, y=1, RUN_TS=5),
            "run params": params(y=2, z=3, RUN_TS=6),
        },
        started_by=Source.TIME_TRIGGER,
    )

    assert [made[n].layer for n in ("RUN_DATE", "x", "y", "z")] == [
        "system defaults",
        "workflow definition",
        "run params",
        "run params",
    ]
    assert (made["RUN_TS"].value, made["RUN_TS"].source) == (6, Source.TIME_TRIGGER)
    assert "job_template_version" not in made
    assert made["workflow_id"].mode is Mode.CONSTANT


def test_reserved_parameters_cannot_be_given_by_users() -> None:
    with pytest.raises(MergeRefused, match="workflow_id"):
        merged(
            WORKFLOW_START,
            {"system defaults": WORKFLOW_DEFAULTS, "run params": params(workflow_id={"type": "STRING", "value": "x"})},
        )


def test_a_restart_takes_the_previous_run_and_lets_users_change_what_they_may() -> None:
    previous = params(
        a={"type": "LONG", "value": 1, "mode": "MUTABLE_ON_START_RESTART"},
        b={"type": "LONG", "value": 1, "mode": "MUTABLE_ON_START"},
    )

    made = merged(WORKFLOW_RESTART, {"previous run": previous, "restart params": params(a=2)}, is_restart=True)

    assert (made["a"].value, made["a"].source, made["a"].layer) == (2, Source.RESTART, "restart params")
    assert made["b"].layer == "previous run"
    with pytest.raises(MergeRefused, match="'b'"):
        merged(WORKFLOW_RESTART, {"previous run": previous, "restart params": params(b=2)}, is_restart=True)


def test_a_parent_fills_in_the_loop_parameters_of_its_child() -> None:
    system = definitions_of({"loop_index": {"type": "LONG", "value": -1, "internal_mode": "RESERVED"}}, trusted=True)

    made = merged(
        WORKFLOW_START, {"system defaults": system, "run params": params(loop_index=0)}, started_by=Source.FOREACH
    )

    assert (made["loop_index"].value, made["loop_index"].source) == (0, Source.FOREACH)


def test_a_required_parameter_that_nobody_gives_is_named() -> None:
    with pytest.raises(MissingParam, match=r"subworkflow_id.*required parameter"):
        merged(STEP, {"type defaults": TYPE_DEFAULTS["SUBWORKFLOW"]})
    with pytest.raises(MissingParam, match="loop_params"):
        merged(STEP, {"type defaults": TYPE_DEFAULTS["FOREACH"]})


def test_an_optional_parameter_that_nobody_gives_is_dropped() -> None:
    optional = definitions_of(
        {
            "a": {"type": "LONG", "internal_mode": "OPTIONAL"},
            "m": {"type": "MAP", "value": {}, "internal_mode": "OPTIONAL"},
            "n": {"type": "MAP", "value": {"x": {"type": "LONG", "internal_mode": "OPTIONAL"}}},
        },
        trusted=True,
    )

    made = merged(STEP, {"type defaults": optional})

    assert list(made) == ["n"]
    assert made["n"].value == {}


def test_workflow_parameters_override_the_values_of_a_runtimes_schema() -> None:
    schema = params(image={"type": "STRING", "value": "base"}, cpu=1)

    made = merged(STEP, {"injected": injected(schema, params(image={"type": "STRING", "value": "own"}, other=1))})

    assert (made["image"].value, made["image"].layer) == ("own", "injected by the step runtime")
    assert made["cpu"].value == 1
    assert "other" not in made


def test_a_misspelt_layer_is_refused() -> None:
    with pytest.raises(ValueError, match="run parms"):
        merged(STEP, {"run parms": params(a=1)})


@pytest.mark.parametrize(
    ("step_type", "given", "expected"),
    [
        ("SLEEP", {}, {"sleep_seconds": 3}),
        (
            "HTTP",
            {"http": {"type": "MAP", "value": {"url": {"type": "STRING", "value": "u"}}}},
            {
                "http": {
                    "url": "u",
                    "method": "GET",
                    "headers": {"Content-Type": "application/json", "Accept": "application/json"},
                }
            },
        ),
        (
            "KUBERNETES",
            {"kubernetes": {"type": "MAP", "value": {"image": {"type": "STRING", "value": "i"}}}},
            {"kubernetes": {"app_name": "kapelle-job", "image": "i", "env": {}}},
        ),
    ],
)
def test_a_type_gives_its_steps_their_defaults(step_type: str, given: Any, expected: dict[str, Any]) -> None:
    made = merged(STEP, {"type defaults": TYPE_DEFAULTS[step_type], "definition": definitions_of(given)})
    context = Context(Sel(), 0, "s", Extension())

    values = evaluate(made, StepScope("s", {}, {}, context.extension), context)

    assert {name: values[name].value for name in expected} == expected


@pytest.mark.parametrize(("step_type", "missing"), [("HTTP", "url"), ("KUBERNETES", "image"), ("NOTEBOOK", "image")])
def test_what_a_type_requires_inside_its_map_is_named_when_missing(step_type: str, missing: str) -> None:
    with pytest.raises(MissingParam, match=missing):
        merged(STEP, {"type defaults": TYPE_DEFAULTS[step_type]})
