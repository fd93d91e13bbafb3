"""Reading from the command line: finding instances, their history, events as they happen, and a view made anew."""

import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.topology.journal import KafkaJournal
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from kapelle.views import Views
from kapelle.views.queries.instance_lists import browse
from kapelle.views.queries.pages import PageRequest
from tests.integration.api.places import CALL_S, PARTITIONS, definition, processors, step, until, written
from tests.integration.ways_in import KAPELLE, Running, Shell, environment, running
from tests.support.broker import Broker
from tests.tidy.files import REPOSITORY

PAGE = REPOSITORY / "docs" / "views.md"
INSTANCES = 12  # the page looks at the twelfth
ENOUGH_S = 120


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A server with a workflow `etl` and some instances of it."""
    folder = tmp_path_factory.mktemp("reads")
    pushed = definition("etl", step("load", "NoOp", "check"), step("check"), run_strategy="PARALLEL", tags=["nightly"])
    pushed["workflow"]["params"] = {"day": {"type": "LONG", "value": 20260701}}
    (folder / "etl.json").write_text(json.dumps(pushed))
    with running(["dev", "--port", "0", "--data", "data"], folder) as dev:
        found = Shell(folder, dev.url())
        found.kapelle("workflow", "push", "etl.json")
        for _ in range(INSTANCES):
            found.kapelle("run", "start", "etl", "--watch", "--timeout", "60")
        yield found


def test_instances_are_found_and_counted(shell: Shell) -> None:
    listed = shell.kapelle(
        "run", "list", "--tag", "nightly", "--param", "day=20260701", "--status", "succeeded", "-o", "json"
    )
    none = shell.kapelle("run", "list", "etl", "--status", "FAILED", "--status", "STOPPED", "-o", "json")

    assert json.loads(listed)["total_count"] == INSTANCES
    assert json.loads(none)["elements"] == []
    assert shell.kapelle("run", "count", "etl").split() == ["STATUS", "INSTANCES", "SUCCEEDED", str(INSTANCES)]
    assert json.loads(shell.kapelle("run", "count", "-o", "json"))["counts"] == {"SUCCEEDED": INSTANCES}


def test_a_matrix_has_a_line_for_each_instance(shell: Shell) -> None:
    lines = shell.kapelle("run", "matrix", "etl", "-n", "3").splitlines()

    assert lines[0].split() == ["INSTANCE", "RUN", "STATUS", "load", "check"]
    assert [line.split()[0] for line in lines[1:]] == ["12", "11", "10"]
    assert lines[1].split()[2:] == ["SUCCEEDED"] * 3


def test_a_history_shows_each_event_with_its_place(shell: Shell) -> None:
    text = shell.kapelle("run", "history", "etl", "12")
    found = json.loads(shell.kapelle("run", "history", "etl", "12", "-o", "json"))

    assert len(text.splitlines()) == len(found["elements"])
    first = found["elements"][0]
    assert f"{first['stream']}-{first['partition']}@{first['offset']}" in text
    assert "InstanceCreated" in text
    assert "step load" in text


def test_a_tail_shows_what_there_was_and_goes_on_after_an_event(shell: Shell) -> None:
    words = ("event", "tail", "--from-start", "--quiet", "0", "--type", "RunEnded", "-o", "json")
    whole = [json.loads(line) for line in shell.kapelle(*words).splitlines()]

    some = shell.kapelle("event", "tail", "--after", whole[3]["id"], "--type", "RunEnded", "-n", "2", "-o", "json")
    text = shell.kapelle("event", "tail", "--from-start", "--workflow", "etl", "-n", "5")

    assert len(whole) == INSTANCES
    assert len(some.splitlines()) == 2
    assert len(text.splitlines()) == 5


def test_a_tail_shows_what_happens_while_it_runs(shell: Shell) -> None:
    tail = Running(
        ["event", "tail", "--type", "VersionPushed", "-n", "1", "-o", "json", "--url", shell.url], shell.folder
    )
    assert tail.process.stdout is not None

    def is_told() -> bool:
        shell.kapelle("workflow", "push", "etl.json")  # until the tail has begun, and hears of it
        return tail.process.poll() is not None

    until(is_told, "the tail to have heard of a push", ENOUGH_S)
    line = tail.process.stdout.readline()
    tail.stop()

    assert json.loads(line)["type"] == "VersionPushed"


def test_what_makes_no_sense_is_told(shell: Shell) -> None:
    assert "a type of events" in shell.kapelle("event", "tail", "--type", "Nonsense", code=1)
    assert "Last-Event-ID" in shell.kapelle("event", "tail", "--after", "nonsense", code=1)
    assert "NAME=VALUE" in shell.kapelle("run", "list", "--param", "day", code=2)
    assert "to exist" in shell.kapelle("run", "history", "etl", "999", code=3)


def test_the_commands_of_the_page_that_need_no_broker_work(shell: Shell) -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("kapelle ")]
    known = [line for line in lines if "--bootstrap-servers" not in line]

    for line in known:
        words = line.split()[1:]
        shell.kapelle(*words, *(["--from-start", "--quiet", "0"] if words[0] == "event" else []))

    assert len(known) > 5


def test_a_view_is_made_anew_and_tells_how_far_it_is(broker: Broker, tmp_path: Path) -> None:
    prefix = f"anew-{uuid.uuid4().hex[:8]}"
    shape = topology(prefix=prefix, partitions=PARTITIONS)
    settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers, call_timeout_s=CALL_S)
    Topics(shape, settings).apply()
    until(lambda: not Topics(shape, settings).plan(), "the topics to be there")
    journal = KafkaJournal(shape, settings)
    with processors(broker, prefix, tmp_path):
        pushed = definition("etl", step("a"), run_strategy="PARALLEL")
        journal.publish(WORKFLOW_COMMANDS, "etl", c.PushVersion("push", "ann", written(pushed))).result(60)
        starts = tuple(c.Start(f"start-{number}") for number in range(5))
        journal.publish(WORKFLOW_COMMANDS, "etl", c.StartInstances("ann", starts)).result(60)
        with Views(journal) as views:
            until(lambda: views.read(browse, PageRequest())["total_count"] == 5, "five instances")
    where = ["--bootstrap-servers", broker.bootstrap_servers, "--prefix", prefix, "--partitions", str(PARTITIONS)]
    words = [*KAPELLE, "api", "rebuild", *where, "--views-dir", str(tmp_path / "views")]

    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=ENOUGH_S, env=environment())
    kept = Views(journal, tmp_path / "views")
    found = (kept.database.is_new, kept.read(browse, PageRequest())["total_count"])
    kept.close()
    with running(["api", "run", *where, "--port", "0", "--views-dir", "views", "--keep-days", "30"], tmp_path) as api:
        listed = json.loads(Shell(tmp_path, api.url()).kapelle("run", "list", "-o", "json"))
    journal.close()

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "views")
    assert "rebuilt" in done.stderr
    assert "records_per_s=" in done.stderr
    assert found == (False, 5)
    assert listed["total_count"] == 5
