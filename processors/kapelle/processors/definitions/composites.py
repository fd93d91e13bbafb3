"""Steps that run other steps: what a loop repeats, with which values, and how often.

The steps inside a loop are its *block*. A block is a definition of its own: every iteration of the loop is an instance
of it. `blocks_of` takes the blocks out of the text of a definition. The text of a block is a stored definition like any
other: `parse_workflow` reads it, and `blocks_of` finds the blocks inside it in turn. It is the same for all iterations,
and never longer than the text that it was taken from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kapelle.processors.definitions.json_text import read_json, write_json
from kapelle.processors.definitions.limits import ITERATIONS_MAX
from kapelle.processors.definitions.models import Step, StepKind
from kapelle.processors.params import Definition, ParamType

LOOPS: Final = frozenset({StepKind.FOREACH, StepKind.WHILE})
LOOP_PARAMS: Final = "loop_params"
LOOP_INDEX: Final = "loop_index"
CONDITION: Final = "condition"
SUBWORKFLOW_ID: Final = "subworkflow_id"
SUBWORKFLOW_VERSION: Final = "subworkflow_version"
# The parameters that tell the step what to do. They are not handed down to what it starts.
OF_STEP: Final[Mapping[StepKind, frozenset[str]]] = {
    StepKind.FOREACH: frozenset({LOOP_PARAMS}),
    StepKind.WHILE: frozenset({LOOP_PARAMS}),
    StepKind.SUBWORKFLOW: frozenset({SUBWORKFLOW_ID, SUBWORKFLOW_VERSION}),
}
# The id in the text of every block. Instances of a block get their workflow id from the engine.
BLOCK_ID: Final = "block"


def loop_definitions(step: Step) -> Mapping[str, Definition]:
    """The definitions in `loop_params`: arrays of a foreach, the first values of a while."""
    params = step.params.get(LOOP_PARAMS)
    if params is None or params.type is not ParamType.MAP or not isinstance(params.value, dict):
        return {}
    return params.value


def handed_down(step: Step) -> dict[str, Definition]:
    """The parameters written on the step that the instances it starts get too."""
    kept = OF_STEP.get(step.kind, frozenset())
    return {name: definition for name, definition in step.params.items() if name not in kept}


def blocks_of(text: str | bytes) -> dict[str, str]:
    """The blocks of the loops among the steps of a stored definition, by the ids of the loops."""
    raw = read_json(text)
    wrapped = [pair for step in raw["steps"] for pair in step.items()]
    return {body["id"]: _block(body) for kind, body in wrapped if kind in LOOPS}


def _block(body: dict[str, object]) -> str:
    return write_json({"id": BLOCK_ID, "steps": body["steps"]})


def iterations_of(lengths: Iterable[int]) -> int:
    """How many combinations arrays of these lengths make. More than the limit are not counted any further."""
    count = 1
    for length in sorted(lengths):  # a zero comes first
        count = min(count * length, ITERATIONS_MAX + 1)
    return count


def combination(values: Mapping[str, Sequence[object]], index: int) -> dict[str, object]:
    """The values of one iteration, counted from 0. The first parameter changes fastest."""
    made: dict[str, object] = {}
    for name, array in values.items():
        index, place = divmod(index, len(array))
        made[name] = array[place]
    return made
