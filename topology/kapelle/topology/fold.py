"""Folding one message: decode, decide, encode, apply, send — in this order, so that a failure leaves nothing behind.

Whatever can be refused is refused before the first table is written: a record that does not decode, a decision that
raises, an effect that is too large. Only `apply` can fail after that, and then the whole cycle is given up.
"""

from collections import deque
from typing import Any

from kapelle.processors.effects import Emit
from kapelle.processors.errors import BadDeclaration
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.schemas.contracts import Stage
from kapelle.schemas.errors import SchemaError
from kapelle.schemas.headers import HeaderForm
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.deadletters import NOWHERE, Coordinates, dead_letter, letter_bytes_max
from kapelle.topology.delivery import Delivery
from kapelle.topology.errors import ApplyFailed, FoldError, HandlerFailed, TimerNotSettled, UnexpectedType
from kapelle.topology.log import Headers, Log, Place, Record
from kapelle.topology.metrics import Counters
from kapelle.topology.settings import OnBug
from kapelle.topology.shard import Shard


class Root:
    """Where a cascade began. Its outputs are numbered, so that each has an id that every attempt makes again."""

    __slots__ = ("count", "id")

    def __init__(self, id: str) -> None:
        self.id = id
        self.count = 0

    def next(self) -> str:
        self.count += 1
        return f"{self.id}#{self.count}"


# What waits to be folded: a record, or a message with the root of its cascade and the topic that it skips, if it does.
Entry = tuple[Shard, Record, None, None] | tuple[Shard, Message[Any], Root, str | None]
Out = tuple[Place, bytes, bytes, Headers]
Source = Record | str | None  # what a message came from: a record, a command that skips a topic, or a timer


class Fold:
    """Folds entries into tables and outputs. Commands for our own shards join the queue."""

    def __init__(self, topology: Topology, codec: Codec, *, log: Log, delivery: Delivery, counters: Counters) -> None:
        self._topology = topology
        self._codec = codec
        self._letters = Codec(codec.catalog, record_bytes_max=letter_bytes_max(codec.record_bytes_max))
        self._log = log
        self._delivery = delivery
        self._counters = counters
        self._forms: dict[tuple[str, type], HeaderForm] = {}
        self._outputs: dict[str, dict[str, tuple[str, int]]] = {
            p.name: {s.name: (topology.topic(s), topology.partitions(s)) for s in p.outputs}
            for p in topology.processors.values()
        }
        self.on_bug = OnBug.STOP
        self.queue: deque[Entry] = deque()
        self.touched: set[Shard] = set()
        self.poisoned: dict[tuple[str, str], str] = {}  # messages whose apply failed: (processor, id) → why
        self.now_ms = 0
        self.time = b""

    def entry(self, entry: Entry) -> None:
        """Fold one entry of the queue."""
        shard = entry[0]
        self.touched.add(shard)
        if entry[2] is None:
            self._record(shard, entry[1])
        else:
            self._message(shard, entry[1], entry[2], entry[3])

    def _record(self, shard: Shard, record: Record) -> None:
        """Decode, then fold. What cannot be decoded is put aside."""
        source = shard.inputs[record.topic]
        if record.offset < source.next:
            self._counters.repeats += 1
            return
        source.next = record.offset + 1
        self._counters.records += 1
        try:
            message = self._decoded(shard, record)
        except (SchemaError, FoldError) as error:
            self._put_aside(shard, Coordinates.of(record), (Stage.DECODE, error))
            return
        self._message(shard, message, Root(message.id), record)

    def _decoded(self, shard: Shard, record: Record) -> Message[Any]:
        if record.key is None or record.value is None:
            raise FoldError(f"Expected a key and a value, but the {'key' if record.key is None else 'value'} is null")
        value = self._codec.decode(record.value)
        if type(value) not in shard.deciders:
            expected = sorted(t.__name__ for t in shard.deciders if t is not TimerDue)
            raise UnexpectedType(record.topic, type(value).__name__, expected)
        try:
            key = record.key.decode()
        except UnicodeDecodeError as error:
            raise FoldError(f"Expected a UTF-8 key, but found {record.key[:64]!r}") from error
        trace = None
        if record.headers:
            for name, content in record.headers:
                if name == "traceparent":
                    trace = content.decode("ascii", "replace")
        return Message(key, value, f"{record.topic}-{record.partition}-{record.offset}", trace, record.headers or ())

    def _message(self, shard: Shard, message: Message[Any], root: Root, source: Source) -> None:
        if self.poisoned and (shard.processor.name, message.id) in self.poisoned:
            reason = FoldError(self.poisoned[shard.processor.name, message.id])
            self._put_aside(shard, self._coordinates(shard, message, source), (Stage.APPLY, reason))
            return
        try:
            effects = list(shard.deciders[type(message.value)](message, shard.reader, self.now_ms))
        except Exception as error:  # noqa: BLE001 - a processor's own code: the policy says what becomes of it
            self._bug(shard, message, source, (Stage.DECIDE, error))
            return
        try:
            outs, events, direct = self._encoded(shard, message, root, effects)
        except (SchemaError, BadDeclaration) as error:
            self._bug(shard, message, source, (Stage.ENCODE, error))
            return
        for event in events:
            self._apply(shard, message, event)
        if type(message.value) is TimerDue:
            self._check_settled(shard, message)
        for place, key, value, headers in outs:
            self._log.send(place, key, value, headers)
        self.queue.extend(direct)
        self._counters.events += len(events)
        self._counters.sent += len(outs) - len(events)
        self._counters.delivered += len(direct)

    def _encoded(
        self, shard: Shard, message: Message[Any], root: Root, effects: list[Any]
    ) -> tuple[list[Out], list[Message[Any]], list[Entry]]:
        """The effects as bytes for the log, events for `apply` and commands for the queue."""
        outs: list[Out] = []
        events: list[Message[Any]] = []
        direct: list[Entry] = []
        encode = self._codec.encode
        for effect in effects:
            value = effect.value
            id = root.next()
            if type(effect) is Emit:
                if type(value) not in shard.appliers:
                    raise BadDeclaration(f"{type(value).__name__} is not an event of {shard.processor.name!r}")
                headers = self._form(shard, type(value)).make(id, self.time, message.trace)
                outs.append((shard.events, message.key.encode(), encode(value), headers))
                events.append(Message(message.key, value, id, message.trace))
                continue
            place = self._place(shard, effect.stream, effect.key)
            target = self._delivery.target(place)
            if target is not None:
                direct.append((target, Message(effect.key, value, id, message.trace), root, place.topic))
            else:
                headers = self._form(shard, type(value)).make(id, self.time, message.trace)
                outs.append((place, effect.key.encode(), encode(value), headers))
        return outs, events, direct

    def overflow(self) -> list[Record]:
        """The cycle is full: commands left in the queue take their topics, records wait for the next cycle.

        Timers wait as well: they are still due.
        """
        left: list[Record] = []
        for entry in self.queue:
            if entry[2] is None:
                left.append(entry[1])
            elif entry[3] is not None:
                self._send_command(entry[0], entry[1], entry[3])
        self.queue.clear()
        return left

    def _send_command(self, shard: Shard, message: Message[Any], topic: str) -> None:
        place = Place(topic, shard.partition)
        self._delivery.overflowed(place)
        headers = self._form(shard, type(message.value)).make(message.id, self.time, message.trace)
        self._log.send(place, message.key.encode(), self._codec.encode(message.value), headers)
        self._counters.delivered -= 1
        self._counters.sent += 1

    def _apply(self, shard: Shard, message: Message[Any], event: Message[Any]) -> None:
        try:
            shard.appliers[type(event.value)](event, shard.writer)
        except Exception as error:
            failed = HandlerFailed(shard.processor.name, f"apply of {type(event.value).__name__}", error)
            if self.on_bug is OnBug.STOP:
                raise failed from error
            # The tables may be half written. Give the cycle up, and put this message aside when it comes again.
            self.poisoned[shard.processor.name, message.id] = str(failed)
            raise ApplyFailed(str(failed)) from error

    def _check_settled(self, shard: Shard, message: Message[TimerDue]) -> None:
        timer = message.value
        if shard.writer.timers.due_at_ms(message.key, timer.name) == timer.due_at_ms:
            raise TimerNotSettled(shard.processor.name, message.key, timer.name)

    def _bug(self, shard: Shard, message: Message[Any], source: Source, failure: tuple[Stage, Exception]) -> None:
        stage, error = failure
        if self.on_bug is OnBug.STOP:
            what = f"{stage.lower()} on {type(message.value).__name__} {message.id}"
            raise HandlerFailed(shard.processor.name, what, error) from error
        if type(message.value) is TimerDue:
            # A timer has no record to put aside. It is left as it is, and tried again after the next start.
            shard.parked.add((message.key, message.value.name, message.value.due_at_ms))
        self._put_aside(shard, self._coordinates(shard, message, source), failure)

    def _coordinates(self, shard: Shard, message: Message[Any], source: Source) -> Coordinates:
        if type(source) is Record:
            return Coordinates.of(source)
        value = None if type(message.value) is TimerDue else self._codec.encode(message.value)
        place = Place(str(source or shard.changelog.topic), shard.partition)
        return Coordinates(place, NOWHERE, message.id, message.key.encode(), value)

    def _put_aside(self, shard: Shard, at: Coordinates, failure: tuple[Stage, Exception]) -> None:
        letter = dead_letter(
            shard.processor.name, at, failure, now_ms=self.now_ms, record_bytes_max=self._codec.record_bytes_max
        )
        headers = self._form(shard, type(letter)).make(f"{at.id}#dead", self.time, None)
        place = Place(self._topology.dead_letters, 0)
        self._log.send(place, at.key or b"", self._letters.encode(letter), headers)
        self._counters.dead_letters += 1

    def _place(self, shard: Shard, stream: Stream, key: str) -> Place:
        try:
            topic, partitions = self._outputs[shard.processor.name][stream.name]
        except KeyError:
            raise BadDeclaration(f"{stream.name!r} is not an output of {shard.processor.name!r}") from None
        return Place(topic, partition_of(key, partitions))

    def _form(self, shard: Shard, contract: type) -> HeaderForm:
        known = (shard.processor.name, contract)
        form = self._forms.get(known)
        if form is None:
            source = f"/{self._topology.prefix}/{shard.processor.name}"
            form = self._forms[known] = HeaderForm(source, contract.__name__)
        return form
