"""Instances and their steps for people."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kapelle.cli.text import tables
from kapelle.cli.text.children import children_text, is_composite, leaves_text
from kapelle.cli.text.timelines import in_iteration
from kapelle.cli.text.trees import branch_lines

if TYPE_CHECKING:
    from kapelle.cli.trees import Branch
    from kapelle.client import InstanceRecord, StepRecord

# Who is in one of these is tried again.
RETRIED: Final = frozenset({"USER_FAILED", "PLATFORM_FAILED", "TIMEOUT_FAILED"})


def show_instance(instance: "InstanceRecord", steps: "Sequence[StepRecord]", branches: "Mapping[str, Branch]") -> None:
    """An instance on a page, with its steps. Below a composite step is the tree of its children."""
    tables.pairs(
        [
            ("workflow", f"{instance.workflow_id} version {instance.workflow_version_id}"),
            ("instance", instance.workflow_instance_id),
            ("run", instance.workflow_run_id),
            ("status", instance.status),
            ("reason", instance.reason),
            ("parent", _parent(instance)),
            ("steps", _leaves(instance)),
            ("created", tables.at(instance.create_time)),
            ("took", tables.lasted(instance.start_time, instance.end_time)),
        ]
    )
    if steps:
        tables.stdout().print()
        rows = [
            (
                in_iteration(step.step_id, step.iteration),
                step.workflow_run_id,
                step.step_attempt_id,
                step.status,
                tables.lasted(step.start_time, step.end_time),
                step.worker,
                _what(step, has_tree=step.step_id in branches),
            )
            for step in steps
        ]
        at = instance.workflow_id, instance.workflow_instance_id
        below = {
            place: list(branch_lines(at, branches[step.step_id]))
            for place, step in enumerate(steps)
            if step.step_id in branches
        }
        tables.show(("step", "run", "attempt", "status", "took", "worker", "what"), rows, below=below)


def _parent(instance: "InstanceRecord") -> str | None:
    parent = instance.parent
    if parent is None:
        return None
    return f"{parent.workflow_id} {parent.workflow_instance_id} run {parent.workflow_run_id}, step {parent.step_id}"


def _leaves(instance: "InstanceRecord") -> str | None:
    """The steps of the whole tree, for an instance that has one."""
    return None if instance.runtime_overview is None else leaves_text(instance.runtime_overview["rollup_overview"])


def _what(step: "StepRecord", *, has_tree: bool) -> str | None:
    """Why a step is as it is, or what it waits for."""
    reason = step.reason or step.message or (children_text(step) if is_composite(step) and not has_tree else None)
    again = next_attempt(step)
    if again:
        return f"next attempt at {again}{f': {reason}' if reason else ''}"
    return reason or (f"waits for {step.waiting_for}" if step.waiting_for else None)


def next_attempt(step: "StepRecord") -> str:
    """When a failed step is tried again; empty if it is not."""
    return tables.at(step.step_retry.get("next_retry_time")) if step.status in RETRIED else ""
