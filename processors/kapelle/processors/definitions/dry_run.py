"""The dry run of a push: parameters are merged, and those of the workflow evaluated, as a start would do.

Time stands still at the beginning of 2021, so that the same definition is accepted or refused always and everywhere.
What only a start can know, such as the parameters of a signal, is left out together with all that depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from kapelle.processors.definitions.composites import LOOP_INDEX, loop_definitions
from kapelle.processors.definitions.mentions import expressions_in, names_in, programs_in
from kapelle.processors.definitions.models import Step, Workflow
from kapelle.processors.definitions.problems import NOTHING, at, shown
from kapelle.processors.definitions.reading import Reader
from kapelle.processors.definitions.texts import Texts
from kapelle.processors.definitions.zones import is_zone
from kapelle.processors.params import (
    DRY_RUN_DEFAULTS,
    STEP,
    STEP_DEFAULTS,
    TYPE_DEFAULTS,
    WORKFLOW_DEFAULTS,
    WORKFLOW_START,
    BudgetExceeded,
    Context,
    CyclicReference,
    Definition,
    EvaluationFailed,
    MergeRefused,
    MissingParam,
    ParamError,
    UnknownReference,
    WorkflowScope,
    definition_json,
    evaluate,
    merged,
)
from kapelle.processors.params.host import InstanceFacts, ParamsHost

EVALUABLE: Final = "a parameter that can be evaluated"
SEED: Final = "dry run"
VALIDATION: Final = '{"type":"VALIDATION"}'
NOW_MS: Final = 1_609_459_200_000
SEPARATOR: Final = "__"
PARAMS: Final = "params"
LOOKUP: Final = re.compile(r"\bparams\s*(\[|\.\s*(get|containsKey)\b)")
FROM_SIGNAL: Final = re.compile(r"\bgetFromSignal\b")
# Each failure takes another evaluation of what is left.
FAILURES_MAX: Final = 10


class DryRun:
    """Merges and evaluates, reports what fails, and knows the values afterwards."""

    def __init__(self, workflow: Workflow, path: str, *, texts: Texts, reader: Reader) -> None:
        self.path = path
        self.report = texts.report
        self.texts = texts
        self.untold = {where.removeprefix(f"{path}.") for where in reader.unread}
        self.values: dict[str, object] = {}
        params = self._needed(self._merge(workflow), list(workflow.params))
        self._drop(params, {name for name, definition in params.items() if not texts.compiles(name, definition)})
        if workflow.signal_triggers or "signal_triggers" in reader.dropped:
            self._drop(params, {name for name, definition in params.items() if self._is_of_signal(definition, params)})
        self._drop_dangling(params, workflow)
        self._evaluate(workflow, params)
        # Constants of steps have a budget of their own: a run evaluates each step by itself.
        engine = ParamsHost(_facts_of(workflow), SEED)
        self.scope = WorkflowScope(workflow.id, engine)
        self.context = Context(texts.sel, NOW_MS, SEED, engine)

    def known(self, around: tuple[Step, ...]) -> dict[str, object]:
        """The values that a step inside these loops can count on: a loop may give the same names other values."""
        inner = {name for loop in around for name in _names_of(loop)}
        return {name: value for name, value in self.values.items() if name not in inner}

    def constant(self, name: str, definition: Definition, path: str, beside: Mapping[str, Definition]) -> object:
        """The value that a parameter has in every run; None if only a run can tell. What fails always is reported.

        It may refer to parameters `beside` it, if their values are the same in every run too.
        """
        needed = self._closed(name, definition, beside)
        if needed is None or self.context.budget.is_exhausted:
            return None
        try:
            return evaluate(needed, self.scope, self.context)[name].value
        except BudgetExceeded:
            return None  # a run has as much for each step, and may succeed
        except ParamError as error:
            self.report.note(path, _failure(definition, error), EVALUABLE)
            return None

    def _closed(
        self, name: str, definition: Definition, beside: Mapping[str, Definition]
    ) -> dict[str, Definition] | None:
        """A parameter with all that it refers to, directly or through others; None if not all of it is `beside` it."""
        closed, pending = {name: definition}, [name]
        while pending:
            user = pending.pop()
            if not self.texts.compiles(user, closed[user]):
                return None
            for reference in self._references(closed[user]):
                if reference not in beside or reference == name:
                    return None
                if reference not in closed:
                    closed[reference] = beside[reference]
                    pending.append(reference)
        return closed

    def check_step(self, step: Step, path: str) -> None:
        """Merge the parameters of a step with those that every step of its type has."""
        layers = {
            "step defaults": STEP_DEFAULTS,
            "type defaults": TYPE_DEFAULTS.get(step.type.upper(), {}),
            "definition": step.params,
        }
        try:
            merged(STEP, layers)
        except MissingParam as error:
            if step.sub_type is not None:
                return  # what a template of that name gives is known when the step begins
            self.report.missing(at(at(path, "params"), error.name), "a value: it is a required parameter")
        except MergeRefused as error:
            where = at(at(path, "params"), error.name)
            self.report.note(where, *_refused(step.params, error))

    def _merge(self, workflow: Workflow) -> dict[str, Definition]:
        given = dict(workflow.params)
        while True:
            try:
                defaults = {**WORKFLOW_DEFAULTS, **DRY_RUN_DEFAULTS}
                return merged(WORKFLOW_START, {"system defaults": defaults, "definition": given})
            except MergeRefused as error:
                self.report.note(at(self.path, error.name), *_refused(given, error))
                self._drop(given, {_top(error.name, given)})

    def _needed(self, params: dict[str, Definition], own: list[str]) -> dict[str, Definition]:
        """The workflow's own, and those defaults that they lead to: the others need not be compiled for each push."""
        needed, pending = set(own), list(own)
        while pending:
            name = pending.pop()
            for reference in self._references(params[name]) if name in params else ():
                if reference == PARAMS and any(LOOKUP.search(text) for text in expressions_in(params[name])):
                    return params
                if reference in params and reference not in needed:
                    needed.add(reference)
                    pending.append(reference)
        return {name: definition for name, definition in params.items() if name in needed}

    def _drop(self, params: dict[str, Definition], names: set[str]) -> None:
        """Take out parameters without a value, and all that refers to them directly or through others."""
        users: dict[str, list[str]] = {}
        for name, definition in params.items() if names else ():
            for reference in self._references(definition):
                users.setdefault(reference, []).append(name)
        pending = list(names)
        while pending:
            name = pending.pop()
            params.pop(name, None)
            self.untold.add(name)
            pending.extend(user for user in users.get(name, []) if user in params)

    def _drop_dangling(self, params: dict[str, Definition], workflow: Workflow) -> None:
        """Report what refers to nothing. This can be told of all parameters at once, unlike what fails when it runs."""
        dangling: set[str] = set()
        for name, definition in params.items():
            names = names_in(definition, self.texts.sel)
            unknown = next((reference for reference in names if reference not in params and reference != PARAMS), None)
            if unknown is not None and unknown not in self.untold:
                error = UnknownReference(name, unknown, f"workflow {workflow.id!r}")
                self.report.note(at(self.path, name), _failure(definition, error), EVALUABLE)
            if unknown is not None:
                dangling.add(name)
        self._drop(params, dangling)

    def _is_of_signal(self, definition: Definition, params: dict[str, Definition]) -> bool:
        """Whether it asks for a parameter of the signal that starts the workflow."""
        if any(SEPARATOR in name and name not in params for name in self._references(definition)):
            return True
        return any(FROM_SIGNAL.search(text) for text in expressions_in(definition))

    def _evaluate(self, workflow: Workflow, params: dict[str, Definition]) -> None:
        """Evaluate; what fails is taken out with all that depends on it, until the rest succeeds."""
        engine = ParamsHost(_facts_of(workflow), SEED)
        context = Context(self.texts.sel, NOW_MS, SEED, engine)
        for _ in range(FAILURES_MAX):
            try:
                made = evaluate(params, WorkflowScope(workflow.id, engine), context)
            except ParamError as error:
                failed = _names_in(error, params)
                name = min(failed, key=list(params).index, default="")
                where = at(self.path, name) if name else self.path
                self.report.note(where, _failure(params.get(name), error), EVALUABLE)
                if not failed or context.budget.is_exhausted:
                    break
                self._drop(params, failed)
            else:
                self.values = {name: evaluated.value for name, evaluated in made.items()}
                return

    def _references(self, definition: Definition) -> Iterator[str]:
        """All parameters that it may need."""
        yield from names_in(definition, self.texts.sel)
        for program in programs_in(definition, self.texts.sel):
            yield from program.keys


def _facts_of(workflow: Workflow) -> InstanceFacts:
    """The facts of an instance that nobody starts. A zone that does not exist is reported elsewhere."""
    return InstanceFacts(
        workflow_id=workflow.id,
        instance_id=1,
        run_id=1,
        author="",
        initiated_by=VALIDATION,
        properties="{}",
        restart=None,
        first_timezone=workflow.first_timezone if is_zone(workflow.first_timezone) else "",
    )


def _names_of(loop: Step) -> Iterator[str]:
    """What the steps of a loop can refer to besides the parameters of the workflow."""
    yield LOOP_INDEX
    yield from loop.params
    yield from loop_definitions(loop)


def _refused(params: Mapping[str, Definition], error: MergeRefused) -> tuple[str, str]:
    """What was found, and what would be right."""
    definition = params.get(_top(error.name, params))
    return _written(definition), f"a parameter that a definition may set so ({error.reason})"


def _failure(definition: Definition | None, error: ParamError) -> str:
    reason = error.error if isinstance(error, EvaluationFailed) else error
    return f"{_written(definition)} ({reason})" if definition else str(reason)


def _written(definition: Definition | None) -> str:
    if definition is None:
        return NOTHING
    return shown(definition_json(definition).get("value") if definition.is_literal else definition.expression)


def _names_in(error: ParamError, params: dict[str, Definition]) -> set[str]:
    """The parameters that the error is about."""
    if isinstance(error, CyclicReference):
        return set(error.cycle)
    name = getattr(error, "name", None)
    return {_top(name, params)} if name is not None else set()


def _top(name: str, params: Mapping[str, Definition]) -> str:
    """The parameter that holds the one of that name, which may be inside a map."""
    while name not in params and "." in name:
        name = name.rpartition(".")[0]
    return name
