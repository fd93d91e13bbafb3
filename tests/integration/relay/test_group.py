"""A member of a group of relays, on a real broker."""

import logging
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kapelle.relay.group import GroupReader
from kapelle.topology.kafka.config import KafkaSettings
from tests.support.broker import Broker
from tests.support.jars import REPOSITORY

SILENT_MS = 45_000  # so long a group waits for a member that does not answer
DONE_S = 60.0


def made_topic(broker: Broker) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for made in admin.create_topics([NewTopic(name, 2, 1)]).values():
        made.result(DONE_S)
    return name


@contextmanager
def member(broker: Broker, group: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has joined the group."""
    command = [sys.executable, "-m", "tests.integration.relay.test_group", broker.bootstrap_servers, group, topic]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it was asked for as a pipe"
        assert process.stdout.readline() == "joined\n"
        yield process
        process.kill()


def test_who_leaves_a_group_that_waits_for_a_silent_member_does_not_wait_with_it(broker: Broker) -> None:
    topic, group = made_topic(broker), f"group-{uuid.uuid4().hex[:8]}"
    with member(broker, group, topic) as silent:
        silent.send_signal(signal.SIGSTOP)
        reader = GroupReader(
            KafkaSettings(bootstrap_servers=broker.bootstrap_servers), group, logging.getLogger("test")
        )
        reader.use([topic])
        reader.take(wait_s=1.0)

        reader.close()

        held_up = [thread for thread in threading.enumerate() if thread.name == f"leave-{group}"]
        silent.send_signal(signal.SIGCONT)
        for thread in held_up:
            thread.join(DONE_S)
        assert [thread.is_alive() for thread in held_up] == [False], "leaving was to be held up, and then to end"


def join(servers: str, group: str, topic: str) -> None:
    """Be a member until the process is killed."""
    settings = KafkaSettings(bootstrap_servers=servers, session_timeout_ms=SILENT_MS)
    consumer = Consumer(settings.consumer(group))
    consumer.subscribe([topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    print("joined", flush=True)  # noqa: T201 - the test waits for it
    while True:
        consumer.poll(1.0)


if __name__ == "__main__":
    join(*sys.argv[1:])
