"""A decision about a run: steps are created, begun, completed and failed until nothing more can happen.

    created ─▶ begun ─▶ done: its conditions are evaluated, the steps after it are told, and created if they are ready
                   └──▶ failed: tried again later, or for good

1. A step is created when all its predecessors are complete; it runs if one of the conditions towards it was true.
2. An iteration of a loop is over when all its steps are. If an edge back was true it is repeated; else the edges that
   lead out count.
3. A run is done when none of its steps is active. Nothing has to be looked for: what could be created has been.
4. A decision ends after `CHANGES_MAX` changes, and work on expressions counts as changes: the steps left over are
   created, and timers go on with them, in turns with other workflows. A run that has made `AT_ONCE_MAX` attempts pauses
   between such decisions, so that a loop that never waits does not overload the readers of its events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from kapelle.processors.definitions import FailureMode
from kapelle.processors.draft import Draft
from kapelle.processors.lazy import lazy
from kapelle.processors.params import ParamError
from kapelle.processors.params.stored import values_json
from kapelle.processors.routes import SIGNAL_INTERNAL, WORKFLOW_INTERNAL
from kapelle.processors.runs import giving, loops, signalling
from kapelle.processors.runs.applying import NOTHING
from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.giving import REASON_CHARS_MAX, Params
from kapelle.processors.runs.params import Expressions, checked_json
from kapelle.processors.runs.plan import Edge, Plan, StepPlan, plan_of
from kapelle.processors.runs.retries import ENDS_AS, WAITS_AS, Kind, retry_of
from kapelle.processors.runs.states import ACTIVE, UP_TO_SIGNALS, UP_TO_START
from kapelle.processors.runs.status import instance_status, run_status
from kapelle.processors.runs.tables import JoinRow, RunRow, Runs, StepRow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, StepStatus

CHANGES_MAX: Final = 250
CONTINUED_MAX: Final = 100  # of a decision that goes round a loop, or goes on with what was left over
AT_ONCE_MAX: Final = 5_000  # attempts
PAUSE_MS: Final = 50  # so a loop of steps that take no time makes up to 2,000 changes a second
VISITS_PER_CHANGE: Final = 1_000  # a decision that has spent what one attempt may spend begins no more steps
NOOP, SLEEP = "NOOP", "SLEEP"
DONE: Final = (StepStatus.RUNNING, StepStatus.FINISHING)
NO_JOIN: Final = JoinRow(0, satisfied=False)

Statuses = tuple[StepStatus, ...]


class Execution:
    """One decision about one run."""

    def __init__(self, draft: Draft[Runs], cause: str, now_ms: int) -> None:
        row = draft.state.runs.get((draft.key,))
        if row is None:
            raise ValueError(f"Expected a run of {draft.key!r}, but there is none")
        self.draft = draft
        self.key = draft.key
        self.state = draft.state
        self.now_ms = now_ms
        self.run: RunRow = row
        self.skipped: frozenset[str] = frozenset()
        self.ready: deque[str] = deque()
        self.cause = cause  # the id of the message: tokens are made from it
        self.changes_max = CHANGES_MAX
        self.answered: tuple[str, int, int, str] | None = None  # the step, attempt and iteration, and which answer
        self._changes = 0

    # Made when they are first asked for: a run that is given up ends without them.

    @lazy
    def plan(self) -> Plan:
        """The definition, ready to be run."""
        return plan_of(self.run.digest, lambda: self._definition(self.run.digest))

    @lazy
    def expressions(self) -> Expressions:
        """What evaluates the expressions of its steps."""
        return Expressions(self.run, self.state, self.plan, self.now_ms)

    def _definition(self, digest: str) -> str:
        row = self.state.definitions.get((digest,))
        if row is None:
            raise ValueError(f"Expected the definition {digest} of {self.key!r} to be known, but it is not")
        return row.text

    # What a run does by itself ----------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Create what is ready, and what becomes ready by that; end the run if nothing is active any more."""
        while self.ready:
            if self._changes + self.expressions.spent // VISITS_PER_CHANGE >= self.changes_max:
                self._leave_the_rest()
                return
            self._create(self.ready.popleft())
        if (self.state.progress.get((self.key,)) or NOTHING).active == 0:
            self.end()

    def in_parts(self) -> None:
        """End this decision sooner: it goes round a loop, or goes on with what was left over, and others wait."""
        self.changes_max = min(self.changes_max, CONTINUED_MAX)

    def end(self, status: InstanceStatus | None = None, reason: str = "") -> None:
        """The run is over."""
        of_run = status or run_status(self.state.progress.get((self.key,)) or NOTHING)
        of_instance = instance_status(of_run, self.run, self.state, lambda: self.plan)
        run = self.run
        self.draft.emit(
            c.RunEnded(run.workflow_id, run.instance_id, run.run_id, of_instance, of_run, reason, self.now_ms)
        )
        ended = c.RecordRunEnd(run.instance_id, run.run_id, of_instance, reason)
        self.draft.send(WORKFLOW_INTERNAL, run.workflow_id, ended)

    def _leave_the_rest(self) -> None:
        made = (self.state.progress.get((self.key,)) or NOTHING).sequence
        due_at_ms = self.now_ms + (PAUSE_MS if made >= AT_ONCE_MAX else 0)
        for step_id in self.ready:
            if self.row(step_id) is None:  # else it was left over before, and still has its timer
                self.change(self._first(step_id), (StepStatus.CREATED,), due_at_ms=due_at_ms)
        self.ready.clear()

    def _create(self, step_id: str) -> None:
        step, attempt = self.plan.steps[step_id], self._first(step_id)
        join = self.state.joins.get((self.key, step_id)) or NO_JOIN
        if step.indegree and not join.satisfied:
            self._complete(step, attempt, (StepStatus.CREATED, StepStatus.UNSATISFIED), params=None)
        elif step_id in self.skipped:
            self.skipped -= {step_id}  # a loop may come by again
            self._complete(step, attempt, (StepStatus.CREATED, StepStatus.SKIPPED), params={})
        else:
            self.begin(step, attempt)

    def begin(self, step: StepPlan, attempt: Attempt) -> None:
        """Begin an attempt: wait for its signals, or go on to its work."""
        if step.step.signal_dependencies:
            try:
                if not signalling.are_there(self, step, attempt):
                    return
            except ParamError as error:
                failed = (StepStatus.CREATED, StepStatus.INITIALIZED, StepStatus.INTERNALLY_FAILED)
                self.change(attempt, failed, reason=str(error))
                return
        self.work(step, attempt, UP_TO_SIGNALS)

    def work(self, step: StepPlan, attempt: Attempt, passed: Statuses) -> None:
        """Evaluate the parameters of an attempt, and do its work or give it out."""
        try:
            params = self.expressions.params(step, attempt)
            text = checked_json(attempt.step_id, params)
        except ParamError as error:
            failed = (*passed, StepStatus.EVALUATING_PARAMS, StepStatus.INTERNALLY_FAILED)
            self.change(attempt, failed, reason=str(error))
            return
        kind, begun = step.step.type.upper(), (*passed, *UP_TO_START)
        wait_ms = giving.sleep_ms(params) if kind == SLEEP else 0
        if kind == NOOP or (kind == SLEEP and wait_ms == 0):
            self.finish(step, attempt, (*begun, *DONE), params)
        elif kind == SLEEP:
            self.change(
                attempt,
                (*begun, StepStatus.RUNNING),
                params=text,
                due_at_ms=self.now_ms + wait_ms,
                timeout_at_ms=giving.timeout_at_ms(self, step),
            )
        else:
            terms = giving.terms_of(self, step, attempt, params)
            self.change(attempt, begun, params=text, token=terms.token, timeout_at_ms=terms.deadline_ms)
            giving.give_out(self, step, attempt, terms, text)

    # What becomes of a step -------------------------------------------------------------------------------------------

    def finish(
        self, step: StepPlan, attempt: Attempt, passed: Statuses, params: Params, said: str | None = None
    ) -> None:
        """The work is done: its signals are announced. `said` are those that the work itself wants to be announced."""
        try:
            announced = signalling.outputs(self, step, attempt, params, said)
        except ParamError as error:
            self.change(attempt, (*passed, StepStatus.INTERNALLY_FAILED), reason=str(error))
            return
        if self._complete(step, attempt, (*passed, StepStatus.SUCCEEDED), params=params):
            for signal in announced:
                self.draft.send(SIGNAL_INTERNAL, signal.name, signal)

    def skip(self, step: StepPlan, attempt: Attempt, passed: Statuses, reason: str) -> None:
        """Somebody wants the run to go on as if the step were done."""
        row = self.state.inputs.get((self.key, attempt.step_id))
        params = self.expressions.restored(step, row.text) if row else {}
        self._complete(step, attempt, (*passed, StepStatus.SKIPPED), params=params, reason=reason)

    def fail(self, step: StepPlan, row: StepRow, kind: Kind, reason: str, *, at_once: bool = False) -> None:
        """An attempt has failed: there is another one, or the step has failed for good."""
        attempt = attempt_of(step.step.id, row)
        made = row.retries.get(kind, 0)
        seed = attempt.seed(f"{self.key}/{self.run.run_id}")
        retry = retry_of(step.step, kind, made, lookup=self.expressions.lookup, seed=seed)
        if retry is None:
            self.fail_for_good(step, attempt, ENDS_AS[kind], reason)
            return
        counted = msgspec.structs.replace(attempt, retries={**row.retries, str(kind): made + 1})
        wait_ms = 0 if at_once else retry.delay_ms
        due_at_ms = self.now_ms + wait_ms if wait_ms else None  # a timer must lie ahead
        self.change(counted, (WAITS_AS[kind],), reason=reason, due_at_ms=due_at_ms)
        if wait_ms == 0:
            self.try_again(step, counted)

    def give_back(self, step: StepPlan, row: StepRow, reason: str) -> None:
        """Nobody has failed, but the work is not done: the next attempt begins at once, and counts as no retry."""
        if not step.step.idempotent:  # it may have begun: then only its people know whether it may begin again
            self.fail(step, row, Kind.PLATFORM, reason)
            return
        attempt = attempt_of(step.step.id, row)
        self.change(attempt, (WAITS_AS[Kind.PLATFORM],), reason=reason)
        self.try_again(step, attempt)

    def try_again(self, step: StepPlan, attempt: Attempt) -> None:
        """A new attempt at the same step."""
        self.begin(step, self.next_attempt(attempt))

    def fail_for_good(self, step: StepPlan, attempt: Attempt, status: StepStatus, reason: str) -> None:
        """There is no other attempt. The failure mode says what becomes of the run, if the work itself has failed."""
        mode = step.step.failure_mode if status is StepStatus.FATALLY_FAILED else FailureMode.FAIL_AFTER_RUNNING
        if mode is FailureMode.IGNORE_FAILURE:
            row = self.state.inputs.get((self.key, attempt.step_id))
            params = self.expressions.restored(step, row.text) if row else {}
            self._complete(step, attempt, (StepStatus.COMPLETED_WITH_ERROR,), params=params, reason=reason)
            return
        self.change(attempt, (status,), reason=reason)
        if mode is FailureMode.FAIL_IMMEDIATELY:
            self.stop_all(Action.STOP, StepStatus.STOPPED, f"Step {attempt.step_id!r} failed: {reason}")

    def stop_all(self, action: Action, status: StepStatus, reason: str) -> None:
        """End every step that is active."""
        self.ready.clear()
        for (_, step_id), row in list(self.state.steps.prefix((self.key,))):
            if row.status in ACTIVE and row.run_id == self.run.run_id:
                giving.take_back(self, step_id, row, action, reason)
                self.change(attempt_of(step_id, row), (status,), reason=reason)

    def _complete(
        self, step: StepPlan, attempt: Attempt, statuses: Statuses, *, params: Params | None, reason: str = ""
    ) -> bool:
        """A step is over and the run goes on past it, unless its conditions have no value. Says which.

        Without parameters no condition of it can be true.
        """
        try:
            forward = self._conditions(step.forward, step, attempt, params)
            back = self._conditions(step.back, step, attempt, params)
            loops.check_iterations(self, back)
        except ParamError as error:
            if statuses[-1] is not StepStatus.SKIPPED:
                self.change(attempt, (*statuses[:-1], StepStatus.INTERNALLY_FAILED), reason=str(error))
                return False
            # A step that is skipped may lack what its conditions need: what comes after it runs.
            forward, back = {edge.to: True for edge in step.forward}, {edge.to: False for edge in step.back}
        self.change(
            attempt,
            statuses,
            reason=reason,
            params=values_json(params) if params is not None else None,
            successors=forward,
            repeats=back,
            deferred=step.deferred,
            loop=step.loop,
        )
        self.tell(to for to in forward if to not in step.deferred)
        if step.loop is not None:
            loops.end_iteration(self, step.loop)
        return True

    def _conditions(
        self, edges: tuple[Edge, ...], step: StepPlan, attempt: Attempt, params: Params | None
    ) -> dict[str, bool]:
        if params is None:
            return {edge.to: False for edge in edges}
        return {edge.to: self.expressions.holds(edge, step, attempt, params) for edge in edges}

    def tell(self, steps: Iterable[str]) -> None:
        """The steps whose predecessors are all complete now are ready."""
        for step_id in steps:
            join = self.state.joins.get((self.key, step_id)) or NO_JOIN
            if join.arrived == self.plan.steps[step_id].indegree:
                self.ready.append(step_id)

    # Attempts ---------------------------------------------------------------------------------------------------------

    def row(self, step_id: str) -> StepRow | None:
        """The latest attempt of a step; None if it was not created."""
        return self.state.steps.get((self.key, step_id))

    def _first(self, step_id: str) -> Attempt:
        """The attempt to make of a step that becomes ready; one that was left over has been counted already."""
        row = self.row(step_id)
        if row is not None and row.run_id == self.run.run_id:
            return attempt_of(step_id, row)
        loop = self.plan.steps[step_id].loop
        iteration = loops.loop_of(self, loop).iteration if loop is not None else 1
        return Attempt(step_id, 1, iteration, self._sequence())

    def next_attempt(self, attempt: Attempt) -> Attempt:
        """The attempt after this one."""
        return msgspec.structs.replace(attempt, attempt=attempt.attempt + 1, sequence=self._sequence())

    def _sequence(self) -> int:
        return (self.state.progress.get((self.key,)) or NOTHING).sequence + 1

    def change(self, attempt: Attempt, statuses: Statuses, *, reason: str = "", **more: Any) -> None:
        """Decide that an attempt goes through these states."""
        row = self.row(attempt.step_id)
        if row is not None and row.status is StepStatus.CREATED and statuses[0] is StepStatus.CREATED:
            statuses = statuses[1:]  # a full decision had left it over
        self.emit(
            c.StepChanged(
                run_id=self.run.run_id,
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

    def _answer(self, attempt: Attempt, answered: tuple[str, int, int, str]) -> str | None:
        is_answered = answered[:3] == (attempt.step_id, attempt.attempt, attempt.iteration)
        return answered[3] if is_answered else None

    def emit(self, event: c.StepChanged | c.LoopEntered) -> None:
        """Decide on a change, of which a decision may hold only so many."""
        self._changes += 1
        self.draft.emit(event)

    def note(self, request: c.TerminateRun | c.ActOnStep, step_id: str | None) -> None:
        """Decide that somebody has acted on the run, or on one of its steps."""
        self.draft.emit(
            c.ActionTaken(
                request.request_id,
                request.author,
                self.run.run_id,
                request.action,
                request.reason[:REASON_CHARS_MAX],
                self.now_ms,
                step_id=step_id,
            )
        )
