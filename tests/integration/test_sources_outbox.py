"""Signals written with a transaction of a real PostgreSQL: published if it is committed, once, whoever is killed."""

import itertools
import json
import random
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.processors.streams import Stream
from kapelle.schemas.contract import Contract
from kapelle.sources.outbox import OutboxRelay
from kapelle.topology.journal import KafkaJournal, Position
from tests.integration.sources.postgres import Postgres
from tests.integration.sources.world import Command, World, opened_world
from tests.support.broker import Broker
from tests.unit.sources.test_docs import block

pytestmark = pytest.mark.timeout(280)

PACE_S = 0.02
INSERT = "INSERT INTO kapelle_outbox (id, name, params) VALUES (%s, 'order', %s)"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with Postgres() as started:
        yield started


@pytest.fixture
def database(server: Postgres) -> Iterator[psycopg.Connection]:
    """A connection to a database with an empty outbox."""
    made = CliRunner().invoke(cli, ["outbox", "sql"]).stdout
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS kapelle_outbox")
        connection.execute(made.encode())
        connection.execute(made.encode())  # once more: it does no harm
        connection.commit()
        yield connection


@pytest.fixture
def world(broker: Broker, tmp_path: Path) -> Iterator[World]:
    with opened_world(broker, tmp_path) as made:
        yield made


def relay(world: World, server: Postgres, *more: str, name: str = "one") -> Command:
    return world.command("outbox", "run", "--dsn", server.dsn, "--poll-ms", "50", *more, name=name)


def left(database: psycopg.Connection) -> int:
    row = database.execute("SELECT count(*) FROM kapelle_outbox").fetchone()
    database.commit()
    return int(row[0]) if row else -1


def test_what_is_committed_is_published_and_what_is_rolled_back_is_not(
    world: World, server: Postgres, database: psycopg.Connection
) -> None:
    database.execute(INSERT, ("a", '{"day": "2026-11-16", "rows": 7}'))
    database.execute("INSERT INTO kapelle_outbox (name, happened_at) VALUES ('order', '2026-11-16T10:00:00Z')")
    database.execute(block("sql").encode())  # as the page says
    database.commit()
    database.execute(INSERT, ("never", "{}"))
    database.rollback()
    with relay(world, server) as running:
        world.until(lambda: len(world.accepted) >= 3, "three signals")
        world.until(lambda: left(database) == 0, "an empty outbox")
        code = running.terminate()

    assert code == 0, running.said()
    first = next(event for event in world.accepted if event.signal_id == "a")
    other = next(event for event in world.accepted if event.name == "order" and event.signal_id != "a")
    assert json.loads(first.params) == {"day": "2026-11-16", "rows": 7}
    assert json.loads(first.source)["outbox"] == "kapelle_outbox"
    assert (uuid.UUID(other.signal_id).version, other.happened_at_ms) == (4, 1_794_823_200_000)
    assert [json.loads(event.params)["order"] for event in world.accepted if event.name == "order-placed"] == [4711]
    assert len(world.accepted) == 3


def test_rows_that_make_no_signal_are_kept_with_the_reason_and_hold_nothing_up(
    world: World, server: Postgres, database: psycopg.Connection, tmp_path: Path
) -> None:
    metrics = tmp_path / "metrics.prom"
    database.execute(INSERT, ("bad", '{"share": 0.5}'))
    database.execute(INSERT, ("list", "[]"))
    database.execute("INSERT INTO kapelle_outbox (id, name) VALUES ('long', %s)", ("x" * 257,))
    database.execute(
        "INSERT INTO kapelle_outbox (id, name, payload) VALUES ('large', 'order', jsonb_build_object('x', %s::text))",
        ("x" * 1_100_000,),
    )
    database.execute(INSERT, ("good", "{}"))
    database.commit()
    with relay(world, server, "--keep", "--metrics", str(metrics)) as running:
        world.until(lambda: world.ids("order") == ["good"], "the good signal")
        world.until(lambda: running.said().count("a row is not a valid signal") >= 4, "the rows to be told of")
        assert running.terminate() == 0, running.said()
    told = metrics.read_text().splitlines()
    assert [line for line in told if line.startswith("kapelle_outbox_") and "waits" not in line] == [
        "kapelle_outbox_published_total 1",
        "kapelle_outbox_refused_total 4",
    ]

    rows = database.execute("SELECT id, refused, published_at IS NULL FROM kapelle_outbox").fetchall()
    refused = {name: reason for name, reason, _ in rows}
    assert refused.pop("good") is None
    assert "64 bits for parameter 'share'" in refused["bad"]
    assert "Expected 'params' to be an object" in refused["list"]
    assert "at most 256 characters" in refused["long"]
    assert "Expected at most 262,144 bytes of payload" in refused["large"]
    assert [name for name, _, waiting in rows if not waiting] == ["good"]


def test_two_relays_that_are_killed_lose_and_double_nothing(
    world: World, server: Postgres, database: psycopg.Connection
) -> None:
    written: list[str] = []
    enough = threading.Event()
    writer = threading.Thread(target=_write, args=(server, written, enough), daemon=True)
    writer.start()
    for round_ in range(3):
        with relay(world, server, name=f"a{round_}") as first, relay(world, server, name=f"b{round_}") as second:
            seen = len(world.accepted)
            world.until(lambda seen=seen: len(world.accepted) > seen + 100, "signals")  # type: ignore[misc]
            first.kill()
            seen = len(world.accepted)
            world.until(lambda seen=seen: len(world.accepted) > seen + 100, "more signals")  # type: ignore[misc]
            second.kill()
    enough.set()
    writer.join()
    with relay(world, server, name="last"):
        world.until(lambda: left(database) == 0, "an empty outbox")
        world.until(lambda: len(set(world.ids("order"))) >= len(written), "all signals")

    assert sorted(world.ids("order")) == sorted(written)


def test_a_relay_that_dies_after_the_acknowledgement_leaves_rows_that_are_known_again(
    world: World, server: Postgres, database: psycopg.Connection
) -> None:
    database.execute(INSERT, ("a", "{}"))
    database.commit()
    with closing(KafkaJournal(world.place.topology, world.place.settings)) as journal:
        with (
            closing(OutboxRelay(Cutting(journal, server), server.dsn)) as dying,
            pytest.raises(psycopg.OperationalError),
        ):
            dying.step()
        world.until(lambda: world.ids("order") == ["a"], "the signal")

        assert left(database) == 1
        with closing(OutboxRelay(journal, server.dsn)) as living:
            assert living.step() == 1

    world.until(lambda: world.duplicated, "the repetition to be known")
    assert left(database) == 0
    assert world.ids("order") == ["a"]


class Cutting:
    """A journal that takes a record, and then cuts whoever publishes off from their database."""

    def __init__(self, journal: KafkaJournal, server: Postgres) -> None:
        self._journal = journal
        self._server = server

    def publish(self, stream: Stream, key: str, value: Contract) -> "Future[Position]":
        sent = self._journal.publish(stream, key, value)
        sent.result()
        with self._server.connect() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kapelle outbox'"
            )
        return sent


def _write(server: Postgres, written: list[str], enough: threading.Event) -> None:
    """Transactions of one to twenty rows, a third of them rolled back, until it is enough."""
    seeded = random.Random(7)
    with server.connect() as connection:
        for number in itertools.takewhile(lambda _: not enough.wait(PACE_S), itertools.count()):
            ids = [f"{number}-{row}" for row in range(seeded.randint(1, 20))]
            connection.cursor().executemany(INSERT, [(name, "{}") for name in ids])
            if seeded.random() < 1 / 3:
                connection.rollback()
            else:
                connection.commit()
                written += ids


def test_a_database_that_goes_away_is_waited_for(world: World) -> None:
    with Postgres() as server, server.connect() as database:
        database.execute(CliRunner().invoke(cli, ["outbox", "sql"]).stdout.encode())
        database.commit()
        with relay(world, server) as running:
            world.until(lambda: "relaying" in running.said(), "the relay to start")
            database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kapelle outbox'"
            )
            database.execute(INSERT, ("after", "{}"))
            database.commit()
            world.until(lambda: world.ids("order") == ["after"], "the signal")

            assert running.process.poll() is None


def test_an_outbox_that_cannot_be_used_is_told_of_at_the_start(world: World, server: Postgres) -> None:
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS kapelle_outbox")
    lacking = relay(world, server, name="lacking")
    away = world.command("outbox", "run", "--dsn", "postgresql://127.0.0.1:9/x", name="away")
    bad = world.command("outbox", "run", "--dsn", "postgresql://ann:secret@[/x", name="bad")

    codes = [command.process.wait(90) for command in (lacking, away, bad)]

    assert codes == [4, 5, 2], [command.said() for command in (lacking, away, bad)]
    assert "kapelle outbox sql" in lacking.said()
    assert "Expected to connect to PostgreSQL" in away.said()
    assert "secret" not in bad.said()
