"""What the engine makes of a worker's word.

| word | the attempt is STARTING | RUNNING, by this worker | RUNNING, by another | over, or another attempt |
|---|---|---|---|---|
| STARTED, HEARTBEAT | RUNNING, leased | the lease goes on | refused | refused |
| SUCCEEDED | done | done | refused | refused |
| an error | failed | failed | refused | refused |
| STOPPED | stopped | stopped | refused | refused |
| RETURNED | given to another worker | given to another worker | refused | refused |

Nobody has failed when a worker that shuts down returns its task: another attempt begins at once, and no retry is
counted. What the step wrote comes with whatever its worker says, and is kept before that is acted on.

An attempt is known by its token. What is refused is recorded with the reason, and changes nothing: so a result is
accepted exactly once, and a worker that was thought dead cannot speak for the attempt after its own.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kapelle.processors.params import SEL, ParamError, Validating, definitions_of, with_outputs
from kapelle.processors.runs.answers import answer_of
from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.execution import Execution
from kapelle.processors.runs.giving import lease_ms
from kapelle.processors.runs.params import checked_json, parsed_object
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.retries import Kind
from kapelle.processors.runs.states import GIVEN_OUT, INSTANCE_TERMINAL
from kapelle.processors.runs.tables import RunRow, StepRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Report, StepStatus

NAME_CHARS_MAX: Final = 256
LOG_CHARS_MAX: Final = 16_384  # of one word; a step may log again a second later
RENEW_SHARE: Final = 4  # a lease is written anew only when a quarter of it has gone by: heartbeats are cheap to send


def refusal_of(report: c.ReportTask, run: RunRow | None, row: StepRow | None) -> str | None:
    """Why a worker's word is not taken; None if it is."""
    if report.report not in TAKEN:
        return f"Expected one of {', '.join(TAKEN)}, but found {report.report}"
    if len(report.worker) > NAME_CHARS_MAX:
        return f"Expected a worker's name of at most {NAME_CHARS_MAX} characters, but found {len(report.worker):,}"
    if run is None or row is None:
        return f"Expected a task of step {report.step_id[:NAME_CHARS_MAX]!r}, but there is none"
    if row.token != report.token:
        return f"Expected the token of attempt {row.attempt}, but it is that of another attempt"
    if run.status in INSTANCE_TERMINAL or row.status not in GIVEN_OUT:
        return f"Expected attempt {row.attempt} to be running, but it is {row.status}"
    if row.worker is not None and row.worker != report.worker:
        return f"Expected the word of {row.worker!r}, which has the task, but it is that of {report.worker!r}"
    return None


def refused(report: c.ReportTask, reason: str, now_ms: int) -> c.ReportRefused:
    """The record of a word that is not taken. A name that is none is cut: the record must fit whatever was sent."""
    step_id, token, worker = (text[:NAME_CHARS_MAX] for text in (report.step_id, report.token, report.worker))
    return c.ReportRefused(step_id, token, worker, report.report, reason, now_ms)


def take(execution: Execution, report: c.ReportTask, row: StepRow) -> None:
    """Go on with a step as its worker says."""
    step = execution.plan.steps[report.step_id]
    _keep_log(execution, report, row)
    if (answer := answer_of(report)) is not None:
        execution.answered = (report.step_id, row.attempt, row.iteration, answer)
    TAKEN[report.report](execution, report, step, row)


def _keep_log(execution: Execution, report: c.ReportTask, row: StepRow) -> None:
    said = "" if report.report in REASONED else report.message
    text = "\n".join(part for part in (report.log, said) if part)
    if text:
        execution.draft.emit(
            c.StepLogged(
                run_id=row.run_id,
                step_id=report.step_id,
                attempt=row.attempt,
                iteration=row.iteration,
                token=report.token,
                worker=report.worker,
                text=text[:LOG_CHARS_MAX],
                at_ms=execution.now_ms,
            )
        )


def _alive(execution: Execution, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    lease_at_ms = execution.now_ms + _lease_ms(execution, step)
    attempt = attempt_of(report.step_id, row)
    if row.status is StepStatus.STARTING:
        execution.change(attempt, (StepStatus.RUNNING,), worker=report.worker, lease_at_ms=lease_at_ms)
        return
    left_ms = (row.lease_at_ms or 0) - execution.now_ms
    if left_ms * RENEW_SHARE < (lease_at_ms - execution.now_ms) * (RENEW_SHARE - 1):
        execution.draft.emit(
            c.LeaseRenewed(
                run_id=row.run_id,
                step_id=report.step_id,
                attempt=row.attempt,
                token=report.token,
                worker=report.worker,
                lease_at_ms=lease_at_ms,
                at_ms=execution.now_ms,
            )
        )


def _lease_ms(execution: Execution, step: StepPlan) -> int:
    known = execution.state.inputs.get((execution.key, step.step.id))
    return lease_ms(execution.expressions.restored(step, known.text) if known else {})


def _succeeded(execution: Execution, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    attempt, passed = attempt_of(report.step_id, row), _passed(row)
    known = execution.state.inputs.get((execution.key, report.step_id))
    try:
        params = execution.expressions.restored(step, known.text) if known else {}
        if report.outputs is not None:
            outputs = definitions_of(parsed_object(report.outputs))
            means = Validating(SEL, execution.expressions.budget(attempt))
            params = with_outputs(params, outputs, means=means, now_ms=execution.now_ms)
            checked_json(report.step_id, params)
    except ParamError as error:
        reason = f"Expected output data that fits the step's parameters: {error}"
        execution.change(attempt, (*passed, StepStatus.INTERNALLY_FAILED), reason=reason, worker=report.worker)
        return
    execution.finish(step, attempt, passed, params, report.signals)


def _passed(row: StepRow) -> tuple[StepStatus, ...]:
    begun = (StepStatus.RUNNING,) if row.status is StepStatus.STARTING else ()
    return (*begun, StepStatus.FINISHING)


def _failed(kind: Kind) -> Callable[[Execution, c.ReportTask, StepPlan, StepRow], None]:
    def take_failure(execution: Execution, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
        execution.fail(step, row, kind, report.message or f"The worker {report.worker!r} reported {report.report}")

    return take_failure


def _fatal(execution: Execution, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    attempt: Attempt = attempt_of(report.step_id, row)
    reason = report.message or f"The worker {report.worker!r} reported an error that no retry will mend"
    execution.fail_for_good(step, attempt, StepStatus.FATALLY_FAILED, reason)


def _stopped(execution: Execution, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    reason = report.message or f"The worker {report.worker!r} stopped it"
    execution.change(attempt_of(step.step.id, row), (StepStatus.STOPPED,), reason=reason)


def _returned(execution: Execution, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    reason = report.message or f"The worker {report.worker!r} gave it back"
    execution.give_back(step, row, reason)


# The message of these is the reason of what becomes of the attempt.
REASONED: Final = frozenset(
    {Report.USER_ERROR, Report.PLATFORM_ERROR, Report.FATAL_ERROR, Report.STOPPED, Report.RETURNED}
)
TAKEN: Final[Mapping[Report, Callable[[Execution, c.ReportTask, StepPlan, StepRow], None]]] = {
    Report.STARTED: _alive,
    Report.HEARTBEAT: _alive,
    Report.SUCCEEDED: _succeeded,
    Report.USER_ERROR: _failed(Kind.ERROR),
    Report.PLATFORM_ERROR: _failed(Kind.PLATFORM),
    Report.FATAL_ERROR: _fatal,
    Report.STOPPED: _stopped,
    Report.RETURNED: _returned,
}
