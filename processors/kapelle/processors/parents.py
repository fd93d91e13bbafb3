"""What a child tells its parent when it has ended, or was never created."""

from decimal import Decimal
from typing import Final

import msgspec

from kapelle.processors.keys import ids_in, ids_of
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import ChildKind, InstanceStatus, Parent

# The children of these are iterations and rounds: instances of a block, which belong to the workflow around it.
INLINE: Final = frozenset({ChildKind.FOREACH, ChildKind.WHILE})
NOTHING_GIVEN: Final = "{}"
TOO_LARGE: Final = '{"is_too_large":true}'


class GivenBack(msgspec.Struct, frozen=True):
    """What a child gives back to its parent: values of JSON."""

    steps: dict[str, dict[str, object]] = {}  # by step: the parameters that the parent asks for
    carried: dict[str, object] = {}  # the loop values of the next round
    is_too_large: bool = False  # nothing is given back


read_back: Final = msgspec.json.Decoder(GivenBack, float_hook=Decimal).decode


def check_parent(parent: Parent) -> None:
    """Refuse a parent whose instances have no keys. Raises `KeyUnreadable`."""
    for key in (parent.key, parent.root, parent.home):
        ids_of(key)


def read_parent(parent: Parent | None) -> Parent | None:
    """The parent that an event names. One without keys is none: a reader of a history goes on with the rest."""
    if parent is None or ids_in(parent.key) is None or ids_in(parent.root) is None:
        return None
    return parent


def child_end(
    parent: Parent, child_run_id: int, status: InstanceStatus, reason: str, *, values: str = NOTHING_GIVEN
) -> c.RecordChildEnd:
    """The answer of a child. Its run is 0 if it was refused: then it never existed."""
    return c.RecordChildEnd(
        run_id=parent.run_id,
        step_id=parent.step_id,
        attempt=parent.attempt,
        iteration=parent.iteration,
        number=parent.number,
        child_run_id=child_run_id,
        status=status,
        reason=reason,
        values=values,
    )
