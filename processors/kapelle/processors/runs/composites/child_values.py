"""The values that a child gets from its parent, and those that it returns at its end.

Parameters go down in *layers*: those of the workflow around a loop, then those of the loop step, then the loop values.
A layer is known by its digest. All children of a step share its layers, so the text of a layer is in the history of a
partition once, however many children there are. Only the loop values are written for each child.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kapelle.processors.definitions import handed_down
from kapelle.processors.params.stored import plain_json, values_json
from kapelle.processors.parents import NOTHING_GIVEN, TOO_LARGE
from kapelle.processors.runs.context import Params, RunContext
from kapelle.processors.runs.params import layer_of
from kapelle.processors.runs.plan import StepPlan, digest_of
from kapelle.processors.runs.tables import Runs
from kapelle.processors.sel import Value
from kapelle.schemas.contracts import InstanceStatus, ParamsLayer, Parent

VALUES_CHARS_MAX: Final = 100_000  # of what one child gives back


def layers_for(context: RunContext, step: StepPlan, params: Params) -> tuple[ParamsLayer, ...]:
    """The layers that every child of a step gets."""
    run = context.run
    around = [ParamsLayer(digest, layer_of(context.state, digest).text) for digest in run.layers]
    names = handed_down(step.step)
    of_step = values_json({name: param for name, param in params.items() if name in names})
    own = [text for text in (run.params, of_step) if text != NOTHING_GIVEN]
    return (*around, *(ParamsLayer(digest_of(text), text) for text in own))


def given_back(parent: Parent, key: str, state: Runs, status: InstanceStatus) -> str:
    """What the parent asks for, as JSON: parameters of steps, and for a while step the values of the next round."""
    returned: dict[str, object] = {}
    if parent.asks:
        returned["steps"] = _of_steps(key, parent.asks, state)
    # No other round follows one that has not succeeded.
    if parent.carries and status is InstanceStatus.SUCCEEDED:
        returned["carried"] = _carried(key, parent.carries, state)
    text = msgspec.json.encode(returned).decode() if returned else NOTHING_GIVEN
    return text if len(text) <= VALUES_CHARS_MAX else TOO_LARGE


def _of_steps(key: str, asks: tuple[str, ...], state: Runs) -> dict[str, dict[str, msgspec.Raw]]:
    by_step: dict[str, dict[str, msgspec.Raw]] = {}
    for step_id, _, name in (asked.partition("/") for asked in asks):
        known = _params(key, step_id, state)
        if name in known:
            by_step.setdefault(step_id, {})[name] = known[name]
    return by_step


def _params(key: str, step_id: str, state: Runs) -> Mapping[str, msgspec.Raw]:
    row = state.outputs.get((key, step_id)) or state.inputs.get((key, step_id))
    return {} if row is None else _decode(row.text)


def _carried(key: str, names: tuple[str, ...], state: Runs) -> dict[str, msgspec.Raw]:
    """Of all steps with a parameter of the name, the one that was created last decides."""
    rows = sorted((row.sequence, step_id) for (_, step_id), row in state.steps.prefix((key,)))
    carried: dict[str, msgspec.Raw] = {}
    for _, step_id in rows:
        known = _params(key, step_id, state)
        carried.update({name: known[name] for name in names if name in known})
    return carried


_decode: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def loop_values(values: Mapping[str, Value], index: int) -> str:
    """The parameters that an iteration or a round has of its own, as JSON."""
    return plain_json({**values, "loop_index": index})
