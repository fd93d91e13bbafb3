"""History in a file: it holds all of it, says what it holds, and a file that was cut or changed is refused."""

from collections.abc import Callable
from pathlib import Path

import fastavro
import pytest

from kapelle.schemas.codec import ByRegistry
from kapelle.topology.replay.changes import changed
from kapelle.topology.replay.errors import BadExport, HistoryUnreadable
from kapelle.topology.replay.exports import (
    METADATA,
    ExportedHistory,
    about,
    folded_facts,
    read_about,
    write_export,
)
from kapelle.topology.replay.history import StoredHistory
from kapelle.topology.replay.lookup import Subject
from kapelle.topology.replay.moments import Moment
from kapelle.topology.tables import MemoryStore
from tests.proof.contracts import Counted
from tests.proof.processors import topology
from tests.unit.replay.world import World

WORLD = topology("all", prefix="world", partitions=2)


def exported(path: Path, moment: Moment | None = None) -> World:
    """The history of a world, in a file."""
    world = World().play()
    history = world.history()
    write_export(path, history, about(history, list(folded_facts(history, moment or Moment())), "1.2.3"))
    return world


def test_a_file_folds_to_what_the_engine_had(tmp_path: Path) -> None:
    world = exported(tmp_path / "history.avro")

    found = folded_facts(ExportedHistory(tmp_path / "history.avro", WORLD), Moment())

    assert {(each.processor, each.partition): each.fingerprint for each in found} == world.fingerprints()


def test_values_by_the_ids_of_a_registry_are_read_from_a_file_without_the_registry(tmp_path: Path) -> None:
    world = World(ByRegistry({Counted: 4_711})).play()
    history = world.history()
    facts = about(history, list(folded_facts(history, Moment())), "1.2.3")

    write_export(tmp_path / "history.avro", history, facts)

    found = folded_facts(ExportedHistory(tmp_path / "history.avro", WORLD), Moment())
    assert {(each.processor, each.partition): each.fingerprint for each in found} == world.fingerprints()
    assert (world.runtime.read("counting.events", 0)[0].value or b"").startswith(b"\0" + (4_711).to_bytes(4, "big"))
    with pytest.raises(HistoryUnreadable, match="4711"):
        list(folded_facts(StoredHistory(WORLD, world.store), Moment()))


def test_a_file_says_what_it_holds(tmp_path: Path) -> None:
    world = exported(tmp_path / "history.avro")

    facts = read_about(tmp_path / "history.avro")

    assert (facts.version, facts.prefix, facts.partitions) == ("1.2.3", "world", 2)
    assert {(s.processor, s.partition): s.fingerprint for s in facts.shards} == world.fingerprints()
    assert all(
        shard.end == world.runtime.end(shard.stream, shard.partition) and shard.events == shard.end
        for shard in facts.shards
    )
    assert len(facts.schemas) == len(WORLD.catalog().schemas)


def test_any_avro_tool_reads_a_file(tmp_path: Path) -> None:
    exported(tmp_path / "history.avro")

    with (tmp_path / "history.avro").open("rb") as file:
        records = fastavro.reader(file)
        found = [each for each in records if isinstance(each, dict)]

    assert METADATA in records.metadata
    assert {each["kind"] for each in found} == {"EVENT"}
    assert {each["stream"] for each in found} == {"counting.events", "joining.events", "reminding.events"}


def test_a_file_of_a_moment_ends_there(tmp_path: Path) -> None:
    moment = Moment(offsets={("counting", 0): 1, ("counting", 1): 0})

    exported(tmp_path / "history.avro", moment)

    ends = {(s.processor, s.partition): s.end for s in read_about(tmp_path / "history.avro").shards}
    assert (ends["counting", 0], ends["counting", 1]) == (1, 0)


def test_two_files_differ_in_the_rows_that_changed_between_them(tmp_path: Path) -> None:
    exported(tmp_path / "before.avro", Moment(offsets={("counting", 0): 1}))
    exported(tmp_path / "after.avro", Moment(offsets={("counting", 0): 2}))
    before, after = (
        (ExportedHistory(tmp_path / name, WORLD), Moment(), MemoryStore()) for name in ("before.avro", "after.avro")
    )

    found = list(changed(before, after, [Subject(name) for name in WORLD.processors]))

    assert [(each.processor, each.table) for each in found] == [("counting", "counts")]
    assert found[0].before != found[0].after
    assert isinstance(found[0].after, dict)
    assert found[0].after["count"] in (1, 2)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def garbled(data: bytes) -> bytes:
    return data[:-200] + b"\0" * 100 + data[-100:]


def of_another_kind(_: bytes) -> bytes:
    return b"once upon a time"


def empty(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("harm", [cut, garbled, of_another_kind, empty])
def test_a_file_that_was_harmed_is_refused(harm: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "history.avro"
    exported(path)
    path.write_bytes(harm(path.read_bytes()))

    with pytest.raises(BadExport, match=r"Expected .*history\.avro to be a file of `kapelle replay export`, but"):
        ExportedHistory(path, WORLD)


def test_a_file_of_another_topology_is_refused(tmp_path: Path) -> None:
    exported(tmp_path / "history.avro")

    with pytest.raises(BadExport, match="processors that are not here: counting"):
        ExportedHistory(tmp_path / "history.avro", topology("stages", prefix="world", partitions=2))
    with pytest.raises(BadExport, match="more partitions of counting than the 1 here"):
        ExportedHistory(tmp_path / "history.avro", topology("all", prefix="world", partitions=1))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadExport, match="it cannot be read: No such file"):
        read_about(tmp_path / "none.avro")
