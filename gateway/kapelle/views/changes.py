"""What an event does to the view, as data. `projection` makes changes, `writing` carries them out.

Partitions and streams are folded in whatever order they come, so a change must give the same rows in every order that
keeps each partition's own: a column belongs to the events of one stream, or rises by a guard that never falls.
"""

from collections.abc import Mapping

import msgspec

Cell = str | int | None
Cells = Mapping[str, Cell]


class Put(msgspec.Struct, frozen=True, gc=False):
    """Set some columns of a row, which is made if it is not there.

    `first` are columns that keep what they have. With a `guard`, nothing is set if that column of the row is greater.
    """

    table: str
    key: Cells
    cells: Cells
    first: Cells = {}
    guard: str | None = None


class Amend(msgspec.Struct, frozen=True, gc=False):
    """Set some columns of the rows that match, if there are any."""

    table: str
    where: Cells
    cells: Cells


class Erase(msgspec.Struct, frozen=True, gc=False):
    """Remove the rows that match."""

    table: str
    where: Cells


class Forget(msgspec.Struct, frozen=True, gc=False):
    """Hide a workflow and all instances that it has had so far."""

    workflow_id: str


class Label(msgspec.Struct, frozen=True, gc=False):
    """Let an instance that is there be found by labels, and by the tags that its version declares."""

    workflow_id: str
    instance_id: int
    version: int
    labels: tuple[str, ...]


Change = Put | Amend | Erase | Forget | Label
