"""The workflows that the engine is given, the commands that start them, and the truth about their histories."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from kapelle.processors.wiring import run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from kapelle.topology.build import partition_of

PARTITIONS: Final = 4
AUTHOR: Final = "benchmark"
WORKFLOW_IDS: Final = 8  # a handful: the starts of one workflow have one writer
CHAIN_STEPS: Final = 10
WIDE_STEPS: Final = 250  # a definition has 300 steps at the most, so a thousand steps are four instances
NOOP: Final = "NoOp"  # done by the engine itself
WORK: Final = "Work"  # a task for a worker, done at once
HOLD: Final = "Hold"  # a task for nobody: it keeps a workflow busy until it is answered

ON_THEIR_WAY: Final = (StepStatus.WAITING_FOR_PERMITS, StepStatus.STARTING, StepStatus.RUNNING)

Command = tuple[str, c.PushVersion | c.StartInstances | c.TerminateInstances]  # with the workflow that it is for
Held = tuple[str, int]  # workflow and instance: its task keeps the workflow busy


class Truth(NamedTuple):
    """The expected outcome of the starts of one workflow."""

    workflow_id: str
    instances: int
    steps: int  # of each instance
    stopped: int = 0  # and so many after them were stopped in the queue


def chain(count: int, kind: str) -> list[dict[str, Any]]:
    """Steps one after the other; one step is the shortest chain."""
    after = [{f"s{number + 1}": "true"} for number in range(count - 1)] + [{}]
    return [_step(f"s{number}", kind, after[number]) for number in range(count)]


def wide(count: int, kind: str) -> list[dict[str, Any]]:
    """Steps that wait for nothing and for which nothing waits."""
    return [_step(f"s{number}", kind, {}) for number in range(count)]


def _step(step_id: str, kind: str, successors: dict[str, str]) -> dict[str, Any]:
    return {"step": {"id": step_id, "type": kind, "transition": {"successors": successors}}}


def push(workflow_id: str, steps: Sequence[dict[str, Any]], *, strategy: object, version: int = 1) -> Command:
    """Push a version of a workflow. A number as strategy is how many of its instances may run at a time."""
    properties = {"owner": AUTHOR, "run_strategy": strategy}
    text = json.dumps({"properties": properties, "workflow": {"id": workflow_id, "steps": steps}})
    return workflow_id, c.PushVersion(f"{workflow_id}-push-{version}", AUTHOR, text)


def start(workflow_id: str, number: int) -> Command:
    """The n-th start of a workflow, counted from 1. Sent in order, it becomes the instance of that number."""
    return workflow_id, c.StartInstances(AUTHOR, (c.Start(f"{workflow_id}-{number}"),))


def stop_after(workflow_id: str, instance_id: int) -> Command:
    """Stop all instances after this one."""
    request_id = f"{workflow_id}-stop"
    return workflow_id, c.TerminateInstances(request_id, AUTHOR, c.Action.STOP, "enough", after_instance_id=instance_id)


def neighbours(name: str, count: int) -> list[str]:
    """Workflow ids of one partition: all partitions are equally fast."""
    found = (f"{name}-{number}" for number in range(count * PARTITIONS * 100))
    first = [one for one in found if partition_of(one, PARTITIONS) == 0]
    return first[:count]


def faults(truths: Iterable[Truth], workflow_events: Iterable[Any], run_events: Iterable[Any]) -> list[str]:
    """The errors in the histories: each instance and each of its steps must have succeeded once."""
    truths = list(truths)
    expected = {run_key(each.workflow_id, n): each.steps for each in truths for n in range(1, each.instances + 1)}
    cut = {run_key(each.workflow_id, each.instances + n) for each in truths for n in range(1, each.stopped + 1)}
    ended, stopped, created, refused = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for event in workflow_events:
        match event:
            case c.InstanceCreated():
                created[run_key(event.workflow_id, event.instance_id)] += 1
            case c.InstanceEnded(status=InstanceStatus.SUCCEEDED):
                ended[run_key(event.workflow_id, event.instance_id)] += 1
            case c.InstanceEnded(status=InstanceStatus.STOPPED, was_launched=False):
                stopped[run_key(event.workflow_id, event.instance_id)] += 1
            case c.InstanceEnded() | c.CommandRefused() | c.StartDuplicated():
                refused[type(event).__name__] += 1
    steps, steps_wrong = _succeeded_steps(run_events)
    wrong = {
        "instances not created once": _differing(created, dict.fromkeys(expected.keys() | cut, 1)),
        "instances not stopped in the queue once": _differing(stopped, dict.fromkeys(cut, 1)),
        "instances not succeeded once": _differing(ended, dict.fromkeys(expected, 1)),
        "instances with other steps succeeded than all of theirs, once": _differing(steps, expected),
        "starts refused or ended otherwise": refused.total(),
        "reports or steps gone wrong": steps_wrong,
    }
    return [f"{count} {what}" for what, count in wrong.items() if count]


def _succeeded_steps(events: Iterable[tuple[str, Any]]) -> tuple[Counter[str], int]:
    """How many different steps of each instance have succeeded, and the number of unexpected changes."""
    seen: set[tuple[str, str]] = set()
    counts, wrong = Counter[str](), 0
    for key, event in events:
        match event:
            case c.StepChanged() if event.statuses[-1] is StepStatus.SUCCEEDED:
                wrong += (key, event.step_id) in seen
                seen.add((key, event.step_id))
                counts[key] += 1
            case c.StepChanged():
                wrong += event.statuses[-1] not in ON_THEIR_WAY
            case c.ReportRefused() | c.CommandRefused():
                wrong += 1
    return counts, wrong


def _differing(found: Counter[str], expected: dict[str, int]) -> int:
    return sum(found[key] != expected.get(key, 0) for key in found.keys() | expected.keys())
