"""The children of composite steps for people: how many have which status, and those that did not succeed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kapelle.cli.text import output, tables

if TYPE_CHECKING:
    from kapelle.client import InstanceRecord, StepRecord
    from kapelle.client.results import Object

SHOWN_MAX: Final = 10  # children of one step
BAD: Final = ("FAILED", "TIMED_OUT", "STOPPED")
SUBWORKFLOW: Final = "maestro_subworkflow"

Told = tuple["StepRecord", "Sequence[InstanceRecord]"]


def is_composite(step: "StepRecord") -> bool:
    """Whether a step has started instances."""
    return bool(step.artifacts)


def statuses_to_show(step: "StepRecord") -> tuple[str, ...]:
    """The statuses of the children that are listed. The child of a subworkflow step is always listed."""
    return () if SUBWORKFLOW in step.artifacts else BAD


def children_text(step: "StepRecord") -> str:
    """How far the children of a step are, in a line."""
    ((kind, found),) = step.artifacts.items()
    if kind == "maestro_foreach":
        overview = found["foreach_overview"]
        counts = {**overview["stats"], **overview["running_stats"]}
        return f"{output.counted(found['total_loop_count'], 'iteration')}{_counts(counts)}"
    if kind == "maestro_while":
        return f"round {found['last_iteration'] or 0}{_after(found['last_status'])}"
    number = found["subworkflow_instance_id"]
    return f"{found['subworkflow_id']}{f' {number}' if number else ''}{_after(found['subworkflow_status'])}"


def are_all_there(step: "StepRecord") -> bool:
    """Whether the view knows the end of each iteration that an ended step has launched. It may learn it a bit later."""
    found = step.artifacts.get("maestro_foreach")
    if found is None:
        return True
    overview = found["foreach_overview"]
    return not overview["running_stats"] and sum(overview["stats"].values()) >= found["next_loop_index"]


def leaves_text(rollup: "Object | None") -> str:
    """How many steps there are in a tree, and in which status. Of an earlier run the view does not know it."""
    if rollup is None:
        return "unknown"
    counts = {status: entry["cnt"] for status, entry in rollup["overview"].items()}
    return f"{output.counted(rollup['total_leaf_count'], 'step')}{_counts(counts)}"


def _counts(counts: Mapping[str, int]) -> str:
    said = ", ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=lambda one: -one[1]))
    return f": {said}" if said else ""


def _after(status: str | None) -> str:
    return f": {status}" if status else ""


def show_children(at: tuple[str, int], told: "Sequence[Told]") -> None:
    """The composite steps of an instance, and below each step the children that did not succeed."""
    tables.stdout().print()
    tables.show(
        ("step", "children", "steps below"), [(step.step_id, children_text(step), _below(step)) for step, _ in told]
    )
    rows = [
        (step.step_id, f"{one.workflow_id} {one.workflow_instance_id}", one.workflow_run_id, one.status, one.reason)
        for step, children in told
        for one in children[:SHOWN_MAX]
    ]
    if rows:
        tables.stdout().print()
        tables.show(("step", "child", "run", "status", "reason"), rows)
    for step, children in told:
        if len(children) > SHOWN_MAX:
            wanted = [word for status in statuses_to_show(step) for word in ("--status", status)]
            more = output.command("run", "list", "--parent", f"{at[0]}/{at[1]}", "--step", step.step_id, *wanted)
            output.say(f"more children of {step.step_id}: {more}")


def _below(step: "StepRecord") -> str:
    ((kind, found),) = step.artifacts.items()
    if kind == "maestro_foreach":
        return leaves_text(found["foreach_overview"]["rollup"])
    if kind == "maestro_while":
        before, last = found["rollup"], found["last_overview"]
        return leaves_text(before if before is None or last is None else _together(before, last["rollup_overview"]))
    return leaves_text(found["subworkflow_overview"]["rollup_overview"])


def _together(one: "Object", other: "Object") -> "Object":
    """The steps of the last round of a while step, and those of the rounds before it."""
    counts = Counter({status: entry["cnt"] for status, entry in one["overview"].items()})
    counts.update({status: entry["cnt"] for status, entry in other["overview"].items()})
    return {"total_leaf_count": counts.total(), "overview": {name: {"cnt": count} for name, count in counts.items()}}
