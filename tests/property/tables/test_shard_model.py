"""A shard behaves like dictionaries, over every store, whatever is put, dropped, committed, aborted and reopened."""

import tempfile
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from kapelle.topology.tables import Batch, Memory, MemoryStore, RocksStore, Store
from tests.property.tables.model import Model
from tests.unit.tables.declared import Note, commit, shard

# Few values, so that keys meet again; some that are awkward to encode.
WORDS = st.sampled_from(["a", "", "a\0", "b"])
NUMBERS = st.integers(-1, 3)
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "stock": st.tuples(WORDS),
    "queue": st.tuples(WORDS, NUMBERS),
    "seen": st.tuples(NUMBERS, WORDS),
    "blobs": st.tuples(st.sampled_from([b"", b"\0", b"\0\0", b"\1", b"\xff", b"\xff\xff"])),
}
# Most of what can go wrong takes several steps in one table.
TABLES = st.sampled_from(["queue"] * 5 + ["seen"] * 3 + ["stock", "blobs"])
TABLE_AND_KEY = TABLES.flatmap(lambda name: st.tuples(st.just(name), KEYS[name]))
TABLE_AND_START = TABLE_AND_KEY.flatmap(
    lambda found: st.tuples(st.just(found[0]), st.integers(0, len(found[1])).map(lambda size: found[1][:size]))
)
TABLE_AND_BOUNDS = TABLES.flatmap(
    lambda name: st.tuples(st.just(name), KEYS[name], KEYS[name], st.integers(0, 2), st.integers(0, 2))
).map(lambda found: (found[0], found[1][: found[3]], found[2][: found[4]]))
ROWS = st.sampled_from([Note("x"), Note("y"), Note("z" * 50)])
TIMERS = st.tuples(st.sampled_from(["k", "l"]), st.sampled_from(["m", "n"]))


class ShardMachine(RuleBasedStateMachine):
    """The rules. Those that write end by `wrote`, so that a variant may commit after every one of them."""

    commits_each_write: ClassVar[bool] = False

    @initialize()
    def begin(self) -> None:
        self.model = Model()
        self.changelog: dict[bytes, bytes] = {}
        self.store = self.open_store()
        self.state = shard(self.store)

    def open_store(self) -> Store:
        return MemoryStore()

    def wrote(self) -> None:
        if self.commits_each_write:
            self.commit()

    @rule(where=TABLE_AND_KEY, row=ROWS)
    def put(self, where: Any, row: Note) -> None:
        getattr(self.state.writer, where[0]).put(where[1], row)
        self.model.now.put(where[0], where[1], row)
        self.wrote()

    @rule(where=TABLE_AND_KEY)
    def delete(self, where: Any) -> None:
        getattr(self.state.writer, where[0]).delete(where[1])
        self.model.now.delete(*where)
        self.wrote()

    @rule(where=TABLE_AND_START)
    def take_first(self, where: Any) -> None:
        """What a queue does, and what leaves deleted rows at the head of a range."""
        table = getattr(self.state.writer, where[0])
        first = table.first(where[1])
        expected = self.model.now.prefix(*where)
        assert first == (expected[0] if expected else None)
        if first is not None:
            table.delete(first[0])
            self.model.now.delete(where[0], first[0])
            self.wrote()

    @rule(where=TABLE_AND_KEY)
    def get(self, where: Any) -> None:
        expected = self.model.now.tables[where[0]].get(where[1])
        assert getattr(self.state.reader, where[0]).get(where[1]) == expected
        assert getattr(self.state.writer, where[0]).get(where[1]) == expected

    @rule(where=TABLE_AND_BOUNDS, reverse=st.booleans())
    def range(self, where: Any, reverse: bool) -> None:
        expected = self.model.now.range(*where)
        found = list(getattr(self.state.reader, where[0]).range(where[1], where[2], reverse=reverse))
        assert found == (expected[::-1] if reverse else expected)

    @rule(where=TABLE_AND_START, reverse=st.booleans())
    def prefix(self, where: Any, reverse: bool) -> None:
        expected = self.model.now.prefix(*where)
        found = list(getattr(self.state.reader, where[0]).prefix(where[1], reverse=reverse))
        assert found == (expected[::-1] if reverse else expected)

    @rule(where=TABLE_AND_START, row=ROWS, reverse=st.booleans(), data=st.data())
    def write_while_scanning(self, where: Any, row: Note, reverse: bool, data: st.DataObject) -> None:
        table = getattr(self.state.writer, where[0])
        expected = self.model.now.prefix(*where)
        found = []
        for key, seen in table.prefix(where[1], reverse=reverse):
            found.append((key, seen))
            other = data.draw(KEYS[where[0]])
            table.put(other, row)
            self.model.now.put(where[0], other, row)
            table.delete(key)
            self.model.now.delete(where[0], key)
        assert found == (expected[::-1] if reverse else expected)
        self.wrote()

    @rule(bucket=NUMBERS)
    def drop_before(self, bucket: int) -> None:
        self.state.writer.seen.drop_before(bucket)
        self.model.now.drop_before(bucket)
        self.wrote()

    @rule(limit=st.integers(1, 3))
    def sweep(self, limit: int) -> None:
        assert 0 <= self.state.sweep(limit) <= limit
        self.wrote()

    @rule(timer=TIMERS, due_at_ms=NUMBERS)
    def set_timer(self, timer: tuple[str, str], due_at_ms: int) -> None:
        self.state.writer.timers.set(*timer, due_at_ms)
        self.model.now.timers[timer] = due_at_ms
        self.wrote()

    @rule(timer=TIMERS)
    def cancel_timer(self, timer: tuple[str, str]) -> None:
        self.state.writer.timers.cancel(*timer)
        self.model.now.timers.pop(timer, None)
        self.wrote()

    @rule(now_ms=NUMBERS, limit=st.integers(1, 4))
    def ask_for_due_timers(self, now_ms: int, limit: int) -> None:
        assert self.state.due(now_ms, limit) == self.model.now.due(now_ms, limit)

    @rule()
    def commit(self) -> None:
        for key, value in self.state.changes():
            if value is None:
                self.changelog.pop(key, None)
            else:
                self.changelog[key] = value
        commit(self.state, self.store)
        self.model.commit()

    @rule()
    def abort(self) -> None:
        self.state.clear()
        self.model.abort()

    @rule()
    def reopen(self) -> None:
        self.state = shard(self.store)
        self.model.abort()

    @rule()
    def restore_from_the_changelog(self) -> None:
        """Over what is there, as after a crash between the commit and the write; then into nothing."""
        self.abort()
        other = MemoryStore()
        for state, store in ((self.state, self.store), (shard(other), other)):
            batch = Batch()
            state.wipe(batch)
            state.restore(self.changelog.items(), batch)
            store.write(batch)
            state.clear()
        assert shard(other).fingerprint() == self.state.fingerprint()

    @rule()
    def sweep_everything(self) -> None:
        while self.state.sweep(2):
            pass
        self.commit()
        floor = self.model.now.floor
        stored = [key for key, _ in self.store.scan(self.state.prefix, self.state.prefix + b"\xff")]
        seen = [key for key in stored if key.startswith(self.state.prefix + b"seen\0")]
        assert len(seen) == len(self.model.now.tables["seen"]), f"rows are left below {floor}"
        assert len([key for key in self.changelog if key.startswith(b"seen\0")]) == len(seen)

    @rule()
    def compare_all_rows(self) -> None:
        found: dict[str, dict[Any, Any]] = {}
        for table, key, row in self.state.rows():
            found.setdefault(table, {})[key] = row
        timers = {key: row.due_at_ms for key, row in found.pop("_timers", {}).items()}
        floors = {key: row.bucket for key, row in found.pop("_floors", {}).items()}
        assert found == {table: rows for table, rows in self.model.now.tables.items() if rows}
        assert timers == self.model.now.timers
        assert floors.get(("seen",)) == self.model.now.floor

    @rule()
    def ask_for_the_next_timer(self) -> None:
        assert self.state.next_due_at_ms() == min(self.model.now.timers.values(), default=None)

    def teardown(self) -> None:
        if hasattr(self, "state"):
            self.compare_all_rows()
            self.ask_for_the_next_timer()


class RocksMachine(ShardMachine):
    """The same over RocksDB, which is closed and opened again in between."""

    memory: ClassVar[Memory] = Memory(8 * 1024 * 1024)

    def open_store(self) -> Store:
        self.directory = tempfile.TemporaryDirectory()
        return RocksStore(Path(self.directory.name), self.memory)

    @rule()
    def reopen_store(self) -> None:
        self.store.close()
        self.store = RocksStore(Path(self.directory.name), self.memory)
        self.reopen()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            if hasattr(self, "store"):
                self.store.close()
                self.directory.cleanup()


class CommittedRocksMachine(RocksMachine):
    """Both."""

    commits_each_write = True


class CommittedMemoryMachine(ShardMachine):
    """The same with nothing left in the overlay: every read comes from the store."""

    commits_each_write = True


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
MEMORY = settings(max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=SLOW)
ROCKS = settings(max_examples=20, stateful_step_count=40, deadline=None, suppress_health_check=SLOW)

TestOverlayOnMemory = ShardMachine.TestCase
TestOverlayOnMemory.settings = MEMORY
TestCommittedMemory = CommittedMemoryMachine.TestCase
TestCommittedMemory.settings = MEMORY
TestOverlayOnRocks = RocksMachine.TestCase
TestOverlayOnRocks.settings = ROCKS
TestCommittedRocks = CommittedRocksMachine.TestCase
TestCommittedRocks.settings = ROCKS
