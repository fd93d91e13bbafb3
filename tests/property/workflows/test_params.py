"""Random workflows: what is evaluated at a start has the values that evaluating everything would give."""

import json
import re
from collections.abc import Callable
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.processors.definitions import parse_workflow
from kapelle.processors.params import (
    SEL,
    WORKFLOW_DEFAULTS,
    WORKFLOW_START,
    Context,
    Definitions,
    Evaluated,
    ParamError,
    Source,
    WorkflowScope,
    definitions_of,
    evaluate,
    merged,
    new_budget,
)
from kapelle.processors.params.host import InstanceFacts, ParamsHost
from kapelle.processors.workflows.params import NewRun, params_of

NOW_MS: Final = 1_700_000_000_000
INITIATOR: Final = '{"type":"TIME","timezone":"Asia/Tokyo"}'
FACTS: Final = InstanceFacts("etl", 7, 1, "bob", INITIATOR, '{"owner":"ann"}', None, "")
DEFAULTS: Final = sorted(set(WORKFLOW_DEFAULTS) - {"job_template_version"})
OWN: Final = ("a", "b", "c")

names = st.sampled_from([*DEFAULTS, *OWN])
FORMS: Final = (
    lambda name: {"type": "STRING", "expression": name},
    lambda name: {"type": "STRING", "expression": f"'x' + {name}"},
    lambda name: {"type": "STRING", "expression": f'params.get("{name}")'},
    lambda name: {"type": "STRING", "expression": f"params['{name}']"},
    lambda name: {"type": "STRING", "expression": f"String n = '{name}'; return params.get(n);"},
    lambda name: {"type": "STRING", "value": f"\n${name} and ${{{name}}}"},
    lambda name: {"type": "STRING_ARRAY", "value": ["plain", f"${name}"]},
    lambda name: {"type": "STRING_MAP", "value": {f"${name}": "plain"}},
    lambda name: {"type": "MAP", "value": {"inner": {"type": "STRING", "expression": name}}},
    lambda _: {"type": "STRING", "value": "plain"},
)
definitions = st.builds(lambda form, name: form(name), st.sampled_from(FORMS), names)
own_params = st.dictionaries(st.sampled_from(OWN), definitions, max_size=3)
run_params = st.dictionaries(st.sampled_from([*OWN, "d", "RUN_DATE", "TARGET_RUN_HOUR"]), definitions, max_size=2)


def in_full(text: str, at_start: Definitions) -> dict[str, Evaluated]:
    """Every parameter there is, evaluated."""
    layers = {"system defaults": WORKFLOW_DEFAULTS, "definition": parse_workflow(text).params, "run params": at_start}
    host = ParamsHost(FACTS, FACTS.name)
    context = Context(SEL, now_ms=NOW_MS, seed=FACTS.name, extension=host)
    all_merged = merged(WORKFLOW_START, layers, started_by=Source.TIME_TRIGGER)
    return evaluate(all_merged, WorkflowScope("etl", host), context)


def in_part(text: str, at_start: Definitions) -> dict[str, Evaluated]:
    return params_of(text, at_start, run=NewRun(FACTS, NOW_MS, new_budget()))


def outcome(
    evaluation: Callable[[str, Definitions], dict[str, Evaluated]], text: str, at_start: Definitions
) -> tuple[dict[str, Evaluated], str]:
    """The parameters, or what is wrong with them."""
    try:
        return evaluation(text, at_start), ""
    except ParamError as error:
        return {}, str(error)


@settings(max_examples=150, deadline=None)
@given(own=own_params, of_step=own_params, at_start=run_params)
def test_what_is_evaluated_is_a_part_of_evaluating_everything(
    own: dict[str, Any], of_step: dict[str, Any], at_start: dict[str, Any]
) -> None:
    step = {"step": {"id": "load", "type": "NoOp", "params": of_step}}
    text = json.dumps({"id": "etl", "params": own, "steps": [step]})

    part, wrong = outcome(in_part, text, definitions_of(at_start))

    whole, expected = outcome(in_full, text, definitions_of(at_start))
    assert expected or not wrong  # a default that nobody asks for may fail unseen
    if not expected:
        assert part == {name: whole[name] for name in part}
        words = set(re.findall(r"\w+", json.dumps(of_step).replace("\\n", " ")))
        assert part.keys() >= {"RUN_TS", *own, *at_start, *(words & set(DEFAULTS))}
