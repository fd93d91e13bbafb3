"""Recorded histories, replayed by the current code. A test fails when the current code decides differently.

    engine = Recording()                              # an Engine that records its inputs
    engine.push(Path("etl.yaml"))
    engine.start("etl")
    engine.save(Path("tests/recorded/etl.avro"))      # once, and kept

    def test_etl_is_decided_as_it_was() -> None:
        assert_replays(Path("tests/recorded/etl.avro"))

What is exact, and is checked:

1. Of any file, also of `kapelle replay export`: every event applies, and the tables come to the recorded fingerprints.
2. Of a recording: the inputs, sent again in their order and at their times, lead to the same events, with the same keys
   and ids, in the same order. The clock of a recording is virtual, so the time of every decision is known. The times of
   a real clock between two records are not recorded, so an export of a running system is only checked by the first.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Final

import msgspec

from kapelle.processors.streams import Stream
from kapelle.schemas import Contract, SchemaError
from kapelle.testing.clock import VirtualClock, run_for
from kapelle.testing.engine import Engine
from kapelle.topology.build import Topology
from kapelle.topology.embedded import EmbeddedRuntime, EmbeddedSettings, LogRecord
from kapelle.topology.page import topology as product
from kapelle.topology.replay.exports import ExportedHistory, Input, about, folded_facts, read_about, write_export
from kapelle.topology.replay.fold import Decode, decoder
from kapelle.topology.replay.history import StoredHistory, event_place
from kapelle.topology.replay.moments import Moment
from kapelle.topology.settings import Limits, MemberSettings

# A cycle must never end because the machine was slow: what follows would then be decided under other ids.
PATIENT: Final = Limits(cycle_ms_max=3_600_000, cascade_ms_max=3_600_000)
READ_MAX: Final = 1_000

Decided = tuple[str, Contract, str]  # key, event, id


class DecidedOtherwise(AssertionError):
    """The current code makes another decision than the recorded one."""

    def __init__(self, shard: str, number: int, expected: Decided | None, found: Decided | None) -> None:
        super().__init__(
            f"Expected event {number} of {shard} to be\n  {_told(expected)}\nbut found\n  {_told(found)}\n"
            "If the change is intended, record the history again; if not, old and new code decide differently"
        )
        self.shard = shard
        self.number = number


class FoldedOtherwise(AssertionError):
    """The current code makes other tables from the same events."""

    def __init__(self, shard: str, expected: str, found: str) -> None:
        super().__init__(
            f"Expected the tables of {shard} to have the fingerprint {expected}, but found {found}: apply, or the "
            "layout of a row, has changed. If this is intended, record the history again"
        )
        self.shard = shard


class NotAllRecorded(AssertionError):
    """The engine received input that the recording does not have."""


class Recording(Engine):
    """An engine that records its inputs, and can save them with its history."""

    def __init__(self, *, partitions: int = 1) -> None:
        super().__init__(partitions=partitions)
        self.runtime.member.limits = _patient(self.runtime.member.limits)
        self._inputs: list[Input] = []

    def send(self, stream: Stream, key: str, command: Contract | bytes) -> None:
        """Send a command to the engine, and record it."""
        sent = self.runtime.publish(stream, key, command)
        self.runtime.step_until_idle()
        place, offset = sent.result(timeout=0)
        record = self.runtime.read(stream, place.partition, offset, 1)[0]
        self._inputs.append(Input(stream.name, place.partition, record))

    def save(self, path: Path) -> None:
        """Write the history and the inputs to a file."""
        self._refuse_others()
        history = StoredHistory(self.topology, self.runtime.log)
        facts = about(history, list(folded_facts(history, Moment())), importlib.metadata.version("kapelle"))
        told = msgspec.structs.replace(facts, inputs=len(self._inputs), ended_at_ms=self.clock.now_ms)
        write_export(path, history, told, self._inputs)

    def _refuse_others(self) -> None:
        for stream in _from_outside(self.topology):
            noted = sum(each.stream == stream.name for each in self._inputs)
            there = sum(self.runtime.end(stream, n) for n in range(self.topology.partitions(stream)))
            if noted != there:
                raise NotAllRecorded(
                    f"Expected all {there} records of {stream.name} to be sent with send(), but {noted} were"
                )


def assert_replays(path: Path, *, topology: Topology | None = None) -> None:
    """Fail if today's code folds the history in this file otherwise than it was, or decides on its inputs otherwise.

    `topology` is that of the file where it is not the product's; it must have the prefix and partitions of the file.
    """
    facts = read_about(path)
    whole = topology or product(prefix=facts.prefix, partitions=facts.partitions)
    history = ExportedHistory(path, whole)
    _assert_folds(history)
    if history.inputs:
        _assert_decides(history)


def _assert_folds(history: ExportedHistory) -> None:
    found = {(each.processor, each.partition): each.fingerprint for each in folded_facts(history, Moment())}
    for shard in history.about.shards:
        fingerprint = found[shard.processor, shard.partition]
        if fingerprint != shard.fingerprint:
            raise FoldedOtherwise(f"{shard.processor}-{shard.partition}", shard.fingerprint, fingerprint)


def _assert_decides(history: ExportedHistory) -> None:
    from kapelle.topology.tables import MemoryStore  # noqa: PLC0415 - only here

    clock = VirtualClock(history.inputs[0].record.at_ms)
    settings = EmbeddedSettings(member=MemberSettings(limits=PATIENT))
    decode = decoder(history)
    with EmbeddedRuntime(history.topology, MemoryStore(), settings, clock=clock) as runtime:
        for each in history.inputs:
            run_for(runtime, clock, each.record.at_ms - clock.now_ms)
            _publish(runtime, each, decode)
            runtime.step_until_idle()
        run_for(runtime, clock, history.about.ended_at_ms - clock.now_ms)
        for shard in history.about.shards:
            place = event_place(history.topology, shard.processor, shard.partition)
            recorded = [record for records in history.read(place, 0, shard.end) for record in records]
            decided = _read(runtime, shard.stream, shard.partition)
            _compare(f"{shard.processor}-{shard.partition}", _events(recorded, decode), _events(decided, decode))


def _publish(runtime: EmbeddedRuntime, each: Input, decode: Decode) -> None:
    """Tell an input again: in today's schema if it is ours, and as it is if it is not."""
    record = each.record
    raw = record.value or b""
    value: Contract | bytes = raw
    with suppress(SchemaError):  # a record in somebody else's form, for a stream that takes those
        value = decode(raw)
    runtime.publish(each.stream, (record.key or b"").decode(), value, headers=record.headers or ())


def _compare(shard: str, recorded: Iterator[Decided], decided: Iterator[Decided]) -> None:
    for number, (expected, found) in enumerate(zip_longest(recorded, decided), 1):
        if expected != found:
            raise DecidedOtherwise(shard, number, expected, found)


def _read(runtime: EmbeddedRuntime, stream: str, partition: int) -> Iterator[LogRecord]:
    at = 0
    while records := runtime.read(stream, partition, at, READ_MAX):
        yield from records
        at = records[-1].offset + 1


def _events(records: Iterator[LogRecord] | list[LogRecord], decode: Decode) -> Iterator[Decided]:
    for record in records:
        named = dict(record.headers or ()).get("ce_id", b"").decode()
        yield (record.key or b"").decode(), decode(record.value or b""), named


def _told(decided: Decided | None) -> str:
    if decided is None:
        return "nothing"
    key, value, name = decided
    return f"{value!r} for {key!r} (id {name})"


def _from_outside(topology: Topology) -> list[Stream]:
    """The streams that processors read and none of them writes."""
    return [s for name, s in topology.streams.items() if topology.readers[name] and not topology.writers[name]]


def _patient(limits: Limits) -> Limits:
    return msgspec.structs.replace(limits, cycle_ms_max=PATIENT.cycle_ms_max, cascade_ms_max=PATIENT.cascade_ms_max)
