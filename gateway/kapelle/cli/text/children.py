"""The children of composite steps for people: how many there are in each status, and how many steps below them."""

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Final

from kapelle.cli.text import output

if TYPE_CHECKING:
    from kapelle.client import StepRecord
    from kapelle.client.results import Object

# Steps in one of these are over.
ENDED: Final = frozenset(
    {
        "SUCCEEDED",
        "COMPLETED_WITH_ERROR",
        "SKIPPED",
        "DISABLED",
        "UNSATISFIED",
        "FATALLY_FAILED",
        "INTERNALLY_FAILED",
        "STOPPED",
        "TIMED_OUT",
    }
)


def is_composite(step: "StepRecord") -> bool:
    """Whether a step has started instances."""
    return bool(step.artifacts)


def children_text(step: "StepRecord") -> str:
    """How far the children of a step are, in a line."""
    ((kind, artifact),) = step.artifacts.items()
    if kind == "maestro_foreach":
        overview = artifact["foreach_overview"]
        counts = {**overview["stats"], **overview["running_stats"]}
        return f"{output.counted(artifact['total_loop_count'], 'iteration')}{counts_text(counts)}"
    if kind == "maestro_while":
        return f"round {artifact['last_iteration'] or 0}{_after(artifact['last_status'])}"
    number = artifact["subworkflow_instance_id"]
    return f"{artifact['subworkflow_id']}{f' {number}' if number else ''}{_after(artifact['subworkflow_status'])}"


def progress_text(step: "StepRecord") -> str:
    """How far the children of a step are, and the steps below them, in a line. The steps move between the children."""
    rollup = rollup_of(step)
    if rollup is None:
        return f"{children_text(step)}; steps unknown"
    return f"{children_text(step)}; {leaves_text(rollup)}" if rollup["total_leaf_count"] else children_text(step)


def rollup_of(step: "StepRecord") -> "Object | None":
    """The steps below a composite step, counted by status. None: the server does not know it of an earlier run."""
    ((kind, artifact),) = step.artifacts.items()
    if kind == "maestro_foreach":
        artifact = artifact["foreach_overview"]
    elif kind == "maestro_subworkflow":
        artifact = {"rollup": artifact["subworkflow_overview"]["rollup_overview"]}
    # Of a while step, a server may count the steps of the last round apart from those of the rounds before it.
    parts = [artifact["rollup"], (artifact.get("last_overview") or {}).get("rollup_overview")]
    known = [dict(part) for part in parts if part is not None]
    return reduce(_together, known) if known else None


def _together(one: "Object", other: "Object") -> "Object":
    overview = {status: dict(entry) for status, entry in one["overview"].items()}
    for status, entry in other["overview"].items():
        before = overview.get(status, {})
        refs = {**before.get("ref", {}), **entry.get("ref", {})}
        overview[status] = {"cnt": before.get("cnt", 0) + entry["cnt"], **({"ref": refs} if refs else {})}
    return {"total_leaf_count": one["total_leaf_count"] + other["total_leaf_count"], "overview": overview}


def are_all_there(step: "StepRecord") -> bool:
    """Whether the view knows the end of everything below an ended step. It may learn it a bit later."""
    if not is_composite(step):
        return True
    rollup = rollup_of(step)
    if rollup is not None and step.status in ENDED and not rollup["overview"].keys() <= ENDED:
        return False
    artifact = step.artifacts.get("maestro_foreach")
    if artifact is None:
        return True
    overview = artifact["foreach_overview"]
    return not overview["running_stats"] and sum(overview["stats"].values()) >= artifact["next_loop_index"]


def leaves_text(rollup: "Object | None") -> str:
    """How many steps there are in a tree, and in which status. Of an earlier run the view does not know it."""
    if rollup is None:
        return "unknown"
    counts = {status: entry["cnt"] for status, entry in rollup["overview"].items()}
    return f"{output.counted(rollup['total_leaf_count'], 'step')}{counts_text(counts)}"


def counts_text(counts: Mapping[str, int]) -> str:
    """How many there are in each status, the most first, behind a colon; nothing if there are none."""
    shown = ", ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=lambda pair: -pair[1]))
    return f": {shown}" if shown else ""


def _after(status: str | None) -> str:
    return f": {status}" if status else ""
