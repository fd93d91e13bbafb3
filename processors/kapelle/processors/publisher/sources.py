"""Parts that all publishers share: the number of a key's next record, and the coordinates of the source event."""

from typing import Final

from kapelle.processors.initiators import initiator_of
from kapelle.processors.messages import Message, coordinates_of
from kapelle.processors.publisher.tables import Numbered
from kapelle.schemas.contracts import InitiatorType

INITIATORS: Final = {kind.value: kind for kind in InitiatorType}


def source_of(message: Message[object]) -> tuple[str, int, int]:
    """The topic, partition and offset of an event. Publishers have no timers, and read all their inputs from topics."""
    coordinates = coordinates_of(message.id)
    if coordinates is None:
        raise AssertionError(f"Expected the id of a record, but found {message.id!r}")
    return coordinates.topic, coordinates.partition, coordinates.offset


def initiator_type(written: str) -> InitiatorType:
    """The type of an initiator, which is JSON."""
    return INITIATORS.get(initiator_of(written).kind, InitiatorType.OTHER)


def next_number(state: Numbered, key: str) -> int:
    """The number of the next record of a key."""
    row = state.numbers.get((key,))
    return 1 if row is None else row.last + 1
