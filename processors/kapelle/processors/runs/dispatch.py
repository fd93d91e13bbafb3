"""Tasks: assigned to workers under a token and a lease, and taken back from them."""

from hashlib import sha256
from typing import Final

import msgspec

from kapelle.processors.keys import task_key
from kapelle.processors.params.durations import DURATION_MS_MAX
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.context import REASON_CHARS_MAX, Ending, Params, RunContext
from kapelle.processors.runs.limits import criticality_of
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.states import GIVEN_OUT
from kapelle.processors.runs.tables import StepRow
from kapelle.processors.wiring import CANCELLATIONS, TASKS
from kapelle.schemas import contracts as c

LEASE_MS: Final = 30_000
LEASE_PARAM: Final = "lease_seconds"


class Terms(msgspec.Struct, frozen=True):
    """What a worker is told beside what to do: its token, and by when it must be heard of and be done."""

    token: str
    lease_ms: int
    deadline_ms: int | None


def terms_of(context: RunContext, step: StepPlan, attempt: Attempt, params: Params) -> Terms:
    """The terms on which an attempt is given out now."""
    run = context.run
    # Coordinates are the same in every log that begins, the request and the moment of a run are not: so a worker of
    # another deployment has no token that counts here.
    origin = f"{run.request_id}/{run.started_at_ms}/{context.cause}"
    seed = f"{origin}/{attempt.seed(f'{context.key}/{run.run_id}')}"
    token = sha256(seed.encode()).hexdigest()[:32]
    return Terms(token, lease_ms(params), context.timeout_at_ms(step))


def give_out(context: RunContext, step: StepPlan, attempt: Attempt, terms: Terms, params: str) -> None:
    """Let a worker do the work of an attempt."""
    run = context.run
    task = c.Task(
        token=terms.token,
        workflow_id=run.workflow_id,
        instance_id=run.instance_id,
        run_id=run.run_id,
        step_id=attempt.step_id,
        attempt=attempt.attempt,
        iteration=attempt.iteration,
        type=step.step.type,
        sub_type=step.step.sub_type,
        params=params,
        idempotency_key=f"{context.key}/{run.run_id}/{attempt.step_id}/{attempt.iteration}",
        criticality=criticality_of(run, context.plan),
        lease_ms=terms.lease_ms,
        deadline_at_ms=terms.deadline_ms or run.timeout_at_ms,
        at_ms=context.now_ms,
    )
    context.draft.send(TASKS, task_key(context.key, attempt.step_id), task)


def take_back(context: RunContext, step_id: str, row: StepRow, ending: Ending) -> bool:
    """Tell the worker, if one may have the task, that it is no longer wanted.

    The attempt ends whether the worker hears of it or not: what a worker says later of an attempt that is over is
    refused by its token. Only the row is looked at, not the definition, because a run that is given up has none.
    """
    if row.token is not None and row.status in GIVEN_OUT:
        run = context.run
        cancelled = c.CancelTask(
            token=row.token,
            workflow_id=run.workflow_id,
            instance_id=run.instance_id,
            step_id=step_id,
            attempt=row.attempt,
            action=ending.action,
            reason=ending.reason[:REASON_CHARS_MAX],
            at_ms=context.now_ms,
        )
        context.draft.send(CANCELLATIONS, task_key(context.key, step_id), cancelled)
    return True


def lease_ms(params: Params) -> int:
    """How long a worker may be silent before its task is given to another one."""
    given = params.get(LEASE_PARAM)
    seconds = given.value if given is not None and isinstance(given.value, int) else 0
    return wait_ms(seconds) if seconds > 0 else LEASE_MS


def wait_ms(seconds: int) -> int:
    """Seconds as milliseconds. A longer wait than the bound is the bound, which is longer than any run."""
    return min(max(0, seconds) * 1000, DURATION_MS_MAX)
