"""The kapelle command against a real broker: topics are planned, made and verified; processors run, serve and stop."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.topology.build import Topology
from tests.conftest import PrivateBroker
from tests.proof.contracts import Tick
from tests.proof.kafka import publish, seen
from tests.proof.processors import topology
from tests.proof.workload import expected_counts, ticks
from tests.support.broker import Broker, BrokerSettings
from tests.unit.cli.apps import doubts

REPOSITORY = Path(__file__).parents[2]
KAPELLE = [sys.executable, "-m", "kapelle.cli.main"]
PROOF = "tests.proof.processors:topology"
DOUBTS = "tests.unit.cli.apps:doubts"
GIVEN = ("KAPELLE_APP", "KAPELLE_BOOTSTRAP_SERVERS")
DONE_S = 60.0
STOP_S = 5.0


@pytest.fixture
def prefix() -> str:
    return f"cli-{uuid.uuid4().hex[:8]}"


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in GIVEN}


def kapelle(*words: str) -> Result:
    """A command that ends by itself, in this process: a new one would take as long as ten commands."""
    return CliRunner().invoke(cli, words, env=dict.fromkeys(GIVEN), prog_name="kapelle")


class Running:
    """A command that runs until it is told to stop, with what it says in a file."""

    def __init__(self, directory: Path, *words: str) -> None:
        self._log = directory / f"{uuid.uuid4().hex}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*KAPELLE, *words], cwd=REPOSITORY, env=environment(), stdout=log, stderr=subprocess.STDOUT
            )

    def said(self) -> str:
        return self._log.read_text()

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until it has said this."""

        def found() -> re.Match[str] | None:
            ended = self._process.poll() is not None
            matched = re.search(pattern, self.said())
            assert matched or not ended, f"Expected {pattern!r}, but it ended with:\n{self.said()}"
            return matched

        return wait_until(found, lambda: f"{pattern!r} in:\n{self.said()}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Its exit code, and how long it took to leave."""
        began = time.monotonic()
        self._process.send_signal(number)
        return self.wait(), time.monotonic() - began

    def wait(self) -> int:
        return self._process.wait(DONE_S)

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


T = TypeVar("T")
Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Running] = []

    def starts(*words: str) -> Running:
        started.append(Running(tmp_path, *words))
        return started[-1]

    yield starts
    for running in started:
        running.close()


def wait_until(found: Callable[[], T | None], what: Callable[[], str]) -> T:
    deadline = time.monotonic() + DONE_S
    while time.monotonic() < deadline:
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"Expected within {DONE_S} s: {what()}")


def metric(url: str, name: str) -> float | None:
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - the command's own server
        text = answer.read().decode()
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else None


def counted(broker: Broker, made: Topology) -> dict[str, int]:
    """The last count of each word, as any reader sees it. Each record must have been counted once."""
    events = seen(broker.bootstrap_servers, made, [made.streams["counting.events"]])["counting.events"]
    values = [value for found in events.values() for _, value in found]
    ids = [value.id for value in values]
    assert len(ids) == len(set(ids))
    return {value.word: value.count for value in values}


def test_topics_are_planned_made_and_verified(broker: Broker, prefix: str) -> None:
    options = ("--bootstrap-servers", broker.bootstrap_servers, "--app", PROOF, "--prefix", prefix)
    apply = f"kapelle topics apply --bootstrap-servers {broker.bootstrap_servers} --app {PROOF} --prefix {prefix}"

    planned = kapelle("topics", "plan", *options, "-o", "json")
    assert planned.exit_code == 0
    assert {change["do"] for change in json.loads(planned.stdout)} == {"create"}
    assert f"to apply it: {apply}" in planned.stderr

    refused = kapelle("topics", "verify", *options)
    assert refused.exit_code == 4
    assert refused.stdout == ""
    assert f"  {prefix}.ticks: missing; needs 4 partitions" in refused.stderr
    assert f"To fix it: {apply}" in refused.stderr

    applied = kapelle("topics", "apply", *options, "--replication", "1")
    assert applied.exit_code == 0
    assert applied.stdout.count("create ") == len(json.loads(planned.stdout))

    again = kapelle("topics", "apply", *options)
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "nothing to do\n")
    assert kapelle("topics", "verify", *options).exit_code == 0
    assert json.loads(kapelle("topics", "plan", *options, "-o", "json").stdout) == []


def test_changelogs_are_adopted_by_name(broker: Broker, prefix: str) -> None:
    options = ("--bootstrap-servers", broker.bootstrap_servers, "--app", PROOF, "--prefix", prefix)
    kapelle("topics", "apply", *options)

    adopted = kapelle("topics", "adopt", "counting", *options)
    unknown = kapelle("topics", "adopt", "nobody", *options)

    assert (adopted.exit_code, adopted.stderr) == (0, "counting: no offsets released from the old changelog\n")
    assert unknown.exit_code == 3
    assert "but found nobody" in unknown.stderr


def test_topics_with_other_partitions_are_refused_and_left_alone(broker: Broker, prefix: str) -> None:
    options = ("--bootstrap-servers", broker.bootstrap_servers, "--app", PROOF, "--prefix", prefix)
    kapelle("topics", "apply", *options, "--partitions", "1")

    refused = kapelle("topics", "apply", *options, "--partitions", "2")

    assert refused.exit_code == 4
    assert f"{prefix}.ticks: has 1 partitions; needs 2" in refused.stderr
    assert "Run with --partitions 1, or start under another --prefix" in refused.stderr
    assert "To fix it" not in refused.stderr
    verified = kapelle("topics", "verify", *options, "--partitions", "1")
    assert (verified.exit_code, verified.stderr) == (0, "the topics match the topology\n")


def test_topics_that_were_set_otherwise_are_set_right_again(broker: Broker, prefix: str) -> None:
    broker.create_topic(f"{prefix}.ticks", partitions=4, config={"retention.ms": "1000"})
    options = ("--bootstrap-servers", broker.bootstrap_servers, "--app", PROOF, "--prefix", prefix)

    refused = kapelle("topics", "verify", *options)
    applied = kapelle("topics", "apply", *options)

    assert f"{prefix}.ticks: has max.message.bytes=1048588 retention.ms=1000; needs" in refused.stderr
    assert f"configure  {prefix}.ticks" in applied.stdout
    assert kapelle("topics", "verify", *options).exit_code == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_processors_run_serve_metrics_and_stop_when_told(
    broker: Broker, prefix: str, start: Start, tmp_path: Path, protocol: str
) -> None:
    made, servers = topology(prefix=prefix), broker.bootstrap_servers
    options = ("--bootstrap-servers", servers, "--app", PROOF, "--prefix", prefix)
    run = ("processors", "run", "counting", *options, "--protocol", protocol)
    kapelle("topics", "apply", *options)
    published = list(ticks(500, 20))
    publish(servers, made, published)

    running = start(*run, "--state-dir", str(tmp_path / "state"), "--metrics-port", "0")
    url = running.wait_for(r'message="serving metrics" url=(\S+)').group(1)
    wait_until(lambda: metric(url, "kapelle_records_total") == 500 or None, running.said)
    assert metric(url, "kapelle_events_total") == 500
    assert metric(url, "kapelle_shards_active") == 4

    code, took_s = running.stop()
    assert (code, took_s < STOP_S) == (0, True)
    assert "message=stopped" in running.said()
    assert "records=500 events=500" in running.said()
    assert counted(broker, made) == expected_counts(published)


def test_a_process_that_lost_its_tables_says_how_restoring_went(
    broker: Broker, prefix: str, start: Start, tmp_path: Path
) -> None:
    made, servers = topology(prefix=prefix), broker.bootstrap_servers
    options = ("--bootstrap-servers", servers, "--app", PROOF, "--prefix", prefix)
    run = ("processors", "run", "counting", *options, "--log-format", "json", "--statistics-ms", "100")
    kapelle("topics", "apply", *options)
    publish(servers, made, ticks(300, 100))
    first = start(*run, "--state-dir", str(tmp_path / "lost"), "--metrics-port", "0")
    url = first.wait_for(r'"serving metrics", "url": "([^"]+)"').group(1)
    wait_until(lambda: metric(url, "kapelle_records_total") == 300 or None, first.said)

    def told_by_the_client() -> float | None:
        publish(servers, made, ticks(1, 1))  # it tells its statistics while there is work to do
        return metric(url, "kapelle_kafka_broker_up")

    wait_until(told_by_the_client, first.said)
    wait_until(lambda: metric(url, "kapelle_consumer_lag_records") is not None or None, first.said)
    assert first.stop()[0] == 0

    second = start(*run, "--state-dir", str(tmp_path / "new"), "--metrics", str(tmp_path / "kapelle.prom"))
    second.wait_for('"message": "restored", "rows": [1-9]')

    code, took_s = second.stop(signal.SIGINT)
    assert (code, took_s < STOP_S) == (0, True)
    assert all(json.loads(line)["level"] == "info" for line in second.said().splitlines())
    assert re.search(r"^kapelle_restored_rows_total [1-9]", (tmp_path / "kapelle.prom").read_text(), re.MULTILINE)


def test_processors_do_not_run_on_topics_that_are_not_there(broker: Broker, prefix: str, tmp_path: Path) -> None:
    options = ("--bootstrap-servers", broker.bootstrap_servers, "--app", PROOF, "--prefix", prefix)

    refused = kapelle("processors", "run", *options, "--state-dir", str(tmp_path), "-X", "sasl.password=hunter2")

    assert refused.exit_code == 4
    assert "Expected the topics of this topology" in refused.stderr
    assert f"To fix it: kapelle topics apply --bootstrap-servers {broker.bootstrap_servers}" in refused.stderr
    assert "-X 'sasl.password=•••'" in refused.stderr
    assert "hunter2" not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_state_directory_and_a_port_have_one_owner(broker: Broker, prefix: str, start: Start, tmp_path: Path) -> None:
    options = ("--bootstrap-servers", broker.bootstrap_servers, "--app", PROOF, "--prefix", prefix)
    run = ("processors", "run", "counting", *options)
    kapelle("topics", "apply", *options)
    owner = start(*run, "--state-dir", str(tmp_path / "state"), "--metrics-port", "0")
    port = owner.wait_for(r"url=http://127.0.0.1:(\d+)/metrics").group(1)
    owner.wait_for("is folding")

    same_directory = kapelle(*run, "--state-dir", str(tmp_path / "state"))
    same_port = kapelle(*run, "--state-dir", str(tmp_path / "other"), "--metrics-port", port)

    assert same_directory.exit_code == 4
    assert "to be free, but it is in use by process" in same_directory.stderr
    assert same_port.exit_code == 4
    assert f"Expected to serve metrics on 127.0.0.1:{port}, but Address already in use" in same_port.stderr
    assert owner.stop()[0] == 0


def test_a_bug_stops_the_process_with_its_line_or_is_put_aside_as_chosen(
    broker: Broker, prefix: str, start: Start, tmp_path: Path
) -> None:
    made, servers = doubts(prefix), broker.bootstrap_servers
    options = ("--bootstrap-servers", servers, "--app", DOUBTS, "--prefix", prefix)
    run = ("processors", "run", *options, "--state-dir", str(tmp_path / "state"))
    kapelle("topics", "apply", *options)
    publish(servers, made, [("ticks", "good", Tick("t-1", "good", 1, 1)), ("ticks", "bad", Tick("t-2", "bad", 2, 2))])
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(f"{prefix}.ticks", b"\xff no avro", "junk", 0)
    producer.flush(10)

    stopped = start(*run)
    assert stopped.wait() == 1
    assert "of processor 'doubting' raised ValueError: I doubt t-2 (" in stopped.said()
    assert re.search(r"apps\.py:\d+\)\. Nothing of that cycle was committed", stopped.said())
    assert "Traceback" not in stopped.said()

    going_on = start(*run, "--on-bug", "dead-letter", "--metrics-port", "0")
    url = going_on.wait_for(r"url=(\S+)").group(1)
    wait_until(lambda: metric(url, "kapelle_dead_letters_total") == 2 or None, going_on.said)
    assert going_on.stop()[0] == 0

    listed = kapelle("dlq", "list", *options)
    letters = json.loads(kapelle("dlq", "list", *options, "-n", "2", "-o", "json").stdout)
    assert [(letter["stage"], letter["record"]["offset"]) for letter in letters] == [("DECIDE", 1), ("DECODE", 2)]
    assert letters[0]["value"]["fields"]["id"] == "t-2"
    assert "  doubting  DECIDE  ValueError\n" in listed.stdout
    assert listed.stderr == f"2 dead letters from {prefix}.dead-letters\n"
    [last] = json.loads(kapelle("dlq", "list", *options, "-n", "1", "-o", "json").stdout)
    assert last == letters[1]


def test_dead_letters_of_a_prefix_that_is_not_there_are_not_found(broker: Broker, prefix: str) -> None:
    refused = kapelle("dlq", "list", "--bootstrap-servers", broker.bootstrap_servers, "--prefix", prefix)

    assert refused.exit_code == 3
    assert f"Expected the topic {prefix}.dead-letters, but it does not exist" in refused.stderr


def test_a_process_whose_broker_has_fallen_silent_stops_all_the_same(
    private_broker: PrivateBroker, prefix: str, start: Start, tmp_path: Path
) -> None:
    broker = private_broker(BrokerSettings())
    options = ("--bootstrap-servers", broker.bootstrap_servers, "--app", PROOF, "--prefix", prefix)
    kapelle("topics", "apply", *options)
    running = start("processors", "run", "counting", *options, "--state-dir", str(tmp_path / "state"))
    running.wait_for("shard counting-3 is folding")
    broker.pause()

    code, took_s = running.stop()

    assert (code in (0, 1), took_s < STOP_S) == (True, True)
    assert "stopping on SIGTERM" in running.said()
    assert "Traceback" not in running.said()


def test_a_process_that_waits_for_a_silent_broker_stops_at_once(start: Start, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        run = ("processors", "run", "--bootstrap-servers", address, "--app", PROOF, "--state-dir", str(tmp_path / "s"))
        running = start(*run)
        running.wait_for("message=starting")

        code, took_s = running.stop()

    assert (code, took_s < STOP_S) == (0, True)
    assert "stopping on SIGTERM" in running.said()
