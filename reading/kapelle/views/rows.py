"""The changes that an event may make to the rows of the view: the interface between `projection` and its writers.

Partitions and streams are folded in whatever order they come, so what is said must give the same rows in every order
that keeps each partition's own: a column belongs to the events of one stream, or rises and never falls.
"""

from typing import Protocol

import msgspec

Cell = str | int | None
Cells = dict[str, Cell]
Key = tuple[Cell, ...]  # the columns of a table's primary key (`schema.KEYS`)

Run = tuple[str, int, int]  # workflow, instance and run
# What was told of an instance at one time by one partition: workflow, instance, time, stream, partition.
Page = tuple[str, int | None, int, str, int]
# One thing of it: the position of its event, run, phase, type, step, attempt, iteration, and what it says as JSON.
Line = tuple[int, int | None, int, str, str | None, int | None, int | None, msgspec.Raw]


class Rows(Protocol):
    """The rows of the view, to be changed. What is handed over is not looked at again by whoever hands it over."""

    def put(self, table: str, key: Key, cells: Cells, first: Cells | None = None) -> None:
        """Set some columns of a row, which is made if it is not there. `first` are columns that keep what they have."""
        ...

    def stand(self, run: Run, rank: int, status: str) -> None:
        """A run has a status, and so has its instance if that is its latest run, unless one of a higher rank is known.

        Nothing else sets these columns.
        """
        ...

    def tell(self, page: Page, line: Line) -> None:
        """Add an entry to a timeline, after those that its partition has told before."""
        ...

    def amend(self, table: str, where: Cells, cells: Cells) -> None:
        """Set some columns of the rows that match, if there are any."""
        ...

    def erase(self, table: str, where: Cells) -> None:
        """Remove the rows that match."""
        ...

    def forget(self, workflow_id: str) -> None:
        """Hide a workflow and all instances that it has had so far."""
        ...

    def label(
        self, instance: tuple[str, int], created_at_ms: int | None, version: int, labels: tuple[str, ...]
    ) -> None:
        """Let an instance that is there be found by labels, and by the tags that its version declares.

        `created_at_ms` is the instance's own; None of one whose first run came before.
        """
        ...

    def leaf(self, at: tuple[str, int, str], cells: Cells) -> None:
        """Set some columns of a step in `leaves`, and count it again in the ancestors of its instance."""
        ...

    def descend(self, instance: tuple[str, int], ancestors: str, bucket: str) -> None:
        """A run of a child has begun: which steps wait for it, and where it counts in the nearest of them."""
        ...

    def news(self, text: str) -> None:
        """Let those know who wait for this (`projection.news`)."""
        ...
