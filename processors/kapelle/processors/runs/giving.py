"""How work is given out to workers, under a token and a lease, and taken back from them."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from kapelle.processors.keys import task_key
from kapelle.processors.params import BadNumber, Evaluated, duration_ms
from kapelle.processors.params.durations import DURATION_MS_MAX
from kapelle.processors.routes import CANCELLATIONS, TASKS
from kapelle.processors.runs import signalling
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.states import GIVEN_OUT
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, StepStatus

if TYPE_CHECKING:
    from kapelle.processors.runs.execution import Execution
    from kapelle.processors.runs.plan import StepPlan
    from kapelle.processors.runs.tables import StepRow

REASON_CHARS_MAX: Final = 4_000  # a worker may say more, but a failure may be the reason of hundreds of stops
LEASE_MS: Final = 30_000
LEASE_PARAM: Final = "lease_seconds"
SLEEP_PARAM: Final = "sleep_seconds"
SLEEP_S_DEFAULT: Final = 3

Params = Mapping[str, Evaluated]


class Terms(msgspec.Struct, frozen=True):
    """What a worker is told beside what to do: its token, and by when it must be heard of and be done."""

    token: str
    lease_ms: int
    deadline_ms: int | None


def terms_of(execution: Execution, step: StepPlan, attempt: Attempt, params: Params) -> Terms:
    """The terms on which an attempt is given out now."""
    run = execution.run
    # Coordinates are the same in every log that begins, the request and the moment of a run are not: so a worker of
    # another deployment has no token that counts here.
    origin = f"{run.request_id}/{run.started_at_ms}/{execution.cause}"
    seed = f"{origin}/{attempt.seed(f'{execution.key}/{run.run_id}')}"
    token = sha256(seed.encode()).hexdigest()[:32]
    return Terms(token, lease_ms(params), timeout_at_ms(execution, step))


def give_out(execution: Execution, step: StepPlan, attempt: Attempt, terms: Terms, params: str) -> None:
    """Let a worker do the work of an attempt."""
    run = execution.run
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
        idempotency_key=f"{execution.key}/{run.run_id}/{attempt.step_id}/{attempt.iteration}",
        criticality=execution.plan.workflow.criticality,
        lease_ms=terms.lease_ms,
        deadline_at_ms=terms.deadline_ms or run.timeout_at_ms,
        at_ms=execution.now_ms,
    )
    execution.draft.send(TASKS, task_key(execution.key, attempt.step_id), task)


def take_back(execution: Execution, step_id: str, row: StepRow, action: Action, reason: str) -> None:
    """Tell the worker, if one may have the task, that it is no longer wanted; and wait for no more signals."""
    if row.status is StepStatus.WAITING_FOR_SIGNALS:
        signalling.forget(execution, step_id)
    if row.token is not None and row.status in GIVEN_OUT:
        run = execution.run
        cancelled = c.CancelTask(
            token=row.token,
            workflow_id=run.workflow_id,
            instance_id=run.instance_id,
            step_id=step_id,
            attempt=row.attempt,
            action=action,
            reason=reason[:REASON_CHARS_MAX],
            at_ms=execution.now_ms,
        )
        execution.draft.send(CANCELLATIONS, task_key(execution.key, step_id), cancelled)


def timeout_at_ms(execution: Execution, step: StepPlan) -> int | None:
    """When an attempt that begins now must be over; None if the run must be over before."""
    if step.step.timeout is None:
        return None
    try:
        return execution.now_ms + duration_ms(step.step.timeout, execution.expressions.lookup)
    except BadNumber:
        return None  # as if it were not written: the run's own limit holds


def lease_ms(params: Params) -> int:
    """How long a worker may be silent before its task is given to another one."""
    given = params.get(LEASE_PARAM)
    seconds = given.value if given is not None and isinstance(given.value, int) else 0
    return _wait_ms(seconds) if seconds > 0 else LEASE_MS


def sleep_ms(params: Params) -> int:
    """How long a step sleeps."""
    given = params.get(SLEEP_PARAM)
    return _wait_ms(SLEEP_S_DEFAULT if given is None else int(given.value))


def _wait_ms(seconds: int) -> int:
    """Seconds as milliseconds. No run is longer than the bound, so whoever asks for more has the whole run."""
    return min(max(0, seconds) * 1000, DURATION_MS_MAX)
