"""The reports of workers, and whether the engine accepted them.

What is certain without asking is answered at once: an attempt that is over never comes back, and one that another
worker has stays that worker's. Everything else is put into the log. A heartbeat is not waited for.
"""

import asyncio
import sqlite3
from typing import Any, Final

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

# What becomes of an attempt whose worker said so, and is heard.
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


class Said(msgspec.Struct, frozen=True):
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
        """As the engine takes it."""
        return c.ReportTask(
            self.token, self.step_id, self.worker, self.report, self.message, self.outputs, self.signals, self.log
        )


class Heard(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether it was taken: yes, no, or not known yet."""

    token: str
    accepted: bool | None
    reason: str | None = None

    def record(self) -> dict[str, Any]:
        """For the answer."""
        about: dict[str, Any] = {"token": self.token, "accepted": self.accepted}
        return about if self.reason is None else {**about, "reason": self.reason}


async def report(here: Context, said: list[Said], wait_s: float) -> list[Heard]:
    """Hand on what is said, and tell what became of each."""
    if not said:
        return []
    known = await here.read(queries.attempts_by, [one.token for one in said])
    before = await here.read(_refusals, said)
    certain = [_certain(one, known.get(one.token)) for one in said]
    open_ = [one for one, heard in zip(said, certain, strict=True) if heard is None]
    await asyncio.gather(
        *[here.publish(RUN_COMMANDS, run_key(one.workflow_id, one.instance_id), one.command) for one in open_]
    )
    asked = [one for one in open_ if one.report is not Report.HEARTBEAT]
    answered = await _answers(here, asked, before, wait_s=wait_s)
    return [
        heard if heard is not None else answered.get(one.token, Heard(one.token, None))
        for one, heard in zip(said, certain, strict=True)
    ]


def _certain(said: Said, attempt: AttemptFound | None) -> Heard | None:
    """What can be told without asking the engine; None if that is nothing."""
    if attempt is None:
        return None
    if (attempt.workflow_id, attempt.instance_id, attempt.step_id) != (
        said.workflow_id,
        said.instance_id,
        said.step_id,
    ):
        return Heard(said.token, False, f"Expected the step of the token, which is {attempt.step_id!r}")
    if attempt.worker is not None and attempt.worker != said.worker:
        return Heard(said.token, False, f"Expected a report of {attempt.worker!r}, which has the task")
    if attempt.status in GIVEN_OUT:
        return None
    return _over(said, attempt)


def _over(said: Said, attempt: AttemptFound) -> Heard:
    """The attempt is over: as its worker said, or otherwise."""
    if said.report is not Report.HEARTBEAT and attempt.status in BECOMES[said.report]:
        if attempt.answer == answer_of(said.command):
            return Heard(said.token, True, attempt.reason or None)
        if attempt.answer is not None:
            return Heard(said.token, False, OTHER_ANSWER)
    return Heard(said.token, False, f"Expected attempt {attempt.attempt} to be running, but it is {attempt.status}")


async def _answers(here: Context, said: list[Said], before: Refusals, *, wait_s: float) -> dict[str, Heard]:
    """What the view shows of each, as soon as it shows something of all, or as far as it does in time."""
    if not said:
        return {}
    latest: dict[str, Heard] = {}

    def look(connection: sqlite3.Connection) -> bool | None:
        latest.update(_heard(connection, said, before))
        return len(latest) == len({one.token for one in said}) or None

    await here.seen({run_news(one.workflow_id, one.instance_id) for one in said}, look, wait_s)
    return latest


def _refusals(connection: sqlite3.Connection, said: list[Said]) -> Refusals:
    return queries.refusals(connection, [one.token for one in said], said[0].worker)


def _heard(connection: sqlite3.Connection, said: list[Said], before: Refusals) -> dict[str, Heard]:
    attempts = queries.attempts_by(connection, [one.token for one in said])
    refusals = _refusals(connection, said)
    found: dict[str, Heard] = {}
    for one in said:
        attempt = attempts.get(one.token)
        refused = [why for what, why in refusals.get(one.token, ()) if what == one.report]
        if attempt is not None and attempt.status not in GIVEN_OUT:
            found[one.token] = _over(one, attempt)
        elif len(refusals.get(one.token, ())) > len(before.get(one.token, ())) and refused:
            found[one.token] = Heard(one.token, False, refused[-1])
    return found
