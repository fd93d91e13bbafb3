"""The fold of the view: the same rows whatever comes first, whatever the batches, whenever it was stopped."""

import random
from pathlib import Path

import pytest

from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.testing.engine import Engine
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal, Entry, Point
from kapelle.topology.page import topology
from kapelle.topology.tables import StoreLocked
from kapelle.views import Views
from kapelle.views.batches import Batch
from kapelle.views.database import Database
from kapelle.views.projection.streams import EVENTS
from kapelle.views.rows import Cells
from kapelle.views.schema import KEYS, RISING
from tests.unit.views.histories import definition, deleted, dump, entries_of, fold, used_engine, written


def folded(entries: list[Entry]) -> dict[str, list[tuple[object, ...]]]:
    return dump(written(entries))


def shuffled(points: dict[Point, list[Entry]], chance: random.Random) -> list[Entry]:
    """One of the orders in which the partitions can be read, each in its own order."""
    left = {point: list(entries) for point, entries in points.items()}
    found: list[Entry] = []
    while left:
        point = chance.choice(list(left))
        count = chance.randrange(1, 10)
        found += left[point][:count]
        left[point] = left[point][count:]
        if not left[point]:
            del left[point]
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_partitions_makes_no_difference(seed: int) -> None:
    engine, chance = used_engine(seed), random.Random(seed)
    deleted(engine, "wf-1")
    engine.push(definition("wf-1"))
    engine.start("wf-1")
    points = entries_of(engine)
    one_by_one = [entry for entries in points.values() for entry in entries]

    dumps = [folded(one_by_one), *(folded(shuffled(points, chance)) for _ in range(4))]

    assert all(found == dumps[0] for found in dumps)
    assert len(dumps[0]["attempts"]) > 3


@pytest.mark.parametrize("batch_records", [1, 30, 5_000])
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_writes_what_its_changes_would_one_by_one(seed: int, batch_records: int) -> None:
    engine = used_engine(seed, operations=60)
    deleted(engine, "wf-1")
    engine.push(definition("wf-1", tags=["again"]))
    engine.start("wf-1")
    one_by_one = [entry for entries in entries_of(engine).values() for entry in entries]

    views = Views(EmbeddedJournal(engine.runtime), batch_records=batch_records)
    fold(views)

    assert dump(views.database) == folded(one_by_one)


def test_every_event_of_the_engine_is_known_to_the_view() -> None:
    expected = {stream.name: set(stream.contracts) for stream in (WORKFLOW_EVENTS, RUN_EVENTS)}

    assert {name: set(known) for name, known in EVENTS.items()} == expected


def test_an_entry_that_cannot_be_read_is_listed_and_changes_nothing_else() -> None:
    unreadable = Entry(WORKFLOW_EVENTS.name, 0, 0, "etl", None, 0, "it is torn")

    found = dump(written([unreadable]))

    assert found.pop("unreadable") == [(WORKFLOW_EVENTS.name, 0, 0, "etl", "it is torn", 0)]
    assert not any(found.values())


def test_rows_are_erased_after_earlier_ones_and_before_later_ones_of_their_table() -> None:
    database = Database(None, "log")
    where: Cells = {"workflow_id": "etl", "instance_id": 1, "step_id": "load"}
    with database.writing() as connection:
        batch = Batch(connection)
        for name in ("orders", "returns"):
            batch.put("dependencies", ("etl", 1, "load", 0), {"name": name})
            batch.erase("dependencies", where)
            batch.erase("dependencies", {**where, "step_id": "other"})
        batch.put("dependencies", ("etl", 1, "load", 1), {"name": "stock"})
        batch.flush()
        found = connection.execute("SELECT number, name FROM dependencies").fetchall()

    assert [tuple(row) for row in found] == [(1, "stock")]


def test_the_keys_of_changes_are_those_of_the_tables() -> None:
    with Database(None, "any").reading() as connection:
        tables = {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in KEYS}

    assert {
        name: tuple(row["name"] for row in sorted(rows, key=lambda row: row["pk"]) if row["pk"])
        for name, rows in tables.items()
    } == KEYS
    assert all({row["name"] for row in tables[name]} >= set(rising) for name, rising in RISING.items())


@pytest.mark.parametrize("batch_records", [1, 7, 1_000])
def test_a_view_that_was_closed_goes_on_where_it_stood(tmp_path: Path, batch_records: int) -> None:
    engine = used_engine(1)
    journal = EmbeddedJournal(engine.runtime)
    for _ in range(3):
        views = Views(journal, tmp_path, batch_records=batch_records)
        views.folding.step()
        views.close()

    resumed, fresh = Views(journal, tmp_path), Views(journal)
    for views in (resumed, fresh):
        while views.folding.step():
            pass

    assert dump(resumed.database) == dump(fresh.database)
    assert resumed.lag() == fresh.lag() == 0
    resumed.close()


def test_a_view_of_another_log_is_made_anew(tmp_path: Path) -> None:
    found: list[tuple[bool, bool]] = []
    for log in ("one", "two", "two"):
        with EmbeddedRuntime(topology(partitions=1), tmp_path / log) as runtime:
            views = Views(EmbeddedJournal(runtime), tmp_path / "views")
            views.folding.step()
            found.append((views.database.is_new, bool(views.database.offsets())))
            runtime.publish(WORKFLOW_COMMANDS, "etl", c.DeactivateWorkflow("request", "ann"))
            runtime.step_until_idle()
            views.folding.step()
            views.close()

    assert found == [(True, False), (True, False), (False, True)]


def test_tables_of_another_version_are_made_anew(tmp_path: Path) -> None:
    journal = EmbeddedJournal(used_engine(1).runtime)
    first = Views(journal, tmp_path)
    while first.folding.step():
        pass
    before = dump(first.database)
    with first.database.writing() as connection:
        connection.execute("UPDATE about SET value = '0' WHERE name = 'schema_version'")
    first.close()

    second = Views(journal, tmp_path)
    assert dump(second.database)["workflows"] == []
    while second.folding.step():
        pass

    assert dump(second.database) == before
    second.close()


def test_a_file_that_is_no_database_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "views.sqlite").write_bytes(b"this was something else once" * 100)

    views = Views(EmbeddedJournal(used_engine(1).runtime), tmp_path)
    while views.folding.step():
        pass

    assert views.lag() == 0
    views.close()


def test_a_directory_in_use_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.views.database.LOCK_WAIT_S", 0.0)
    journal = EmbeddedJournal(Engine().runtime)
    views = Views(journal, tmp_path)

    with pytest.raises(StoreLocked):
        Views(journal, tmp_path)

    views.close()
    Views(journal, tmp_path).close()


def test_a_view_that_cannot_be_made_lets_go_of_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.views.database.LOCK_WAIT_S", 0.0)
    journal = EmbeddedJournal(Engine().runtime)
    (tmp_path / "views.sqlite").mkdir()

    with pytest.raises(OSError, match=r"views\.sqlite") as refused:
        Views(journal, tmp_path)

    (tmp_path / "views.sqlite").rmdir()
    Views(journal, tmp_path).close()
    assert refused


def test_a_batch_that_fails_leaves_nothing_behind() -> None:
    engine = Engine()
    engine.push(definition("etl"))
    views = Views(EmbeddedJournal(engine.runtime))
    before = dump(views.database)
    with views.database.writing() as connection:
        connection.execute("DROP TABLE requests")

    with pytest.raises(Exception, match="requests"):
        views.folding.step()

    with views.database.writing() as connection:
        connection.execute("CREATE TABLE requests (x)")
    assert dump(views.database) == before
    assert views.database.offsets() == {}
