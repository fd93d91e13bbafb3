"""Starts of instances: each request at most once, a batch as a whole or not at all, with evaluated parameters."""

from typing import Final

from kapelle.processors.definitions import Properties, parse_workflow
from kapelle.processors.initiators import Initiator
from kapelle.processors.lazy import lazy
from kapelle.processors.params import ParamError, new_budget
from kapelle.processors.params.host import InstanceFacts
from kapelle.processors.params.outputs import as_declared
from kapelle.processors.params.stored import values_json
from kapelle.processors.refusals import MESSAGE_CHARS_MAX, Refused, invalid, not_found, refuse_given_up
from kapelle.processors.workflows.arrivals import Arrival, arrive
from kapelle.processors.workflows.bounds import CHARS_MAX
from kapelle.processors.workflows.params import NewRun, params_of, prepared
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft, workflows
from kapelle.processors.workflows.reading import counts_of, definition_of, there, version_by, workflow_of
from kapelle.processors.workflows.requests import (
    BY_PARENTS,
    BY_PEOPLE,
    BY_TRIGGERS,
    check_extras,
    check_size,
    checked_initiator,
    run_params_of,
    step_run_params_of,
    traced,
)
from kapelle.processors.workflows.tables import Request, Workflow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, Refusal, Start

STARTS_MAX: Final = 10


workflows.gives_up(c.StartInstances)(refuse_given_up)
workflows.gives_up(c.StartTriggered)(refuse_given_up)


@on_draft.decides(c.StartInstances)
def start_instances(command: c.StartInstances, draft: WorkflowDraft, now_ms: int) -> None:
    """People ask for instances."""
    _start(Batch(command, draft, now_ms, started_by=BY_PEOPLE))


@on_draft.decides(c.StartTriggered)
def start_triggered(command: c.StartTriggered, draft: WorkflowDraft, now_ms: int) -> None:
    """Triggers ask for instances."""
    _start(Batch(command, draft, now_ms, started_by=BY_TRIGGERS))


def _start(batch: "Batch") -> None:
    count = len(batch.command.starts)
    if not 1 <= count <= STARTS_MAX:
        raise invalid(f"Expected 1 to {STARTS_MAX} starts, but found {count}")
    arrive(batch.draft, batch.arrivals(), now_ms=batch.now_ms)


class Batch:
    """The starts of one command, on their way to be instances."""

    def __init__(
        self,
        command: c.StartInstances | c.StartTriggered,
        draft: WorkflowDraft,
        now_ms: int,
        *,
        started_by: tuple[str, ...],
    ) -> None:
        self.command = command
        self.started_by = started_by
        # A parent has evaluated what it gives, names of the system included.
        self.is_child = started_by is BY_PARENTS
        self.draft = draft
        self.now_ms = now_ms
        self.next_id = counts_of(draft.state, draft.key).latest_instance_id + 1
        self.made: dict[str, Request] = {}
        # One budget for the whole batch, however many starts it has.
        self.budget = new_budget()

    def outcomes(self) -> list[Arrival | Refused]:
        """The outcome of each start, in order."""
        outcomes: list[Arrival | Refused] = []
        for start in self.command.starts:
            try:
                _check_request_id(start.request_id)
                outcomes.append(self._duplicate(start) or self._created(start))
            except Refused as refused:
                outcomes.append(refused)
        return outcomes

    def arrivals(self) -> list[Arrival]:
        """The same, all or nothing: if one start is wrong, all are refused, with the reason of each."""
        outcomes = self.outcomes()
        arrivals = [outcome for outcome in outcomes if not isinstance(outcome, Refused)]
        wrong = [(number, outcome) for number, outcome in enumerate(outcomes) if isinstance(outcome, Refused)]
        if not wrong:
            return arrivals
        if len(outcomes) == 1:
            raise wrong[0][1]
        errors = [f"starts[{number}]: {refused.message}" for number, refused in wrong]
        raise Refused(wrong[0][1].refusal, errors[0], errors)

    def _duplicate(self, start: Start) -> c.StartDuplicated | None:
        # The same id may occur twice in one batch: that is one start too.
        known = self.draft.state.requests.get((self.draft.key, start.request_id)) or self.made.get(start.request_id)
        if known is None:
            return None
        return c.StartDuplicated(
            request_id=start.request_id,
            workflow_id=self.draft.key,
            instance_id=known.instance_id,
            run_id=known.run_id,
            at_ms=self.now_ms,
        )

    @lazy
    def workflow(self) -> Workflow:
        """The workflow. It is looked up when the first start is not a repeated one."""
        return workflow_of(self.draft.state, self.draft.key)

    @lazy
    def snapshot(self) -> str:
        """The properties as JSON."""
        place = (self.draft.key, self.workflow.snapshot)
        return there(self.draft.state.properties.get(place), "properties", *place).text

    def _created(self, start: Start) -> c.InstanceCreated:
        initiator = checked_initiator(start.initiator, self.started_by)
        version = version_by(start.version, self.workflow, self.draft.key)
        properties = Properties.parse(self.snapshot)
        _check_trigger(initiator, version, self.workflow, properties=properties)
        self._check_armed(initiator)
        check_extras(start)
        definition = definition_of(self.draft.state, self.draft.key, version)
        facts = InstanceFacts(
            workflow_id=self.draft.key,
            instance_id=self.next_id,
            run_id=1,
            author=self.command.author,
            initiated_by=start.initiator,
            properties=self.snapshot,
            restart=None,
            first_timezone=parse_workflow(definition).first_timezone,
        )
        params, failure = self._params(start, definition, facts)
        self.made[start.request_id] = Request(self.next_id, 1)
        self.next_id += 1
        # The first three by position: Python builds a dictionary for a call with 16 names, which takes twice as long.
        return c.InstanceCreated(
            start.request_id,
            self.command.author,
            self.draft.key,
            instance_id=facts.instance_id,
            run_id=1,
            version=version,
            status=InstanceStatus.CREATED if failure is None else InstanceStatus.FAILED,
            initiator=traced(start.initiator, initiator, self.draft.trace),
            params=params,
            run_params=start.run_params,
            step_run_params=start.step_run_params,
            runtime_tags=start.runtime_tags,
            artifacts=start.artifacts,
            correlation_id=start.correlation_id or facts.name,
            reason=failure or "",
            at_ms=self.now_ms,
        )

    def _check_armed(self, initiator: Initiator) -> None:
        """A signal trigger that the workflow has no more may have fired on the way here."""
        trigger_id = initiator.trigger_uuid
        if initiator.kind != "SIGNAL" or not trigger_id:
            return
        if self.draft.state.armed.get((self.draft.key, trigger_id)) is None:
            raise Refused(
                Refusal.CONFLICT,
                f"Expected a trigger of version {self.workflow.active_version}, but found {trigger_id[:80]!r}",
            )

    def _params(self, start: Start, definition: str, facts: InstanceFacts) -> tuple[str, str | None]:
        """The parameters, or none and why they cannot be evaluated, if the instance is to be kept all the same."""
        texts = (definition, self.snapshot, *_texts(start))
        check_size(*texts)
        given = run_params_of(start.run_params, trusted=self.is_child)
        if self.is_child:
            given = as_declared(given, prepared(definition).params)
        also = step_run_params_of(start.step_run_params, parse_workflow(definition))
        try:
            params = values_json(params_of(definition, given, run=NewRun(facts, self.now_ms, self.budget), also=also))
        except ParamError as error:
            if start.persist_failed_run:
                return "{}", str(error)[:MESSAGE_CHARS_MAX]
            raise invalid(str(error)) from None
        check_size(params, *texts)
        return params, None


def _check_request_id(request_id: str) -> None:
    if not 1 <= len(request_id) <= CHARS_MAX["request_id"]:
        expected = f"Expected a request_id of 1 to {CHARS_MAX['request_id']} characters"
        raise invalid(f"{expected}, but found {len(request_id):,}")


def _texts(start: Start) -> tuple[str, ...]:
    texts = (start.initiator, start.run_params, start.step_run_params, start.runtime_tags, start.artifacts)
    return (*texts, start.correlation_id or "")


def _check_trigger(initiator: Initiator, version: int, workflow: Workflow, *, properties: Properties) -> None:
    """A trigger starts the active version, and only if it is not disabled."""
    if initiator.kind not in DISABLED_BY:
        return
    if version != workflow.active_version:
        raise not_found(
            f"Expected a {initiator.kind} trigger to start the active version {workflow.active_version}, "
            f"but found {version}"
        )
    flag = DISABLED_BY[initiator.kind]
    if getattr(properties, flag):
        raise Refused(Refusal.UNPROCESSABLE, f"Expected {initiator.kind} triggers to be enabled, but {flag} is set")


DISABLED_BY: Final = {"TIME": "time_trigger_disabled", "SIGNAL": "signal_trigger_disabled"}
