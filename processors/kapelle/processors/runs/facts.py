"""Values that expressions can read about a run: the instance, its initiator, complete steps, and the step itself."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kapelle.processors.lazy import lazy
from kapelle.processors.params.host import InstanceFacts, ParamsHost
from kapelle.processors.params.stored import Value, values_of
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.plan import Plan, StepPlan
from kapelle.processors.runs.returned import Returned
from kapelle.processors.runs.tables import BYPASSED, RunRow, Runs
from kapelle.processors.sel import ExtensionFailed
from kapelle.processors.sel import Value as SelValue

INDEX_MAX: Final = 2**31 - 1


class FinishedSteps(Mapping[str, Mapping[str, Value]]):
    """The parameters of steps that are complete, read when an expression asks for them."""

    def __init__(self, key: str, state: Runs, plan: Plan) -> None:
        self._key = key
        self._state = state
        self.plan = plan
        self._read: dict[str, tuple[str, Mapping[str, Value]]] = {}

    def __getitem__(self, step_id: str) -> Mapping[str, Value]:
        row = self._state.outputs.get((self._key, step_id))
        if row is None:
            raise KeyError(step_id)
        text, values = self._read.get(step_id, ("", {}))
        if text is not row.text:  # a loop may complete a step again
            values = values_of(row.text)
            self._read[step_id] = (row.text, values)
        return values

    def __contains__(self, step_id: object) -> bool:
        return step_id in self.plan.steps and self._state.outputs.get((self._key, str(step_id))) is not None

    def __iter__(self) -> Iterator[str]:
        return (step_id for step_id in self.plan.steps if step_id in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def facts_of(run: RunRow, plan: Plan) -> InstanceFacts:
    """What is known of the instance and of its latest run."""
    return InstanceFacts(
        workflow_id=run.workflow_id,
        instance_id=run.instance_id,
        run_id=run.run_id,
        author=run.author,
        initiated_by=run.initiator,
        properties=run.run_properties,
        restart=run.restart,
        first_timezone=plan.workflow.first_timezone,
    )


class StepFacts(ParamsHost):
    """What `params.` answers inside an expression of a step."""

    def __init__(
        self, facts: InstanceFacts, state: Runs, steps: FinishedSteps, attempt: Attempt, step: StepPlan
    ) -> None:
        super().__init__(facts, attempt.seed(f"{facts.key}/{facts.run_id}"))
        self._instance = facts
        self._state = state
        self._steps = steps
        self._attempt = attempt
        self._step = step.step
        self._dependencies: dict[int, dict[str, SelValue]] = {}

    def call(self, function: str, args: tuple[SelValue, ...]) -> SelValue:
        """The functions that the engine answers."""
        match function, args:
            case "getFromStep", (str(field),):
                return known_of(self._own(), field, "a field of the step")
            case "getFromStep", (str(step_id), str(param)):
                return self._of_step(step_id, param)
            case "getFromForeach", (str(loop), str(step_id), str(param)):
                return self._returned.from_foreach(loop, step_id, param)
            case "getFromSubworkflow", (str(call), str(step_id), str(param)):
                return self._returned.from_subworkflow(call, step_id, param)
            case "getFromSignalDependency", (str() | int() as index, str(param)):
                return self._of_dependency(_index_of(index), param)
            case _:
                return super().call(function, args)

    @lazy
    def _returned(self) -> Returned:
        return Returned(self._instance.key, self._state, self._steps.plan)

    def _own(self) -> dict[str, SelValue]:
        return {
            "step_id": self._attempt.step_id,
            "step_instance_id": self._attempt.sequence,
            "step_instance_uuid": self.seed,
            "step_attempt_id": self._attempt.attempt,
            "step_type_info": self._step.type,
            "MAESTRO_STEP_ERROR_RETRIES": self._attempt.retries.get("error", 0),
        }

    def _of_dependency(self, index: int, param: str) -> SelValue:
        row = self._state.waits.get((self._instance.key, self._attempt.step_id, index))
        if row is None or row.sequence is None:
            raise ExtensionFailed(
                f"Expected the step to have the signal of its dependency {index}, but it does not have it"
            )
        if row.sequence == BYPASSED:
            raise ExtensionFailed(f"Expected the signal {row.name!r}, but the step continued without it")
        if index not in self._dependencies:
            self._dependencies[index] = msgspec.json.decode(row.params)
        return known_of(self._dependencies[index], param, f"a parameter of the signal {row.name!r}")

    def _of_step(self, step_id: str, param: str) -> SelValue:
        row = self._state.steps.get((self._instance.key, step_id))
        if row is not None and param == "MAESTRO_STEP_STATUS":
            return str(row.status)
        if row is not None and param == "MAESTRO_STEP_END_TIME":
            return row.changed_at_ms
        if step_id not in self._steps:
            raise ExtensionFailed(f"Expected step {step_id!r} to be complete, but it is not")
        params = self._steps[step_id]
        if param in params:
            return params[param].value
        return known_of(
            {name: evaluated.value for name, evaluated in params.items()}, param, f"a parameter of step {step_id!r}"
        )


def _index_of(index: str | int) -> int:
    """The number of a dependency. An expression can ask for any."""
    try:
        position = int(index)
    except ValueError:
        position = -1
    if not 0 <= position <= INDEX_MAX:
        raise ExtensionFailed(f"Expected the number of a dependency of the step, but found {str(index)[:80]!r}")
    return position


def known_of(known: Mapping[str, SelValue], name: str, what: str) -> SelValue:
    """One of the things that are known, or an error that lists them."""
    if name not in known:
        raise ExtensionFailed(f"Expected {what} ({', '.join(known)}), but found {name!r}")
    return known[name]
