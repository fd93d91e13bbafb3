"""Who wants to hear of a change: waiters name what they wait for by these words."""

from collections.abc import Callable, Mapping
from typing import Final

from kapelle.views.changes import Cell, Change, Put

ANYTHING: Final = "*"  # told with every commit
CANCELLATIONS: Final = "cancellations"


def request_news(request_id: Cell) -> str:
    """A request has an outcome."""
    return f"request/{request_id}"


def run_news(workflow_id: Cell, instance_id: Cell) -> str:
    """Something happened to an instance."""
    return f"run/{workflow_id}/{instance_id}"


def task_news(task_type: Cell) -> str:
    """There is a task of a type."""
    return f"tasks/{task_type}"


def _of_instance(change: Put) -> str:
    cells = {**change.key, **change.cells}
    return run_news(cells["workflow_id"], cells["instance_id"])


NEWS: Final[Mapping[str, Callable[[Put], str]]] = {
    "requests": lambda change: request_news(change.cells["request_id"]),
    "tasks": lambda change: task_news(change.cells.get("type")),
    "cancellations": lambda _: CANCELLATIONS,
    "timeline": _of_instance,
}


def news_of(change: Change) -> str | None:
    """What to tell the waiters of a change. Each event of a run leaves an entry of its timeline, so that is enough."""
    if not isinstance(change, Put):
        return None
    tell = NEWS.get(change.table)
    return None if tell is None else tell(change)
