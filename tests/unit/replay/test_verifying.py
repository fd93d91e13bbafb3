"""Verifying: one wrong row among any number is found and named, whatever is wrong with it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kapelle.schemas import Codec
from kapelle.topology.embedded import LogRecord
from kapelle.topology.replay.comparison import Difference
from kapelle.topology.replay.verification import Stores, Verdict, Verifying
from kapelle.topology.tables import Memory, MemoryStore, RocksStore, ShardState, Store
from tests.proof.contracts import Counted
from tests.proof.processors import Count, Counting
from tests.unit.replay.world import ROWS_EACH, SHARD, SPREADING, ListTape, records, spreading

DECODE = Codec(SPREADING.catalog()).decode

Row = tuple[bytes, bytes | None]


def changelog(history: list[LogRecord]) -> dict[bytes, bytes | None]:
    """The rows that a member would have written."""
    state = ShardState(spreading, 0, MemoryStore())
    for record in history:
        value = DECODE(record.value or b"")
        assert isinstance(value, Counted)
        for number in range(ROWS_EACH):
            state.writer.counts.put((f"{value.word}-{number:04}",), Count(value.count))
    return dict(state.changes())


def verified(history: list[LogRecord], rows: dict[bytes, bytes | None], stores: Stores | None = None) -> Verdict:
    verifying = Verifying(SPREADING, SHARD, decode=DECODE, stores=stores or Stores(MemoryStore(), MemoryStore()))
    kept = [LogRecord(n, 0, key, value) for n, (key, value) in enumerate(rows.items())]
    return verifying.verify(ListTape(history), ListTape(kept))


def test_one_changed_row_among_a_million_is_found_and_named(tmp_path: Path) -> None:
    history = records([f"w{n:04}" for n in range(1_000)])
    rows = changelog(history)
    [(key, _)] = [row for row in rows.items() if b"w0637-0512" in row[0]]
    rows[key] = changelog(records(["w0637"], count=2))[key]
    stores: list[Store] = [RocksStore(tmp_path / name, Memory()) for name in ("folded", "live")]

    verdict = verified(history, rows, Stores(*stores))

    for store in stores:
        store.close()
    assert (verdict.events, verdict.rows, verdict.differences) == (1_000, 1_000_000, 1)
    assert verdict.first == Difference("counts", ["w0637-0512"], {"count": 1}, {"count": 2})


def removed(rows: dict[bytes, bytes | None], key: bytes) -> None:
    rows[key] = None


def garbled(rows: dict[bytes, bytes | None], key: bytes) -> None:
    rows[key] = b"\x01\xc1"


def doubled(rows: dict[bytes, bytes | None], key: bytes) -> None:
    rows[key.replace(b"0007", b"00070")] = rows[key]


@pytest.mark.parametrize(
    ("damage", "key", "expected", "found"),
    [
        (removed, "a-0007", {"count": 1}, None),
        (garbled, "a-0007", {"count": 1}, "unreadable"),
        (doubled, "a-00070", None, {"count": 1}),
    ],
)
def test_a_row_that_is_gone_or_unreadable_or_too_many_is_named(
    damage: Callable[[dict[bytes, bytes | None], bytes], None], key: str, expected: object, found: object
) -> None:
    history = records(["a", "b"])
    rows = changelog(history)
    [wrong] = [row for row in rows if b"a-0007" in row]
    damage(rows, wrong)

    verdict = verified(history, rows)

    assert verdict.first is not None
    assert (verdict.differences, verdict.first.table, verdict.first.key) == (1, "counts", [key])
    assert verdict.first.expected == expected
    assert verdict.first.found == found or (found == "unreadable" and "unreadable" in (verdict.first.found or {}))


def test_tables_that_are_the_fold_of_their_history_are_right() -> None:
    history = records(["a", "b", "a"])

    verdict = verified(history, changelog(history))

    assert verdict.is_right
    assert (verdict.events, verdict.rows) == (3, 2_000)


def test_rows_that_stand_for_more_than_was_folded_are_compared_where_they_belong() -> None:
    """The changelog is ahead of the first look at the history: its last events come in while it is read."""
    history = records(["a", "b", "c", "d"])

    class Growing(ListTape):
        seen = 2

        def end(self) -> int:
            self.seen, now = len(history), self.seen
            return now

    verifying = Verifying(SPREADING, SHARD, decode=DECODE, stores=Stores(MemoryStore(), MemoryStore()))
    kept = [LogRecord(n, 0, key, value) for n, (key, value) in enumerate(changelog(history[:3]).items())]

    verdict = verifying.verify(Growing(history), ListTape(kept))

    assert verdict.is_right
    assert verdict.events == 4


def test_tables_that_are_the_fold_of_the_history_but_break_a_law_are_not_right() -> None:
    history = records(["w0001", "w0002"])

    def words_are_few(state: Counting) -> list[str]:
        return [f"{key}: one word too many" for (key,), _ in state.counts.prefix(()) if key == "w0002-0000"]

    spreading.law(words_are_few)
    try:
        verdict = verified(history, changelog(history))
    finally:
        spreading.laws.remove(words_are_few)

    assert (verdict.differences, verdict.first, verdict.is_right) == (0, None, False)
    assert verdict.broken == ("w0002-0000: one word too many",)
