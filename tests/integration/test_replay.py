"""Replay and verify on a real broker: while members run, after one row was changed, and when history is gone."""

import json
import re
import shlex
import threading
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.registry import framing
from kapelle.registry import RegistryServer
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from kapelle.topology.settings import MemberSettings
from kapelle.topology.tables import Batch, Memory, RocksStore, ShardState
from tests.integration.runtime.members import LIMITS, Deployment, own, until
from tests.proof.kafka import patiently, publish, unfolded
from tests.proof.processors import PROCESSORS
from tests.proof.workload import mixed
from tests.support.broker import Broker
from tests.unit.replay.test_docs import COMMANDS

PROOF = "tests.proof.processors:topology"
GIVEN = ("KAPELLE_APP", "KAPELLE_BOOTSTRAP_SERVERS", "KAPELLE_REGISTRY")
DONE_S = 120.0


def kapelle(*words: str | Path, code: int = 0) -> Result:
    result = CliRunner().invoke(cli, [str(word) for word in words], env=dict.fromkeys(GIVEN), prog_name="kapelle")
    assert result.exit_code == code, result.output
    return result


class Place(Deployment):
    """A deployment of the proof's processors, with the options that name it."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        super().__init__(broker, directory, own(PROCESSORS["all"]))
        self.options = [
            *("--bootstrap-servers", broker.bootstrap_servers, "--app", PROOF),
            *("--prefix", self.topology.prefix, "--partitions", str(self.topology.partitions_default)),
        ]

    def drain(self) -> None:
        left = partial(unfolded, self.broker.bootstrap_servers, self.topology)
        until(lambda: patiently(left) == 0, "everything to be folded", DONE_S)

    def fold(self, records: int) -> None:
        """Publish some of everything, and let a member fold it and leave."""
        self.publish(mixed(1, records))
        with self.member():
            self.drain()

    def row(self, table: str) -> tuple[bytes, bytes]:
        """A row of `counting` on partition 0, as the member has it in its directory."""
        store = RocksStore(self.directory / "one" / "tables", Memory())
        try:
            state = ShardState(self.topology.processors["counting"], 0, store)
            return next(row for row in state.encoded() if row[0].startswith(table.encode() + b"\0"))
        finally:
            store.close()

    def verdicts(self, *words: str | Path, code: int = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            kapelle("verify", *words, *self.options, "-o", "json", code=code).stdout
        )
        return found


@pytest.fixture
def place(broker: Broker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path)


def counts(moment: str, *options: str | Path) -> dict[str, Any]:
    """The table of `counting` at a moment."""
    told = kapelle("replay", "as-of", moment, "table", "counting", "counts", *options, "-o", "json").stdout
    found: dict[str, Any] = json.loads(told)
    return found


def wrong(verdicts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [verdict for verdict in verdicts if verdict["differences"]]


def test_tables_are_right_while_members_write_them_and_after_they_have_left(place: Place) -> None:
    published = mixed(7, 2_000)
    servers = place.broker.bootstrap_servers
    feed = partial(publish, servers, place.topology, published, per_s=500)
    source = threading.Thread(target=feed, daemon=True)

    with place.member():
        source.start()
        during = [place.verdicts() for _ in range(3)]
        source.join()
        place.drain()
    after = place.verdicts()
    local = place.verdicts("--state-dir", place.directory / "one")

    assert [wrong(found) for found in (*during, after, local)] == [[]] * 5
    counted = [sum(v["events"] for v in found if v["processor"] == "counting") for found in (after, local)]
    assert counted == [2_000, 2_000]
    assert all(verdict["skipped"] == "" for verdict in local if verdict["events"])


def test_one_changed_row_in_a_changelog_is_named(place: Place) -> None:
    place.fold(200)
    key, value = place.row("counts")
    producer = Producer({"bootstrap.servers": place.broker.bootstrap_servers})
    producer.produce(place.topology.changelog("counting"), value[:-1] + bytes((value[-1] ^ 1,)), key, 0)
    assert producer.flush(30.0) == 0

    [found] = wrong(place.verdicts(code=1))
    told = kapelle("verify", *place.options, code=1).stderr

    word = key[len(b"counts\0") : -1].decode()
    assert (found["processor"], found["partition"], found["differences"]) == ("counting", 0, 1)
    assert (found["first"]["table"], found["first"]["key"]) == ("counts", [word])
    assert found["first"]["expected"]["count"] ^ 1 == found["first"]["found"]["count"]
    assert f'processor counting, partition 0, table counts, key ["{word}"]: expected {{"count":' in told


def test_one_changed_row_in_a_state_directory_is_named_and_the_changelog_is_right(place: Place) -> None:
    place.fold(200)
    key, value = place.row("counts")
    store = RocksStore(place.directory / "one" / "tables", Memory())
    batch = Batch()
    batch.put(
        ShardState(place.topology.processors["counting"], 0, store).prefix + key, value[:-1] + bytes((value[-1] ^ 1,))
    )
    store.write(batch)
    store.close()

    [found] = wrong(place.verdicts("--state-dir", place.directory / "one", code=1))

    assert (found["processor"], found["partition"], found["first"]["table"]) == ("counting", 0, "counts")
    assert wrong(place.verdicts()) == []


def test_a_history_whose_first_events_were_deleted_is_refused(place: Place) -> None:
    place.fold(50)
    admin = AdminClient({"bootstrap.servers": place.broker.bootstrap_servers})
    topic = place.topology.topic(place.topology.processors["counting"].events)
    for done in admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        done.result()

    told = kapelle("verify", "counting", *place.options, code=4).stderr

    assert f"Expected the history {topic}-0 to begin at offset 0, but it begins at 3" in told


def test_topics_that_are_not_there_or_have_other_partitions_are_told_with_what_to_do(place: Place) -> None:
    servers = ("--bootstrap-servers", place.broker.bootstrap_servers, "--app", PROOF)

    missing = kapelle("verify", *servers, "--prefix", f"{place.topology.prefix}-not", code=4).stderr
    other = kapelle("replay", "as-of", "end", "all", *servers, "--prefix", place.topology.prefix, code=4).stderr

    assert "To fix it: kapelle topics apply" in missing
    assert "has 2 partitions; needs 4" in other
    assert "Run with --partitions 2" in other


def test_the_past_is_shown_compared_and_taken_along(place: Place, tmp_path: Path) -> None:
    place.fold(100)
    now = json.loads(
        kapelle("replay", "as-of", "end", "table", "counting", "counts", *place.options, "-o", "json").stdout
    )
    ends = {shard["partition"]: shard["offset"] for shard in now["shards"]}
    early = ",".join(f"counting-{n}@{min(end, 1)}" for n, end in ends.items())
    file = tmp_path / "history.avro"

    then = json.loads(
        kapelle("replay", "as-of", early, "table", "counting", "counts", *place.options, "-o", "json").stdout
    )
    changed = json.loads(kapelle("replay", "diff", early, "end", *place.options, "-o", "json").stdout)
    kapelle("replay", "export", file, *place.options)
    from_file = counts("end", "--file", file, "--app", PROOF)

    assert sum(row["row"]["count"] for row in now["rows"]) == 100
    assert [row["row"]["count"] for row in then["rows"]] == [1] * len(then["rows"])
    assert {(row["processor"], row["table"]) for row in changed} == {("counting", "counts")}
    assert from_file == now
    assert "right" in kapelle("verify", "--file", file, "--app", PROOF).stdout


def test_a_history_that_was_written_by_the_ids_of_a_registry_is_replayed_by_asking_it(
    place: Place, tmp_path: Path
) -> None:
    file, events = tmp_path / "history.avro", place.topology.topic(place.topology.processors["counting"].events)
    with RegistryServer() as registry:
        by_registry = [*place.options, "--registry", registry.url]
        refused = kapelle("verify", *by_registry, code=4).stderr
        kapelle("schemas", "apply", "--app", PROOF, "--prefix", place.topology.prefix, "--registry", registry.url)
        settings = MemberSettings(limits=LIMITS, framing=framing(place.topology, registry.url))
        place.publish(mixed(1, 100))
        with place.member(settings=settings):
            place.drain()
        verdicts = place.verdicts("--registry", registry.url)
        now = counts("end", *by_registry)
        kapelle("replay", "export", file, *by_registry)
        ids = {int.from_bytes((message.value() or b"")[1:5], "big") for message in place.messages(events)}
        known = registry.subjects.version(f"{events}-value", "latest").id
    without = kapelle("replay", "as-of", "end", "all", *place.options, code=1).stderr
    from_file = counts("end", "--file", file, "--app", PROOF)

    assert "kapelle schemas apply" in refused
    assert ids == {known}
    assert wrong(verdicts) == []
    assert sum(verdict["events"] for verdict in verdicts if verdict["processor"] == "counting") == 100
    assert sum(row["row"]["count"] for row in now["rows"]) == 100
    assert "ask the Schema Registry for it" in without
    assert from_file == now
    assert "right" in kapelle("verify", "--file", file, "--app", PROOF).stdout


def test_a_time_before_everything_shows_nothing_and_one_after_it_everything(place: Place) -> None:
    place.fold(100)

    before = kapelle("replay", "as-of", "2020-01-01T00:00:00Z", "table", "counting", "counts", *place.options)
    after = kapelle("replay", "as-of", "2999-01-01T00:00:00Z", "table", "counting", "counts", *place.options)

    assert re.search(r"^no rows from 0 events$", before.stderr, re.MULTILINE)
    assert re.search(r"^5 rows from 100 events$", after.stderr, re.MULTILINE)


def test_the_commands_of_the_page_that_ask_kafka_run(broker: Broker) -> None:
    whole = topology(prefix=f"replay-{uuid.uuid4().hex[:8]}", partitions=2)
    settings = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
    Topics(whole, settings).apply()
    until(lambda: not Topics(whole, settings).plan(), "the topics to be there")
    lines = [line for line in COMMANDS if "--bootstrap-servers" in line]

    for line in lines:
        words = shlex.split(line.replace("127.0.0.1:9092", broker.bootstrap_servers))
        assert "partitions compared" in kapelle(*words, "--prefix", whole.prefix, "--partitions", "2").stderr

    assert lines
