"""Of streams that are kept by their latest records, nothing but these stays, and nobody's position moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.testing.clock import VirtualClock
from kapelle.topology.build import Topology
from kapelle.topology.embedded import EmbeddedLog, Inbox
from kapelle.topology.embedded.compaction import Compaction
from kapelle.topology.embedded.inbox import Parcel, Receipt
from kapelle.topology.embedded.retention import EVERY_MS, Retention
from kapelle.topology.log import Place
from kapelle.topology.tables import Batch, MemoryStore
from tests.proof.contracts import Counted, Tick
from tests.proof.processors import Counting, count, counted
from tests.unit.embedded.fakes import Assigned

words = Stream("words", (Tick,), Keep.LATEST, partitions=1)
counting = Processor(
    "counting",
    tables=Counting,
    inputs=[words],
    events=Stream("counting.events", (Counted,), Keep.FOR_EVER, partitions=1),
)
counting.decides(Tick)(count)
counting.applies(Counted)(counted)
WORDS = Place("w.words", 0)


class Case:
    """A log with one stream of which the latest records are wanted, and what was published to it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = MemoryStore() if store is None else store
        self.clock = VirtualClock()
        self.inbox = Inbox()
        self.log = EmbeddedLog(Topology([counting], prefix="w"), self.store, inbox=self.inbox, clock=self.clock)
        self.log.patient = False
        self.log.join(Assigned())
        self.log.take(0, 0)

    def write(self, *pairs: tuple[str, str]) -> None:
        """One chunk of keys and values."""
        parcel = Parcel(Receipt(lambda positions: positions))
        for key, value in pairs:
            parcel.add(WORDS, (key.encode(), value.encode(), [("ce_id", value.encode())]), 1)
        self.inbox.put([parcel], 0)
        self.log._accept(len(pairs))
        self.log.flush()

    def fold(self, offset: int) -> None:
        self.log.begin()
        self.log.send_offsets("counting", {WORDS: offset})
        self.log.commit()
        self.log.write(Batch())

    def compact(self) -> None:
        Compaction(self.log).compact(self.log.partitions[WORDS])

    def read(self, offset: int = 0, limit: int = 100) -> list[tuple[int, str]]:
        return [(r.offset, (r.value or b"").decode()) for r in self.log.read(WORDS, offset, limit)]

    def taken(self, offset: int) -> list[tuple[int, str]]:
        """What a processor reads from an offset on, to the end."""
        self.log.start("counting", {WORDS: offset})
        found: list[tuple[int, str]] = []
        while runs := self.log.take(2, 0).runs:
            found += [(r.offset, (r.value or b"").decode()) for run in runs for r in run.records]
        return found

    @property
    def chunk_count(self) -> int:
        return len(list(self.log.partitions[WORDS].chunks.scan(0)))


@pytest.fixture
def case() -> Case:
    made = Case()
    made.write(("a", "a1"), ("b", "b1"))
    made.write(("a", "a2"), ("c", "c1"), ("c", "c2"))
    made.write(("b", "b2"), ("a", "a3"))
    made.write(("d", "d1"))
    made.fold(8)
    return made


LATEST = [(4, "c2"), (5, "b2"), (6, "a3"), (7, "d1")]


def test_the_latest_record_of_each_key_stays_at_its_offset(case: Case) -> None:
    case.compact()

    assert case.read() == LATEST


def test_chunks_without_any_record_left_are_removed(case: Case) -> None:
    case.compact()

    assert case.chunk_count == 3


@pytest.mark.parametrize("offset", range(9))
def test_who_reads_from_anywhere_gets_what_is_left_from_there_on(case: Case, offset: int) -> None:
    case.compact()

    assert case.taken(offset) == [each for each in LATEST if each[0] >= offset]
    assert case.read(offset) == [each for each in LATEST if each[0] >= offset]
    assert case.read(offset, limit=1) == [each for each in LATEST if each[0] >= offset][:1]


def test_what_is_not_folded_yet_stays(case: Case) -> None:
    case.fold(3)

    case.compact()

    assert [value for _, value in case.read()] == ["a2", "c1", "c2", "b2", "a3", "d1"]


def test_the_end_is_known_after_a_restart(case: Case) -> None:
    case.write(("a", "a4"), ("d", "d2"))
    case.fold(10)
    case.compact()

    again = Case(case.store)

    assert again.log.end(WORDS) == 10
    assert again.read() == [(4, "c2"), (5, "b2"), (8, "a4"), (9, "d2")]


def test_a_place_is_walked_again_when_it_has_grown_by_half(case: Case) -> None:
    compaction = Compaction(case.log)
    compaction.compact(case.log.partitions[WORDS])
    case.write(("a", "a4"))
    case.fold(9)
    compaction.compact(case.log.partitions[WORDS])
    assert len(case.read()) == 5

    for n in range(5, 8):
        case.write(("a", f"a{n}"))
    case.fold(12)
    compaction.compact(case.log.partitions[WORDS])

    assert case.read() == [(4, "c2"), (5, "b2"), (7, "d1"), (11, "a7")]


def test_it_is_done_along_with_trimming(case: Case) -> None:
    Retention(case.log).tick(case.clock() + EVERY_MS, case.clock() + EVERY_MS)

    assert case.read() == LATEST


@given(st.lists(st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), min_size=1, max_size=8), st.integers(0, 40))
def test_any_history_keeps_its_latest_records(chunks: list[list[str]], folded: int) -> None:
    case = Case()
    for chunk in chunks:
        case.write(*[(key, key) for key in chunk])
    end = case.log.end(WORDS)
    case.fold(min(folded, end))
    before = case.read()

    case.compact()
    case.compact()

    latest = {value: (offset, value) for offset, value in before}
    left = case.read()
    assert set(latest.values()) <= set(left) <= set(before)
    assert [each for each in before if each[0] >= folded] == [each for each in left if each[0] >= folded]
