"""The reports of workers, and whether the engine accepted them.

A result that is certain is returned at once: an ended attempt never runs again, and a task that another worker has
stays with that worker. All other reports go to the log. The call does not wait for the result of a heartbeat.
"""

import asyncio
import sqlite3
from typing import Final

import msgspec

from kapelle.api.context import Context
from kapelle.processors.runs.answers import answer_of
from kapelle.processors.runs.states import FAILED, GIVEN_OUT
from kapelle.processors.wiring import RUN_COMMANDS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Report, StepStatus
from kapelle.views.projection.news import run_news
from kapelle.views.queries import tasks as queries
from kapelle.views.queries.tasks import AttemptFound

S = StepStatus
Refusals = dict[str, list[tuple[str, str]]]

# The states that an attempt can have after an accepted report.
BECOMES: Final = {
    Report.HEARTBEAT: frozenset({S.RUNNING}),
    Report.SUCCEEDED: frozenset({S.SUCCEEDED, S.INTERNALLY_FAILED}),
    Report.USER_ERROR: FAILED | {S.COMPLETED_WITH_ERROR},
    Report.PLATFORM_ERROR: FAILED | {S.COMPLETED_WITH_ERROR},
    Report.FATAL_ERROR: FAILED | {S.COMPLETED_WITH_ERROR},
    Report.STOPPED: frozenset({S.STOPPED}),
    Report.RETURNED: FAILED | {S.COMPLETED_WITH_ERROR},
}


OTHER_ANSWER: Final = (
    "Expected the result that was accepted, but this one has other outputs or signals: an attempt has one result"
)


class TaskReport(msgspec.Struct, frozen=True):
    """A report of a worker on one task."""

    token: str
    workflow_id: str
    instance_id: int
    step_id: str
    worker: str
    report: Report
    message: str = ""
    outputs: str | None = None
    signals: str | None = None
    log: str = ""

    @property
    def command(self) -> c.ReportTask:
        """The command to the engine."""
        return c.ReportTask(
            self.token, self.step_id, self.worker, self.report, self.message, self.outputs, self.signals, self.log
        )


class ReportResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the engine accepted a report: yes, no, or not known yet."""

    token: str
    accepted: bool | None
    reason: str | None = None

    def record(self) -> dict[str, object]:
        """The result in the answer of the API."""
        about: dict[str, object] = {"token": self.token, "accepted": self.accepted}
        return about if self.reason is None else {**about, "reason": self.reason}


async def report(here: Context, reports: list[TaskReport], wait_s: float) -> list[ReportResult]:
    """Send reports to the engine. Returns the result of each."""
    if not reports:
        return []
    known = await here.read(queries.attempts_by, [sent.token for sent in reports])
    before = await here.read(_refusals, reports)
    certain = [_certain(sent, known.get(sent.token)) for sent in reports]
    open_ = [sent for sent, result in zip(reports, certain, strict=True) if result is None]
    await asyncio.gather(
        *[here.publish(RUN_COMMANDS, run_key(sent.workflow_id, sent.instance_id), sent.command) for sent in open_]
    )
    results_due = [sent for sent in open_ if sent.report is not Report.HEARTBEAT]
    answered = await _answers(here, results_due, before, wait_s=wait_s)
    return [
        result if result is not None else answered.get(sent.token, ReportResult(sent.token, None))
        for sent, result in zip(reports, certain, strict=True)
    ]


def _certain(sent: TaskReport, attempt: AttemptFound | None) -> ReportResult | None:
    """The result, if it is certain without the engine; otherwise None."""
    if attempt is None:
        return None
    if (attempt.workflow_id, attempt.instance_id, attempt.step_id) != (
        sent.workflow_id,
        sent.instance_id,
        sent.step_id,
    ):
        return ReportResult(sent.token, False, f"Expected the step of the token, which is {attempt.step_id!r}")
    if attempt.worker is not None and attempt.worker != sent.worker:
        return ReportResult(sent.token, False, f"Expected a report of {attempt.worker!r}, which has the task")
    if attempt.status in GIVEN_OUT:
        return None
    return _over(sent, attempt)


def _over(sent: TaskReport, attempt: AttemptFound) -> ReportResult:
    """The result for an attempt that has ended, as its worker reported or otherwise."""
    if sent.report is not Report.HEARTBEAT and attempt.status in BECOMES[sent.report]:
        if attempt.answer == answer_of(sent.command):
            return ReportResult(sent.token, True, attempt.reason or None)
        if attempt.answer is not None:
            return ReportResult(sent.token, False, OTHER_ANSWER)
    return ReportResult(
        sent.token, False, f"Expected attempt {attempt.attempt} to be running, but it is {attempt.status}"
    )


async def _answers(
    here: Context, reports: list[TaskReport], before: Refusals, *, wait_s: float
) -> dict[str, ReportResult]:
    """The results that the view shows. Waits until it shows all of them, or until the time is over."""
    if not reports:
        return {}
    latest: dict[str, ReportResult] = {}

    def look(connection: sqlite3.Connection) -> bool | None:
        latest.update(_results(connection, reports, before))
        return len(latest) == len({sent.token for sent in reports}) or None

    await here.seen({run_news(sent.workflow_id, sent.instance_id) for sent in reports}, look, wait_s)
    return latest


def _refusals(connection: sqlite3.Connection, reports: list[TaskReport]) -> Refusals:
    return queries.refusals(connection, [sent.token for sent in reports], reports[0].worker)


def _results(connection: sqlite3.Connection, reports: list[TaskReport], before: Refusals) -> dict[str, ReportResult]:
    attempts = queries.attempts_by(connection, [sent.token for sent in reports])
    refusals = _refusals(connection, reports)
    results: dict[str, ReportResult] = {}
    for sent in reports:
        attempt = attempts.get(sent.token)
        refused = [why for what, why in refusals.get(sent.token, ()) if what == sent.report]
        if attempt is not None and attempt.status not in GIVEN_OUT:
            results[sent.token] = _over(sent, attempt)
        elif len(refusals.get(sent.token, ())) > len(before.get(sent.token, ())) and refused:
            results[sent.token] = ReportResult(sent.token, False, refused[-1])
    return results
