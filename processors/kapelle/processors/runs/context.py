"""The context of a decision about a run: the tables as a draft, the plan, the time, rows and changes.

    context ─▶ loops, dependencies, breakpoints, permits, signalling, dispatch ─▶ gates ─▶ flow ─▶ behaviours
            ─▶ people, givenup ─▶ deciding

Each module imports only from those before it. A helper is handed a `RunContext`: it can read rows, change a step and
send messages, but it cannot make the run go on. Only the flow does that, so there is one place that says what follows
from what.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, TypedDict, Unpack

import msgspec

from kapelle.processors.draft import Draft
from kapelle.processors.errors import WrongTransition
from kapelle.processors.lazy import lazy
from kapelle.processors.params import BadNumber, Evaluated, duration_ms
from kapelle.processors.runs.applying import NOTHING
from kapelle.processors.runs.attempts import Attempt
from kapelle.processors.runs.limits import Around, around_of
from kapelle.processors.runs.params import Expressions
from kapelle.processors.runs.plan import Plan, StepPlan, plan_of
from kapelle.processors.runs.states import NEXT, TERMINAL
from kapelle.processors.runs.tables import JoinRow, RunRow, Runs, StepRow
from kapelle.processors.wiring import PERMIT_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, StepStatus

CHANGES_MAX: Final = 250
CONTINUED_MAX: Final = 100  # of a decision that goes round a loop, or goes on with what was left over
SENT_MAX: Final = 100  # starts and stops of children, of one decision
CHARS_PER_START: Final = 40_000  # a start of more counts as several
REASON_CHARS_MAX: Final = 4_000  # a worker may say more, but a failure may be the reason of hundreds of stops
NO_JOIN: Final = JoinRow(0, satisfied=False)

Params = Mapping[str, Evaluated]
Statuses = tuple[StepStatus, ...]


class More(TypedDict, total=False):
    """What only some changes of a step say."""

    params: str | None
    successors: dict[str, bool]
    token: str | None
    timeout_at_ms: int | None
    due_at_ms: int | None
    worker: str | None
    lease_at_ms: int | None
    loop: str | None
    repeats: dict[str, bool]
    deferred: tuple[str, ...]
    permits: tuple[str, ...]


class Ending(msgspec.Struct, frozen=True):
    """How an attempt is to end, and why."""

    action: Action
    status: StepStatus
    reason: str
    is_alone: bool = True  # only the step ends; else the run ends with it


def holder_of(key: str, step_id: str, row: StepRow) -> c.PermitHolder:
    """The attempt of a row, as `permits` knows it."""
    return c.PermitHolder(key=key, run_id=row.run_id, step_id=step_id, attempt=row.attempt, iteration=row.iteration)


class RunContext:
    """One decision about one run: what it knows, and what it has decided so far."""

    def __init__(self, draft: Draft[Runs], cause: str, now_ms: int) -> None:
        row = draft.state.runs.get((draft.key,))
        if row is None:
            raise ValueError(f"Expected a run of {draft.key!r}, but there is none")
        self.draft = draft
        self.key = draft.key
        self.state = draft.state
        self.now_ms = now_ms
        self.run: RunRow = row
        self.ready: deque[str] = deque()  # steps whose predecessors are all complete
        self.cause = cause  # the id of the message: tokens are made from it
        self.changes_max = CHANGES_MAX
        self.answered: tuple[str, int, int, str] | None = None  # the step, attempt and iteration, and which answer
        self.changes = 0
        self.sent = 0  # to children: starts and stops

    # Made when they are first asked for: a run that is given up ends without them.

    @lazy
    def plan(self) -> Plan:
        """The definition, ready to be run."""
        return plan_of(self.run.digest, lambda: self._definition(self.run.digest))

    @lazy
    def expressions(self) -> Expressions:
        """What evaluates the expressions of its steps."""
        return Expressions(self.run, self.state, self.plan, self.now_ms)

    @lazy
    def around(self) -> Around:
        """What counts for the permits of each of its leaf steps."""
        return around_of(self.key, self.run, self.plan)

    def _definition(self, digest: str) -> str:
        row = self.state.definitions.get((digest,))
        if row is None:
            raise ValueError(f"Expected the definition {digest} of {self.key!r} to be known, but it is not")
        return row.text

    # Rows -------------------------------------------------------------------------------------------------------------

    def row(self, step_id: str) -> StepRow | None:
        """The latest attempt of a step; None if it was not created."""
        return self.state.steps.get((self.key, step_id))

    def inputs(self, step: StepPlan) -> dict[str, Evaluated]:
        """The parameters of the attempt that is under way, as they were evaluated when it began.

        They are restored, never evaluated again: what the worker was given and what its outputs are merged with must
        be the same, although an expression may ask for the time. There are none before they are evaluated.
        """
        row = self.state.inputs.get((self.key, step.step.id))
        return self.expressions.restored(step, row.text) if row else {}

    def timeout_at_ms(self, step: StepPlan) -> int | None:
        """When an attempt that begins now must be over; None if the run must be over before."""
        if step.step.timeout is None:
            return None
        try:
            return self.now_ms + duration_ms(step.step.timeout, self.expressions.lookup)
        except BadNumber:
            return None  # as if it were not written: the run's own limit holds

    # Attempts ---------------------------------------------------------------------------------------------------------

    def next_attempt(self, attempt: Attempt) -> Attempt:
        """The attempt after this one."""
        return msgspec.structs.replace(attempt, attempt=attempt.attempt + 1, sequence=self.next_sequence())

    def next_sequence(self) -> int:
        """The number of the next attempt among all attempts of the run."""
        return (self.state.progress.get((self.key,)) or NOTHING).sequence + 1

    # Changes ----------------------------------------------------------------------------------------------------------

    def change(self, attempt: Attempt, statuses: Statuses, *, reason: str = "", **more: Unpack[More]) -> None:
        """Decide that an attempt goes through these states, each of which must be one that may follow the last."""
        row, run_id = self.state.steps.get((self.key, attempt.step_id)), self.run.run_id
        before = StepStatus.NOT_CREATED
        if row is not None and row.run_id == run_id:  # what an earlier run has left is no state of this one
            before = row.status
            if before is StepStatus.CREATED and statuses[0] is StepStatus.CREATED:
                statuses = statuses[1:]  # a full decision had left it over
        for status in statuses:
            if status not in NEXT[before]:
                raise WrongTransition(f"step {attempt.step_id!r} of {self.key}/run {run_id}", before, status)
            before = status
        self.emit(
            c.StepChanged(
                run_id=run_id,
                step_id=attempt.step_id,
                attempt=attempt.attempt,
                iteration=attempt.iteration,
                sequence=attempt.sequence,
                statuses=statuses,
                reason=reason[:REASON_CHARS_MAX],
                retries=attempt.retries,
                answer=self.answered and self._answer(attempt, self.answered),
                at_ms=self.now_ms,
                **more,
            )
        )
        # Every end of an attempt comes by here, so that none keeps what it holds.
        if row is not None and row.permits and before in TERMINAL:
            self._return_permits(attempt.step_id, row)

    def _return_permits(self, step_id: str, row: StepRow) -> None:
        """Give back what an attempt holds, and no longer wait for the permit that it has asked for last."""
        for limited in row.permits[: row.held + 1]:
            self.draft.send(PERMIT_INTERNAL, limited, c.ReturnPermit(holder_of(self.key, step_id, row)))

    def _answer(self, attempt: Attempt, answered: tuple[str, int, int, str]) -> str | None:
        is_answered = answered[:3] == (attempt.step_id, attempt.attempt, attempt.iteration)
        return answered[3] if is_answered else None

    def emit(self, event: c.StepChanged | c.LoopEntered) -> None:
        """Emit a change and count it: `changes_max` limits the changes of a decision."""
        self.changes += 1
        self.draft.emit(event)

    def may_send(self, weight: int = 1) -> int:
        """How many more starts or stops of this weight go to children in this decision. One always goes."""
        return max((SENT_MAX - self.sent) // weight, 1 if self.sent == 0 else 0)

    def note(self, request: c.TerminateRun | c.ActOnStep, step_id: str | None) -> None:
        """Decide that somebody has acted on the run, or on one of its steps."""
        self.draft.emit(
            c.ActionTaken(
                request_id=request.request_id,
                author=request.author,
                run_id=self.run.run_id,
                action=request.action,
                reason=request.reason[:REASON_CHARS_MAX],
                at_ms=self.now_ms,
                step_id=step_id,
            )
        )

    # What comes next --------------------------------------------------------------------------------------------------

    def tell(self, steps: Iterable[str]) -> None:
        """Make those steps ready whose predecessors are all complete now."""
        for step_id in steps:
            join = self.state.joins.get((self.key, step_id)) or NO_JOIN
            if join.arrived == self.plan.steps[step_id].indegree:
                self.ready.append(step_id)

    def in_parts(self) -> None:
        """End this decision sooner: it goes round a loop, or goes on with what was left over, and others wait."""
        self.changes_max = min(self.changes_max, CONTINUED_MAX)
