"""How events about the children of composite steps change the tables."""

from collections.abc import Collection

from msgspec.structs import replace

from kapelle.processors.messages import Message
from kapelle.processors.runs.composites import counts
from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.tables import ChildRow, EndingRow, FanRow, Runs
from kapelle.processors.runs.timers import timeout_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind

CHILDREN = "children"
REASON_CHARS_KEPT = 500  # enough to say why the step failed


def children_of(step_id: str, fan: FanRow, root: str) -> str:
    """The name of the timer with which a composite step launches children, or tells them to stop.

    All timers of a tree share the turns of its root's workflow. Each batch has another name: a timer that has fired
    cannot be set to the same moment again.
    """
    told = fan.ending.told if fan.ending is not None else 0
    return f"{CHILDREN}/{root.partition('/')[0]}/{fan.fan_run}.{fan.next}.{told}/{step_id}"


def step_of(name: str) -> str:
    """The step that such a timer is of."""
    return name.split("/", 3)[3]


@runs.applies(c.ChildrenPlanned)
def children_planned(message: Message[c.ChildrenPlanned], state: Runs) -> None:
    key, event = message.key, message.value
    before = state.fans.get((key, event.step_id))
    fan = FanRow(
        run_id=event.run_id,
        attempt=event.attempt,
        iteration=event.iteration,
        kind=event.kind,
        total=event.total,
        window=event.window,
        is_strict=event.is_strict,
        fan_run=event.fan_run,
        kept_since=event.kept_since,
        counted_since=event.counted_since,
        digest=event.digest,
        next=event.next,
        oldest=event.next,
        is_sync=event.is_sync,
        values=event.values,
        downstream_policy=event.downstream_policy,
    )
    if before is not None and event.counted_since == before.counted_since:
        fan = replace(fan, failed=before.failed, timed_out=before.timed_out, stopped=before.stopped)
    _put(state, key, event.step_id, fan)


@runs.applies(c.ChildrenLaunched)
def children_launched(message: Message[c.ChildrenLaunched], state: Runs) -> None:
    key, event = message.key, message.value
    fan = _fan(state, key, event.step_id)
    for number in event.numbers:
        at = (key, event.step_id, number)
        before = state.children.get(at)
        if before is not None:
            fan = counts.without(fan, before)
        launched = ChildRow(
            run_id=counts.next_run_id(fan, before),
            fan_run=fan.fan_run,
            status=counts.IN_PROGRESS,
            child=_child(before, event.child),
            launched=before.launched + 1 if before else 1,
            given=event.values or "{}",
        )
        state.children.put(at, launched)
    fan = counts.with_launched(fan, event.numbers, next_number=event.next)
    values = fan.values if event.values is None else event.values
    _put(state, key, event.step_id, replace(fan, values=values, due_at_ms=event.due_at_ms))


@runs.applies(c.ChildStarted)
def child_started(message: Message[c.ChildStarted], state: Runs) -> None:
    key, event = message.key, message.value
    at = (key, event.step_id, event.number)
    row = state.children.get(at)
    if row is not None:
        state.children.put(at, replace(row, child=event.child, run_id=event.child_run_id))


@runs.applies(c.ChildEnded)
def child_ended(message: Message[c.ChildEnded], state: Runs) -> None:
    key, event = message.key, message.value
    at = (key, event.step_id, event.number)
    row = state.children.get(at)
    if row is not None:
        ended = replace(
            row,
            run_id=event.child_run_id,
            status=event.status,
            values=event.values,
            reason=event.reason[:REASON_CHARS_KEPT],
        )
        state.children.put(at, ended)
    fan = counts.with_ended(_fan(state, key, event.step_id), event.status, oldest=event.oldest)
    _put(state, key, event.step_id, replace(fan, due_at_ms=event.due_at_ms))


@runs.applies(c.StepEnding)
def step_ending(message: Message[c.StepEnding], state: Runs) -> None:
    key, event = message.key, message.value
    ending = EndingRow(event.action, event.status, event.reason, event.is_alone, event.told)
    fan = _fan(state, key, event.step_id)
    _put(state, key, event.step_id, replace(fan, ending=ending, due_at_ms=event.due_at_ms))
    row = state.steps.get((key, event.step_id))
    if row is not None and row.timeout_at_ms is not None:  # it ends already
        state.steps.put((key, event.step_id), replace(row, timeout_at_ms=None))
        state.timers.cancel(key, timeout_of(event.step_id))


def step_over(state: Runs, key: str, step_id: str) -> None:
    """An attempt is over: nothing is launched or told to stop for it any more."""
    fan = state.fans.get((key, step_id))
    if fan is not None and fan.due_at_ms is not None:
        _put(state, key, step_id, replace(fan, due_at_ms=None))


def discard(state: Runs, key: str, steps: Collection[str], *, is_turn: bool = False) -> None:
    """These steps begin without the children that they have, also if they fail before they plan others.

    In another turn of a cycle a subworkflow step begins another child. In another run it runs the same one again.
    """
    for (_, step_id), fan in list(state.fans.prefix((key,))):
        if step_id not in steps:
            continue
        state.fans.put((key, step_id), replace(fan, is_discarded=True))
        row = state.children.get((key, step_id, 1))
        if is_turn and fan.kind is ChildKind.SUBWORKFLOW and row is not None:
            state.children.put((key, step_id, 1), replace(row, child=""))


def _child(before: ChildRow | None, workflow_id: str) -> str:
    """The child of a subworkflow step stays known as long as the step names its workflow."""
    return before.child if before is not None and before.child.startswith(f"{workflow_id}/") else workflow_id


def _fan(state: Runs, key: str, step_id: str) -> FanRow:
    fan = state.fans.get((key, step_id))
    if fan is None:
        raise ValueError(f"Expected step {step_id!r} of {key!r} to have children planned, but it has not")
    return fan


def _put(state: Runs, key: str, step_id: str, fan: FanRow) -> None:
    before = state.fans.get((key, step_id))
    was, now = None if before is None else _batch(before), _batch(fan)
    if was != now:
        run = state.runs.get((key,))
        root = key if run is None or run.parent is None else run.parent.root
        if before is not None and was is not None:
            state.timers.cancel(key, children_of(step_id, before, root))
        if fan.due_at_ms is not None:
            state.timers.set(key, children_of(step_id, fan, root), fan.due_at_ms)
    state.fans.put((key, step_id), fan)


def _batch(fan: FanRow) -> tuple[int, int, int, int] | None:
    """All that makes the timer of a step; None if there is none."""
    if fan.due_at_ms is None:
        return None
    return fan.due_at_ms, fan.fan_run, fan.next, fan.ending.told if fan.ending is not None else 0
