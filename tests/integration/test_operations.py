"""Every command of docs/operations.md runs against a broker, and processes tell whether they are well and ready."""

import json
import re
import shlex
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.member_reports import unready
from kapelle.topology.kafka.config import KafkaSettings, Protocol
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from tests.integration.api.places import embedded_place
from tests.integration.runtime.members import Deployment, until
from tests.integration.runtime.members import Running as Member
from tests.integration.ways_in import Running, running
from tests.support.broker import Broker
from tests.support.proxy import Proxy
from tests.tidy.files import REPOSITORY
from tests.unit.cli.apps import doubts

pytestmark = pytest.mark.timeout(290)

PAGE = REPOSITORY / "docs" / "operations.md"
COMMAND = re.compile(r"^    ((?:kapelle|curl) .+)$", re.MULTILINE)
PARTITIONS = 2
ENOUGH_S = 120.0


def commands(first: str) -> list[list[str]]:
    """The commands of the page that begin so, without what stands before their own words."""
    found = [shlex.split(line) for line in COMMAND.findall(PAGE.read_text())]
    return [words[1:] for words in found if words[: len(first.split())] == first.split()]


def asked(url: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - our own server
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read())


class Deployed:
    """The topics of the product under a prefix, and commands of the page as they are run there."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.prefix = f"ops-{uuid.uuid4().hex[:8]}"
        shape = topology(prefix=self.prefix, partitions=PARTITIONS)
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        Topics(shape, kafka).apply()
        until(lambda: not Topics(shape, kafka).plan(), "the topics to be there", ENOUGH_S)

    def words(self, given: list[str]) -> list[str]:
        """As on the page, but for the address, the prefix, and places of this test."""
        places = {"127.0.0.1:9092": self.broker.bootstrap_servers, "state": str(self.folder / "state"), "9464": "0"}
        ours = [] if given[0] == "dlq" else ["--partitions", str(PARTITIONS)]
        return [*(places.get(word, word) for word in given), "--prefix", self.prefix, *ours]

    def run(self, given: list[str]) -> Result:
        return CliRunner().invoke(cli, self.words(given), prog_name="kapelle")


@pytest.fixture(scope="module")
def deployed(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    return Deployed(broker, tmp_path_factory.mktemp("operations"))


@pytest.fixture(scope="module")
def processors(deployed: Deployed) -> Iterator[tuple[Running, str]]:
    """The processors as the page starts them, and where they serve metrics; something is put aside by them."""
    (words,) = commands("kapelle processors run")
    with running(deployed.words(words), deployed.folder) as process:
        process.until("serving metrics")
        (url,) = re.findall(r"url=(http://\S+)/metrics", process.said)
        until(lambda: asked(f"{url}/ready")[0] == 200, f"it to be ready: {process.said}", ENOUGH_S)
        producer = Producer({"bootstrap.servers": deployed.broker.bootstrap_servers})
        producer.produce(f"{deployed.prefix}.workflows.commands", b"\xff no avro", b"junk", 0)
        assert producer.flush(ENOUGH_S) == 0
        until(lambda: "1 dead letter" in deployed.run(["dlq", "list", *servers(deployed)]).stderr, "a letter", ENOUGH_S)
        yield process, url


def servers(deployed: Deployed) -> list[str]:
    return ["--bootstrap-servers", deployed.broker.bootstrap_servers]


def test_the_processors_of_the_page_are_well_and_ready_and_tell_metrics(processors: tuple[Running, str]) -> None:
    _, url = processors

    paths = [re.sub(r"http://[^/]+", "", words[0]) for words in commands("curl")]
    answers = {path: urllib.request.urlopen(f"{url}{path}", timeout=30).status for path in paths}  # noqa: S310

    assert answers == {"/ready": 200, "/metrics": 200}
    assert asked(f"{url}/health") == (200, {"status": "ok"})
    assert asked(f"{url}/ready") == (200, {"status": "ready"})


def test_the_doctor_of_the_page_finds_nothing_wrong_while_they_run(
    deployed: Deployed, processors: tuple[Running, str]
) -> None:
    for words in commands("kapelle doctor"):
        result = deployed.run([*words, "--free-mb", "1"])

        assert result.exit_code == 0, result.stdout


def test_letters_are_listed_shown_and_sent_their_way_again(deployed: Deployed, processors: tuple[Running, str]) -> None:
    results = {words[1]: deployed.run(words) for words in commands("kapelle dlq")}

    assert {name: result.exit_code for name, result in results.items()} == {"list": 0, "show": 0, "redrive": 0}
    assert "DECODE" in results["show"].stdout


def test_topics_are_verified_mended_and_adopted_once_all_have_stopped(broker: Broker, tmp_path: Path) -> None:
    stopped = Deployed(broker, tmp_path)

    results = {words[1]: stopped.run(words) for words in commands("kapelle topics")}

    assert {name: result.exit_code for name, result in results.items()} == {"verify": 0, "apply": 0, "adopt": 0}


def test_every_command_of_the_page_is_run_here() -> None:
    firsts = {" ".join(line.split()[:2]) for line in COMMAND.findall(PAGE.read_text())}

    assert {first for first in firsts if not first.startswith("curl")} == {
        "kapelle doctor",
        "kapelle processors",
        "kapelle dlq",
        "kapelle topics",
    }


def test_a_worker_is_ready_while_it_can_ask_for_tasks(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "from kapelle.worker import Worker\n\nworker = Worker()\nworker.add('x', lambda: None)\n"
    )
    with ExitStack() as opened:
        place = opened.enter_context(embedded_place(tmp_path / "api"))
        words = ["worker", "run", "steps.py", "--url", place.url, "--metrics-port", "0", "--drain", "0"]
        with running(words, tmp_path) as process:
            process.until("serving metrics")
            (url,) = re.findall(r"url=(http://127\S+)/metrics", process.said)
            until(lambda: asked(f"{url}/ready")[0] == 200, f"it to be ready: {process.said}", ENOUGH_S)
            with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:  # noqa: S310 - our own server
                assert b"kapelle_worker_tasks_in_hand 0" in answer.read()

            opened.close()
            until(lambda: asked(f"{url}/ready")[0] == 503, f"it to be no longer ready: {process.said}", ENOUGH_S)

            assert asked(f"{url}/health") == (200, {"status": "ok"})


def test_processors_are_well_but_not_ready_while_the_broker_is_away(
    own_broker: Broker, proxy: Proxy, tmp_path: Path
) -> None:
    prefix = f"away-{uuid.uuid4().hex[:8]}"
    Deployment(own_broker, tmp_path, doubts(prefix))
    words = ["processors", "run", "--app", "tests.unit.cli.apps:doubts", "--prefix", prefix, "--metrics-port", "0"]
    words += ["--bootstrap-servers", own_broker.proxied_servers, "--state-dir", "state", "--statistics-ms", "200"]
    with ExitStack() as opened:
        process = Running(words, tmp_path, {"PYTHONPATH": str(REPOSITORY)})
        opened.callback(process.stop)
        process.until("serving metrics")
        (url,) = re.findall(r"url=(http://127\S+)/metrics", process.said)
        until(lambda: asked(f"{url}/ready")[0] == 200, f"it to be ready: {process.said}", ENOUGH_S)

        proxy.refuse()
        until(lambda: asked(f"{url}/ready")[0] == 503, "it to notice", ENOUGH_S)
        health = asked(f"{url}/health")
        proxy.accept()
        until(lambda: asked(f"{url}/ready")[0] == 200, "it to be ready again", ENOUGH_S)

    assert health == (200, {"status": "ok"})


@pytest.mark.parametrize("protocol", list(Protocol))
def test_a_member_that_gets_no_partitions_stands_by_and_is_ready(
    broker: Broker, tmp_path: Path, protocol: Protocol
) -> None:
    place = Deployment(broker, tmp_path, doubts(f"by-{uuid.uuid4().hex[:8]}"), protocol=protocol, statistics_ms=200)

    def is_ready(one: Member) -> bool:
        return not unready(one.counters, {}, one.kafka.log.consumer_statistics, groups=1)

    with place.member("one") as one, place.member("two") as two:
        until(lambda: is_ready(one) and is_ready(two), "both to be ready", ENOUGH_S)

        assert one.counters.shards + two.counters.shards == 1
