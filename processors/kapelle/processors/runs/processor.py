"""The processor `runs`: the life of every instance, from its first step to its last."""

from typing import Any, Final

from kapelle.processors.processor import Processor
from kapelle.processors.runs import applying
from kapelle.processors.runs.tables import Runs
from kapelle.processors.wiring import (
    CANCELLATIONS,
    RUN_COMMANDS,
    RUN_EVENTS,
    RUN_INTERNAL,
    SIGNAL_INTERNAL,
    TASKS,
    WORKFLOW_INTERNAL,
)
from kapelle.schemas import contracts as c

runs: Final = Processor(
    "runs",
    tables=Runs,
    inputs=[RUN_COMMANDS, RUN_INTERNAL],
    events=RUN_EVENTS,
    outputs=[RUN_INTERNAL, WORKFLOW_INTERNAL, SIGNAL_INTERNAL, TASKS, CANCELLATIONS],
)

APPLY: Final[dict[type[Any], Any]] = {
    c.RunStarted: applying.run_started,
    c.StepChanged: applying.step_changed,
    c.LoopEntered: applying.loop_entered,
    c.LoopEnded: applying.loop_ended,
    c.LeaseRenewed: applying.lease_renewed,
    c.StepLogged: applying.told_only,
    c.DependenciesSet: applying.dependencies_set,
    c.DependencyMatched: applying.dependency_matched,
    c.RunEnded: applying.run_ended,
    c.ReportRefused: applying.told_only,
    c.ActionTaken: applying.action_taken,
    c.RestartRequested: applying.restart_requested,
    c.CommandSettled: applying.told_only,
    c.CommandRefused: applying.told_only,
}
runs.in_background(applying.CONTINUE)
for _contract, _apply in APPLY.items():
    runs.applies(_contract)(_apply)
