"""A member on three brokers: what a broker that is away does not answer is asked again, and is never taken for lost."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.topology.errors import CycleAborted
from kapelle.topology.journal import Position
from kapelle.topology.journal.errors import JournalUnavailable
from kapelle.topology.journal.kafka import KafkaJournal
from kapelle.topology.kafka.offsets import Offsets
from kapelle.topology.log import Place
from kapelle.topology.page import topology
from tests.integration.runtime.members import Deployment, Running, until
from tests.integration.workers.world import AUTHOR, ENOUGH_S, Reach, World, fresh, step
from tests.support.brokers import GivenBroker
from tests.support.jar_cluster import JarCluster
from tests.support.jars import install

# The partitions of a killed node have no leader for so long: a member asks about them several times meanwhile.
LEADERLESS_MS = 5_000
CALL_TIMEOUT_S = 1.0
STARTS_FOR_S = 2.0
EVERY_S = 0.05


@pytest.fixture
def cluster() -> Iterator[JarCluster]:
    with JarCluster(install(), overrides={"broker.session.timeout.ms": str(LEADERLESS_MS)}) as started:
        yield started


class Starts:
    """Requests to start one instance each, and what the brokers said about them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._asked: dict[str, Future[Position]] = {}

    def ask(self) -> None:
        """Ask for starts for a while, and wait for no answer."""
        until_s = time.monotonic() + STARTS_FOR_S
        while time.monotonic() < until_s:
            self._send(fresh())
            self.world.look(EVERY_S)

    def done(self) -> list[int]:
        """The instances, when all have ended. Each accepted start must have exactly one, which ended once."""
        for name in self._asked:
            while not self._is_accepted(name):
                self._send(name)  # its id makes it the same request
        names = set(self._asked)
        self.world.until(lambda: names <= {e.request_id for e in self._created()}, "an instance for each start")
        assert sorted(e.request_id for e in self._created()) == sorted(names)
        instances = [e.instance_id for e in self._created()]
        self.world.await_ended(*instances)
        assert {len(self.world.events(one, c.RunEnded)) for one in instances} == {1}
        return instances

    def _send(self, name: str) -> None:
        command = c.StartInstances(AUTHOR, (c.Start(name),))
        self._asked[name] = self.world.journal.publish(WORKFLOW_COMMANDS, "etl", command)

    def _is_accepted(self, name: str) -> bool:
        try:
            self._asked[name].result(ENOUGH_S)
        except JournalUnavailable:
            return False
        return True

    def _created(self) -> list[c.InstanceCreated]:
        return [event for _, event in self.world.history if isinstance(event, c.InstanceCreated)]


class Place3(Deployment):
    """The engine on three brokers."""

    def __init__(self, cluster: JarCluster, directory: Path) -> None:
        made = topology(prefix="three", partitions=2)
        super().__init__(
            GivenBroker(cluster.bootstrap_servers), directory, made, call_timeout_s=CALL_TIMEOUT_S, commit_timeout_s=3.0
        )
        names = [made.changelog(name) for name in made.processors]
        self._changelogs = [Place(name, number) for name in names for number in range(2)]
        self._offsets = Offsets(self.settings)

    def answers(self) -> str:
        """What comes of asking where the changelogs end."""
        try:
            self._offsets.ends(self._changelogs)
        except CycleAborted as error:
            return str(error)
        return "all"


@pytest.mark.timeout(180)
def test_brokers_killed_one_after_the_other_stop_no_member_and_lose_no_start(
    cluster: JarCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place, members = Place3(cluster, tmp_path), list[Running]()
    with ExitStack() as opened:
        members.append(opened.enter_context(place.member()))
        journal = opened.enter_context(closing(KafkaJournal(place.topology, place.settings)))
        world = opened.enter_context(World(journal, Reach("kafka")))
        world.push(step("NoOp"))
        starts, first, second = Starts(world), *cluster.nodes[:2]
        starts.ask()

        assert place.answers() == "all"
        first.kill()
        until(lambda: "-1001" in place.answers(), "a question that is not answered", LEADERLESS_MS / 1_000)
        starts.ask()
        before = starts.done()
        first.start()
        until(cluster.in_sync, "the node to have everything again")
        second.kill()
        starts.ask()
        assert len(starts.done()) > len(before)

        (member,) = members
        assert not member.ended()
    assert (member.error, member.counters.lost_inputs, member.counters.wipes) == (None, 0, 0)
    assert [record.getMessage() for record in caplog.records if record.name == "kapelle.doubts"] == []
