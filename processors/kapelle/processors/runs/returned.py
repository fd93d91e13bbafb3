"""Values that expressions read from the children of a step: the parameters that children returned at their end.

| expression | value |
|---|---|
| `params.getFromForeach(loop, step, param)` | an array with one value for each iteration, in their order |
| `params.getFromSubworkflow(call, step, param)` | the parameter of a step of the child |

An iteration whose step has no such value has null, 0, 0.0 or false in its place. So has one that was not launched since
the loop last began from its beginning.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kapelle.processors.params import ParamType
from kapelle.processors.params.stored import typed
from kapelle.processors.parents import GivenBack, read_back
from kapelle.processors.runs.composites.counts import belongs, is_over
from kapelle.processors.runs.plan import Plan, digest_of, plan_of
from kapelle.processors.runs.states import COMPLETE
from kapelle.processors.runs.tables import ChildRow, FanRow, Runs
from kapelle.processors.sel import BooleanArray, DoubleArray, ExtensionFailed, LongArray, StringArray
from kapelle.processors.sel import Value as SelValue
from kapelle.processors.sel.values import Array
from kapelle.schemas.contracts import ChildKind, StepStatus

MakeArray = Callable[[Iterable[SelValue]], Array]


def _doubles(values: Iterable[SelValue]) -> DoubleArray:
    """Parameters are exact decimals, and arrays of the language hold floating-point numbers."""
    return DoubleArray(float(value) for value in values)


# By the type of a parameter: the array of many, and the value of an iteration that has none.
ARRAYS: Final[Mapping[ParamType, tuple[MakeArray, SelValue]]] = {
    ParamType.STRING: (StringArray, None),
    ParamType.LONG: (LongArray, 0),
    ParamType.DOUBLE: (_doubles, 0.0),
    ParamType.BOOLEAN: (BooleanArray, False),
}


class Returned:
    """The children of one instance, as its expressions see them."""

    def __init__(self, key: str, state: Runs, plan: Plan) -> None:
        self._key = key
        self._state = state
        self._plan = plan

    def from_foreach(self, loop: str, step_id: str, param: str) -> SelValue:
        """One value for each iteration of a loop that is complete."""
        array, missing = self._array(loop, step_id, param)
        fan = self._fan(loop, ChildKind.FOREACH)
        if fan is None:
            return array(())
        values = [missing] * fan.total
        for (_, _, number), child in self._state.children.prefix((self._key, loop)):
            if number <= fan.total and belongs(fan, number, child):
                values[number - 1] = self._value(loop, child, number).get((step_id, param), missing)
        return array(values)

    def from_subworkflow(self, call: str, step_id: str, param: str) -> SelValue:
        """A parameter of a step of the child."""
        fan = self._fan(call, ChildKind.SUBWORKFLOW)
        child = self._state.children.get((self._key, call, 1))
        if fan is None or child is None:
            raise ExtensionFailed(f"Expected step {call!r} to have started a workflow, but it has not")
        values = self._value(call, child, 1)
        if (step_id, param) not in values:
            where = f"{child.child or call}"
            raise ExtensionFailed(f"Expected parameter {param!r} of step {step_id!r} in {where}, but there is none")
        return values[step_id, param]

    def _array(self, loop: str, step_id: str, param: str) -> tuple[MakeArray, SelValue]:
        block = self._plan.blocks.get(loop)
        if block is None:
            raise ExtensionFailed(f"Expected a foreach step of the workflow, but found {loop!r}")
        inner = plan_of(digest_of(block), lambda: block).steps.get(step_id)
        definition = None if inner is None else inner.definitions.get(param)
        if definition is None:
            raise ExtensionFailed(f"Expected a parameter of a step in loop {loop!r}, but found {step_id!r}, {param!r}")
        if definition.type not in ARRAYS:
            raise ExtensionFailed(f"Expected one of {', '.join(ARRAYS)} of {param!r}, but it is a {definition.type}")
        return ARRAYS[definition.type]

    def _fan(self, step_id: str, kind: ChildKind) -> FanRow | None:
        """The children of the latest attempt of a step that is complete; None if that attempt had none.

        The conditions towards the next steps are evaluated when all children have ended, while the step still runs.
        """
        row = self._state.steps.get((self._key, step_id))
        if row is None or (row.status not in COMPLETE and row.status is not StepStatus.RUNNING):
            raise ExtensionFailed(f"Expected step {step_id!r} to be complete, but it is not")
        fan = self._state.fans.get((self._key, step_id))
        if fan is None or fan.kind is not kind:
            return None
        if (fan.run_id, fan.attempt, fan.iteration) != (row.run_id, row.attempt, row.iteration):
            return None
        if row.status is StepStatus.RUNNING and not is_over(fan):
            raise ExtensionFailed(f"Expected step {step_id!r} to be complete, but it is not")
        return fan

    def _value(self, step_id: str, child: ChildRow, number: int) -> dict[tuple[str, str], SelValue]:
        back: GivenBack = read_back(child.values)
        if back.is_too_large:
            raise ExtensionFailed(f"The values returned by child {number} of {step_id!r} are too large")
        return {(step, name): typed(value) for step, given in back.steps.items() for name, value in given.items()}
