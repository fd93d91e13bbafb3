"""Topologies, and things that are none, for --app."""

from collections.abc import Iterator

from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.topology.build import Topology
from tests.proof.contracts import Counted, Tick
from tests.proof.processors import Count, Counting, counting

fixed = Topology([counting], prefix="fixed", partitions=2)
empty = Topology([], prefix="empty")
number = 7

doubting = Processor(
    "doubting",
    tables=Counting,
    inputs=[Stream("ticks", (Tick,))],
    events=Stream("doubting.events", (Counted,), Keep.FOR_EVER),
)


@doubting.decides(Tick)
def doubt(message: Message[Tick], state: Counting, now_ms: int) -> Iterator[Effect]:
    if message.value.word == "bad":
        raise ValueError(f"I doubt {message.value.id}")
    yield Emit(Counted(message.value.id, message.value.word, 1))


@doubting.applies(Counted)
def doubted(message: Message[Counted], state: Counting) -> None:
    state.counts.put((message.key,), Count(message.value.count))


def doubts(prefix: str = "doubts", partitions: int = 1) -> Topology:
    return Topology([doubting], prefix=prefix, partitions=partitions)


def gives_a_number() -> int:
    return 7


def needs_an_argument(shop: str) -> Topology:
    return Topology([counting], prefix=shop)


def raises() -> Topology:
    raise LookupError("no such shop")


def is_no_topology() -> Topology:
    return Topology([counting, counting])
