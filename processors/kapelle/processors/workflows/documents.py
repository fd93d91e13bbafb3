"""Reads and checks the JSON in internal commands to `workflows`, before a decision."""

from kapelle.processors.params import definitions_of
from kapelle.processors.params.stored import values_of
from kapelle.processors.parents import check_parent, read_back
from kapelle.processors.runs.params import parsed_object
from kapelle.processors.runs.restarts import Restart
from kapelle.processors.workflows.processor import workflows
from kapelle.schemas import contracts as c


@workflows.reads(c.QueueRun)
def queue_run(command: c.QueueRun) -> None:
    for step_id, given in Restart.parse(command.restart).step_run_params.items():
        if not isinstance(given, dict):
            raise TypeError(f"the parameters of step {step_id!r:.80} are not an object")
        definitions_of(given)
    definitions_of(parsed_object(command.run_params))
    if command.params is not None:
        values_of(command.params)
    if command.parent is not None:
        check_parent(command.parent)


@workflows.reads(c.StartChild)
def start_child(command: c.StartChild) -> None:
    check_parent(command.parent)


@workflows.reads(c.RecordRunEnd)
def record_run_end(command: c.RecordRunEnd) -> None:
    if command.parent is not None:
        check_parent(command.parent)
        read_back(command.values)
