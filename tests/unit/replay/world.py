"""Histories to replay: of the proof's processors on an embedded log, and of one whose events write many rows."""

from collections.abc import Iterable, Iterator, Sequence

from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.schemas import Codec, Framing
from kapelle.testing.clock import VirtualClock
from kapelle.topology.build import Topology
from kapelle.topology.embedded import EmbeddedRuntime, EmbeddedSettings, LogRecord
from kapelle.topology.replay.fold import ShardName
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.settings import MemberSettings
from kapelle.topology.tables import MemoryStore
from tests.proof.contracts import Counted, Offer, Reminder, Side, Tick
from tests.proof.processors import Count, Counting, topology

ROWS_EACH = 1_000

spreading = Processor(
    "spreading",
    tables=Counting,
    inputs=[Stream("ticks", (Tick,))],
    events=Stream("spreading.events", (Counted,), Keep.FOR_EVER),
)


@spreading.decides(Tick)
def spread(message: Message[Tick], state: Counting, now_ms: int) -> Iterator[Effect]:
    yield Emit(Counted(message.value.id, message.value.word, 1))


@spreading.applies(Counted)
def spread_out(message: Message[Counted], state: Counting) -> None:
    for number in range(ROWS_EACH):
        state.counts.put((f"{message.value.word}-{number:04}",), Count(message.value.count))


SPREADING = Topology([spreading], prefix="spread", partitions=1)
SHARD: ShardName = ("spreading", 0)


def records(words: Iterable[str], count: int = 1) -> list[LogRecord]:
    """A history of `spreading`: for each word a thousand rows."""
    codec = Codec(SPREADING.catalog())
    return [LogRecord(n, n, b"k", codec.encode(Counted(f"t{n}", word, count))) for n, word in enumerate(words)]


class ListTape:
    """A partition that is all there."""

    def __init__(self, kept: Sequence[LogRecord]) -> None:
        self._kept = kept
        self._position = 0

    def end(self) -> int:
        return len(self._kept)

    def read(self, end: int) -> Iterator[list[LogRecord]]:
        if self._position < end:
            yield list(self._kept[self._position : end])
        self._position = end


class World:
    """The proof's processors on an embedded log in memory, on a clock that stands still."""

    def __init__(self, framing: Framing | None = None) -> None:
        self.topology = topology("all", prefix="world", partitions=2)
        self.clock = VirtualClock()
        self.store = MemoryStore()
        self.framing = framing
        settings = EmbeddedSettings(member=MemberSettings(framing=framing))
        self.runtime = EmbeddedRuntime(self.topology, self.store, settings, clock=self.clock)

    def play(self) -> "World":
        """Some of everything, a second apart."""
        for number, key in enumerate(["a", "b", "ab", "a", "b", "a"]):
            self.runtime.publish("ticks", key, Tick(f"t{number}", key, 0, 1))
            self.runtime.publish("offers", key, Offer(f"o{number}", Side.LEFT if number % 3 else Side.RIGHT))
            self.runtime.publish("reminders", key, Reminder(f"r{number}", 1_500))
            self.runtime.step_until_idle()
            self.clock.advance(1_000)
            self.runtime.step_until_idle()
        return self

    def history(self) -> StoredHistory:
        return StoredHistory(self.topology, self.store, framing=self.framing)

    def fingerprints(self) -> dict[ShardName, str]:
        return {name: shard.state.fingerprint() for name, shard in self.runtime.member.shards.items()}
