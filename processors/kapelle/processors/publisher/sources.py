"""What all publishers share: the number of a key's last record, and where the event stands that it is made from."""

from functools import lru_cache
from typing import Any, Final

import msgspec

from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.tables import Tables, table


class Number(msgspec.Struct, frozen=True, gc=False):
    """How many records a key has in a public topic."""

    last: int


class Numbered(Tables):
    """The tables of a publisher that needs no others."""

    numbers = table("numbers", key=tuple[str], row=Number)


PLACES_CACHED: Final = 4_096


def source_of(message: Message[Any]) -> tuple[str, int, int]:
    """The topic, partition and offset of a message. The id of one that was read from a topic is made of them."""
    place, _, offset = message.id.rpartition("-")
    topic, partition = _place(place)
    return topic, partition, int(offset)


@lru_cache(maxsize=PLACES_CACHED)
def _place(text: str) -> tuple[str, int]:
    topic, _, partition = text.rpartition("-")
    return topic, int(partition)


def next_number(state: Numbered, key: str) -> int:
    """The number of the next record of a key."""
    found = state.numbers.get((key,))
    return 1 if found is None else found.last + 1


def ignore_the_rest(publisher: Processor[Any]) -> None:
    """Publish nothing about the events of the inputs that nothing has been decided for."""
    for contract in {contract for stream in publisher.inputs for contract in stream.contracts}:
        if contract not in publisher.deciders:
            publisher.ignores(contract)
