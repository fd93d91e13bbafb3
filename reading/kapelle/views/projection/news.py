"""The names of the news that waiters wait for."""

from typing import Final

from kapelle.views.rows import Cell

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
