"""What expressions may ask about a run: the instance, what started it, the steps that are complete, the step itself."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kapelle.processors.lazy import lazy
from kapelle.processors.params.stored import Value, values_of
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.plan import Plan, StepPlan
from kapelle.processors.runs.tables import BYPASSED, RunRow, Runs
from kapelle.processors.sel import Extension, ExtensionFailed, seeded
from kapelle.processors.sel import Value as SelValue


class FinishedSteps(Mapping[str, Mapping[str, Value]]):
    """The parameters of steps that are complete, read when an expression asks for them."""

    def __init__(self, key: str, state: Runs, plan: Plan) -> None:
        self._key = key
        self._state = state
        self._plan = plan
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
        return step_id in self._plan.steps and self._state.outputs.get((self._key, str(step_id))) is not None

    def __iter__(self) -> Iterator[str]:
        return (step_id for step_id in self._plan.steps if step_id in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class InstanceFacts(Extension):
    """What `params.` answers about an instance and what started it."""

    def __init__(self, run: RunRow) -> None:
        self.run = run

    # Large texts are read once, however often an expression asks.

    @lazy
    def _initiator(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.run.initiator)
        return found

    def call(self, function: str, args: tuple[SelValue, ...]) -> SelValue:
        """The functions that the engine answers."""
        match function, args:
            case "getFromInstance", (str(field),):
                return known_of(self._instance, field, "a field of the instance")
            case "getFromSignal", (str(param),):
                return known_of(self._signal, param, "a parameter of the signal that started the instance")
            case "getFromSignal", (str(name), str(param)):
                return known_of(self._joined(name), param, f"a parameter of the signal {name!r}")
            case "getFromSignalOrDefault", (str(param), default):
                return self._signal.get(param, default)
            case "getFromSignalOrDefault", (str(name), str(param), default):
                return self._joined(name).get(param, default)
            case "getExecutionEnvironment", ():
                return ""
            case _:
                return self.missing(function, *args)

    @lazy
    def _instance(self) -> dict[str, SelValue]:
        run, initiator = self.run, self._initiator
        owner = msgspec.json.decode(run.run_properties).get("owner") or ""
        return {
            "INITIATOR_TIMEZONE": initiator.get("timezone") or "",
            "INITIATOR_TYPE": str(initiator.get("type", "")),
            "INITIATOR_RUNNER_NAME": initiator.get("user") or "",
            "RUN_POLICY": "START_FRESH_NEW_RUN" if run.restart is None else msgspec.json.decode(run.restart)["policy"],
            "FIRST_TIME_TRIGGER_TIMEZONE": "",
            "owner": owner.get("name", "") if isinstance(owner, dict) else owner,
            "workflow_id": run.workflow_id,
            "workflow_instance_id": run.instance_id,
            "workflow_run_id": run.run_id,
        }

    @lazy
    def _signal(self) -> dict[str, SelValue]:
        found: Any = self._initiator.get("params") or {}
        return {name: one.get("value") if isinstance(one, dict) else one for name, one in found.items()}

    def _joined(self, name: str) -> dict[str, SelValue]:
        """The parameters of one of the signals that started the instance."""
        found: dict[str, SelValue] = (self._initiator.get("signals") or {}).get(name) or {}
        return found


class StepFacts(InstanceFacts):
    """What `params.` answers inside an expression of a step."""

    def __init__(self, run: RunRow, state: Runs, steps: FinishedSteps, attempt: Attempt, step: StepPlan) -> None:
        super().__init__(run)
        self._state = state
        self._steps = steps
        self._attempt = attempt
        self._step = step.step
        self._dependencies: dict[int, dict[str, SelValue]] = {}
        self._seed = attempt.seed(f"{run.workflow_id}/{run.instance_id}/{run.run_id}")
        self._ids = seeded(f"{self._seed}/ids", 0).new_id

    def call(self, function: str, args: tuple[SelValue, ...]) -> SelValue:
        """The functions that the engine answers."""
        match function, args:
            case "getFromStep", (str(field),):
                return known_of(self._own(), field, "a field of the step")
            case "getFromStep", (str(step_id), str(param)):
                return self._of_step(step_id, param)
            case "getFromSignalDependency", (str() | int() as index, str(param)):
                return self._of_dependency(int(index), param)
            case "nextUniqueId", () if self._ids is not None:
                return self._ids()
            case _:
                return super().call(function, args)

    def _own(self) -> dict[str, SelValue]:
        return {
            "step_id": self._attempt.step_id,
            "step_instance_id": self._attempt.sequence,
            "step_instance_uuid": self._seed,
            "step_attempt_id": self._attempt.attempt,
            "step_type_info": self._step.type,
            "MAESTRO_STEP_ERROR_RETRIES": self._attempt.retries.get("error", 0),
        }

    def _of_dependency(self, index: int, param: str) -> SelValue:
        key = f"{self.run.workflow_id}/{self.run.instance_id}"
        row = self._state.waits.get((key, self._attempt.step_id, index))
        if row is None or row.sequence is None:
            raise ExtensionFailed(f"Expected the step to have the signal of its dependency {index}, but it has not")
        if row.sequence == BYPASSED:
            raise ExtensionFailed(f"Expected the signal {row.name!r}, but the step goes on without it")
        if index not in self._dependencies:
            self._dependencies[index] = msgspec.json.decode(row.params)
        return known_of(self._dependencies[index], param, f"a parameter of the signal {row.name!r}")

    def _of_step(self, step_id: str, param: str) -> SelValue:
        row = self._state.steps.get((f"{self.run.workflow_id}/{self.run.instance_id}", step_id))
        if row is not None and param == "MAESTRO_STEP_STATUS":
            return str(row.status)
        if row is not None and param == "MAESTRO_STEP_END_TIME":
            return row.changed_at_ms
        if step_id not in self._steps:
            raise ExtensionFailed(f"Expected step {step_id!r} to be complete, but it is not")
        found = self._steps[step_id]
        if param in found:
            return found[param].value
        return known_of({name: one.value for name, one in found.items()}, param, f"a parameter of step {step_id!r}")


def known_of(known: Mapping[str, SelValue], name: str, what: str) -> SelValue:
    """One of the things that are known, or an error that lists them."""
    if name not in known:
        raise ExtensionFailed(f"Expected {what} ({', '.join(known)}), but found {name!r}")
    return known[name]
