"""Decisions on what `permits` sends: a permit that an attempt has asked for, and whether a tag is limited."""

from kapelle.processors.keys import TAG
from kapelle.processors.runs import permits
from kapelle.processors.runs.behaviours import BEHAVIOURS
from kapelle.processors.runs.context import holder_of
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.processor import RunDraft, on_draft
from kapelle.processors.runs.tables import Runs, StepRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import StepStatus


@on_draft.decides(c.GrantPermit)
def grant_permit(grant: c.GrantPermit, draft: RunDraft, now_ms: int) -> None:
    """Ask for the next permit, or start if it was the last one.

    The permit of an attempt that has ended is on its way back: its end has returned everything that it had asked for.
    """
    if grant.limited.startswith(TAG):
        _learn(draft, (grant.limited, grant.is_limited, grant.sequence), now_ms)
    row = waiting(grant, draft.key, draft.state)
    if row is None:
        return
    draft.emit(
        c.PermitReceived(
            run_id=row.run_id,
            step_id=grant.holder.step_id,
            attempt=row.attempt,
            iteration=row.iteration,
            limited=grant.limited,
            held=row.held + 1,
            at_ms=now_ms,
        )
    )
    flow = Flow(draft, draft.cause, now_ms, BEHAVIOURS)
    if row.held + 1 < len(row.permits):
        permits.ask(flow, grant.holder.step_id)
        return
    flow.pass_on(grant.holder.step_id)
    flow.go_on()


def waiting(grant: c.GrantPermit, key: str, state: Runs) -> StepRow | None:
    """The attempt that waits for this permit; None if it does not, or no longer."""
    step_id = grant.holder.step_id
    row = state.steps.get((key, step_id))
    if row is None or row.status is not StepStatus.WAITING_FOR_PERMITS or holder_of(key, step_id, row) != grant.holder:
        return None
    return row if row.held < len(row.permits) and row.permits[row.held] == grant.limited else None


@on_draft.decides(c.LearnLimit)
def learn_limit(command: c.LearnLimit, draft: RunDraft, now_ms: int) -> None:
    """Remember whether a tag is limited. Attempts that wait for its permit get it from `permits`."""
    _learn(draft, (command.limited, command.is_limited, command.sequence), now_ms)


def _learn(draft: RunDraft, told: tuple[str, bool, int], now_ms: int) -> None:
    limited, is_limited, sequence = told
    known = draft.state.tags.get((limited,))
    if known is not None and sequence <= known.sequence:
        return
    draft.emit(c.LimitLearned(limited=limited, is_limited=is_limited, sequence=sequence, at_ms=now_ms))
