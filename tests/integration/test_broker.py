"""The broker that the other tests stand on: it starts, dies, sleeps and comes back as told, and never outlives us."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from confluent_kafka import KafkaException

from tests.conftest import PrivateBroker
from tests.support import commands, jars
from tests.support.broker import Broker, BrokerSettings, open_broker, open_private_broker
from tests.support.errors import BrokerDidNotStart, CommandFailed, NoBroker, NotOurBroker
from tests.support.jar_broker import JarBroker
from tests.support.processes import LeashedProcess
from tests.support.settings import (
    ADDRESS_VARIABLE,
    KAFKA_VERSION,
    KILLED_MS,
    PORTS,
    Ports,
    container_environment,
    free_ports,
    server_properties,
)

ENOUGH_S = 15.0
NOT_LONG_S = 1.0


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + ENOUGH_S
    while not condition():
        assert time.monotonic() < deadline, f"Expected {what} within {ENOUGH_S} s"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether the process is there and has not ended; one that ended may wait to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def topics_of(broker: Broker, timeout_s: float = ENOUGH_S) -> set[str]:
    return set(broker.admin().list_topics(timeout=timeout_s).topics)


def test_a_broker_lists_the_topics_that_were_created(broker: Broker) -> None:
    created = broker.create_topic("broker-lists", partitions=3)

    found = broker.admin().list_topics(timeout=ENOUGH_S).topics[created]

    assert len(found.partitions) == 3


def test_a_broker_keeps_its_address_and_data_through_kill_stop_and_restart(private_broker: PrivateBroker) -> None:
    broker = private_broker(BrokerSettings(node_session_ms=KILLED_MS))
    address = broker.bootstrap_servers
    broker.create_topic("kept")

    broker.kill()
    with pytest.raises(KafkaException):
        topics_of(broker, NOT_LONG_S)
    broker.start()
    assert "kept" in topics_of(broker)

    broker.restart()
    assert "kept" in topics_of(broker)
    assert broker.bootstrap_servers == address


def test_a_paused_broker_answers_nothing_until_it_resumes(private_broker: PrivateBroker) -> None:
    broker = private_broker(BrokerSettings())

    broker.pause()
    with pytest.raises(KafkaException):
        topics_of(broker, NOT_LONG_S)
    broker.resume()

    topics_of(broker)


def test_a_broker_that_cannot_start_says_why(private_broker: PrivateBroker) -> None:
    nonsense = BrokerSettings(overrides={"num.io.threads": "-1"})

    with pytest.raises(BrokerDidNotStart, match="Value must be at least 1"):
        private_broker(nonsense)


def test_overrides_win_over_our_own_properties() -> None:
    settings = BrokerSettings(overrides={"broker.session.timeout.ms": "9000"}, transaction_cleanup_interval_ms=500)

    properties = server_properties(settings, Ports(1, 2, 3, 4), "data")

    assert properties["broker.session.timeout.ms"] == "9000"
    assert properties["transaction.abort.timed.out.transaction.cleanup.interval.ms"] == "500"


def test_clients_of_the_proxied_listener_are_told_the_port_of_the_proxy() -> None:
    properties = server_properties(BrokerSettings(), Ports(client=1, controller=2, proxied=3, proxy=4), "data")

    assert "PROXIED://127.0.0.1:3" in properties["listeners"]
    assert "PROXIED://127.0.0.1:4" in properties["advertised.listeners"]


def test_a_container_takes_properties_as_environment_variables() -> None:
    found = container_environment({"log.dirs": "/data"}, heap_mb=512)

    assert found["KAFKA_LOG_DIRS"] == "/data"
    assert found["KAFKA_HEAP_OPTS"] == "-Xmx512m"


def test_free_ports_differ_and_are_none_that_outgoing_connections_get() -> None:
    found = free_ports()

    numbers = {found.client, found.controller, found.proxied, found.proxy}
    assert len(numbers) == 4
    assert all(number in PORTS for number in numbers)


def test_a_broker_given_by_address_can_be_used_but_not_killed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS_VARIABLE, broker.bootstrap_servers)

    with open_broker() as given:
        topics_of(given)
        with pytest.raises(NotOurBroker, match="be killed"):
            given.kill()

    topics_of(broker)


def test_without_docker_and_java_the_run_fails_and_says_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(NoBroker, match=r"no engine answers(.|\n)*Expected Java 17 or newer, but found none"):
        open_broker()


def test_an_engine_that_cannot_run_our_image_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\nexit 0\n")
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody-listens")

    with open_private_broker() as broker:
        assert isinstance(broker, JarBroker)
        topics_of(broker)


def test_a_tool_that_fails_shows_the_end_of_what_it_said() -> None:
    with pytest.raises(CommandFailed, match=r"ended with 3:\nout of disk"):
        commands.run([sys.executable, "-c", "import sys; print('out of disk'); sys.exit(3)"])


def test_kafka_is_fetched_once_however_many_ask() -> None:
    first, second = jars.install(), jars.install()

    assert first == second
    assert [p.name for p in first.libs.glob("kafka_2.13-*.jar")] == [f"kafka_2.13-{KAFKA_VERSION}.jar"]


# A parent that starts a leashed process and says its pid and that of the leash, then ends in one of the ways below.
PARENT = """
import os, signal, sys, time
from pathlib import Path
from tests.support.jar_broker import JarBroker
from tests.support.processes import LeashedProcess
scratch = Path(sys.argv[1])
leashed = LeashedProcess(["sleep", "600"], log=scratch / "log", scratch=scratch)
print(leashed.pid, leashed.leash_pid, flush=True)
{end}
"""
ENDS = {
    "by a signal": "os.kill(os.getpid(), signal.SIGKILL)",
    "by an error": "raise SystemExit(1)",
    "with a forked child that holds the pipe": "os.fork() or time.sleep(5); os.kill(os.getpid(), signal.SIGKILL)",
    "by a signal while the process sleeps": "os.kill(leashed.pid, signal.SIGSTOP); os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_leashed_process_and_its_files_are_gone_when_its_parent_dies(end: str, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    # In a test of its own process, so that the parent's end is not ours.
    command = [sys.executable, "-c", PARENT.format(end=end), str(scratch)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline().split()[0])

    until(lambda: not is_running(pid), "the leashed process to end")
    until(lambda: not scratch.exists(), "its files to be removed")


def test_a_leashed_process_ends_when_its_leash_is_killed(tmp_path: Path) -> None:
    leashed = LeashedProcess(["sleep", "600"], log=tmp_path / "log")

    os.kill(leashed.leash_pid, signal.SIGKILL)

    until(lambda: not is_running(leashed.pid), "the process to end")
    assert leashed.wait(ENOUGH_S)


def test_a_leashed_process_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[LeashedProcess] = []
    thread = Thread(target=lambda: started.append(LeashedProcess(["sleep", "600"], log=tmp_path / "log")))
    thread.start()
    thread.join()
    time.sleep(0.5)  # long enough for a leash that watches threads to have let go

    assert is_running(started[0].pid)
    started[0].kill()
    assert not is_running(started[0].pid)
