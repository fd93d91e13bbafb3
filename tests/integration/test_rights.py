"""The rights that `kapelle topics acls` lists are enough: no role has any others here, and all do their work."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner

from kapelle.cli.acls import LINEAGE, READ, Acl, Role, acls
from kapelle.cli.all_commands import cli
from kapelle.processors.publisher.streams import INSTANCE_CHANGES
from kapelle.topology.page import topology
from tests.integration.runtime.members import until
from tests.integration.sinks.world import Receiver, webhook
from tests.integration.sources.world import KAPELLE, Command
from tests.integration.test_traces import Collector
from tests.integration.ways_in import environment
from tests.support.broker import Broker, BrokerSettings, open_private_broker
from tests.support.proxy import Proxy

pytestmark = pytest.mark.timeout(290)

ENOUGH_S = 120.0
PREFIX: Final = "guarded"
TOPOLOGY: Final = topology(prefix=PREFIX, partitions=2)
ORDERS: Final = "orders"
USERS: Final = " ".join(f'user_{role}="{role}-secret"' for role in Role)
# On one listener everybody may do everything; on the other one has a name, and the rights that were given to it.
GUARDED: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:SASL_PLAINTEXT",
    "listener.name.proxied.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.proxied.plain.sasl.jaas.config": (
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {USERS};"
    ),
}
STEPS: Final = "from kapelle.worker import Worker\n\nworker = Worker()\nworker.add('work', lambda: None)\n"
WORKFLOW: Final = {
    "properties": {"owner": "ann"},
    "workflow": {
        "id": "etl",
        "steps": [{"step": {"id": "load", "type": "work"}}],
        "signal_triggers": [{"definitions": {"order": {}}}],
    },
}


class Guarded:
    """A broker that asks who is there, and the roles of Kapelle by their names."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self._opened = ExitStack()

    def let(self, *given: Acl) -> None:
        """Give rights, as the commands of `kapelle topics acls -o commands` do."""
        patterns = {True: ResourcePatternType.PREFIXED, False: ResourcePatternType.LITERAL}
        bindings = [
            AclBinding(
                ResourceType[acl.resource],
                acl.name,
                patterns[acl.prefixed],
                f"User:{acl.role}",
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for acl in given
            for operation in acl.operations
        ]
        admin = self.broker.admin()
        for future in admin.create_acls(bindings).values():
            future.result(ENOUGH_S)

    def client(self, role: Role) -> dict[str, Any]:
        login = {"sasl.username": role.value, "sasl.password": f"{role}-secret"}
        return {
            "bootstrap.servers": self.broker.proxied_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "log_level": 0,
            **login,
        }

    def words(self, role: Role) -> list[str]:
        config = self.folder / f"{role}.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self.client(role).items()))
        return ["--config", str(config), "--prefix", PREFIX]

    def run(self, role: Role, *words: str, partitions: bool = True) -> Command:
        shape = ["--partitions", "2"] if partitions else []
        command = Command([*words, *self.words(role), *shape], self.folder / f"{role}-{words[0]}.log")
        return self._opened.enter_context(command)

    def ends_well(self, role: Role, *words: str) -> None:
        command = self.run(role, *words)
        assert command.process.wait(ENOUGH_S) == 0, command.said()

    def api(self) -> str:
        """The address of an API that runs."""
        log = (self.folder / "api.log").open("wb")
        self._opened.callback(log.close)
        words = [*KAPELLE, "api", "run", *self.words(Role.API), "--partitions", "2", "--port", "0"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=environment())
        self._opened.callback(process.wait)
        self._opened.callback(process.terminate)
        assert process.stdout is not None
        self._opened.callback(process.stdout.close)
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), (self.folder / "api.log").read_text()
        return url

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with open_private_broker(BrokerSettings(overrides=GUARDED)) as broker, Proxy(broker):
        made = Guarded(broker, tmp_path_factory.mktemp("guarded"))
        for topic in (ORDERS, LINEAGE):
            broker.create_topic(topic)
        made.let(*acls(TOPOLOGY), Acl(Role.SOURCES, "TOPIC", ORDERS, prefixed=False, operations=READ))
        made.ends_well(Role.OPERATOR, "topics", "apply")
        try:
            yield made
        finally:
            made.close()


def refused(guarded: Guarded, role: Role, topic: str) -> bool:
    """Whether somebody may not write to a topic."""
    producer, said = Producer(guarded.client(role)), list[KafkaError | None]()
    producer.produce(topic, b"{}", b"key", on_delivery=lambda error, _: said.append(error))
    producer.flush(ENOUGH_S)
    return said[0] is not None and said[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


def heard(consumer: Consumer, count: int) -> int:
    found, until_s = 0, time.monotonic() + ENOUGH_S
    while found < count and time.monotonic() < until_s:
        message = consumer.poll(1.0)
        found += message is not None and message.error() is None
    return found


def test_each_role_does_its_work_with_the_rights_of_the_table(guarded: Guarded) -> None:
    folder = guarded.folder
    (folder / "steps.py").write_text(STEPS)
    (folder / "sources.yaml").write_text(
        json.dumps({"sources": [{"topic": ORDERS, "name": "order", "params": {"id": "/id"}}]})
    )
    with Receiver() as receiver, Collector() as collector:
        sink = {"topics": [INSTANCE_CHANGES.name], **webhook(receiver)}
        (folder / "sinks.yaml").write_text(json.dumps({"sinks": {"ops": sink}}))
        running = [
            guarded.run(Role.PROCESSORS, "processors", "run", "--state-dir", str(folder / "state")),
            guarded.run(Role.WORKERS, "worker", "run", str(folder / "steps.py"), partitions=False),
            guarded.run(Role.SINKS, "sinks", "run", "--file", str(folder / "sinks.yaml")),
            guarded.run(Role.SOURCES, "sources", "run", "--file", str(folder / "sources.yaml")),
            guarded.run(Role.TRACES, "traces", "run", "--endpoint", collector.endpoint),
            guarded.run(Role.OPENLINEAGE, "openlineage", "run", "--topic", LINEAGE),
        ]
        pushed = httpx.post(f"{guarded.api()}/api/v3/workflows", json=WORKFLOW, timeout=ENOUGH_S)
        assert pushed.status_code == 200, pushed.text
        producer = Producer({"bootstrap.servers": guarded.broker.bootstrap_servers})
        producer.produce(ORDERS, b'{"id": "1"}')
        assert producer.flush(ENOUGH_S) == 0

        def said() -> str:
            return "\n".join(one.said()[-600:] for one in running)

        def all_have_heard() -> bool:
            statuses = {got.document["data"]["status"] for got in receiver.taken}
            return "SUCCEEDED" in statuses and any(span.name == "run etl" for span in list(collector.spans))

        awaited(all_have_heard, said)
        subscriber = Consumer(
            {**guarded.client(Role.SUBSCRIBERS), "group.id": "subscribers.mine", "auto.offset.reset": "earliest"}
        )
        subscriber.subscribe([f"{PREFIX}.{INSTANCE_CHANGES.name}"])
        lineage = Consumer(
            {"bootstrap.servers": guarded.broker.bootstrap_servers, "group.id": "l", "auto.offset.reset": "earliest"}
        )
        lineage.subscribe([LINEAGE])
        assert (heard(subscriber, 3), heard(lineage, 1)) == (3, 1), said()
        subscriber.close()
        lineage.close()
        assert [one.process.poll() for one in running] == [None] * len(running), said()


def awaited(condition: Callable[[], bool], said: Callable[[], str]) -> None:
    try:
        until(condition, "everybody to hear of it", ENOUGH_S)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{said()}") from None


def test_announcers_may_announce_and_nothing_else(guarded: Guarded) -> None:
    assert not refused(guarded, Role.ANNOUNCERS, f"{PREFIX}.signals")
    assert refused(guarded, Role.ANNOUNCERS, f"{PREFIX}.workflows.commands")
    assert refused(guarded, Role.SUBSCRIBERS, f"{PREFIX}.signals")


@pytest.mark.parametrize("role", [role for role in Role if role not in (Role.ANNOUNCERS, Role.SUBSCRIBERS)])
def test_the_doctor_finds_that_a_role_has_its_rights(guarded: Guarded, role: Role) -> None:
    words = ["doctor", *guarded.words(role), "--partitions", "2", "--role", role.value, "-o", "json"]

    done = CliRunner().invoke(cli, words, prog_name="kapelle", env={"KAPELLE_BOOTSTRAP_SERVERS": None})

    found = {one["check"]: one for one in json.loads(done.stdout)}
    assert found["rights"]["verdict"] == "ok", done.stdout
    assert not [one for one in found.values() if "Timed out" in one["found"]], done.stdout
