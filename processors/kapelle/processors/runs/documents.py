"""Reads and checks the JSON in internal commands to `runs`, before a decision."""

from collections.abc import Mapping

from kapelle.processors.instances import INSTANCE_TERMINAL
from kapelle.processors.keys import ids_of
from kapelle.processors.params import definitions_of
from kapelle.processors.params.stored import values_of
from kapelle.processors.parents import check_parent, read_back
from kapelle.processors.runs.composites.identity import is_inline
from kapelle.processors.runs.limits import step_concurrency
from kapelle.processors.runs.params import parsed_object
from kapelle.processors.runs.plan import Plan, digest_of, plan_of
from kapelle.processors.runs.processor import runs
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.runs.states import ENDS_AS
from kapelle.processors.signals.bounds import params_in
from kapelle.schemas import contracts as c


@runs.reads(c.StartRun)
def start_run(command: c.StartRun) -> None:
    plan = plan_of(digest_of(command.definition), lambda: command.definition)
    if plan.workflow.id != command.workflow_id and not is_inline(command.workflow_id):
        raise ValueError(f"the definition is that of {plan.workflow.id!r:.80}")
    values_of(command.params)
    definitions_of(parsed_object(command.run_params))
    _of_steps(parsed_object(command.step_run_params), plan)
    parsed_object(command.initiator)
    step_concurrency(command.run_properties)
    for layer in command.layers:
        if layer.text is None or digest_of(layer.text) != layer.digest:
            raise ValueError(f"the parameters {layer.digest!r:.80} are not those of the digest")
        values_of(layer.text)
    if command.restart is not None:
        _of_steps(_restart(command.restart).step_run_params, plan)
    if command.parent is not None:
        check_parent(command.parent)


def _restart(text: str) -> Restart:
    restart = Restart.parse(text)
    values_of(restart.params or "{}")
    return restart


def _of_steps(by_step: Mapping[str, object], plan: Plan) -> None:
    for step_id, given in by_step.items():
        if not isinstance(given, dict):
            raise TypeError(f"the parameters of step {step_id!r:.80} are not an object")
        if step_id in plan.steps:
            plan.steps[step_id].definitions_with(definitions_of(given))


@runs.reads(c.TerminateRun)
def terminate_run(command: c.TerminateRun) -> None:
    if command.action not in ENDS_AS:
        raise ValueError(f"{command.action} does not end a run")


@runs.reads(c.EndQueuedRun)
def end_queued_run(command: c.EndQueuedRun) -> None:
    if command.status not in INSTANCE_TERMINAL:
        raise ValueError(f"{command.status} is not a terminal status")


@runs.reads(c.RestartBelow)
def restart_below(command: c.RestartBelow) -> None:
    _restart(command.restart)


@runs.reads(c.RestartChild)
def restart_child(command: c.RestartChild) -> None:
    _restart(command.restart)
    definitions_of(parsed_object(command.run_params))
    check_parent(command.parent)


@runs.reads(c.RecordChildEnd)
def record_child_end(command: c.RecordChildEnd) -> None:
    if command.status not in INSTANCE_TERMINAL:
        raise ValueError(f"{command.status} is not a terminal status")
    read_back(command.values)


@runs.reads(c.MatchDependency)
def match_dependency(command: c.MatchDependency) -> None:
    params_in(command.params)


@runs.reads(c.RecordChildStart)
def record_child_start(command: c.RecordChildStart) -> None:
    ids_of(command.child)
