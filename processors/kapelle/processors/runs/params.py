"""The parameters of steps and the conditions between them, as expressions see the run."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kapelle.processors.keys import run_key
from kapelle.processors.lazy import lazy
from kapelle.processors.params import (
    SEL,
    Context,
    Definitions,
    Evaluated,
    ParamError,
    StepScope,
    UnknownReference,
    definitions_of,
    evaluate,
    failed_of,
    new_budget,
)
from kapelle.processors.params.host import InstanceFacts
from kapelle.processors.params.nesting import NESTED_JSON_MAX, nests_too_deep
from kapelle.processors.params.scopes import Known, Own
from kapelle.processors.params.stored import Value, restored, values_json, values_of
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.facts import FinishedSteps, StepFacts, facts_of
from kapelle.processors.runs.plan import Edge, Plan, StepPlan
from kapelle.processors.runs.tables import ParamsRow, RunRow, Runs
from kapelle.processors.sel import Budget, Extension, SelError, seeded
from kapelle.processors.sel import Value as SelValue

# An event holds the conditions and the reason beside them, and a record a million bytes.
PARAMS_BYTES_MAX: Final = 750_000
LAYERS_CACHED: Final = 64


class NotBoolean(ParamError):
    """A condition gave something else than true or false."""

    def __init__(self, condition: str, found: str) -> None:
        super().__init__(f"Expected the condition {condition!r} to be true or false, but it is a {found}")
        self.condition = condition


class ParamsTooHeavy(ParamError):
    """The parameters of a step do not fit into a record."""

    def __init__(self, step_id: str, size_bytes: int) -> None:
        super().__init__(
            f"Expected the parameters of step {step_id!r} within {PARAMS_BYTES_MAX:,} bytes, but found {size_bytes:,}"
        )
        self.size_bytes = size_bytes


class Expressions:
    """Evaluates what the definition says, in the light of one run.

    Every attempt at a step has a budget of its own, so that no step fails because of what others have spent. `spent` is
    what all of them have spent in this decision: it tells when to leave the rest to another one.
    """

    def __init__(self, run: RunRow, state: Runs, plan: Plan, now_ms: int) -> None:
        self._run = run
        self._state = state
        self._plan = plan
        self._now_ms = now_ms
        self._key = run_key(run.workflow_id, run.instance_id)
        self._steps = FinishedSteps(self._key, state, plan)
        self.workflow = workflow_values(run, state)
        self._step_run_params: dict[str, Any] = (
            {} if run.step_run_params == "{}" else msgspec.json.decode(run.step_run_params)
        )
        self._spent_before = 0
        self._budget_of: tuple[str, Budget] = ("", new_budget())

    @property
    def spent(self) -> int:
        """The visits of all evaluations of this decision so far."""
        return self._spent_before + self._budget_of[1].spent

    def budget(self, attempt: Attempt) -> Budget:
        """What an attempt may spend on its parameters, conditions and signals in this decision."""
        seed = self._seed(attempt)
        if self._budget_of[0] != seed:
            self._spent_before = self.spent
            self._budget_of = (seed, new_budget())
        return self._budget_of[1]

    def lookup(self, name: str) -> SelValue:
        """A parameter of the workflow, for counts and durations. `KeyError` if there is none."""
        return self.workflow[name].value

    def definitions(self, step: StepPlan) -> Definitions:
        """How the parameters of a step are defined in this run."""
        given = self._step_run_params.get(step.step.id)
        return step.definitions_with(definitions_of(given)) if given else step.definitions

    def params(self, step: StepPlan, attempt: Attempt) -> dict[str, Evaluated]:
        """The parameters of an attempt."""
        definitions = self.definitions(step)
        if not definitions:
            return {}
        facts = self._facts(step, attempt)
        return evaluate(definitions, self._scope(step, facts), self._context(attempt, facts))

    def values(
        self, definitions: Definitions, step: StepPlan, attempt: Attempt, params: Mapping[str, Evaluated]
    ) -> dict[str, Evaluated]:
        """Other definitions of a step than its parameters: they see the step's parameters as far as there are any."""
        facts = self._facts(step, attempt)
        known = {**self.workflow, **{name: Value(evaluated.value) for name, evaluated in params.items()}}
        scope = StepScope(step.step.id, known, self._steps, facts)
        return evaluate(definitions, scope, self._context(attempt, facts))

    def restored(self, step: StepPlan, text: str) -> dict[str, Evaluated]:
        """The parameters of an attempt that were evaluated before."""
        return restored(text, self.definitions(step), evaluated_at_ms=self._now_ms)

    def is_true(self, condition: str, attempt: Attempt, known: Mapping[str, SelValue]) -> bool:
        """Whether a condition over these values is true. It knows nothing else: no steps, and no `params`."""
        budget, name = self.budget(attempt), f"the condition of step {attempt.step_id!r}"
        try:
            program = SEL.program(condition, budget)
            for reference in program.names:
                if reference not in known:
                    raise UnknownReference(name, reference, f"step {attempt.step_id!r}")
            inputs = {reference: known[reference] for reference in program.names}
            value = program.value(inputs, seeded(f"{self._seed(attempt)}/condition", self._now_ms), budget)
        except SelError as error:
            raise failed_of(name, error) from error
        if not isinstance(value, bool):
            raise NotBoolean(condition, type(value).__name__)
        return value

    def holds(self, edge: Edge, step: StepPlan, attempt: Attempt, params: Mapping[str, Evaluated]) -> bool:
        """Whether the condition of a transition is true."""
        if edge.condition is None:
            return True
        facts = self._facts(step, attempt)
        known = _Names(f"{step.step.id} -> {edge.to}", self._scope(step, facts), params)
        budget = self.budget(attempt)
        try:
            program = SEL.program(edge.condition, budget)
            inputs = {ref: known[ref] for ref in program.names if ref != "params"}
            host = seeded(f"{self._seed(attempt)}/{edge.to}", self._now_ms, _WithParams(self, facts))
            value = program.value(inputs, host, budget)
        except SelError as error:
            raise failed_of(known.name, error) from error
        if not isinstance(value, bool):
            raise NotBoolean(edge.condition, type(value).__name__)
        return value

    def _context(self, attempt: Attempt, facts: StepFacts) -> Context:
        return Context(SEL, self._now_ms, self._seed(attempt), facts, budget=self.budget(attempt))

    def _facts(self, step: StepPlan, attempt: Attempt) -> StepFacts:
        return StepFacts(self._instance, self._state, self._steps, attempt, step)

    @lazy
    def _instance(self) -> InstanceFacts:
        return facts_of(self._run, self._plan)

    def _scope(self, step: StepPlan, facts: StepFacts) -> StepScope:
        return StepScope(step.step.id, self.workflow, self._steps, facts)

    def _seed(self, attempt: Attempt) -> str:
        return attempt.seed(f"{self._key}/{self._run.run_id}")


def layer_of(state: Runs, digest: str) -> ParamsRow:
    """Parameters that are shared with others."""
    row = state.shared.get((digest,))
    if row is None:
        raise ValueError(f"Expected the parameters {digest} to be known, but they are not")
    return row


def workflow_values(run: RunRow, state: Runs) -> Mapping[str, Value]:
    """The parameters of the workflow as a run sees them: the shared ones, then its own."""
    own = values_of(run.params)
    if not run.layers:
        return own
    values: dict[str, Value] = {}
    for digest in run.layers:
        values.update(_layer_values(digest, state))
    return {**values, **own}


def _layer_values(digest: str, state: Runs) -> Mapping[str, Value]:
    """The values of a layer. Those used last are kept: one loop asks for the same again for each of its iterations."""
    values = _layers.get(digest)
    if values is None:
        while len(_layers) >= LAYERS_CACHED:
            del _layers[next(iter(_layers))]
        values = _layers[digest] = values_of(layer_of(state, digest).text)
    return values


_layers: Final[dict[str, Mapping[str, Value]]] = {}


def checked_json(step_id: str, params: Mapping[str, Evaluated]) -> str:
    """The parameters of a step as JSON, if a record can hold them."""
    text = values_json(params)
    if 4 * len(text) > PARAMS_BYTES_MAX and (size_bytes := len(text.encode())) > PARAMS_BYTES_MAX:
        raise ParamsTooHeavy(step_id, size_bytes)
    return text


def parsed_object(text: str) -> dict[str, Any]:
    """A JSON object of a request or a report, or a `ParamError` that says that it is none."""
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ParamError(f"Expected parameters as JSON, but {error}") from None
    if nests_too_deep(text, decoded):
        raise ParamError(f"Expected parameters as JSON that nests at most {NESTED_JSON_MAX} deep, but it nests deeper")
    if not isinstance(decoded, dict):
        raise ParamError("Expected parameters as a JSON object by name, but found another value")
    return decoded


class _Names:
    """What the names in a condition mean."""

    def __init__(self, name: str, scope: StepScope, params: Mapping[str, Evaluated]) -> None:
        self.name = name
        self._scope = scope
        self._params = params
        self._own = {name: param.definition for name, param in params.items()}

    def __getitem__(self, reference: str) -> SelValue:
        source = self._scope.find(reference, self._own, self._params)
        if isinstance(source, Own) and source.name in self._params:
            return self._params[source.name].value
        if isinstance(source, Known):
            return source.value
        raise UnknownReference(self.name, reference, self._scope.where)


class _WithParams(Extension):
    """`params` in a condition: the workflow's parameters, and the functions of the engine."""

    def __init__(self, expressions: Expressions, facts: StepFacts) -> None:
        self._workflow = expressions.workflow
        self._facts = facts

    def get(self, name: str) -> SelValue:
        """A parameter of the workflow."""
        value = self._workflow.get(name)
        return None if value is None else value.value

    def contains(self, name: str) -> bool:
        """Whether the workflow has it."""
        return name in self._workflow

    def call(self, function: str, args: tuple[SelValue, ...]) -> SelValue:
        """A function of the engine."""
        return self._facts.call(function, args)
