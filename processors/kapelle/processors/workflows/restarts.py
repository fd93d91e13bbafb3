"""Restarts of ended instances: a new run, which goes through the run strategy like a start."""

from collections.abc import Iterable

from msgspec.structs import replace

from kapelle.processors.definitions import parse_workflow
from kapelle.processors.effects import Effect
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.messages import Message
from kapelle.processors.params import ParamError, new_budget
from kapelle.processors.params.host import InstanceFacts
from kapelle.processors.params.outputs import as_declared
from kapelle.processors.params.stored import values_json
from kapelle.processors.parents import child_end
from kapelle.processors.refusals import Refused, invalid, not_found, refuse_given_up
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.wiring import RUN_INTERNAL, run_key
from kapelle.processors.workflows.arrivals import arrive
from kapelle.processors.workflows.params import NewRun, params_again, params_of, prepared
from kapelle.processors.workflows.parents import tell_of_arrival
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft, workflows
from kapelle.processors.workflows.queue import answer_parent
from kapelle.processors.workflows.reading import definition_of, there, workflow_of
from kapelle.processors.workflows.requests import check_size, run_params_of
from kapelle.processors.workflows.tables import Instance, Origin, WorkflowTables
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, Parent, Refusal


@workflows.gives_up(c.QueueRun)
def restart_given_up(message: Message[c.QueueRun], reason: str, state: WorkflowTables, now_ms: int) -> Iterable[Effect]:
    """The request is refused. A parent is told that its child is."""
    parent = message.value.parent
    if parent is None:
        return refuse_given_up(message, reason, state, now_ms)
    draft = WorkflowDraft(workflows, message.key, state)
    answer_parent(draft, parent, child_end(parent, 0, InstanceStatus.FAILED, reason))
    return draft.effects


@on_draft.decides(c.QueueRun)
def queue_run(command: c.QueueRun, draft: WorkflowDraft, now_ms: int) -> None:
    known = draft.state.requests.get((draft.key, command.request_id))
    if known is not None:
        draft.emit(
            c.StartDuplicated(
                request_id=command.request_id,
                workflow_id=draft.key,
                instance_id=known.instance_id,
                run_id=known.run_id,
                at_ms=now_ms,
            )
        )
        return
    if command.parent is not None:
        _queue_child(command, command.parent, draft, now_ms)
        return
    _, origin = ended_instance(draft, command.instance_id)
    if origin.parent is None:
        _arrive(command, draft, now_ms)
    else:
        params = None if command.run_params == "{}" else _params_of_unrun(command, draft, origin, now_ms=now_ms)
        _climb(command, origin.parent, draft, params)


def _climb(command: c.QueueRun, parent: Parent, draft: WorkflowDraft, params: str | None) -> None:
    """Somebody restarts a child: its parent is asked. For one that ran, `runs` has evaluated the parameters."""
    restart = Restart.parse(command.restart)
    restart = restart if params is None else replace(restart, params=params)
    draft.send(
        RUN_INTERNAL,
        parent.key,
        c.RestartBelow(
            request_id=command.request_id,
            author=command.author,
            step_id=parent.step_id,
            number=parent.number,
            child=run_key(draft.key, command.instance_id),
            restart=restart.json(),
        ),
    )


def _queue_child(command: c.QueueRun, parent: Parent, draft: WorkflowDraft, now_ms: int) -> None:
    """The same for a child: its parent is told what comes of it."""
    try:
        created = _arrive(command, draft, now_ms)
    except Refused as refused:
        answer_parent(draft, parent, child_end(parent, 0, InstanceStatus.FAILED, refused.message))
        return
    tell_of_arrival(draft, parent, created)


def _arrive(command: c.QueueRun, draft: WorkflowDraft, now_ms: int) -> c.InstanceCreated:
    instance, origin = ended_instance(draft, command.instance_id)
    params = command.params or _params_of_unrun(command, draft, origin, now_ms=now_ms)
    definition = definition_of(draft.state, draft.key, origin.version)
    check_size(definition, params, command.run_params, command.restart, origin.step_run_params, origin.initiator)
    created = _created(command, (instance, origin), params, key=draft.key, now_ms=now_ms)
    arrive(draft, [created], now_ms=now_ms)
    return created


def instance_of(draft: WorkflowDraft, instance_id: int) -> Instance:
    """The instance, which must be one of this workflow, and not of one that was deleted."""
    workflow = workflow_of(draft.state, draft.key)
    instance = (
        draft.state.instances.get((draft.key, instance_id)) if instance_id >= workflow.first_instance_id else None
    )
    if instance is None:
        raise not_found(f"Expected instance {instance_id} of workflow {draft.key!r} to exist, but it does not")
    return instance


def ended_instance(draft: WorkflowDraft, instance_id: int) -> tuple[Instance, Origin]:
    """An instance whose latest run has ended, and what all its runs share."""
    instance = instance_of(draft, instance_id)
    if instance.status not in INSTANCE_TERMINAL:
        raise Refused(
            Refusal.CONFLICT,
            f"Expected run {instance.run_id} of instance {draft.key}/{instance_id} to have ended, "
            f"but it is {instance.status}",
        )
    return instance, there(draft.state.origins.get((draft.key, instance_id)), "origins", draft.key, instance_id)


def _params_of_unrun(command: c.QueueRun, draft: WorkflowDraft, origin: Origin, *, now_ms: int) -> str:
    """An instance that never ran has the parameters that it was created with, or with which it could not be."""
    is_child = command.parent is not None  # its parent has evaluated what it gives
    given = run_params_of(command.run_params, trusted=is_child)
    if origin.params is not None and not given:
        return origin.params
    instance = instance_of(draft, command.instance_id)
    definition = definition_of(draft.state, draft.key, origin.version)
    if is_child:
        given = as_declared(given, prepared(definition).params)
    snapshot = draft.state.properties.get((draft.key, origin.snapshot))
    facts = InstanceFacts(
        workflow_id=draft.key,
        instance_id=command.instance_id,
        run_id=instance.run_id + 1,
        author=command.author,
        initiated_by=origin.initiator,
        properties="{}" if snapshot is None else snapshot.text,
        restart=command.restart,
        first_timezone=parse_workflow(definition).first_timezone,
    )
    run = NewRun(facts, now_ms, new_budget())
    try:
        if origin.params is not None:
            made = params_again(definition, origin.params, given, run=run)
        else:
            first = {**run_params_of(origin.run_params, trusted=is_child), **given}
            made = params_of(definition, first, run=run)
    except ParamError as error:
        raise invalid(str(error)) from None
    return values_json(made)


def _created(
    command: c.QueueRun, before: tuple[Instance, Origin], params: str, *, key: str, now_ms: int
) -> c.InstanceCreated:
    instance, origin = before
    return c.InstanceCreated(
        request_id=command.request_id,
        author=command.author,
        workflow_id=key,
        instance_id=command.instance_id,
        run_id=instance.run_id + 1,
        version=origin.version,
        status=InstanceStatus.CREATED,
        initiator=origin.initiator,
        params=params,
        run_params=command.run_params,
        step_run_params=origin.step_run_params,
        runtime_tags=origin.runtime_tags,
        correlation_id=origin.correlation_id,
        restart=command.restart,
        at_ms=now_ms,
        parent=command.parent,
    )
