"""Putting records aside: the outputs that hold letters, and the counts of them."""

from typing import NamedTuple

from kapelle.processors.messages import Message
from kapelle.schemas import Codec, Contract
from kapelle.schemas.contracts import DeadLetter, Stage
from kapelle.schemas.errors import SchemaError
from kapelle.topology.build import Topology
from kapelle.topology.deadletters import NOWHERE, Original, dead_letter, letter_bytes_max, loss_letter
from kapelle.topology.log import KEY_BYTES_MAX, Loss, Out, Place, Record
from kapelle.topology.metrics import Counters
from kapelle.topology.shard import Shard

# What a message came from: a record, a command that skips a topic, or a timer.
Source = tuple[Place, Record] | str | None
Failure = tuple[Stage, BaseException]


class When(NamedTuple):
    """The time of a letter, as a number and as headers have it."""

    now_ms: int
    text: bytes


class Aside:
    """Makes letters about records that cannot be folded, and about input that was lost before it was read."""

    def __init__(self, topology: Topology, codec: Codec, counters: Counters) -> None:
        self._place = Place(topology.dead_letters, 0)
        self._codec = codec
        self._letters = Codec(codec.catalog, record_bytes_max=letter_bytes_max(codec.record_bytes_max))
        self._counters = counters

    def original(self, shard: Shard, message: Message[object], source: Source) -> Original:
        """Where a message stood, and what is needed to publish it again."""
        if isinstance(source, tuple):
            return Original.of(*source)
        place = Place(source or shard.changelog.topic, shard.partition)
        try:
            value = self._codec.encode(message.value) if isinstance(message.value, Contract) else None
        except SchemaError:
            value = None  # the letter tells what the message came from; that is all there is
        return Original(place, NOWHERE, message.id, message.key.encode(), value)

    def letter(self, shard: Shard, at: Original, failure: Failure, *, when: When) -> Out:
        """The letter about a record that failed at a stage."""
        record_bytes_max = self._codec.record_bytes_max
        letter = dead_letter(shard.processor.name, at, failure, now_ms=when.now_ms, record_bytes_max=record_bytes_max)
        key = at.key if at.key is not None and len(at.key) <= KEY_BYTES_MAX else b""
        return self._out(shard, letter, f"{at.id}#dead", (key, when))

    def loss(self, shard: Shard, loss: Loss, when: When) -> Out:
        """The letter about input that vanished before it was read."""
        self._counters.lost_inputs += 1
        self._counters.lost_offsets += loss.count or 0
        letter = loss_letter(shard.processor.name, loss, when.now_ms)
        return self._out(shard, letter, f"{loss.place}-{loss.first}-lost#dead", (b"", when))

    def _out(self, shard: Shard, letter: DeadLetter, name: str, sent: tuple[bytes, When]) -> Out:
        key, when = sent
        self._counters.put_aside(shard.processor.name)
        return self._place, key, self._letters.encode(letter), shard.forms[DeadLetter].make(name, when.text, None)
