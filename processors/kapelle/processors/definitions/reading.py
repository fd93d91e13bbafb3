"""From what people wrote to the models, object by object. What is wrong is reported, and reading goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from kapelle.processors.definitions.form_validation import fill
from kapelle.processors.definitions.forms import (
    STEP_FORMS,
    BackoffForm,
    DependencyForm,
    ExponentialBackoffForm,
    ForeachForm,
    OutputForm,
    Raw,
    RetryForm,
    SignalTriggerForm,
    StepForm,
    SubworkflowForm,
    TagForm,
    TemplateForm,
    TimeTriggerForm,
    TypedStepForm,
    WhileForm,
    WorkflowForm,
)
from kapelle.processors.definitions.models import (
    Backoff,
    DependencyParam,
    MatchParam,
    RetryPolicy,
    SignalDependency,
    SignalMatch,
    SignalOutput,
    SignalTrigger,
    Step,
    StepKind,
    Tag,
    TimeTrigger,
    Workflow,
)
from kapelle.processors.definitions.problems import Report, at
from kapelle.processors.definitions.time_triggers import Stray, strays_of, time_trigger_of
from kapelle.processors.params import BadDefinition, Definition
from kapelle.processors.params.definitions import definition_of

# The types that the engine knows, as they are spelt; other types belong to workers and stay as they are written.
SPELT: Final = {name.upper(): name for name in ("NoOp", "Sleep", "Http", "Kubernetes", "Notebook", "Titus")}
SYSTEM_TYPES: Final = frozenset({"SUBWORKFLOW", "FOREACH", "WHILE", "TEMPLATE", "JOIN"})
NO_WORKFLOW: Final[Raw] = {"id": "unknown", "steps": []}

# Stands where a step cannot be read, so that those after it keep their places.
NO_STEP: Final = Step(StepKind.STEP, "unknown", "NoOp")


class Reader:
    """Reads one definition, and keeps what is wrong with it."""

    def __init__(self, report: Report) -> None:
        self.report = report
        # The predecessors that steps claim to have, by the path of the claim and the id of the step.
        self.claims: list[tuple[str, str, list[str]]] = []
        # The keys of time triggers that mean nothing there. A stored workflow may have them: they were ignored once.
        self.strays: list[Stray] = []
        # The paths of parameters that could not be read, so that who refers to them is not blamed as well.
        self.unread: set[str] = set()
        # The keys of the workflow whose values could not be read, for the same reason.
        self.dropped: set[str] = set()
        # Whether the ids and transitions of all steps could be read: only then can they be held against each other.
        self.is_whole = True

    def workflow(self, raw: object, path: str) -> Workflow:
        """A workflow with all its steps."""
        form = fill(WorkflowForm, raw, path, report=self.report, fallback=NO_WORKFLOW)
        given = {key for key, value in raw.items() if value is not None} if isinstance(raw, dict) else set()
        self.dropped = given - form.model_fields_set
        return Workflow(
            id=form.id,
            name=form.name or form.id,
            description=form.description,
            tags=self.tags(form.tags, at(path, "tags")),
            timeout=form.timeout,
            criticality=form.criticality,
            instance_step_concurrency=form.instance_step_concurrency,
            params=self.params(form.params, at(path, "params")),
            steps=tuple(self.steps(form.steps, at(path, "steps"))),
            time_triggers=tuple(self._time_triggers(form.time_triggers, at(path, "time_triggers"))),
            signal_triggers=tuple(self._signal_triggers(form.signal_triggers, at(path, "signal_triggers"))),
        )

    def params(self, raw: Raw, path: str) -> dict[str, Definition]:
        """Those parameters that can be read."""
        params: dict[str, Definition] = {}
        for name, body in raw.items():
            made = self._param(name, body, at(path, name))
            if made is not None:
                params[name] = made
        return params

    def _param(self, name: str, body: object, path: str) -> Definition | None:
        try:
            return definition_of(name, body)
        except BadDefinition as error:
            inner = "" if error.name == name else f"in {error.name!r} "
            self.report.add(path, body, f"the definition of a parameter ({inner}{error.reason})")
            self.unread.add(path)
            return None

    def tags(self, forms: list[TagForm], path: str) -> tuple[Tag, ...]:
        """Tags, each name once."""
        made: dict[str, Tag] = {}
        for index, form in enumerate(forms):
            if form.name in made:
                self.report.add(at(path, index), form.name, "each tag once")
            made[form.name] = self.tag(form, at(path, index))
        return tuple(made.values())

    def tag(self, form: TagForm, path: str) -> Tag:
        """One tag."""
        attributes = form.model_extra or {}
        if "permit" in attributes:
            self.report.add(at(path, "permit"), attributes["permit"], "no permit, which the system sets")
        return Tag(form.name, form.namespace, attributes)

    def steps(self, raw: list[object], path: str) -> Iterator[Step]:
        """The steps of one block, and of the blocks inside."""
        for index, wrapped in enumerate(raw):
            kinds = [str(kind) for kind in StepKind]
            here = at(path, index)
            if not isinstance(wrapped, dict) or len(wrapped) != 1 or (key := next(iter(wrapped))) not in kinds:
                self.report.add(here, wrapped, f"an object with one key of {', '.join(kinds)}")
                self.is_whole = False
                yield NO_STEP
                continue
            yield self.step(StepKind(key), wrapped[key], at(here, key))

    def step(self, kind: StepKind, raw: object, path: str) -> Step:
        """One step."""
        fallback = {"id": "unknown", "type": "NoOp", "steps": [], "condition": "true", "sub_type": "unknown"}
        form = fill(STEP_FORMS[kind], raw, path, report=self.report, fallback=fallback)
        self._note_transition(form, raw, path)
        return msgspec.structs.replace(self._common(kind, form, path), **self._of_kind(form, path))

    def _note_transition(self, form: StepForm, raw: object, path: str) -> None:
        kept = {"id", *(["transition"] if isinstance(raw, dict) and raw.get("transition") is not None else [])}
        if not isinstance(raw, dict) or not kept <= form.model_fields_set or raw.get("id") != form.id:
            self.is_whole = False
        if form.transition.predecessors is not None:
            self.claims.append((at(at(path, "transition"), "predecessors"), form.id, form.transition.predecessors))

    def _common(self, kind: StepKind, form: StepForm, path: str) -> Step:
        return Step(
            kind=kind,
            id=form.id,
            type=kind.name,
            name=form.name or form.id,
            description=form.description,
            params=self.params(form.params, at(path, "params")),
            successors=form.transition.successors,
            failure_mode=form.failure_mode,
            timeout=form.timeout,
            tags=self.tags(form.tags, at(path, "tags")),
            signal_dependencies=tuple(self._dependencies(form.signal_dependencies, at(path, "signal_dependencies"))),
            signal_outputs=tuple(self._outputs(form.signal_outputs, at(path, "signal_outputs"))),
        )

    def _of_kind(self, form: StepForm, path: str) -> dict[str, object]:
        """What only steps of this kind have."""
        match form:
            case TypedStepForm():
                return {
                    "type": self._type(form.type, at(path, "type")),
                    "sub_type": form.sub_type,
                    "sub_type_version": form.sub_type_version,
                    "retry_policy": self._retry_policy(form.retry_policy, at(path, "retry_policy")),
                    "idempotent": form.idempotent,
                }
            case SubworkflowForm():
                return {"sync": form.sync, "explicit_params": form.explicit_params}
            case ForeachForm():
                return {
                    "concurrency": form.concurrency,
                    "strict_ordering": form.strict_ordering,
                    "steps": tuple(self.steps(form.steps, at(path, "steps"))),
                }
            case WhileForm():
                return {"condition": form.condition, "steps": tuple(self.steps(form.steps, at(path, "steps")))}
            case TemplateForm():
                return {"sub_type": form.sub_type, "sub_type_version": form.sub_type_version}
        raise NotImplementedError(type(form).__name__)

    def _type(self, name: str, path: str) -> str:
        if name.upper() in SYSTEM_TYPES:
            self.report.add(path, name, f"a type of your own: {name} is a kind of step, not a type")
            return "NoOp"
        return SPELT.get(name.upper(), name)

    def _retry_policy(self, form: RetryForm, path: str) -> RetryPolicy:
        is_fixed = str(form.backoff.get("type", "")).upper() == "FIXED_BACKOFF"
        kind = BackoffForm if is_fixed else ExponentialBackoffForm
        backoff = fill(kind, form.backoff, at(path, "backoff"), report=self.report, fallback={})
        return RetryPolicy(
            form.error_retry_limit,
            form.platform_retry_limit,
            form.timeout_retry_limit,
            Backoff(**backoff.model_dump()),
        )

    def _dependencies(self, forms: list[DependencyForm], path: str) -> Iterator[SignalDependency]:
        for index, form in enumerate(forms):
            here = at(at(path, index), "match_params")
            matches: dict[str, DependencyParam] = {}
            for name, match in form.match_params.items():
                made = self._param(name, match.param, at(at(here, name), "param"))
                if made is not None:
                    matches[name] = DependencyParam(made, match.operator)
            yield SignalDependency(form.name, matches, form.match)

    def _outputs(self, forms: list[OutputForm], path: str) -> Iterator[SignalOutput]:
        for index, form in enumerate(forms):
            yield SignalOutput(form.name, self.params(form.params, at(at(path, index), "params")), form.payload)

    def _signal_triggers(self, forms: list[SignalTriggerForm], path: str) -> Iterator[SignalTrigger]:
        for index, form in enumerate(forms):
            yield SignalTrigger(
                definitions={
                    name: SignalMatch(
                        {key: MatchParam(param.value, param.operator) for key, param in match.match_params.items()},
                        tuple(match.join_keys),
                        match.match,
                    )
                    for name, match in form.definitions.items()
                },
                params=self.params(form.params, at(at(path, index), "params")),
                condition=form.condition,
                dedup_expr=form.dedup_expr,
                since_at_ms=form.since,
                expiry=form.expiry,
            )

    def _time_triggers(self, forms: list[TimeTriggerForm], path: str) -> Iterator[TimeTrigger]:
        for index, form in enumerate(forms):
            here = at(path, index)
            self.strays.extend(strays_of(form, here))
            yield time_trigger_of(form, here, self.report)
