"""A decision about a run: steps are created, started, completed and failed until nothing more can happen.

    created ─▶ begun ─▶ done: its conditions are evaluated, the steps after it are told, and created if they are ready
                   └──▶ failed: retried later, or permanently

1. A step is created when all its predecessors are complete; it runs if one of the conditions towards it was true.
2. An iteration of a loop is over when all its steps are. If an edge back was true it is repeated; else the edges that
   lead out count.
3. A run is done when none of its steps is active. No search is needed: every step that is ready has been created.
4. A decision ends after `CHANGES_MAX` changes, and work on expressions counts as changes. The remaining steps are
   created, and timers continue with them, in turns with other workflows. A run that has made `AT_ONCE_MAX` attempts
   pauses between such decisions, so that a loop that never waits does not overload the readers of its events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from kapelle.processors.definitions import FailureMode
from kapelle.processors.draft import Draft
from kapelle.processors.errors import WrongTransition
from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.params import ParamError
from kapelle.processors.params.stored import values_json
from kapelle.processors.runs import announcements, dependencies, loops
from kapelle.processors.runs.applying import NOTHING
from kapelle.processors.runs.attempts import Attempt, attempt_of
from kapelle.processors.runs.composites.ends import tell_of_end
from kapelle.processors.runs.context import NO_JOIN, Ending, Params, RunContext, Statuses
from kapelle.processors.runs.gates import GATES, GATES_AFTER, GATES_WITH_OTHER_PARAMS, HAS_PARAMS, Gate, Launch
from kapelle.processors.runs.plan import Edge, StepPlan
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.retries import ENDS_AS, WAITS_AS, Kind, retry_of
from kapelle.processors.runs.states import ACTIVE
from kapelle.processors.runs.status import instance_status, run_status
from kapelle.processors.runs.tables import Runs, StepRow
from kapelle.processors.wiring import SIGNAL_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, StepStatus

AT_ONCE_MAX: Final = 5_000  # attempts
PAUSE_MS: Final = 50  # so a loop of steps that take no time makes up to 2,000 changes a second
VISITS_PER_CHANGE: Final = 1_000  # a decision that has spent what one attempt may spend begins no more steps
TASK: Final = "TASK"  # the behaviour of every kind of step that the engine leaves to workers
DONE: Final = (StepStatus.RUNNING, StepStatus.FINISHING)


class Behaviour(msgspec.Struct, frozen=True):
    """What a kind of step does. The flow says when; `behaviours` has the table."""

    begin: Callable[[Flow, Launch], None]  # all gates are passed: do the work, or have it done
    resume: Callable[[Flow, StepPlan, StepRow, c.ReportTask], None] | None = None  # the worker reports
    # The work is no longer wanted. Says whether the attempt can end at once, or must wait for its children.
    take_back: Callable[[RunContext, str, StepRow, Ending], bool] | None = None
    timer_due: Mapping[str, Callable[[Flow, StepPlan, StepRow], None]] = {}  # by the name of the timer


class Flow(RunContext):
    """A decision that advances a run."""

    def __init__(self, draft: Draft[Runs], cause: str, now_ms: int, behaviours: Mapping[str, Behaviour]) -> None:
        super().__init__(draft, cause, now_ms)
        self.behaviours = behaviours
        self.skipped: frozenset[str] = frozenset()
        self.descends: Restart | None = None  # a restart further down that a step of this run hands on

    def behaviour(self, step: StepPlan) -> Behaviour:
        """What this kind of step does."""
        return self.behaviours.get(step.kind) or self.behaviours[TASK]

    # What a run does by itself ----------------------------------------------------------------------------------------

    def go_on(self) -> None:
        """Create what is ready, and what becomes ready by that; end the run if nothing is active any more."""
        while self.ready:
            if self.changes + self.expressions.spent // VISITS_PER_CHANGE >= self.changes_max:
                self._leave_the_rest()
                return
            self._create(self.ready.popleft())
        if not self.is_active:
            self.end(self.run.ends_as, self.run.ends_because)

    @property
    def is_active(self) -> bool:
        """Whether a step of the run is active."""
        return (self.state.progress.get((self.key,)) or NOTHING).active > 0

    def end_as(self, status: InstanceStatus, reason: str) -> None:
        """End the run like this, now or when the children of its steps have ended."""
        # Children may still run after all steps were told to end: the run stays active and keeps the status for later.
        if self.is_active:
            self.draft.emit(c.RunEnding(run_id=self.run.run_id, status=status, reason=reason, at_ms=self.now_ms))
        else:
            self.end(status, reason)

    def end(self, status: InstanceStatus | None = None, reason: str = "") -> None:
        """The run is over. It ends once: `workflows` gives its place in the strategy to the next one."""
        if self.run.status in INSTANCE_TERMINAL:
            subject = f"{self.key}/run {self.run.run_id}"
            raise WrongTransition(subject, self.run.status, status or "the end of a run")
        of_run = status or run_status(self.state.progress.get((self.key,)) or NOTHING)
        of_instance = instance_status(of_run, self.run, self.state, lambda: self.plan)
        run = self.run
        self.draft.emit(
            c.RunEnded(
                workflow_id=run.workflow_id,
                instance_id=run.instance_id,
                run_id=run.run_id,
                status=of_instance,
                run_status=of_run,
                reason=reason,
                at_ms=self.now_ms,
            )
        )
        tell_of_end(self, of_instance, reason)

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
        # Before the skip: a skipped step leads on, so it must not enter a branch that no condition has chosen.
        if step.indegree and not join.satisfied:
            self._complete(step, attempt, (StepStatus.CREATED, StepStatus.UNSATISFIED), params=None)
        elif step_id in self.skipped:
            self.skipped -= {step_id}  # a loop may come by again
            self._complete(step, attempt, (StepStatus.CREATED, StepStatus.SKIPPED), params={})
        else:
            self.begin(step, attempt)

    def begin(self, step: StepPlan, attempt: Attempt) -> None:
        """Begin an attempt: it passes the gates to its work, or waits at one of them."""
        self._launch(Launch(step, attempt), GATES)

    def pass_on(self, step_id: str) -> None:
        """An attempt has what it waited for: it goes on behind that gate."""
        row = self.row(step_id)
        if row is None:
            return
        launch = Launch(self.plan.steps[step_id], attempt_of(step_id, row), ())
        if row.status in HAS_PARAMS:
            noted = self.state.inputs.get((self.key, step_id))
            launch.params, launch.is_noted = self.inputs(launch.step), True
            launch.params_json = noted.text if noted is not None else "{}"
        self._launch(launch, GATES_AFTER[row.status])

    def pass_on_with_other_params(self, step_id: str) -> None:
        """A paused attempt goes on, with parameters that a person has changed: they are evaluated again."""
        row = self.row(step_id)
        if row is not None:
            launch = Launch(self.plan.steps[step_id], attempt_of(step_id, row), ())
            self._launch(launch, GATES_WITH_OTHER_PARAMS)

    def _launch(self, launch: Launch, gates: tuple[Gate, ...]) -> None:
        try:
            for lets_pass in gates:
                if not lets_pass(self, launch):
                    return
        except ParamError as error:
            # Nothing was given out yet, and another attempt would find the same: there is no retry.
            self.change(launch.attempt, (*launch.passed, StepStatus.INTERNALLY_FAILED), reason=str(error))
            return
        launch.passed = (*launch.passed, StepStatus.STARTING)
        self.behaviour(launch.step).begin(self, launch)

    # What becomes of a step -------------------------------------------------------------------------------------------

    def finish(
        self, step: StepPlan, attempt: Attempt, passed: Statuses, params: Params, reported: str | None = None
    ) -> None:
        """The work is done: its signals are announced. `reported` are those that its worker reports."""
        try:
            # All signals are made before the step completes: if one of them is not valid, none is announced.
            announced = announcements.outputs(self, step, attempt, params, reported)
        except ParamError as error:
            self.change(attempt, (*passed, StepStatus.INTERNALLY_FAILED), reason=str(error))
            return
        # Only a step that has succeeded announces: others act on the signal, and nobody could take it back.
        if self._complete(step, attempt, (*passed, StepStatus.SUCCEEDED), params=params):
            for signal in announced:
                self.draft.send(SIGNAL_INTERNAL, signal.name, signal)

    def skip(self, step: StepPlan, attempt: Attempt, passed: Statuses, reason: str) -> None:
        """Somebody wants the run to go on as if the step were done."""
        self._complete(step, attempt, (*passed, StepStatus.SKIPPED), params=self.inputs(step), reason=reason)

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
        # The retry is counted in the attempt that has failed: the next one takes the counts over from it, so a crash
        # between the two can neither lose a retry nor grant one more.
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
            statuses = (StepStatus.COMPLETED_WITH_ERROR,)
            self._complete(step, attempt, statuses, params=self.inputs(step), reason=reason)
            return
        self.change(attempt, (status,), reason=reason)
        if mode is FailureMode.FAIL_IMMEDIATELY:  # after the change: the failed step itself is not stopped
            self.stop_all(Action.STOP, StepStatus.STOPPED, f"Step {attempt.step_id!r} failed: {reason}")

    def time_out(self, step_id: str, row: StepRow) -> None:
        """An attempt takes too long: the work is taken back before the next attempt begins."""
        reason = f"Attempt {row.attempt} took longer than its time-out"
        # Otherwise children still run: the step ends as TIMED_OUT after the last of them.
        if self.take_back(step_id, row, Ending(Action.TIME_OUT, StepStatus.TIMED_OUT, reason)):
            self.fail(self.plan.steps[step_id], row, Kind.TIMEOUT, reason)

    def take_back(self, step_id: str, row: StepRow, ending: Ending) -> bool:
        """An attempt is about to end: nobody works or waits for it any more. Says whether it can end at once.

        A run must end even when its definition is what no decision can cope with. So nobody looks up the kind of the
        step: every behaviour is asked, and knows its own work by the rows that it has made.
        """
        if row.status is StepStatus.WAITING_FOR_SIGNALS:
            dependencies.forget(self, step_id)
        can_end = True
        for take_back in dict.fromkeys(behaviour.take_back for behaviour in self.behaviours.values()):
            if take_back is not None and not take_back(self, step_id, row, ending):
                can_end = False
        return can_end

    def stop_all(self, action: Action, status: StepStatus, reason: str) -> None:
        """End every step that is active."""
        # Steps that became ready in this decision must not begin after the stop.
        self.ready.clear()
        for (_, step_id), row in list(self.state.steps.prefix((self.key,))):
            # Until this run reaches a step, its row is that of an earlier run.
            is_active = row.status in ACTIVE and row.run_id == self.run.run_id
            # First taken back, then ended: what is to be taken back is known by the row as it is before.
            if is_active and self.take_back(step_id, row, Ending(action, status, reason, is_alone=False)):
                self.change(attempt_of(step_id, row), (status,), reason=reason)

    def _complete(
        self, step: StepPlan, attempt: Attempt, statuses: Statuses, *, params: Params | None, reason: str = ""
    ) -> bool:
        """A step is over and the run goes on past it, unless its conditions have no value. Says which.

        Without parameters no condition of it can be true.
        """
        try:
            forward = self._conditions(step.forward, step, attempt, params)
            back: dict[str, bool] = {}
            if step.back:
                back = self._conditions(step.back, step, attempt, params)
                # Before the change: a loop that is too long fails this step.
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
        # Edges that lead out of a loop count when the loop ends: until then it may be repeated.
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

    def _first(self, step_id: str) -> Attempt:
        """The attempt to make of a step that becomes ready; one that was left over has been counted already.

        A full decision creates what it leaves over, so that the run stays active until a timer goes on with it.
        """
        row = self.row(step_id)
        if row is not None and row.run_id == self.run.run_id:
            return attempt_of(step_id, row)
        loop = self.plan.steps[step_id].loop
        iteration = loops.loop_of(self, loop).iteration if loop is not None else 1
        return Attempt(step_id, 1, iteration, self.next_sequence())
