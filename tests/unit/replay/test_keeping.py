"""Rows that are kept while history is folded: the tables are what they would be without, whenever they are written."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.processors.tables import Tables, table
from kapelle.schemas import Codec
from kapelle.topology.build import Topology
from kapelle.topology.embedded import LogRecord
from kapelle.topology.replay.errors import ApplyFailedAgain
from kapelle.topology.replay.fold import Folding, decoder
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.row_cache import Kept
from kapelle.topology.tables import Batch, MemoryStore, ShardMeta, ShardState
from kapelle.topology.tables.errors import NotBucketed
from tests.proof.contracts import Counted, Tick
from tests.unit.replay.world import SHARD, SPREADING, records
from tests.unit.views.histories import deleted, used_engine

META = ShardMeta(changelog_offset=0, saved_at_ms=0, changelog_id="", positions={})


class Noted(msgspec.Struct, frozen=True):
    text: str


class Notes(Tables):
    notes = table("notes", key=tuple[str, int], row=Noted)
    aging = table("aging", key=tuple[int, str], row=Noted, bucketed=True)


noting = Processor(
    "noting",
    tables=Notes,
    inputs=[Stream("ticks", (Tick,))],
    events=Stream("noting.events", (Counted,), Keep.FOR_EVER),
)


@noting.decides(Tick)
def count(message: Message[Tick], state: Notes, now_ms: int) -> Iterator[Effect]:
    yield Emit(Counted(message.value.id, message.value.word, 1))


@noting.applies(Counted)
def note_wrongly(message: Message[Counted], state: Notes) -> None:
    row: Any = Noted("x") if message.value.count else "no row"
    state.notes.put((message.key, 1), row)


NAMES = st.sampled_from("ab")
NUMBERS = st.integers(0, 3)
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["get", "put", "delete", "first", "prefix", "range", "write"])
        | st.sampled_from(["set", "cancel", "due", "age", "aged", "drop"]),
        NAMES,
        NUMBERS,
    ),
    max_size=40,
)


class Side:
    """One of two shards to which the same is done."""

    def __init__(self, *, keeps: bool) -> None:
        self.store = MemoryStore()
        self.state = ShardState(noting, 0, self.store)
        self.kept = Kept(Notes, self.state.writer) if keeps else None
        self.tables = self.state.writer if self.kept is None else self.kept.writer

    def write(self) -> None:
        if self.kept is not None:
            self.kept.settle()
        batch = Batch()
        self.state.stage(batch, META)
        self.store.write(batch)
        self.state.clear()
        if self.kept is not None:
            self.kept.clear()

    def do(self, name: str, text: str, number: int) -> object:
        """Do one thing to the tables. What it answers."""
        notes, aging, timers = self.tables.notes, self.tables.aging, self.tables.timers
        done: dict[str, Any] = {
            "get": lambda: notes.get((text, number)),
            "put": lambda: notes.put((text, number), Noted(f"{text}{number}")),
            "delete": lambda: notes.delete((text, number)),
            "first": lambda: notes.first((text,)),
            "prefix": lambda: list(notes.prefix((text,), reverse=number > 1)),
            "range": lambda: list(notes.range((text, 1), (text, number))),
            "set": lambda: timers.set(text, "t", number),
            "cancel": lambda: timers.cancel(text, "t"),
            "due": lambda: timers.due_at_ms(text, "t"),
            "age": lambda: aging.put((number, text), Noted(text)),
            "aged": lambda: (aging.get((number, text)), list(aging.prefix())),
            "drop": lambda: aging.drop_before(number),
            "write": self.write,
        }
        return done[name]()


@given(operations=OPERATIONS)
def test_kept_tables_answer_and_end_as_tables_that_are_not(operations: list[tuple[str, str, int]]) -> None:
    kept, plain = Side(keeps=True), Side(keeps=False)

    for one in operations:
        assert kept.do(*one) == plain.do(*one), one

    kept.write()
    plain.write()
    assert list(kept.state.encoded()) == list(plain.state.encoded())


@pytest.mark.parametrize(("rows_max", "look_every"), [(0, 1), (20, 7), (65_536, 1_000)])
@pytest.mark.parametrize("seed", range(3))
def test_however_often_rows_are_written_the_tables_come_out_the_same(
    seed: int, rows_max: int, look_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kapelle.topology.replay.fold.KEPT_ROWS_MAX", rows_max)
    monkeypatch.setattr("kapelle.topology.replay.fold.LOOK_EVERY", look_every)
    engine = used_engine(seed, operations=60)
    deleted(engine, "wf-1")
    history = StoredHistory(engine.topology, engine.runtime.log)
    decode, found = decoder(history), {}

    for shard in engine.runtime.member.shards:
        fold = Folding(engine.topology, shard, decode=decode, store=MemoryStore())
        for some in history.read(fold.place, 0, history.ends([fold.place])[fold.place]):
            fold.take(some)
        fold.settle()
        found[shard] = fold.state.fingerprint()

    assert found == {name: shard.state.fingerprint() for name, shard in engine.runtime.member.shards.items()}


def test_events_that_write_many_rows_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.topology.replay.fold.LOOK_EVERY", 10)
    store = MemoryStore()
    fold = Folding(SPREADING, SHARD, decode=Codec(SPREADING.catalog()).decode, store=store)

    fold.take(records([f"w{n}" for n in range(100)]))

    stored = sum(1 for _ in store.scan(b"", b"\xff"))
    assert stored > 60_000
    fold.settle()
    assert sum(1 for _ in fold.state.encoded()) == 100_000


def test_what_was_written_is_gone_from_the_store_when_it_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.topology.replay.fold.KEPT_ROWS_MAX", 100)
    store = MemoryStore()
    fold = Folding(SPREADING, SHARD, decode=Codec(SPREADING.catalog()).decode, store=store)
    fold.take(records(["a"]))
    assert any(store.scan(b"", b"\xff"))

    fold.wipe()

    assert list(store.scan(b"", b"\xff")) == []
    assert list(fold.state.encoded()) == []


def test_a_row_that_no_table_takes_is_told_as_the_fault_of_apply() -> None:
    whole = Topology([noting], prefix="noting", partitions=1)
    codec = Codec(whole.catalog())
    fold = Folding(whole, ("noting", 0), decode=codec.decode, store=MemoryStore())
    fold.take([LogRecord(n, n, b"k", codec.encode(Counted("t", "w", count))) for n, count in enumerate((1, 0))])

    with pytest.raises(ApplyFailedAgain, match=r"at offset 1 of noting\.noting\.events-0 .* BadRow"):
        fold.settle()


def test_only_tables_that_are_declared_so_forget_by_the_bucket() -> None:
    with pytest.raises(NotBucketed):
        Side(keeps=True).tables.notes.drop_before(1)
