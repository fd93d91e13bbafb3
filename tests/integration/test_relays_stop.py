"""Relays that wait for somebody who does not answer: told to stop, they leave in good order, and within their time."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import Codec
from kapelle.topology.page import topology
from tests.integration.metrics_relays import written
from tests.integration.runtime.members import Deployment, until
from tests.integration.sinks.world import Receiver, webhook
from tests.integration.sinks.world import World as Public
from tests.integration.sources.postgres import Postgres
from tests.integration.sources.world import Command
from tests.support.broker import Broker
from tests.support.proxy import PRODUCE, Proxy
from tests.unit.worker.samples import started, step

pytestmark = pytest.mark.timeout(280)

ENOUGH_S = 120.0
FOR_EVER_S = 600.0
# What each says when it is up.
RELAYS = {
    "traces": "exporting",
    "openlineage": "exporting",
    "outbox": "relaying",
    "sources": "relaying",
    "sinks": "delivering",
}


class Silent:
    """Somebody who takes connections and never says a word."""

    def __init__(self) -> None:
        self.heard = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._taken: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        self._taken.append(self._socket.accept()[0])
        self.heard.set()

    def close(self) -> None:
        for one in (*self._taken, self._socket):
            one.close()


class World:
    """A deployment, with something to relay for each relay. Those of its processes reach the broker by a proxy."""

    def __init__(self, broker: Broker, proxy: Proxy, folder: Path) -> None:
        self.broker = broker
        self.proxy = proxy
        self.folder = folder
        self.place = Deployment(broker, folder, topology(prefix=f"stop-{folder.name}", partitions=1))
        self.orders = broker.create_topic(f"{folder.name}-orders")
        self.lineage = broker.create_topic(f"{folder.name}-lineage")

    def relay(self, *words: str, prefix: str | None = None, partitions: int = 1) -> Command:
        where = ["--bootstrap-servers", self.broker.proxied_servers, "--prefix", prefix or self.place.topology.prefix]
        return Command([*words, *where, "--partitions", str(partitions)], self.folder / f"{words[0]}.log")

    def happen(self) -> None:
        """A run in the history, and an order."""
        codec = Codec(self.place.topology.catalog())
        engine, _ = started(step())
        for stream in (WORKFLOW_EVENTS, RUN_EVENTS):
            history = [(key, codec.encode(value)) for key, value in engine.history(stream, 0)]
            written(self.broker, self.place.topology.topic(stream), *history)
        written(self.broker, self.orders, ("key", b'{"id": "1"}'))


def says(running: Command, word: str) -> bool:
    return word in running.said()


@pytest.fixture(scope="module")
def waiting(own_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Command]]:
    """All relays at once. What they write is not acknowledged, then nothing is; and then they are told to stop."""
    folder = tmp_path_factory.mktemp("relays")
    with ExitStack() as opened:
        proxy = opened.enter_context(Proxy(own_broker))
        world, public = World(own_broker, proxy, folder), Public(own_broker, folder)
        collector = opened.enter_context(closing(Silent()))
        refuses = opened.enter_context(Receiver(lambda _: (400, {})))
        takes = opened.enter_context(Receiver())
        server = opened.enter_context(Postgres())
        database = opened.enter_context(psycopg.connect(server.dsn, autocommit=True))
        database.execute(CliRunner().invoke(cli, ["outbox", "sql"]).stdout.encode())
        file = folder / "sources.yaml"
        file.write_text(json.dumps({"sources": [{"topic": world.orders, "name": "order", "params": {"id": "/id"}}]}))
        public.sinks(refuses=webhook(refuses), takes=webhook(takes))
        running = {
            "traces": world.relay("traces", "run", "--endpoint", collector.url),
            "openlineage": world.relay("openlineage", "run", "--topic", world.lineage),
            "outbox": world.relay("outbox", "run", "--dsn", server.dsn, "--poll-ms", "50"),
            "sources": world.relay("sources", "run", "--file", str(file)),
            "sinks": world.relay("sinks", "run", "--file", str(public.file), prefix=public.prefix, partitions=2),
        }
        for one in running.values():
            opened.enter_context(one)
        for name, word in RELAYS.items():
            until(partial(says, running[name], word), f"{name} to be up; {running[name].said()}", ENOUGH_S)
        proxy.delay(PRODUCE, FOR_EVER_S)
        before = proxy.seen[PRODUCE]
        world.happen()
        public.write(4)
        database.execute("INSERT INTO kapelle_outbox (id, name) VALUES ('a', 'order')")
        assert collector.heard.wait(ENOUGH_S), running["traces"].said()
        until(lambda: len(takes.taken) == 4, "a sink to take what came", ENOUGH_S)
        until(lambda: proxy.seen[PRODUCE] >= before + 4, "the others to write", ENOUGH_S)
        proxy.stall()
        for one in running.values():
            one.process.terminate()
        yield running


@pytest.mark.parametrize("name", RELAYS)
def test_a_relay_that_waits_for_an_answer_leaves_in_good_order_when_told_to_stop(
    waiting: dict[str, Command], name: str
) -> None:
    assert waiting[name].process.wait(ENOUGH_S) == 0, waiting[name].said()
