"""Folding one message: decode, decide, encode, apply, send — in this order, so that a failure leaves nothing behind.

Whatever can be refused is refused before the first table is written: a record that does not decode, a decision that
raises, an effect that is too large. Only `apply` can fail after that, and then the whole cycle is given up.
"""

import logging
from collections import deque
from collections.abc import Sequence
from math import inf
from time import perf_counter

import msgspec

from kapelle.processors.effects import Effect, Emit, Send, SetAside
from kapelle.processors.errors import BadDeclaration
from kapelle.processors.messages import Coordinates, Foreign, Message, TimerDue, id_prefix
from kapelle.processors.streams import Keep
from kapelle.schemas import Codec, Contract
from kapelle.schemas.contracts import Stage
from kapelle.schemas.errors import SchemaError, UnknownFingerprint
from kapelle.schemas.headers import rfc3339, trace_of
from kapelle.schemas.learner import Learner
from kapelle.topology.aside import Aside, Failure, Source, When
from kapelle.topology.build import Topology, partition_of
from kapelle.topology.deadletters import Original, origin_of
from kapelle.topology.delivery import Delivery
from kapelle.topology.errors import (
    ApplyFailed,
    DecisionExhausted,
    FoldError,
    HandlerFailed,
    KeyTooLarge,
    NotUnderstood,
    TimerNotSettled,
    UnexpectedType,
    UnfitRecord,
)
from kapelle.topology.log import KEY_BYTES_MAX, Headers, Log, Loss, Out, Place, Record
from kapelle.topology.metrics import Counters
from kapelle.topology.overtime import OutOfTime, Overtime
from kapelle.topology.settings import OnBug, RecordAt
from kapelle.topology.shard import Forms, Input, Shard
from kapelle.topology.tables import RowCorrupt, RowVersionUnknown, StoreError

TRACE_BYTES_MAX = 512
FRAMINGS = (b"\xc3\x01", b"\x00")  # how a value of ours begins: single-object encoding, or a registry id
KEY_CHARS_SAFE = KEY_BYTES_MAX // 4  # a key of so many characters fits, whatever they are
# Raised through handlers, but by the disk below the tables: no message must be put aside for it.
NOT_THE_PROCESSORS = (StoreError, RowCorrupt, RowVersionUnknown)
# What a decision can run out of. It depends on the message, so the message is given up, whatever the policy for bugs.
RAN_OUT_OF = {OutOfTime: "time", MemoryError: "memory", RecursionError: "stack"}
EXHAUSTED = tuple(RAN_OUT_OF)
KEY_CHARS_SHOWN = 80

_log = logging.getLogger("kapelle.fold")


class Root(msgspec.Struct, gc=False):
    """Where a cascade began. Its outputs are numbered, so that each has an id that every attempt makes again."""

    id: str
    count: int = 0


# A message that is not a record: a timer, or a command, the topic that it skips, and how its sender makes headers.
Entry = tuple[Shard, Message[TimerDue], Root, None, Forms] | tuple[Shard, Message[Contract], Root, str, Forms]
Origin = tuple[Source, Root | None]  # what a message came from, and the cascade that it belongs to, if there is one yet


class Fold:
    """Folds records and messages into tables and outputs. Commands for our own shards join the queue."""

    def __init__(self, topology: Topology, codec: Codec, *, log: Log, delivery: Delivery, counters: Counters) -> None:
        self._codec = codec
        self._decode = codec.decode
        self._encode = codec.encode
        self._aside = Aside(topology, codec, counters)
        self._learner = Learner(codec.catalog, log.schemas, lambda: self.steady_ms)
        self._log = log
        self._delivery = delivery
        self._counters = counters
        self._public = frozenset([topology.topic(s) for s in topology.streams.values() if s.public])
        self._compacted = frozenset([topology.topic(s) for s in topology.streams.values() if s.keep is Keep.LATEST])
        self._latest: dict[tuple[Place, bytes | None], Out] = {}  # for compacted topics: sent when the cycle is full
        self._ignored = {p.name: codec.by_head(p.ignored) for p in topology.processors.values()}
        # An event may be sent on as it is: contracts never change.
        self._encoded_last: tuple[Contract | None, bytes] = None, b""
        self.on_bug = OnBug.STOP
        self.overtime = Overtime(0)
        self.slow_s = inf
        self.is_slow = False  # a decision of this cycle was
        self.set_aside: frozenset[RecordAt] = frozenset()
        self.queue: deque[Entry] = deque()
        self.outs: list[Out] = []  # made, not yet sent
        self.touched: set[Shard] = set()
        self.poisoned: dict[tuple[str, str], str] = {}  # messages whose apply failed: (processor, id) → why
        self.now_ms = 0  # what the wall clock says
        self.steady_ms = 0
        self.time = b""
        self._other_time = 0, b""  # of shards that are not at the time of the wall clock

    def records(  # noqa: C901, PLR0915 - one loop that every record goes through: each branch is a way to be wrong
        self, shard: Shard, place: Place, records: Sequence[Record]
    ) -> None:
        """Fold records of one place. What cannot be decoded is put aside. After a slow decision the rest is left."""
        source = shard.inputs[place.topic]
        checks, takes_foreign, decode, fold = source.checks, source.takes_foreign, self._decode, self._message
        prefix = id_prefix(place.topic, place.partition)
        ignored, head_bytes = self._ignored[shard.processor.name], self._codec.head_bytes
        self.touched.add(shard)
        last_s, slow_s = perf_counter(), self.slow_s
        named = {
            letter.offset
            for letter in self.set_aside
            if letter.topic == place.topic and letter.partition == place.partition
        }
        for record in records:
            offset = record.offset
            if offset < source.next:
                self._counters.repeats += 1
                continue
            source.next = offset + 1
            if named and offset in named:
                self._undecodable(shard, (place, record), FoldError("The operator has set this record aside"))
                continue
            key, data, headers = record.key, record.value, record.headers
            if takes_foreign:
                if data is None or not data.startswith(FRAMINGS):
                    self._foreign(shard, place, record)
                    continue
                key = key or b""
            read_keys = ignored.get(data[:head_bytes]) if ignored and data is not None else None
            if read_keys is not None and (key is None or not key.startswith(read_keys)):
                continue
            if key is None or data is None:
                part = "key" if key is None else "value"
                self._undecodable(
                    shard, (place, record), FoldError(f"Expected a key and a value, but the {part} is null")
                )
                continue
            try:
                value = decode(data)
                text = key.decode()
            except UnknownFingerprint as error:
                self._unknown(shard, place, record, error)
                continue
            except SchemaError as error:
                self._undecodable(shard, (place, record), error)
                continue
            except UnicodeDecodeError:
                self._undecodable(shard, (place, record), FoldError(f"Expected a UTF-8 key, but found {key[:64]!r}"))
                continue
            check = checks.get(type(value))
            if check is None or len(key) > KEY_BYTES_MAX or check(text, value) is not None:
                self._undecodable(shard, (place, record), _wrong(source, key, value))
                continue
            trace = _trace(headers) if headers else None
            fold(shard, Message(text, value, f"{prefix}{offset}", trace, headers or ()), None, (place, record))
            now_s = perf_counter()
            if now_s - last_s > slow_s:
                self.is_slow = True
                return
            last_s = now_s

    def _foreign(self, shard: Shard, place: Place, record: Record) -> None:
        """A record that is not ours, for a stream that takes those: whoever decides on it makes out what it says."""
        headers = record.headers or ()
        value = Foreign(record.value, record.key, place.topic, place.partition, record.offset)
        message = Message("", value, Coordinates(*place, record.offset).id, _trace(headers), headers)
        self._message(shard, message, None, (place, record))

    def entry(self, entry: Entry) -> bool:
        """Fold a message of the queue. Returns whether that was slow."""
        if entry[3] is None:
            shard, due = entry[0], entry[1]
            if not _still_due(shard, due.key, due.value):
                return False  # what was folded before it has cancelled the timer, or moved it
            self._counters.fire(shard.processor.name, due.value.name)
        shard, message, root, topic, _ = entry
        self.touched.add(shard)
        began_s = perf_counter()
        self._message(shard, message, root, topic)
        was_slow = perf_counter() - began_s > self.slow_s
        self.is_slow = self.is_slow or was_slow
        return was_slow

    def _message(  # noqa: C901 - as `records`
        self, shard: Shard, message: Message[object], root: Root | None, source: Source
    ) -> None:
        """Decide on a message and carry it out. This is the path that every message takes: it is kept short.

        A record is the root of its own cascade, made when something comes of it; it has the processor's name in its id,
        because others may read the same record.
        """
        if self.poisoned and (shard.processor.name, message.id) in self.poisoned:
            why = FoldError(self.poisoned[shard.processor.name, message.id])
            self._give_up(shard, message, source, (Stage.APPLY, why))
            return
        overtime = self.overtime
        try:
            overtime.current = message
            try:
                effects = shard.deciders[type(message.value)](message, shard.reader, shard.time.now_ms)
                if type(effects) is not tuple:
                    effects = tuple(effects)
            finally:
                overtime.current = None
                if overtime.fired:
                    overtime.settle()
        except (Exception, OutOfTime) as error:  # noqa: BLE001 - a processor's own code: the policy says what becomes of it
            self._bug(shard, message, (source, root), (Stage.DECIDE, error))
            return
        if effects and type(effects[0]) is SetAside:
            aside = Stage.DECODE, NotUnderstood(effects[0].reason)
            self._put_aside(shard, self._aside.original(shard, message, source), aside)
            return
        made, queued = len(self.outs), len(self.queue)
        try:
            events = self._encoded(shard, message, root or Root(f"{shard.processor.name}/{message.id}"), effects)
        except Exception as error:  # noqa: BLE001 - as above: the effects are what that code made of them
            self._take_back(made, queued)
            self._bug(shard, message, (source, root), (Stage.ENCODE, error))
            return
        try:
            for event in events:
                shard.appliers[type(event.value)](event, shard.writer)
                self._counters.emit(event.value)
        except Exception as error:  # noqa: BLE001 - as above
            self._apply_failed(shard, message, event, error)
        if type(message.value) is TimerDue:
            self._check_settled(shard, message.key, message.value)
        if len(self.queue) > queued:
            self._counters.delivered += len(self.queue) - queued

    def _encoded(
        self, shard: Shard, message: Message[object], root: Root, effects: Sequence[Effect]
    ) -> list[Message[Contract]]:
        """Add the effects to the outputs, as bytes, and to the queue. Returns the events among them, for `apply`."""
        events: list[Message[Contract]] = []
        key, trace = message.key, message.trace
        time = self._time(shard) if shard.events_public else b""
        for effect in effects:
            root.count += 1
            name = f"{root.id}#{root.count}"
            if type(effect) is not Emit:
                self._send(shard, effect, name, (root, trace))
                continue
            value = effect.value
            kind = type(value)
            if kind not in shard.appliers:
                raise BadDeclaration(f"{kind.__name__} is not an event of {shard.processor.name!r}")
            headers = shard.forms[kind].make(name, time, trace) if shard.events_public else _lean(name, trace)
            data = self._encode(value)
            self._encoded_last = value, data
            self.outs.append((shard.events, key.encode(), data, headers))
            events.append(Message(key, value, name, trace))
        return events

    def _take_back(self, made: int, queued: int) -> None:
        """Forget what was added to this many outputs, and to this many messages in the queue."""
        del self.outs[made:]
        while len(self.queue) > queued:
            self.queue.pop()

    def _send(self, shard: Shard, effect: Send | SetAside, name: str, origin: tuple[Root, str | None]) -> None:
        """A message to another key: to the queue if it may be delivered within the cycle, else to its topic."""
        root, trace = origin
        if type(effect) is SetAside:
            raise BadDeclaration("a message that is set aside has no other effects")
        route, key, value = shard.routes.get(effect.stream.name), effect.key, effect.value
        if route is None or type(value) not in route.contracts:
            raise _misdirected(shard, effect)
        if len(key) > KEY_CHARS_SAFE and (size_bytes := len(key.encode())) > KEY_BYTES_MAX:
            raise KeyTooLarge(size_bytes)
        place = route.places[partition_of(key, len(route.places))]
        message = Message(key, value, name, trace)
        target = self._delivery.target(place)
        if target is not None:
            self.queue.append((target, message, root, place.topic, shard.forms))
            return
        headers = self._headers(shard, shard.forms, message) if route.public else _lean(name, trace)
        last, data = self._encoded_last
        self.outs.append((place, key.encode(), data if last is value else self._encode(value), headers))

    def _headers(self, shard: Shard, forms: Forms, message: Message[object]) -> Headers:
        """The headers of a record on a public stream."""
        return forms[type(message.value)].make(message.id, self._time(shard), message.trace)

    def _time(self, shard: Shard) -> bytes:
        """The time of a shard, as headers have it. Most shards are at the same time, and share its text."""
        at_ms = shard.time.now_ms
        if at_ms == self.now_ms:
            return self.time
        if at_ms != self._other_time[0]:
            self._other_time = at_ms, rfc3339(at_ms)
        return self._other_time[1]

    def overflow(self) -> None:
        """The cycle is full: commands left in the queue take their topics. Timers are still due and come again."""
        for entry in self.queue:
            if entry[3] is None:
                continue
            shard, message, root, topic, forms = entry
            place = Place(topic, shard.partition)
            self._delivery.overflowed(place)
            headers = (
                self._headers(shard, forms, message) if topic in self._public else _lean(message.id, message.trace)
            )
            try:
                self.outs.append((place, message.key.encode(), self._encode(message.value), headers))
            except SchemaError as error:  # it was never encoded, because it skipped its topic
                self._bug(shard, message, (topic, root), (Stage.ENCODE, error))
            self._counters.delivered -= 1
        self.queue.clear()

    def flush(self, *, is_last: bool = False) -> None:
        """Send what was made. Of a key in a compacted topic only the last record of a cycle is."""
        outs, self.outs = self.outs, []
        if self._compacted:
            outs = self._held_back(outs)
        if is_last and self._latest:
            outs += self._latest.values()
            self._latest.clear()
        self._log.send(outs)
        self._counters.sent += len(outs)

    def _held_back(self, outs: list[Out]) -> list[Out]:
        """The outputs without those for compacted topics, which wait for the end of the cycle."""
        now: list[Out] = []
        for out in outs:
            if out[0].topic in self._compacted:
                self._latest[out[0], out[1]] = out
            else:
                now.append(out)
        return now

    def forget(self) -> None:
        """Forget what is not committed."""
        self.queue.clear()
        self._latest.clear()
        self.touched.clear()
        self.outs = []

    # What goes wrong ------------------------------------------------------------------------------------------------

    def _apply_failed(self, shard: Shard, message: Message[object], event: Message[object], error: Exception) -> None:
        if isinstance(error, NOT_THE_PROCESSORS):
            raise error
        stage = f"apply of {type(event.value).__name__}"
        failed = HandlerFailed(shard.processor.name, stage, error, record=origin_of(message.id))
        if self.on_bug is OnBug.STOP:
            raise failed from error
        # The tables may be half written. Give the cycle up, and put this message aside when it comes again.
        self.poisoned[shard.processor.name, message.id] = str(failed)
        raise ApplyFailed(str(failed)) from error

    def _check_settled(self, shard: Shard, key: str, due: TimerDue) -> None:
        if _still_due(shard, key, due):
            raise TimerNotSettled(shard.processor.name, key, due.name)

    def _bug(self, shard: Shard, message: Message[object], origin: Origin, failure: Failure) -> None:
        stage, error = failure
        # The store tells of all its errors in its own way, also of a stack that was full before it was called.
        cause = error.__cause__ if isinstance(error, NOT_THE_PROCESSORS) else error
        if isinstance(cause, EXHAUSTED):
            self._exhausted(shard, message, origin, (stage, cause))
            return
        if isinstance(error, NOT_THE_PROCESSORS):
            raise error
        if self.on_bug is OnBug.STOP:
            work = f"{stage.lower()} on {type(message.value).__name__} {message.id}"
            raise HandlerFailed(shard.processor.name, work, error, record=origin_of(message.id)) from error
        self._give_up(shard, message, origin[0], (stage, error))

    def _exhausted(self, shard: Shard, message: Message[object], origin: Origin, failure: Failure) -> None:
        """A decision ran out of something. Decide what its processor decides instead, and put the message aside."""
        source, root = origin
        stage, error = failure
        ran_out_of = next(name for kind, name in RAN_OUT_OF.items() if isinstance(error, kind))
        name, kind = shard.processor.name, type(message.value)
        why = DecisionExhausted(name, kind.__name__, ran_out_of=ran_out_of, limit_ms=self.overtime.limit_ms)
        _log.warning("%s gave up %s of %r: %s", name, message.id, message.key[:KEY_CHARS_SHOWN], why)
        self._counters.given_up += 1
        shard.state.forget_reads()
        if kind in shard.processor.given_up:
            self._decide_instead(shard, message, root or Root(f"{name}/{message.id}"), str(why))
        self._give_up(shard, message, source, (stage, why))

    def _decide_instead(self, shard: Shard, message: Message[object], root: Root, reason: str) -> None:
        """Carry out what a processor decides for a message that is given up. If that fails too, nothing is done."""
        made, queued = len(self.outs), len(self.queue)
        give_up = shard.processor.given_up[type(message.value)]
        try:
            events = self._encoded(
                shard, message, root, tuple(give_up(message, reason, shard.reader, shard.time.now_ms))
            )
        except NOT_THE_PROCESSORS:
            raise
        except Exception as error:  # noqa: BLE001 - as in `_message`; the letter that follows is all that remains then
            self._take_back(made, queued)
            _log.warning("%s: the fallback decision failed: %s: %s", shard, type(error).__name__, error)
            return
        event = message
        try:
            for event in events:
                shard.appliers[type(event.value)](event, shard.writer)
                self._counters.emit(event.value)
        except Exception as error:  # noqa: BLE001 - as in `_message`
            self._apply_failed(shard, message, event, error)
        self._counters.delivered += len(self.queue) - queued

    def _give_up(self, shard: Shard, message: Message[object], source: Source, failure: Failure) -> None:
        if type(message.value) is TimerDue and _still_due(shard, message.key, message.value):
            # A timer has no record to put aside. It is left as it is, and tried again after the next start.
            shard.parked.add((message.key, message.value.name, message.value.due_at_ms))
        self._put_aside(shard, self._aside.original(shard, message, source), failure)

    def _unknown(self, shard: Shard, place: Place, record: Record, error: UnknownFingerprint) -> None:
        """A schema that we do not know. A newer process may have published it: look, and try this record once more."""
        if self._learner.learn(error.fingerprint):
            shard.inputs[place.topic].next = record.offset
            self.records(shard, place, (record,))
        else:
            self._undecodable(shard, (place, record), error)

    def _undecodable(self, shard: Shard, source: tuple[Place, Record], error: Exception) -> None:
        self._put_aside(shard, Original.of(*source), (Stage.DECODE, error))

    def lost(self, shard: Shard, loss: Loss) -> None:
        """Put a letter about input that vanished before it was read into the transaction."""
        self.touched.add(shard)
        self.outs.append(self._aside.loss(shard, loss, When(self.now_ms, self.time)))

    def _put_aside(self, shard: Shard, at: Original, failure: Failure) -> None:
        self.outs.append(self._aside.letter(shard, at, failure, when=When(self.now_ms, self.time)))


def _wrong(source: Input, key: bytes, value: object) -> FoldError:
    """What is wrong with a record that decodes."""
    if len(key) > KEY_BYTES_MAX:
        return KeyTooLarge(len(key))
    check = source.checks.get(type(value))
    if check is None:
        return UnexpectedType(source.place.topic, type(value).__name__, sorted(t.__name__ for t in source.checks))
    return UnfitRecord(check(key.decode(), value))


def _lean(name: str, trace: str | None) -> Headers:
    """The headers of a record between our own processors: its type is in its value, its time and source are its own."""
    if trace is None:
        return [("ce_id", name.encode())]
    return [("ce_id", name.encode()), ("traceparent", trace.encode())]


def _misdirected(shard: Shard, effect: Send) -> BadDeclaration:
    if effect.stream.name not in shard.routes:
        return BadDeclaration(f"{effect.stream.name!r} is not an output of {shard.processor.name!r}")
    return BadDeclaration(f"{type(effect.value).__name__} is not on the stream {effect.stream.name!r}")


def _still_due(shard: Shard, key: str, due: TimerDue) -> bool:
    due_at_ms: int | None = shard.reader.timers.due_at_ms(key, due.name)
    return due_at_ms == due.due_at_ms


def _trace(headers: Headers) -> str | None:
    """The trace context to pass on, if it is one: a lost trace must not lose a record, nor a long one blow it up."""
    for name, content in headers:
        if name == "traceparent":
            return trace_of(((name, content),)) if content is None or len(content) <= TRACE_BYTES_MAX else None
    return None
