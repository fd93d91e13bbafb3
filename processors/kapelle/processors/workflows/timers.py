"""The timers of a workflow: the next tick of each time trigger, and the next slots of each backfill.

Both are background timers, so the herd of a full hour shares the member fairly with signals and reports. The last part
of a name differs from one decision to the next: a timer that has fired cannot be set to the same moment again.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.workflows.catch_up import Trigger
from kapelle.processors.workflows.processor import BACKFILL, TICK, WorkflowDraft, on_draft, workflows
from kapelle.processors.workflows.reading import there
from kapelle.processors.workflows.slot_starts import go_on, pause_given_up
from kapelle.processors.workflows.tables import WorkflowTables
from kapelle.processors.workflows.ticks import decide_on_ticks, pass_over

workflows.in_background(TICK)
workflows.in_background(BACKFILL)


def _tick(draft: WorkflowDraft, trigger_id: str, now_ms: int) -> None:
    decide_on_ticks(draft, _trigger(draft, trigger_id), now_ms)


def _skip_ticks(draft: WorkflowDraft, trigger_id: str, reason: str, now_ms: int) -> None:
    pass_over(draft, _trigger(draft, trigger_id), reason, now_ms)


def _trigger(draft: WorkflowDraft, trigger_id: str) -> Trigger:
    row = there(draft.state.schedules.get((draft.key, trigger_id)), "schedules", draft.key, trigger_id)
    return Trigger(draft.key, trigger_id, row)


DECIDES: Final[Mapping[str, Callable[[WorkflowDraft, str, int], None]]] = {TICK: _tick, BACKFILL: go_on}
GIVES_UP: Final[Mapping[str, Callable[[WorkflowDraft, str, str, int], None]]] = {
    TICK: _skip_ticks,
    BACKFILL: pause_given_up,
}


@on_draft.decides(TimerDue)
def timer_due(timer: TimerDue, draft: WorkflowDraft, now_ms: int) -> None:
    """A tick has come, or a backfill has something to do."""
    kind, about, _ = timer.name.split("/")
    DECIDES[kind](draft, about, now_ms)


@workflows.gives_up(TimerDue)
def timer_given_up(message: Message[TimerDue], reason: str, state: WorkflowTables, now_ms: int) -> Iterable[Effect]:
    """The ticks are passed over, or the backfill is paused: with the same input the decision would take as long."""
    kind, about, _ = message.value.name.split("/")
    draft = WorkflowDraft(workflows, message.key, state)
    GIVES_UP[kind](draft, about, reason, now_ms)
    return draft.effects
