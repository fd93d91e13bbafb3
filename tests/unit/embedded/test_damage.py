"""Acknowledged writes are there at the next start, or the start is refused; a torn last write is dropped."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kapelle.topology.embedded import (
    DirectoryTaken,
    EmbeddedRuntime,
    EmbeddedSettings,
    LogDamaged,
    LogReplaced,
    Lost,
    Stopped,
    Witness,
)
from kapelle.topology.embedded.acknowledged import read_notes
from kapelle.topology.embedded.layout import offset_key, offset_row, stored_offset
from kapelle.topology.embedded.partitions import partitions_of
from kapelle.topology.log import Place
from kapelle.topology.salvage import salvage
from kapelle.topology.salvage.rebuild import rebuild
from kapelle.topology.tables import Batch, Memory, RocksStore
from kapelle.topology.tables.writes import write_row
from tests.proof.checks import table_violations
from tests.proof.contracts import Tick
from tests.unit.embedded.damages import DAMAGES, Damage, flip, overwrite, wal
from tests.unit.embedded.fakes import COUNTING, EVENTS, TICKS, seen, stored_shards

LIVES, WRITES = 2, 30


def publish(runtime: EmbeddedRuntime, first: int, count: int) -> None:
    """One acknowledged write for each tick."""
    for number in range(first, first + count):
        future = runtime.publish("ticks", f"word-{number % 7}", Tick(f"tick-{number}", "word", 0, 0))
        runtime.step_until_idle()
        assert future.result(0)


def image(directory: Path) -> Path:
    """A log as a killed process leaves it: some writes are in files with rows, later ones in the write-ahead log."""
    running, left = directory / "running", directory / "killed" / "log"
    for life in range(LIVES):
        with EmbeddedRuntime(COUNTING, running) as runtime:
            publish(runtime, life * WRITES, WRITES)
            if life == LIVES - 1:
                shutil.copytree(running, left)
    return left


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return image(tmp_path_factory.mktemp("image"))


@pytest.fixture
def log(killed: Path, tmp_path: Path) -> Path:
    shutil.copytree(killed, tmp_path / "log")
    return tmp_path / "log"


def content(log: Path) -> dict[str, bytes]:
    """All that matters of a directory. The lock names its last holder, and RocksDB's own diary is about itself."""
    files = [path for path in log.rglob("*") if path.is_file()]
    return {str(p.relative_to(log)): p.read_bytes() for p in files if p.name not in ("kapelle.lock", "LOG", "LOCK")}


def ticks(runtime: EmbeddedRuntime) -> int:
    return sum(runtime.log.end(place) for place in TICKS)


def assert_consistent(runtime: EmbeddedRuntime) -> None:
    found = seen(runtime)
    assert table_violations(stored_shards(COUNTING, runtime.log), found) == []
    for partition in range(2):
        counted = [value.id for _, value in found["counting.events"][partition]]
        assert len(counted) == len(set(counted))


def test_a_killed_process_has_left_all_that_was_acknowledged(log: Path) -> None:
    with EmbeddedRuntime(COUNTING, log) as runtime:
        assert ticks(runtime) == LIVES * WRITES
        assert_consistent(runtime)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_log_without_what_was_acknowledged_is_refused_every_time_and_left_as_it_is(log: Path, damage: Damage) -> None:
    damage(log)
    before = content(log)

    for _ in range(2):
        with pytest.raises(LogDamaged, match=r"acknowledged, but .* --salvage"):
            EmbeddedRuntime(COUNTING, log)

    assert content(log) == before


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_salvage_opens_a_damaged_log_keeps_a_copy_and_tells_what_was_lost(log: Path, damage: Damage) -> None:
    damage(log)
    before = content(log)

    salvaged = salvage(COUNTING, log)

    assert salvaged is not None
    assert content(salvaged.kept) == before
    with EmbeddedRuntime(COUNTING, log) as runtime:
        left = ticks(runtime)
        lost = [each for each in salvaged.lost if each.place in TICKS]
        assert sum(each.end - each.first for each in lost) == LIVES * WRITES - left
        assert_consistent(runtime)
        publish(runtime, 1_000, 5)
        assert ticks(runtime) == left + 5
        assert_consistent(runtime)
    assert salvage(COUNTING, log) is None


def test_the_refusal_tells_how_many_writes_and_which_records_are_lost(log: Path) -> None:
    os.truncate(wal(log), wal(log).stat().st_size // 2)

    with pytest.raises(LogDamaged) as refused:
        EmbeddedRuntime(COUNTING, log)

    assert "writes were acknowledged" in str(refused.value)
    assert "offsets" in str(refused.value)
    assert "proof.ticks-0" in str(refused.value)


def test_a_damaged_block_is_salvaged_to_a_log_that_is_consistent(log: Path) -> None:
    with EmbeddedRuntime(COUNTING, log) as runtime:
        publish(runtime, 100, 10)
    for file in (log / "rows").glob("*.sst"):
        flip(file, 300)

    salvaged = salvage(COUNTING, log)

    assert salvaged is not None
    assert salvaged.rebuilt
    with EmbeddedRuntime(COUNTING, log) as runtime:
        assert_consistent(runtime)
        publish(runtime, 1_000, 5)


@pytest.mark.parametrize(("acknowledged", "moved", "skipped"), [(10**9, -3, 3), (10**9, 5, 0), (0, 5, 0)])
def test_a_rebuilt_log_goes_on_at_its_end_and_tells_what_it_leaves_out(
    log: Path, acknowledged: int, moved: int, skipped: int
) -> None:
    """What was folded before the damage must not be folded again, and an offset beyond the end skips what comes."""
    store, place, batch = RocksStore(log, Memory()), TICKS[0], Batch()
    end = partitions_of(COUNTING, store)[place].end
    batch.put(offset_key("counting", place), offset_row(end + moved))
    store.write(batch)

    rebuilt = rebuild(COUNTING, store, "identity", acknowledged=acknowledged)

    assert rebuilt.skipped == ((Lost(place, end - skipped, end),) if skipped else ())
    assert stored_offset(store, "counting", place) == end
    store.close()


# What is no damage ----------------------------------------------------------------------------------------------------

TORN: dict[str, Damage] = {
    "rubbish after the last write": lambda log: overwrite(
        wal(log), wal(log).stat().st_size, random.Random(2).randbytes(700)
    ),
    "half a write after the last": lambda log: overwrite(
        wal(log), wal(log).stat().st_size, wal(log).read_bytes()[:150]
    ),
    "zeros after the last write": lambda log: overwrite(wal(log), wal(log).stat().st_size, bytes(4096)),
    "a torn slot of the note": lambda log: flip(log / "acknowledged", 4096 + 30),
    "the other slot of the note": lambda log: flip(log / "acknowledged", 2 * 4096 + 30),
}


@pytest.mark.parametrize("torn", TORN.values(), ids=TORN)
def test_a_torn_last_write_is_dropped_without_a_word(log: Path, torn: Damage) -> None:
    torn(log)

    with EmbeddedRuntime(COUNTING, log) as runtime:
        assert ticks(runtime) == LIVES * WRITES
        assert_consistent(runtime)


def test_a_write_that_nobody_was_told_of_may_be_torn_off(log: Path) -> None:
    notes = (log / "acknowledged").read_bytes()
    with EmbeddedRuntime(COUNTING, log) as runtime:
        publish(runtime, 500, 1)
        shutil.copytree(log, log.with_name("torn"))
    torn = log.with_name("torn")
    (torn / "acknowledged").write_bytes(notes)
    os.truncate(wal(torn), wal(torn).stat().st_size - 10)

    with EmbeddedRuntime(COUNTING, torn) as runtime:
        assert ticks(runtime) == LIVES * WRITES


def test_a_process_that_is_killed_while_it_writes_leaves_a_log_that_opens(tmp_path: Path) -> None:
    for line in (30, 80, 150):
        command = [sys.executable, "-c", WRITE_FOR_EVER, str(tmp_path / "log")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            told = [process.stdout.readline() for _ in range(line)]
            process.kill()
            told += process.stdout.readlines()
        with EmbeddedRuntime(COUNTING, tmp_path / "log") as runtime:
            acknowledged = [int(each) for each in told if each.endswith("\n")]
            assert ticks(runtime) > max(acknowledged)
            assert_consistent(runtime)


WRITE_FOR_EVER = """
import sys
from itertools import count
from pathlib import Path
from kapelle.topology.embedded import EmbeddedRuntime
from tests.proof.contracts import Tick
from tests.unit.embedded.fakes import COUNTING, TICKS

with EmbeddedRuntime(COUNTING, Path(sys.argv[1])) as runtime:
    runtime.start()
    for number in count(sum(runtime.log.end(place) for place in TICKS)):
        runtime.publish("ticks", f"word-{number % 7}", Tick(f"tick-{number}", "word", 0, 0)).result()
        print(number, flush=True)
"""


def test_a_directory_of_a_release_without_notes_is_opened(tmp_path: Path) -> None:
    with EmbeddedRuntime(COUNTING, tmp_path) as runtime:
        runtime.log._writes = -1  # as if nothing had ever been counted
    (tmp_path / "acknowledged").unlink()

    EmbeddedRuntime(COUNTING, tmp_path).close()


# Somebody who has read more -------------------------------------------------------------------------------------------


def witness(log: Path, beyond: int = 0) -> Witness:
    noted = read_notes(log)
    assert noted is not None
    ends = {place: end + beyond for place, end in noted.ends.items() if place in EVENTS}
    return Witness(who="the view", identity=noted.identity, ends=ends)


def opened(log: Path, seen_by: Witness) -> None:
    EmbeddedRuntime(COUNTING, log, EmbeddedSettings(witness=seen_by)).close()


def test_a_view_that_has_read_the_same_is_no_matter(log: Path) -> None:
    opened(log, witness(log))


def test_an_older_copy_of_the_whole_log_is_noticed_by_a_view_that_has_read_more(log: Path) -> None:
    shutil.copytree(log, log.with_name("older"))
    with EmbeddedRuntime(COUNTING, log) as runtime:
        publish(runtime, 500, 3)
    view = witness(log)

    with pytest.raises(LogDamaged, match="the view has read more than it has"):
        opened(log.with_name("older"), view)

    salvaged = salvage(COUNTING, log.with_name("older"), view)
    assert salvaged is not None
    assert sum(each.end - each.first for each in salvaged.lost) == 3


def test_an_older_copy_of_the_rows_is_noticed_by_the_note(log: Path) -> None:
    shutil.copytree(log / "rows", log.with_name("older"))
    with EmbeddedRuntime(COUNTING, log) as runtime:
        publish(runtime, 500, 3)
    shutil.rmtree(log / "rows")
    log.with_name("older").rename(log / "rows")

    with pytest.raises(LogDamaged, match="the last 3 are lost"):
        EmbeddedRuntime(COUNTING, log)


def test_another_log_or_none_beside_a_view_is_noticed(log: Path, tmp_path: Path) -> None:
    view = witness(log)
    with EmbeddedRuntime(COUNTING, tmp_path / "other", clock=lambda: 1) as runtime:
        publish(runtime, 0, 1)

    with pytest.raises(LogReplaced, match="it is the log proof-1"):
        opened(tmp_path / "other", view)
    with pytest.raises(LogReplaced, match="there is no log"):
        opened(tmp_path / "nothing", view)


def test_rows_of_another_log_beside_the_note_are_noticed(log: Path, tmp_path: Path) -> None:
    with EmbeddedRuntime(COUNTING, tmp_path / "other", clock=lambda: 1) as runtime:
        publish(runtime, 0, 200)
    shutil.rmtree(log / "rows")
    shutil.copytree(tmp_path / "other" / "rows", log / "rows")

    with pytest.raises(LogReplaced, match="its rows are of another log"):
        EmbeddedRuntime(COUNTING, log)


# A directory that is taken away --------------------------------------------------------------------------------------


@pytest.mark.parametrize("take", [shutil.rmtree, lambda log: log.rename(log.with_name("moved"))], ids=["rm", "mv"])
def test_nothing_is_acknowledged_in_a_directory_that_was_taken_away(log: Path, take: Callable[[Path], None]) -> None:
    runtime = EmbeddedRuntime(COUNTING, log)
    runtime.start()
    runtime.publish("ticks", "word", Tick("kept", "word", 0, 0)).result(30)
    take(log)

    told = runtime.publish("ticks", "word", Tick("lost", "word", 0, 0)).exception(30)

    assert isinstance(told, Stopped)
    with pytest.raises(DirectoryTaken):
        runtime.close()


# A write in the middle ----------------------------------------------------------------------------------------------


def test_a_missing_write_before_others_is_noticed(log: Path) -> None:
    store = RocksStore(log, Memory())
    batch = Batch()
    batch.delete(write_row(LIVES * WRITES - 5)[0])
    store.write(batch, sync=True)
    store.close()

    with pytest.raises(LogDamaged, match=r"write \d+ is missing although later ones are there"):
        EmbeddedRuntime(COUNTING, log)

    salvaged = salvage(COUNTING, log)
    assert salvaged is not None
    assert salvaged.rebuilt
    with EmbeddedRuntime(COUNTING, log) as runtime:
        assert_consistent(runtime)


def test_an_earlier_write_ahead_log_that_is_gone_is_noticed_and_salvage_gives_up_the_later_one(tmp_path: Path) -> None:
    # As a process leaves it that is killed while a buffer is on its way to a file: two write-ahead logs are in use.
    log = tmp_path / "log"
    with EmbeddedRuntime(COUNTING, tmp_path / "running") as runtime:
        assert isinstance(runtime._store, RocksStore)
        runtime._store._rocks.flush()
        publish(runtime, 0, 20)
        shutil.copytree(tmp_path / "running", log)
        runtime._store._rocks.flush()
        publish(runtime, 20, 20)
        shutil.copy(wal(tmp_path / "running"), log / "rows")
        shutil.copy(tmp_path / "running" / "acknowledged", log)
    min((log / "rows").glob("*.log"), key=lambda path: int(path.stem)).unlink()

    with pytest.raises(LogDamaged, match="is missing although later ones are there"):
        EmbeddedRuntime(COUNTING, log)
    salvaged = salvage(COUNTING, log)

    assert salvaged is not None
    assert not salvaged.rebuilt
    assert sum(each.end - each.first for each in salvaged.lost if each.place in TICKS) == 40
    with EmbeddedRuntime(COUNTING, log) as runtime:
        assert ticks(runtime) == 0
        assert_consistent(runtime)


def test_places_are_named_by_topic_and_partition(log: Path) -> None:
    noted = read_notes(log)

    assert noted is not None
    assert noted.ends[Place("proof.ticks", 0)] + noted.ends[Place("proof.ticks", 1)] == LIVES * WRITES
