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


def show_instance(found: "InstanceRecord", steps: "Sequence[StepRecord]", branches: "Mapping[str, Branch]") -> None:
    """An instance on a page, with its steps. Below a composite step is the tree of its children."""
    tables.pairs(
        [
            ("workflow", f"{found.workflow_id} version {found.workflow_version_id}"),
            ("instance", found.workflow_instance_id),
            ("run", found.workflow_run_id),
            ("status", found.status),
            ("reason", found.reason),
            ("parent", _parent(found)),
            ("steps", _leaves(found)),
            ("created", tables.at(found.create_time)),
            ("took", tables.lasted(found.start_time, found.end_time)),
        ]
    )
    if steps:
        tables.stdout().print()
        rows = [
            (
                in_iteration(one.step_id, one.iteration),
                one.workflow_run_id,
                one.step_attempt_id,
                one.status,
                tables.lasted(one.start_time, one.end_time),
                one.worker,
                _what(one, has_tree=one.step_id in branches),
            )
            for one in steps
        ]
        at = found.workflow_id, found.workflow_instance_id
        below = {
            place: list(branch_lines(at, branches[one.step_id]))
            for place, one in enumerate(steps)
            if one.step_id in branches
        }
        tables.show(("step", "run", "attempt", "status", "took", "worker", "what"), rows, below=below)


def _parent(found: "InstanceRecord") -> str | None:
    parent = found.parent
    if parent is None:
        return None
    return f"{parent.workflow_id} {parent.workflow_instance_id} run {parent.workflow_run_id}, step {parent.step_id}"


def _leaves(found: "InstanceRecord") -> str | None:
    """The steps of the whole tree, for an instance that has one."""
    return None if found.runtime_overview is None else leaves_text(found.runtime_overview["rollup_overview"])


def _what(step: "StepRecord", *, has_tree: bool) -> str | None:
    """Why a step is as it is, or what it waits for."""
    said = step.reason or step.message or (children_text(step) if is_composite(step) and not has_tree else None)
    again = next_attempt(step)
    if again:
        return f"next attempt at {again}{f': {said}' if said else ''}"
    return said or (f"waits for {step.waiting_for}" if step.waiting_for else None)


def next_attempt(step: "StepRecord") -> str:
    """When a failed step is tried again; empty if it is not."""
    return tables.at(step.step_retry.get("next_retry_time")) if step.status in RETRIED else ""
