"""Look-ups for decisions: the workflow, its properties, its run strategy, its counts."""

from typing import Final, TypeVar

from kapelle.processors.definitions import Properties, RunStrategy
from kapelle.processors.errors import ProcessorError
from kapelle.processors.refusals import invalid, not_found
from kapelle.processors.workflows.tables import Counts, Workflow, WorkflowTables

NO_COUNTS: Final = Counts()
R = TypeVar("R")


class RowMissing(ProcessorError):
    """A row that another one stands for is not there: the tables are not what history makes of them."""

    def __init__(self, table: str, *key: str | int) -> None:
        super().__init__(f"Expected a row of {table!r} for {'/'.join(map(str, key))}, but there is none")


def there(row: R | None, table: str, *key: str | int) -> R:
    """A row that must be there."""
    if row is None:
        raise RowMissing(table, *key)
    return row


def workflow_of(state: WorkflowTables, key: str) -> Workflow:
    """The workflow, which must exist."""
    workflow = state.workflows.get((key,))
    if workflow is None or workflow.is_deleted:
        raise not_found(f"Expected workflow {key!r} to exist, but it does not")
    return workflow


def counts_of(state: WorkflowTables, key: str) -> Counts:
    """How many instances there are in which state."""
    return state.counts.get((key,)) or NO_COUNTS


def properties_of(state: WorkflowTables, key: str, workflow: Workflow) -> Properties | None:
    """The latest properties; None before the first push."""
    snapshot = state.properties.get((key, workflow.snapshot))
    return None if snapshot is None else Properties.parse(snapshot.text)


def definition_of(state: WorkflowTables, key: str, version: int) -> str:
    """The workflow of a version as JSON."""
    return there(state.versions.get((key, version)), "versions", key, version).definition


def strategy_of(state: WorkflowTables, key: str) -> RunStrategy:
    """The run strategy as it is now: it counts for all that are queued, whenever they came."""
    workflow = state.workflows.get((key,))
    properties = None if workflow is None else properties_of(state, key, workflow)
    return RunStrategy() if properties is None else properties.run_strategy


def version_by(selector: str, workflow: Workflow, key: str) -> int:
    """The version that `active`, `latest`, `default` or a number means."""
    word = selector.lower()
    if word == "latest" or (word == "default" and not workflow.active_version):
        return workflow.latest_version
    if word in ("active", "default"):
        if not workflow.active_version:
            raise not_found(f"Expected workflow {key!r} to have an active version, but it has none")
        return workflow.active_version
    if not (word.isascii() and word.isdigit()):
        raise invalid(f"Expected active, latest, default or a number as version, but found {selector[:80]!r}")
    if not 1 <= int(word[:20]) <= workflow.latest_version:
        raise not_found(
            f"Expected a version of workflow {key!r} from 1 to {workflow.latest_version}, but found {word[:20]}"
        )
    return int(word)
