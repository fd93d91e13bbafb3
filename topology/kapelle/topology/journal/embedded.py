"""The journal of the embedded log: in the process that runs it, and in no other."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.schemas.contract import Contract
from kapelle.topology.embedded import EmbeddedRuntime, QueueFull, Stopped
from kapelle.topology.embedded.letters import EmbeddedLetters
from kapelle.topology.journal.entries import Decoder, Raw
from kapelle.topology.journal.errors import JournalUnavailable
from kapelle.topology.journal.journal import Entry, Mode, Point, Position, pending
from kapelle.topology.log import Place
from kapelle.topology.metrics import Counters

WAIT_S_MAX: Final = 0.25  # a follower that is closed while it waits is heard within this


class EmbeddedJournal:
    """Publishes to and follows a runtime, which others start and close."""

    mode: Final = Mode.EMBEDDED

    def __init__(self, runtime: EmbeddedRuntime) -> None:
        self._runtime = runtime
        self.letters = EmbeddedLetters(runtime)

    @property
    def identity(self) -> str:
        topology = self._runtime.topology
        return self._runtime.log.identity(topology.schemas)

    @property
    def counters(self) -> Counters:
        """What the engine counts."""
        return self._runtime.counters

    @property
    def failure(self) -> BaseException | None:
        return self._runtime.failure

    def publish(self, stream: Stream, key: str, value: Contract, trace: str | None = None) -> "Future[Position]":
        answer = pending()
        headers = () if trace is None else (("traceparent", trace.encode()),)
        try:
            inner = self._runtime.publish(stream, key, value, headers=headers, timeout_s=0.0)
        except (QueueFull, Stopped) as error:
            raise JournalUnavailable("take a record", error) from error
        inner.add_done_callback(lambda done: _hand_on(done, answer))
        return answer

    def follow(self, streams: Sequence[Stream], starts: Mapping[Point, int]) -> "EmbeddedFollower":
        return EmbeddedFollower(self._runtime, streams, starts)

    def ends(self, stream: Stream) -> dict[int, int]:
        count = self._runtime.topology.partitions(stream)
        return {number: self._runtime.end(stream, number) for number in range(count)}

    def close(self) -> None:
        """Nothing: the runtime is closed by whoever opened it."""


def _hand_on(done: "Future[Position]", answer: "Future[Position]") -> None:
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(JournalUnavailable("keep a record", error))


class EmbeddedFollower:
    """Reads the partitions in turn, the one that waited longest first."""

    def __init__(self, runtime: EmbeddedRuntime, streams: Sequence[Stream], starts: Mapping[Point, int]) -> None:
        topology = runtime.topology
        self._runtime = runtime
        self._closed = threading.Event()
        self._decoder = Decoder(Codec(topology.catalog()), runtime.log.schemas)
        points = [(s.name, number) for s in streams for number in range(topology.partitions(s))]
        self._positions: dict[Point, int] = {point: starts.get(point, 0) for point in points}
        self._places = {(s, number): Place(topology.topic(topology.streams[s]), number) for s, number in points}

    @property
    def positions(self) -> Mapping[Point, int]:
        return dict(self._positions)

    def take(self, records_max: int, wait_s: float) -> list[Entry]:
        entries = self._read(records_max)
        if not entries and wait_s > 0 and not self._closed.is_set():
            ends = {self._places[point]: offset for point, offset in self._positions.items()}
            self._runtime.log.wait(ends, min(wait_s, WAIT_S_MAX))
            entries = self._read(records_max)
        return entries

    def close(self) -> None:
        self._closed.set()

    def _read(self, records_max: int) -> list[Entry]:
        entries: list[Entry] = []
        for point, offset in list(self._positions.items()):
            room = records_max - len(entries)
            if room <= 0 or self._closed.is_set():
                break
            if self._runtime.log.end(self._places[point]) > offset:
                entries += self._of(point, offset, room)
                self._positions[point] = self._positions.pop(point)  # to the end of the queue
        return entries

    def _of(self, point: Point, offset: int, limit: int) -> list[Entry]:
        stream, partition = self._runtime.topology.streams[point[0]], point[1]
        records = self._runtime.log.read(self._places[point], offset, limit)
        if records:
            self._positions[point] = records[-1].offset + 1
        return [
            self._decoder.entry(stream, partition, Raw(record.offset, record.key, record.value, record.at_ms))
            for record in records
        ]
