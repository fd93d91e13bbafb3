"""What all publishers share: the number of a key's last record, and where the event stands that it is made from."""

from typing import Any, NamedTuple

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


class Source(NamedTuple):
    """The coordinates of an event in our history."""

    topic: str
    partition: int
    offset: int


def source_of(message: Message[Any]) -> Source:
    """Where a message stands. The id of one that was read from a topic is made of its coordinates."""
    topic, partition, offset = message.id.rsplit("-", 2)
    return Source(topic, int(partition), int(offset))


def next_number(state: Numbered, key: str) -> int:
    """The number of the next record of a key."""
    found = state.numbers.get((key,))
    return 1 if found is None else found.last + 1


def ignore_the_rest(publisher: Processor[Any]) -> None:
    """Publish nothing about the events of the inputs that nothing has been decided for."""
    for contract in {contract for stream in publisher.inputs for contract in stream.contracts}:
        if contract not in publisher.deciders:
            publisher.ignores(contract)
