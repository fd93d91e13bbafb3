"""What a push can tell about loops and subworkflows before they run: their parameters, and how often they repeat.

A literal has the same value in every run, and so has an expression that refers only to literals of its step. Such
values are computed at the push: a validator that refuses one, and a foreach over too many combinations, are reported
then. All else is known when the step begins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic_core import PydanticCustomError

from kapelle.processors.definitions.composites import (
    CONDITION,
    LOOP_INDEX,
    LOOP_PARAMS,
    LOOPS,
    SUBWORKFLOW_ID,
    SUBWORKFLOW_VERSION,
    iterations_of,
    loop_definitions,
)
from kapelle.processors.definitions.dry_run import DryRun
from kapelle.processors.definitions.fields import workflow_id
from kapelle.processors.definitions.limits import ITERATIONS_MAX, NESTING_MAX
from kapelle.processors.definitions.models import Step, StepKind
from kapelle.processors.definitions.places import Placed
from kapelle.processors.definitions.problems import Report, at
from kapelle.processors.params import RESERVED_NAMES, ParamType, references

SCALARS: Final = (ParamType.STRING, ParamType.LONG, ParamType.DOUBLE, ParamType.BOOLEAN)
ARRAYS: Final = (ParamType.STRING_ARRAY, ParamType.LONG_ARRAY, ParamType.DOUBLE_ARRAY, ParamType.BOOLEAN_ARRAY)
OF_KIND: Final = {StepKind.FOREACH: ARRAYS, StepKind.WHILE: SCALARS}
OWN_NAMES: Final = {
    StepKind.FOREACH: RESERVED_NAMES | {LOOP_PARAMS, LOOP_INDEX},
    StepKind.WHILE: RESERVED_NAMES | {LOOP_PARAMS, LOOP_INDEX, CONDITION},
}
VERSION: Final = re.compile(r"active|latest|default|0*[1-9][0-9]{0,17}", re.IGNORECASE | re.ASCII)


def check_loops(steps: list[Placed], run: DryRun) -> None:
    """Report what is wrong with the parameters that loops repeat for."""
    for place in steps:
        if place.step.kind in LOOPS:
            _check_names(place, run.report)
            _check_loop_params(place.step, at(at(place.path, "params"), LOOP_PARAMS), run)


def _check_names(place: Placed, report: Report) -> None:
    """A loop in a loop must not hide the values of the outer one. `loop_index` is always that of the inner one."""
    taken = {name: outer.id for outer in place.around for name in loop_definitions(outer)}
    for name in loop_definitions(place.step):
        where = at(at(at(at(place.path, "params"), LOOP_PARAMS), "value"), name)
        if name in taken:
            report.add(where, name, f"a name that the loop around it, {taken[name]!r}, does not use")
        elif name in OWN_NAMES[place.step.kind]:
            report.add(where, name, "a name that the system does not use itself")


def _check_loop_params(step: Step, path: str, run: DryRun) -> None:
    params = step.params.get(LOOP_PARAMS)
    if params is None or params.type is not ParamType.MAP:
        return  # the merge with the parameters of its type says so
    if params.expression is not None:
        expected = "a value that names each parameter: their names must be known before the loop runs"
        run.report.add(at(path, "expression"), params.expression, expected)
        return
    allowed, values, own = OF_KIND[step.kind], dict[str, Any](), loop_definitions(step)
    beside = {name: definition for name, definition in step.params.items() if name != LOOP_PARAMS and name not in own}
    for name, definition in own.items():
        here = at(at(path, "value"), name)
        if definition.type not in allowed:
            kinds = ", ".join(allowed)
            run.report.add(at(here, "type"), definition.type, f"one of {kinds} in a {step.kind}")
        elif (value := run.constant(name, definition, here, beside)) is not None:
            values[name] = value
    if len(values) == len(own):
        _check_values(step, path, values, run)
        if params.validator is not None:
            run.constant(LOOP_PARAMS, params, path, beside)


def _check_values(step: Step, path: str, values: Mapping[str, Any], run: DryRun) -> None:
    """Count the iterations of a foreach, where all values are known."""
    if step.kind is StepKind.FOREACH and iterations_of(map(len, values.values())) > ITERATIONS_MAX:
        lengths = " * ".join(f"{len(array):,}" for array in values.values())
        run.report.note(
            at(path, "value"), f"{lengths} combinations", f"at most {ITERATIONS_MAX:,} combinations of values"
        )


def check_subworkflows(steps: list[Placed], report: Report) -> None:
    """Report children that no run could start."""
    for place in steps:
        if place.step.kind is not StepKind.SUBWORKFLOW:
            continue
        if len(place.around) == NESTING_MAX - 1:
            nesting = f"a subworkflow inside {len(place.around)} loops"
            report.note(place.path, nesting, f"at most {NESTING_MAX} levels, and the child is a level of its own")
        _check_child(place.step, at(place.path, "params"), report)


def _check_child(step: Step, path: str, report: Report) -> None:
    child = _literal(step, SUBWORKFLOW_ID)
    if child is not None:
        try:
            workflow_id(child)
        except PydanticCustomError as error:
            report.add(at(at(path, SUBWORKFLOW_ID), "value"), child, f"the id of a workflow: {error.message()}")
    version = _literal(step, SUBWORKFLOW_VERSION)
    if version is not None and not VERSION.fullmatch(version):
        expected = "active, latest, default or the number of a version"
        report.add(at(at(path, SUBWORKFLOW_VERSION), "value"), version, expected)


def _literal(step: Step, name: str) -> str | None:
    """A text that is the same in every run."""
    definition = step.params.get(name)
    if definition is None or definition.type is not ParamType.STRING or definition.value is None:
        return None
    return None if any(references(definition.value)) else str(definition.value)
