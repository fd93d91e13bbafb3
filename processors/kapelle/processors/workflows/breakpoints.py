"""Breakpoints of a workflow: set, deleted, and told to the instances that run.

One key decides on launches and on breakpoints, so there is an order between them:

1. A run is launched with the breakpoints that are for it at that moment.
2. A change is told to all that run at that moment: to a batch at once, to the others by later decisions.
3. What an instance is told are always all breakpoints as they are when it is told. So an instance that a batch reaches
   late never goes back to fewer changes than its launch or another batch has told it.
4. A breakpoint that is deleted with `resume` reaches every instance that ran at that time and still runs. If it was
   set again before the batch, it is among the breakpoints too, and holds what it held.

A workflow is deleted only when nothing runs, so its breakpoints go without anybody to tell.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from kapelle.processors.decisions import Done
from kapelle.processors.definitions import parse_workflow
from kapelle.processors.definitions.limits import ID_CHARS_MAX
from kapelle.processors.refusals import conflict, invalid, not_found
from kapelle.processors.wiring import RUN_INTERNAL, WORKFLOW_INTERNAL, run_key
from kapelle.processors.workflows.places import Place, place_of
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft
from kapelle.processors.workflows.reading import counts_of, definition_of, there, version_by, workflow_of
from kapelle.processors.workflows.tables import Breakpoint, Workflow, WorkflowTables
from kapelle.schemas import contracts as c

# Of a workflow. All of them must fit into the record of a launch, beside what a start may bring.
BREAKPOINTS_MAX: Final = 40
TOLD_MAX: Final = 100  # instances by one decision
PRECISE: Final = ("version", "instance_id", "run_id", "attempt")


# Setting and deleting -----------------------------------------------------------------------------------------------


@on_draft.carries_out(c.SetBreakpoint)
def set_breakpoint(command: c.SetBreakpoint, draft: WorkflowDraft, now_ms: int) -> Done:
    """Pause attempts of a step from now on. The same fields again: somebody else has set it, now."""
    _check(command)
    _check_step(command, draft, workflow_of(draft.state, draft.key))
    counts = counts_of(draft.state, draft.key)
    place = place_of(draft.key, command)
    if counts.breakpoints >= BREAKPOINTS_MAX and draft.state.breakpoints.get(place) is None:
        raise conflict(
            f"Expected workflow {draft.key!r} to have fewer than {BREAKPOINTS_MAX} breakpoints, "
            f"but it has {counts.breakpoints}: delete one first"
        )
    changed = _as_told(place, Breakpoint(command.author, now_ms))
    draft.emit(
        c.BreakpointSet(
            request_id=command.request_id,
            workflow_id=draft.key,
            breakpoint=changed,
            generation=counts.breakpoints_generation + 1,
            at_ms=now_ms,
        )
    )
    _tell_of(draft, changed, removed=None)
    return Done(instance_id=command.instance_id)


@on_draft.carries_out(c.DeleteBreakpoint)
def delete_breakpoint(command: c.DeleteBreakpoint, draft: WorkflowDraft, now_ms: int) -> Done:
    """Pause attempts no longer. What is paused continues, unless it is to stay."""
    _check(command)
    workflow_of(draft.state, draft.key)
    place = place_of(draft.key, command)
    row = draft.state.breakpoints.get(place)
    if row is None:
        raise not_found(f"Expected a breakpoint of workflow {draft.key!r} on {_described(command)}, but there is none")
    changed = _as_told(place, row)
    draft.emit(
        c.BreakpointDeleted(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            breakpoint=changed,
            generation=counts_of(draft.state, draft.key).breakpoints_generation + 1,
            resume=command.resume,
            at_ms=now_ms,
        )
    )
    _tell_of(draft, changed, removed=changed if command.resume else None)
    return Done(instance_id=command.instance_id)


def _check(command: c.SetBreakpoint | c.DeleteBreakpoint) -> None:
    if not 1 <= len(command.step_id) <= ID_CHARS_MAX:
        raise invalid(f"Expected a step_id of 1 to {ID_CHARS_MAX} characters, but found {len(command.step_id):,}")
    for name in PRECISE:
        number = getattr(command, name)
        if number is not None and number < 1:
            raise invalid(f"Expected {name} of at least 1, but found {number}")
    if command.run_id is not None and command.instance_id is None:
        raise invalid(f"Expected instance_id beside run_id, but found only run_id {command.run_id}")


def _check_step(command: c.SetBreakpoint, draft: WorkflowDraft, workflow: Workflow) -> None:
    selector = "default" if command.version is None else str(command.version)
    version = version_by(selector, workflow, draft.key)
    definition = parse_workflow(definition_of(draft.state, draft.key, version))
    if all(step.id != command.step_id for step in definition.all_steps()):
        raise not_found(
            f"Expected a step of version {version} of workflow {draft.key!r}, but found {command.step_id!r}"
        )


def _described(command: c.DeleteBreakpoint) -> str:
    precise = ((name, getattr(command, name)) for name in PRECISE)
    return ", ".join([f"step {command.step_id!r}", *(f"{name} {number}" for name, number in precise if number)])


# Looking up ---------------------------------------------------------------------------------------------------------


def breakpoints_of(state: WorkflowTables, key: str) -> Sequence[c.Breakpoint]:
    """All breakpoints of a workflow."""
    return [_as_told(place, row) for place, row in state.breakpoints.prefix((key,))]


def _as_told(place: Place, row: Breakpoint) -> c.Breakpoint:
    _, step_id, version, instance_id, run_id, attempt = place
    return c.Breakpoint(
        step_id=step_id,
        version=version or None,
        instance_id=instance_id or None,
        run_id=run_id or None,
        attempt=attempt or None,
        author=row.author,
        at_ms=row.at_ms,
    )


def is_for(point: c.Breakpoint, version: int, instance_id: int, run_id: int) -> bool:
    """Whether a run may have attempts that a breakpoint matches."""
    return (
        point.version in (None, version) and point.instance_id in (None, instance_id) and point.run_id in (None, run_id)
    )


# Telling ------------------------------------------------------------------------------------------------------------


def _tell_of(draft: WorkflowDraft, changed: c.Breakpoint, *, removed: c.Breakpoint | None) -> None:
    """Tell those that run now, and that the change may concern."""
    only = changed.instance_id
    after = 0 if only is None else only - 1
    upto = counts_of(draft.state, draft.key).latest_instance_id if only is None else only
    _tell_batch(draft, c.TellBreakpoints(removed=removed, after_instance_id=after, upto_instance_id=upto))


@on_draft.decides(c.TellBreakpoints)
def tell_breakpoints(command: c.TellBreakpoints, draft: WorkflowDraft, _: int) -> None:
    """Go on telling."""
    _tell_batch(draft, command)


def _tell_batch(draft: WorkflowDraft, command: c.TellBreakpoints) -> None:
    """Tell the next instances that run, and ask for the rest."""
    # There is no instance after the latest, whatever number was given.
    counts = counts_of(draft.state, draft.key)
    upto = min(command.upto_instance_id, counts.latest_instance_id)
    if command.after_instance_id >= upto:
        return
    rows = draft.state.running.range((draft.key, command.after_instance_id + 1), (draft.key, upto + 1))
    batch = list(islice(rows, TOLD_MAX + 1))
    present, removed = breakpoints_of(draft.state, draft.key), command.removed
    for (_, instance_id), running in batch[:TOLD_MAX]:
        origin = there(draft.state.origins.get((draft.key, instance_id)), "origins", draft.key, instance_id)
        run = (origin.version, instance_id, running.run_id)
        told = c.ChangeBreakpoints(
            generation=counts.breakpoints_generation,
            breakpoints=tuple(point for point in present if is_for(point, *run)),
            removed=removed if removed is not None and is_for(removed, *run) else None,
        )
        draft.send(RUN_INTERNAL, run_key(draft.key, instance_id), told)
    if len(batch) > TOLD_MAX:
        (_, last), _row = batch[TOLD_MAX - 1]
        draft.send(WORKFLOW_INTERNAL, draft.key, replace(command, after_instance_id=last))
