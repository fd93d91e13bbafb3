"""Decisions on the reports of workers.

| report | the attempt is STARTING | RUNNING, by this worker | RUNNING, by another | over, or another attempt |
|---|---|---|---|---|
| STARTED, HEARTBEAT | RUNNING, leased | the lease goes on | refused | refused |
| SUCCEEDED | done | done | refused | refused |
| an error | failed | failed | refused | refused |
| STOPPED | stopped | stopped | refused | refused |
| RETURNED | given to another worker | given to another worker | refused | refused |

Nobody has failed when a worker that shuts down returns its task: another attempt begins at once, and no retry is
counted. What the step wrote comes with each report, and is kept before the report is acted on.

An attempt is known by its token. What is refused is recorded with the reason, and changes nothing: so a result is
accepted exactly once, and a worker that was thought dead cannot speak for the attempt after its own.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.params import SEL, ParamError, Validating, definitions_of, with_outputs
from kapelle.processors.runs.answers import answer_of
from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.context import Ending, Params
from kapelle.processors.runs.dispatch import give_out, lease_ms, take_back, terms_of
from kapelle.processors.runs.flow import Flow
from kapelle.processors.runs.gates import Launch
from kapelle.processors.runs.params import checked_json, parsed_object
from kapelle.processors.runs.plan import StepPlan
from kapelle.processors.runs.retries import Kind
from kapelle.processors.runs.states import GIVEN_OUT
from kapelle.processors.runs.tables import RunRow, StepRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, Report, StepStatus

NAME_CHARS_MAX: Final = 256
LOG_CHARS_MAX: Final = 16_384  # of one report; a step may log again a second later
RENEW_SHARE: Final = 4  # a lease is written anew only when a quarter of it has gone by: heartbeats are cheap to send


def refusal_of(report: c.ReportTask, run: RunRow | None, row: StepRow | None) -> str | None:
    """Why a report is refused; None if it is not."""
    if report.report not in TAKEN:
        return f"Expected one of {', '.join(TAKEN)}, but found {report.report}"
    if len(report.worker) > NAME_CHARS_MAX:
        return f"Expected a worker's name of at most {NAME_CHARS_MAX} characters, but found {len(report.worker):,}"
    if run is None or row is None:
        return f"Expected a task of step {report.step_id[:NAME_CHARS_MAX]!r}, but there is none"
    if row.token != report.token:
        return f"Expected the token of attempt {row.attempt}, but found that of another attempt"
    if run.status in INSTANCE_TERMINAL or row.status not in GIVEN_OUT:
        return f"Expected attempt {row.attempt} to be running, but it is {row.status}"
    if row.worker is not None and row.worker != report.worker:
        return f"Expected a report of {row.worker!r}, which has the task, but found one of {report.worker!r}"
    return None


def refused(report: c.ReportTask, reason: str, now_ms: int) -> c.ReportRefused:
    """The event of a refused report. Long names are cut: the event must fit into a record, whatever was sent."""
    step_id, token, worker = (text[:NAME_CHARS_MAX] for text in (report.step_id, report.token, report.worker))
    return c.ReportRefused(
        step_id=step_id, token=token, worker=worker, report=report.report, reason=reason, at_ms=now_ms
    )


def begin(flow: Flow, launch: Launch) -> None:
    """Give the work to a worker. The attempt is STARTING until one reports that it has it."""
    step, attempt = launch.step, launch.attempt
    terms = terms_of(flow, step, attempt, launch.params)
    flow.change(
        attempt,
        launch.passed,
        params=launch.params_to_note,
        token=terms.token,
        timeout_at_ms=terms.deadline_ms,
    )
    give_out(flow, step, attempt, terms, launch.params_json)


def lease_lost(flow: Flow, step: StepPlan, row: StepRow) -> None:
    """Its lease was the waiting: another worker gets the task at once.

    The silent worker may still work on it. It is told to stop, and its later reports do not have the token of the new
    attempt.
    """
    reason = f"The engine did not hear from {row.worker!r} during its lease"
    take_back(flow, step.step.id, row, Ending(Action.STOP, StepStatus.PLATFORM_FAILED, reason))
    flow.fail(step, row, Kind.PLATFORM, reason, at_once=True)


def resume(flow: Flow, step: StepPlan, row: StepRow, report: c.ReportTask) -> None:
    """Go on with a step as its worker reports."""
    _keep_log(flow, report, row)
    # Before the report is acted on: the event that ends the attempt has the digest of the report.
    if (answer := answer_of(report)) is not None:
        flow.answered = (report.step_id, row.attempt, row.iteration, answer)
    TAKEN[report.report](flow, report, step, row)


def _keep_log(flow: Flow, report: c.ReportTask, row: StepRow) -> None:
    message = "" if report.report in REASONED else report.message
    text = "\n".join(part for part in (report.log, message) if part)
    if text:
        flow.draft.emit(
            c.StepLogged(
                run_id=row.run_id,
                step_id=report.step_id,
                attempt=row.attempt,
                iteration=row.iteration,
                token=report.token,
                worker=report.worker,
                text=text[:LOG_CHARS_MAX],
                at_ms=flow.now_ms,
            )
        )


def _alive(flow: Flow, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    lease_at_ms = flow.now_ms + _lease_ms(flow, step)
    attempt = attempt_of(report.step_id, row)
    if row.status is StepStatus.STARTING:
        flow.change(attempt, (StepStatus.RUNNING,), worker=report.worker, lease_at_ms=lease_at_ms)
        return
    left_ms = (row.lease_at_ms or 0) - flow.now_ms
    if left_ms * RENEW_SHARE < (lease_at_ms - flow.now_ms) * (RENEW_SHARE - 1):
        flow.draft.emit(
            c.LeaseRenewed(
                run_id=row.run_id,
                step_id=report.step_id,
                attempt=row.attempt,
                token=report.token,
                worker=report.worker,
                lease_at_ms=lease_at_ms,
                at_ms=flow.now_ms,
            )
        )


def _lease_ms(flow: Flow, step: StepPlan) -> int:
    return lease_ms(flow.inputs(step))


def _succeeded(flow: Flow, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    attempt, passed = attempt_of(report.step_id, row), _passed(row)
    try:
        params: Params = flow.inputs(step)
        if report.outputs is not None:
            outputs = definitions_of(parsed_object(report.outputs))
            means = Validating(SEL, flow.expressions.budget(attempt))
            params = with_outputs(params, outputs, means=means, now_ms=flow.now_ms)
            # Outputs may make the parameters larger than a record.
            checked_json(report.step_id, params)
    except ParamError as error:
        reason = f"Expected outputs that match the step's parameters: {error}"
        flow.change(attempt, (*passed, StepStatus.INTERNALLY_FAILED), reason=reason, worker=report.worker)
        return
    flow.finish(step, attempt, passed, params, report.signals)


def _passed(row: StepRow) -> tuple[StepStatus, ...]:
    # Short work may be done before STARTED is reported: the attempt passes RUNNING all the same.
    begun = (StepStatus.RUNNING,) if row.status is StepStatus.STARTING else ()
    return (*begun, StepStatus.FINISHING)


def _failed(kind: Kind) -> Callable[[Flow, c.ReportTask, StepPlan, StepRow], None]:
    def take_failure(flow: Flow, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
        flow.fail(step, row, kind, report.message or f"The worker {report.worker!r} reported {report.report}")

    return take_failure


def _fatal(flow: Flow, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    attempt: Attempt = attempt_of(report.step_id, row)
    reason = report.message or f"The worker {report.worker!r} reported an error that no retry can fix"
    flow.fail_for_good(step, attempt, StepStatus.FATALLY_FAILED, reason)


def _stopped(flow: Flow, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    reason = report.message or f"The worker {report.worker!r} stopped the task"
    # Not a failure of the work: neither retries nor the failure mode apply.
    flow.change(attempt_of(step.step.id, row), (StepStatus.STOPPED,), reason=reason)


def _returned(flow: Flow, report: c.ReportTask, step: StepPlan, row: StepRow) -> None:
    reason = report.message or f"The worker {report.worker!r} returned the task"
    flow.give_back(step, row, reason)


# The message of these is the reason of what becomes of the attempt.
REASONED: Final = frozenset(
    {Report.USER_ERROR, Report.PLATFORM_ERROR, Report.FATAL_ERROR, Report.STOPPED, Report.RETURNED}
)
TAKEN: Final[Mapping[Report, Callable[[Flow, c.ReportTask, StepPlan, StepRow], None]]] = {
    Report.STARTED: _alive,
    Report.HEARTBEAT: _alive,
    Report.SUCCEEDED: _succeeded,
    Report.USER_ERROR: _failed(Kind.ERROR),
    Report.PLATFORM_ERROR: _failed(Kind.PLATFORM),
    Report.FATAL_ERROR: _fatal,
    Report.STOPPED: _stopped,
    Report.RETURNED: _returned,
}
