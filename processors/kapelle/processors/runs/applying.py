"""How the events of a run change its tables. Nothing is decided here: everything that is needed is in the event."""

import msgspec

from kapelle.processors.messages import Message
from kapelle.processors.runs.composites import applying as composites
from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.states import ACTIVE, COMPLETE, FAILED, TERMINAL
from kapelle.processors.runs.tables import (
    AnswerRow,
    DefinitionRow,
    JoinRow,
    LoopRow,
    ParamsRow,
    ProgressRow,
    RunRow,
    Runs,
    StepRow,
    TagRow,
    WaitRow,
)
from kapelle.processors.runs.timers import CONTINUE, RUN_TIMEOUT, due_of, lease_of, timeout_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus

NOTHING = ProgressRow()


def continue_of(step_id: str, row: StepRow) -> str:
    """The name of the timer that goes on with a step that a full decision left over: another one for each attempt."""
    return f"{CONTINUE}/{row.run_id}.{row.sequence}/{step_id}"


@runs.applies(c.RunStarted)
def run_started(message: Message[c.RunStarted], state: Runs) -> None:
    key, event = message.key, message.value
    if event.definition is not None:
        state.definitions.put((event.digest,), DefinitionRow(event.definition))
    for layer in event.layers:
        if layer.text is not None:
            state.shared.put((layer.digest,), ParamsRow(layer.text))
    before = state.runs.get((key,))
    state.runs.put((key,), _run_row(event, before.status if before else None))
    state.progress.put((key,), NOTHING)
    for step_id in event.steps:
        _forget(state, key, step_id)
        state.inputs.delete((key, step_id))
        state.outputs.delete((key, step_id))
    if event.steps:
        composites.discard(state, key, frozenset(event.steps).difference(event.resumes))
    for step_id, arrived in event.arrived.items():
        state.joins.put((key, step_id), JoinRow(arrived, event.satisfied[step_id]))
    for header, iteration in event.iterations.items():
        state.loops.put((key, header), LoopRow(iteration, event.pending[header], header in event.again))
    state.timers.set(key, RUN_TIMEOUT, event.timeout_at_ms)
    if event.run_id > 1:  # the first run is no answer to a request that this processor is asked
        state.answers.put((key, event.request_id), AnswerRow(event.run_id, is_restart=True))


def _run_row(event: c.RunStarted, baseline: InstanceStatus | None) -> RunRow:
    return RunRow(
        workflow_id=event.workflow_id,
        instance_id=event.instance_id,
        run_id=event.run_id,
        request_id=event.request_id,
        version=event.version,
        digest=event.digest,
        status=InstanceStatus.IN_PROGRESS,
        initiator=event.initiator,
        params=event.params,
        run_params=event.run_params,
        step_run_params=event.step_run_params,
        run_properties=event.run_properties,
        correlation_id=event.correlation_id,
        restart=event.restart,
        started_at_ms=event.at_ms,
        timeout_at_ms=event.timeout_at_ms,
        baseline=baseline,
        author=event.author,
        parent=event.parent,
        layers=tuple(layer.digest for layer in event.layers),
        resumes=event.resumes,
        breakpoints=event.breakpoints,
        breakpoints_generation=event.breakpoints_generation,
    )


def _forget(state: Runs, key: str, step_id: str) -> None:
    """A step is as if it had not been created."""
    state.steps.delete((key, step_id))
    state.joins.delete((key, step_id))


@runs.applies(c.StepChanged)
def step_changed(message: Message[c.StepChanged], state: Runs) -> None:
    key, event = message.key, message.value
    at = (key, event.step_id)
    before, status = state.steps.get(at), event.statuses[-1]
    is_new = before is None or (event.run_id, event.iteration, event.attempt) != (
        before.run_id,
        before.iteration,
        before.attempt,
    )
    row = _step_row(event, None if is_new else before)
    state.steps.put(at, row)
    state.progress.put((key,), _counted(state.progress.get((key,)) or NOTHING, before, row))
    _move_timers(state, key, before, row, step_id=event.step_id)
    _keep_params(state, at, event, status)
    # Only work of the engine runs without a token: a composite step is looked up, the task of a worker is not.
    if status in TERMINAL and before is not None and before.status is StepStatus.RUNNING and row.token is None:
        composites.step_over(state, key, event.step_id)
    if status in COMPLETE:
        _arrive(state, key, event)


def _step_row(event: c.StepChanged, before: StepRow | None) -> StepRow:
    """The attempt after the event. Its times to come are those of the event: a terminal one has none but a retry's."""
    status = event.statuses[-1]
    started = before.started_at_ms if before else None
    is_over = status in TERMINAL
    token = event.token or (before.token if before else None)
    return StepRow(
        run_id=event.run_id,
        attempt=event.attempt,
        iteration=event.iteration,
        sequence=event.sequence,
        status=status,
        created_at_ms=before.created_at_ms if before else event.at_ms,
        changed_at_ms=event.at_ms,
        started_at_ms=event.at_ms if StepStatus.STARTING in event.statuses else started,
        token=token,
        worker=event.worker or (before.worker if before else None),
        timeout_at_ms=None if is_over else event.timeout_at_ms or (before.timeout_at_ms if before else None),
        due_at_ms=event.due_at_ms,
        lease_at_ms=None if is_over else event.lease_at_ms or (before.lease_at_ms if before else None),
        retries=event.retries,
        successors=event.successors,
        repeats=event.repeats,
        permits=() if is_over else event.permits or (before.permits if before else ()),
        held=0 if is_over or before is None else before.held,
    )


def _counted(progress: ProgressRow, before: StepRow | None, row: StepRow) -> ProgressRow:
    # A row of an earlier run was never counted in this one.
    old = before.status if before and before.run_id == row.run_id else StepStatus.NOT_CREATED
    new = row.status
    return ProgressRow(
        sequence=max(progress.sequence, row.sequence),
        active=progress.active + (new in ACTIVE) - (old in ACTIVE),
        failed=progress.failed + (new in FAILED) - (old in FAILED),
        timed_out=progress.timed_out + (new is StepStatus.TIMED_OUT) - (old is StepStatus.TIMED_OUT),
        stopped=progress.stopped + (new is StepStatus.STOPPED) - (old is StepStatus.STOPPED),
    )


def _move_timers(state: Runs, key: str, before: StepRow | None, row: StepRow, *, step_id: str) -> None:
    if row.due_at_ms is not None or (before is not None and before.due_at_ms is not None):
        _move_due(state, key, before, row, step_id=step_id)
    for name, was, is_now in (
        (timeout_of, before.timeout_at_ms if before else None, row.timeout_at_ms),
        (lease_of, before.lease_at_ms if before else None, row.lease_at_ms),
    ):
        if is_now == was:
            continue
        if is_now is None:
            state.timers.cancel(key, name(step_id))
        else:
            state.timers.set(key, name(step_id), is_now)


def _move_due(state: Runs, key: str, before: StepRow | None, row: StepRow, *, step_id: str) -> None:
    was, is_now = before.due_at_ms if before else None, row.due_at_ms
    old = _name_of_due(step_id, before) if before is not None and was is not None else None
    new = _name_of_due(step_id, row) if is_now is not None else None
    if old is not None and old != new:
        state.timers.cancel(key, old)
    if new is not None and is_now is not None and (old != new or was != is_now):
        state.timers.set(key, new, is_now)


def _name_of_due(step_id: str, row: StepRow) -> str:
    return continue_of(step_id, row) if row.status is StepStatus.CREATED else due_of(step_id)


def _keep_params(state: Runs, at: tuple[str, str], event: c.StepChanged, status: StepStatus) -> None:
    if status in COMPLETE:
        known = state.inputs.get(at)
        text = event.params if event.params is not None else known.text if known else None
        if text is not None:
            state.outputs.put(at, ParamsRow(text))
        if known is not None:
            state.inputs.delete(at)
    elif event.params is not None:
        state.inputs.put(at, ParamsRow(event.params))


def _arrive(state: Runs, key: str, event: c.StepChanged) -> None:
    """The step is complete: tell the steps after it, and the loops that it is in or leads back to."""
    for step_id, satisfied in event.successors.items():
        if step_id not in event.deferred:
            _arrived(state, key, step_id, (1, satisfied))
    for header, again in event.repeats.items():
        loop = state.loops.get((key, header))
        if again and loop is not None:
            state.loops.put((key, header), msgspec.structs.replace(loop, again=True))
    if event.loop is not None:
        _one_less(state, key, event.loop)


def _arrived(state: Runs, key: str, step_id: str, what: tuple[int, bool]) -> None:
    count, satisfied = what
    known = state.joins.get((key, step_id))
    if known is not None:
        count, satisfied = known.arrived + count, known.satisfied or satisfied
    state.joins.put((key, step_id), JoinRow(count, satisfied))


def _one_less(state: Runs, key: str, header: str) -> None:
    loop = state.loops.get((key, header))
    if loop is not None:
        state.loops.put((key, header), msgspec.structs.replace(loop, pending=loop.pending - 1))


@runs.applies(c.LoopEntered)
def loop_entered(message: Message[c.LoopEntered], state: Runs) -> None:
    key, event = message.key, message.value
    join = state.joins.get((key, event.header))
    for step_id in event.steps:
        _forget(state, key, step_id)
        for at, _ in list(state.waits.prefix((key, step_id))):
            state.waits.delete(at)
    composites.discard(state, key, event.steps, is_turn=True)
    if join is not None:  # what leads into the loop has arrived, and now what leads back has too
        state.joins.put((key, event.header), JoinRow(join.arrived, satisfied=True))
    for header, iteration in event.iterations.items():
        state.loops.put((key, header), LoopRow(iteration, event.pending[header]))


@runs.applies(c.LoopEnded)
def loop_ended(message: Message[c.LoopEnded], state: Runs) -> None:
    key, event = message.key, message.value
    for step_id, count in event.arrived.items():
        _arrived(state, key, step_id, (count, event.satisfied[step_id]))
    if event.loop is not None:
        _one_less(state, key, event.loop)


@runs.applies(c.DependenciesSet)
def dependencies_set(message: Message[c.DependenciesSet], state: Runs) -> None:
    event = message.value
    for index, (name, match) in enumerate(zip(event.names, event.matches, strict=True)):
        at = (message.key, event.step_id, index)
        known = state.waits.get(at)
        if known is None or known.sequence is None:
            state.waits.put(at, WaitRow(name, match))


@runs.applies(c.DependencyMatched)
def dependency_matched(message: Message[c.DependencyMatched], state: Runs) -> None:
    event = message.value
    at = (message.key, event.step_id, event.index)
    row = state.waits.get(at)
    match = row.match if row else "[]"
    state.waits.put(at, WaitRow(event.name, match, event.sequence, event.signal_id, event.params))


@runs.applies(c.LeaseRenewed)
def lease_renewed(message: Message[c.LeaseRenewed], state: Runs) -> None:
    event = message.value
    at = (message.key, event.step_id)
    row = state.steps.get(at)
    if row is not None:
        state.steps.put(at, msgspec.structs.replace(row, lease_at_ms=event.lease_at_ms))
        state.timers.set(message.key, lease_of(event.step_id), event.lease_at_ms)


@runs.applies(c.RunEnding)
def run_ending(message: Message[c.RunEnding], state: Runs) -> None:
    event = message.value
    row = state.runs.get((message.key,))
    if row is not None:
        state.runs.put((message.key,), msgspec.structs.replace(row, ends_as=event.status, ends_because=event.reason))
        state.timers.cancel(message.key, RUN_TIMEOUT)


@runs.applies(c.RunEnded)
def run_ended(message: Message[c.RunEnded], state: Runs) -> None:
    event = message.value
    row = state.runs.get((message.key,))
    if row is not None:
        ended = msgspec.structs.replace(row, run_id=event.run_id, status=event.status, ended_at_ms=event.at_ms)
        state.runs.put((message.key,), ended)
        state.timers.cancel(message.key, RUN_TIMEOUT)


@runs.applies(c.ActionTaken)
def action_taken(message: Message[c.ActionTaken], state: Runs) -> None:
    event = message.value
    row = state.runs.get((message.key,))
    if row is not None and event.step_run_params is not None:
        state.runs.put((message.key,), msgspec.structs.replace(row, step_run_params=event.step_run_params))
    if event.step_id is not None:  # what ends a whole run is asked of `workflows`
        state.answers.put((message.key, event.request_id), AnswerRow(event.run_id))


@runs.applies(c.BreakpointsChanged)
def breakpoints_changed(message: Message[c.BreakpointsChanged], state: Runs) -> None:
    event = message.value
    row = state.runs.get((message.key,))
    if row is not None:
        after = msgspec.structs.replace(row, breakpoints=event.breakpoints, breakpoints_generation=event.generation)
        state.runs.put((message.key,), after)


@runs.applies(c.PermitReceived)
def permit_received(message: Message[c.PermitReceived], state: Runs) -> None:
    event = message.value
    at = (message.key, event.step_id)
    row = state.steps.get(at)
    if row is not None:
        state.steps.put(at, msgspec.structs.replace(row, held=event.held))


@runs.applies(c.LimitLearned)
def limit_learned(message: Message[c.LimitLearned], state: Runs) -> None:
    event = message.value
    state.tags.put((event.limited,), TagRow(event.is_limited, event.sequence))


@runs.applies(c.RestartRequested)
def restart_requested(message: Message[c.RestartRequested], state: Runs) -> None:
    asked = AnswerRow(message.value.run_id, is_restart=True, is_pending=True)
    state.answers.put((message.key, message.value.request_id), asked)


@runs.applies(c.StepLogged)
def step_logged(_: Message[c.StepLogged], __: Runs) -> None:
    """Nothing has changed."""


@runs.applies(c.ReportRefused)
def report_refused(_: Message[c.ReportRefused], __: Runs) -> None:
    """Nothing has changed."""


@runs.applies(c.CommandSettled)
def command_settled(_: Message[c.CommandSettled], __: Runs) -> None:
    """Nothing has changed."""


@runs.applies(c.CommandRefused)
def command_refused(_: Message[c.CommandRefused], __: Runs) -> None:
    """Nothing has changed."""
