"""How a worker reaches the engine: the one interface between the runner and HTTP, Kafka or a test.

    open ─▶ take, report, cancellations … ─▶ drain ─▶ report, cancellations … ─▶ close

`take`, `cancellations` and `drain` are called by one thread, `report` by another. A call that fails
with `TransportUnavailable` is retried; `TransportRefused` stops the worker.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from kapelle.schemas.contracts import Report, Task


class TaskReport(msgspec.Struct, frozen=True):
    """A report of the worker on a task."""

    task: Task
    report: Report
    message: str = ""
    outputs: str | None = None  # definitions of output parameters, as JSON
    log: str = ""  # what the step has written since the last report
    signals: str | None = None  # what the step announces, as JSON


class Answer(msgspec.Struct, frozen=True):
    """The outcome of a report. `accepted` is None where the engine's decision cannot be seen from here."""

    token: str
    accepted: bool | None = None
    reason: str = ""


class Transport(Protocol):
    """A way to the engine."""

    def open(self, worker: str, types: Sequence[str]) -> None:
        """Begin to serve tasks of these types under this name."""
        ...

    def take(self, room: int, wait_s: float) -> list[Task]:
        """Take tasks, at most as many as there is room for, each already leased to this worker. Waits for the first.

        A worker that is full calls it without room, to keep its membership.
        """
        ...

    def report(self, reports: Sequence[TaskReport]) -> list[Answer]:
        """Send reports on tasks, in this order. Returns when they cannot be lost any more."""
        ...

    def cancellations(self) -> list[tuple[str, str]]:
        """The tokens that were cancelled since the last call, each with the reason. Does not wait."""
        ...

    def drain(self) -> None:
        """Stop taking tasks, so that other workers get them at once. Reports can still be sent."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...
