"""The doctor finds what was done wrong on purpose, on real brokers, and says what to do about it."""

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # exported, but not by name
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)
from typer.testing import CliRunner, Result

from kapelle.cli.all_commands import cli
from kapelle.cli.checks.case import Case, Finding, Verdict
from kapelle.cli.commands.doctor import findings
from kapelle.cli.options.target import Target
from kapelle.topology.build import Topology
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.notes import Note
from kapelle.topology.kafka.topics import Topics
from tests.integration.runtime.members import Deployment, until
from tests.support.broker import Broker, BrokerSettings, open_private_broker
from tests.unit.cli.apps import doubts

pytestmark = pytest.mark.timeout(290)

APP = "tests.unit.cli.apps:doubts"
ENOUGH_S = 60.0
HOUR_MS = 3_600_000
GIVEN = ("KAPELLE_APP", "KAPELLE_BOOTSTRAP_SERVERS")

Told = dict[str, Finding]


def kapelle(*words: str) -> Result:
    return CliRunner().invoke(cli, words, env=dict.fromkeys(GIVEN), prog_name="kapelle")


def where(broker: Broker, prefix: str) -> tuple[str, ...]:
    return ("--bootstrap-servers", broker.bootstrap_servers, "--app", APP, "--prefix", prefix)


def doctor(broker: Broker, prefix: str, *more: str) -> tuple[int, Told]:
    """How it ended, and what it found: the gravest finding of each check."""
    result = kapelle("doctor", *where(broker, prefix), "-o", "json", "--timeout", "30", *more)
    assert result.stdout, result.stderr
    found = msgspec.convert(json.loads(result.stdout), list[Finding])
    return result.exit_code, {one.check: one for one in sorted(found, key=lambda f: list(Verdict).index(f.verdict))}


def made(broker: Broker, prefix: str) -> Topology:
    """Topics as they should be."""
    shape = doubts(prefix)
    kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
    Topics(shape, kafka).apply()
    until(lambda: not Topics(shape, kafka).plan(), "the topics to be there", ENOUGH_S)
    return shape


@pytest.fixture
def prefix() -> str:
    return f"doctor-{uuid.uuid4().hex[:8]}"


def test_a_place_where_all_is_well_has_nothing_wrong(broker: Broker, prefix: str, tmp_path: Path) -> None:
    place = Deployment(broker, tmp_path, doubts(prefix))

    with place.member() as one:
        until(lambda: one.member.ready, "the shard to be folding", ENOUGH_S)
        code, found = doctor(broker, prefix, "--state-dir", str(tmp_path), "--free-mb", "1")
        as_api, seen = doctor(broker, prefix, "--role", "api")

    assert [one for one in found.values() if one.verdict is Verdict.WRONG] == []
    assert (code, as_api, seen["rights"].verdict) == (0, 0, Verdict.OK)
    assert seen["clock of the brokers"].verdict is Verdict.OK  # though no transaction was tried
    assert found["version"].verdict is Verdict.OK
    assert found["version"].found.startswith("Apache Kafka 4.")
    fine = ("topics", "partitions", "transactions", "rights", "groups", "offsets", "space", "clock of the brokers")
    assert {name: found[name].verdict for name in fine} == dict.fromkeys(fine, Verdict.OK)


def test_findings_are_shown_as_lines_with_what_to_do_below_them(broker: Broker, prefix: str) -> None:
    result = kapelle("doctor", *where(broker, prefix))

    lines = result.stdout.splitlines()
    missing = next(n for n, line in enumerate(lines) if f"{prefix}.ticks" in line)
    assert lines[missing].startswith("wrong")
    assert "missing; needs 1 partitions" in lines[missing]
    assert f"→ kapelle topics apply --bootstrap-servers {broker.bootstrap_servers}" in lines[missing + 1]
    assert " wrong" in result.stderr
    assert result.exit_code == 1


# Settings of brokers ------------------------------------------------------------------------------------------------

# What is set wrong on one broker, and the check that must say so.
WRONG_SETTINGS: Mapping[str, tuple[str, str]] = {
    "transaction.max.timeout.ms": ("transaction.max.timeout.ms", "5000"),
    "group.min.session.timeout.ms": ("group.min.session.timeout.ms", "10000"),
    "socket.request.max.bytes": ("socket.request.max.bytes", "300000"),
    "log.cleaner.enable": ("log.cleaner.enable", "false"),
    "min.insync.replicas": ("min.insync.replicas", "2"),
    "__consumer_offsets": ("offsets.topic.replication.factor", "3"),
    "__transaction_state": ("transaction.state.log.replication.factor", "3"),
}
DOUBTFUL_SETTINGS: Mapping[str, tuple[str, str]] = {
    "offsets.retention.minutes": ("offsets.retention.minutes", "60"),
    "unclean.leader.election.enable": ("unclean.leader.election.enable", "true"),
    "auto.create.topics.enable": ("auto.create.topics.enable", "true"),
}


@pytest.fixture(scope="module")
def misled() -> Iterator[tuple[int, Told]]:
    """What the doctor says of a broker on which all of these are set."""
    overrides = dict([*WRONG_SETTINGS.values(), *DOUBTFUL_SETTINGS.values()])
    with open_private_broker(BrokerSettings(overrides=overrides)) as broker:
        made(broker, "misled")
        yield doctor(broker, "misled", "--timeout", "5")


@pytest.mark.parametrize("check", WRONG_SETTINGS)
def test_a_setting_of_the_brokers_that_does_not_work_is_wrong(misled: tuple[int, Told], check: str) -> None:
    code, found = misled

    assert code == 1
    assert (found[check].verdict, bool(found[check].advice)) == (Verdict.WRONG, True), found[check]


@pytest.mark.parametrize("check", DOUBTFUL_SETTINGS)
def test_a_setting_of_the_brokers_that_is_not_safe_is_a_warning(misled: tuple[int, Told], check: str) -> None:
    _, found = misled

    assert (found[check].verdict, bool(found[check].advice)) == (Verdict.WARNING, True), found[check]


def test_brokers_that_cannot_keep_transactions_are_found_by_trying_one(misled: tuple[int, Told]) -> None:
    _, found = misled

    assert found["transactions"].verdict is Verdict.WRONG
    assert found["transactions"].found.startswith("a transaction could not be started: ")


def test_brokers_that_cannot_keep_offsets_are_not_asked_for_groups(misled: tuple[int, Told]) -> None:
    """Each question about one would hang for as long as brokers may take to answer."""
    _, found = misled

    assert found["groups"].verdict is Verdict.WRONG
    assert "__consumer_offsets" in found["groups"].advice
    assert "offsets" not in found
    assert not [one.found for one in found.values() if "check failed" in one.found]


def test_time_outs_that_the_brokers_do_not_allow_are_wrong(broker: Broker, prefix: str) -> None:
    code, found = doctor(broker, prefix, "--transaction-timeout-ms", "86400000", "--session-timeout-ms", "86400000")

    assert code == 1
    assert found["transaction.max.timeout.ms"].verdict is Verdict.WRONG
    assert found["group.max.session.timeout.ms"].verdict is Verdict.WRONG
    assert "transaction.max.timeout.ms" in found["transactions"].advice


def test_a_broker_that_is_not_there_is_the_only_thing_to_tell_but_the_disk(prefix: str, tmp_path: Path) -> None:
    words = ("--bootstrap-servers", "127.0.0.1:1", "--timeout", "0.5", "--state-dir", str(tmp_path), "--free-mb", "1")
    result = kapelle("doctor", *words, "-o", "json")

    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (found[0]["check"], found[0]["verdict"]) == ("broker", "wrong")
    assert "Connection refused" in found[0]["found"]
    assert [one["check"] for one in found[1:]] == ["space", "write speed", "file system"]


# Topics, groups and clocks ------------------------------------------------------------------------------------------


def reset(broker: Broker, topic: str, **config: str) -> None:
    changes = [
        ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=changes)
    admin = broker.admin()  # held: what it was asked for ends with it
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(ENOUGH_S)


def delete(broker: Broker, topic: str) -> None:
    admin = broker.admin()
    admin.delete_topics([topic])[topic].result(ENOUGH_S)
    until(lambda: topic not in admin.list_topics(timeout=30).topics, "the topic to be gone", ENOUGH_S)


def written(broker: Broker, topic: str, at_ms: int) -> None:
    """A record of its own time."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    producer.produce(topic, b"value", b"key", 0, timestamp=at_ms)
    assert producer.flush(ENOUGH_S) == 0


def no_topic(broker: Broker, shape: Topology) -> str:
    delete(broker, f"{shape.prefix}.doubting.events")
    return f"{shape.prefix}.doubting.events"


def other_partitions(broker: Broker, shape: Topology) -> str:
    delete(broker, f"{shape.prefix}.ticks")
    return broker.create_topic(f"{shape.prefix}.ticks", partitions=3)


def changelog_not_compacted(broker: Broker, shape: Topology) -> str:
    reset(broker, shape.changelog("doubting"), cleanup_policy="delete")
    return shape.changelog("doubting")


def history_that_is_forgotten(broker: Broker, shape: Topology) -> str:
    reset(broker, f"{shape.prefix}.doubting.events", retention_ms="86400000")
    return f"{shape.prefix}.doubting.events"


def records_too_small(broker: Broker, shape: Topology) -> str:
    reset(broker, f"{shape.prefix}.ticks", max_message_bytes="10000")
    return f"{shape.prefix}.ticks"


def a_writer_ahead_of_time(broker: Broker, shape: Topology) -> str:
    written(broker, f"{shape.prefix}.ticks", time.time_ns() // 1_000_000 + HOUR_MS)
    return f"clocks of writers to {shape.prefix}.ticks"


def another_changelog(broker: Broker, shape: Topology) -> str:
    """Offsets that were committed with a changelog which has been made anew since."""
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": shape.group("doubting")}
    consumer = Consumer(config)
    consumer.commit(
        offsets=[TopicPartition(f"{shape.prefix}.ticks", 0, 0, "somebody AnotherTopicId")], asynchronous=False
    )
    consumer.close()
    return shape.group("doubting")


def offsets_gone(broker: Broker, shape: Topology) -> str:
    """Rows in the changelog, and no offsets that go with them."""
    written(broker, shape.changelog("doubting"), time.time_ns() // 1_000_000)
    return shape.group("doubting")


def read_up_to(broker: Broker, shape: Topology, offset: int, note: str = "") -> str:
    """As if a member had read its input up to here."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": shape.group("doubting")})
    consumer.commit(offsets=[TopicPartition(f"{shape.prefix}.ticks", 0, offset, note)], asynchronous=False)
    consumer.close()
    return shape.group("doubting")


def input_deleted_unread(broker: Broker, shape: Topology) -> str:
    for _ in range(3):
        written(broker, f"{shape.prefix}.ticks", time.time_ns() // 1_000_000)
    admin = broker.admin()
    (done,) = admin.delete_records([TopicPartition(f"{shape.prefix}.ticks", 0, 2)]).values()
    done.result(ENOUGH_S)
    return read_up_to(broker, shape, 0)


def input_replaced(broker: Broker, shape: Topology) -> str:
    note = Note("somebody").with_inputs({f"{shape.prefix}.ticks": "AnotherTopicIdThanThis"})
    return read_up_to(broker, shape, 0, str(note))


def input_cut_short(broker: Broker, shape: Topology) -> str:
    return read_up_to(broker, shape, 7)


Misdeed = Callable[[Broker, Topology], str]
LOST: Mapping[Misdeed, str] = {
    input_deleted_unread: "offsets 0 to 1 (2 in all) were deleted before they were read",
    input_replaced: "the topic was deleted and created again",
    input_cut_short: "it was read up to offset 7, but it ends at 0",
}
MISDEEDS: Mapping[Misdeed, str] = {
    no_topic: "missing; needs 1 partitions",
    other_partitions: "has 3 partitions; needs 1",
    changelog_not_compacted: "has cleanup.policy=delete; needs cleanup.policy=compact",
    history_that_is_forgotten: "has retention.ms=86400000; needs retention.ms=-1",
    records_too_small: "has max.message.bytes=10000; needs max.message.bytes=",
    a_writer_ahead_of_time: "s ahead of the local clock",
    another_changelog: "but found another one of that name",
    offsets_gone: "but found none: they have expired, or were deleted",
    **LOST,
}


@pytest.mark.parametrize("misdeed", LOST, ids=lambda misdeed: misdeed.__name__)
def test_topics_whose_unread_records_are_lost_are_not_verified(broker: Broker, prefix: str, misdeed: Misdeed) -> None:
    shape = made(broker, prefix)
    assert kapelle("topics", "verify", *where(broker, prefix)).exit_code == 0

    misdeed(broker, shape)
    refused = kapelle("topics", "verify", *where(broker, prefix))

    assert refused.exit_code == 4
    assert LOST[misdeed] in " ".join(refused.stderr.split())
    assert "--on-lost-input skip" in refused.stderr


@pytest.mark.parametrize("misdeed", MISDEEDS, ids=lambda misdeed: misdeed.__name__)
def test_what_was_done_to_a_deployment_is_found_and_nothing_else(broker: Broker, prefix: str, misdeed: Misdeed) -> None:
    check = misdeed(broker, made(broker, prefix))
    wrong: Told = {}

    def is_found() -> bool:
        """A broker shows what was done to a topic a moment after it has said yes."""
        code, found = doctor(broker, prefix)
        wrong.clear()
        wrong.update({name: one for name, one in found.items() if one.verdict is Verdict.WRONG})
        return code == 1 and check in wrong

    until(is_found, f"{check} to be wrong", ENOUGH_S)

    assert list(wrong) == [check]
    assert MISDEEDS[misdeed] in wrong[check].found
    assert wrong[check].advice


def test_a_transaction_that_nobody_ends_is_found_with_the_command_that_ends_it(broker: Broker, prefix: str) -> None:
    made(broker, prefix)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{prefix}-left-open"})
    producer.init_transactions(ENOUGH_S)
    producer.begin_transaction()
    producer.produce(f"{prefix}.ticks", b"value", b"key", 0, timestamp=time.time_ns() // 1_000_000 - HOUR_MS)
    producer.flush(ENOUGH_S)

    code, found = doctor(broker, prefix)
    producer.abort_transaction(ENOUGH_S)
    after, _ = doctor(broker, prefix)

    assert (code, after) == (1, 0)
    held = found[f"{prefix}.ticks-0"]
    assert held.verdict is Verdict.WRONG
    assert "a transaction at offset 0 is open for 36" in held.found
    assert f"abort --topic {prefix}.ticks --partition 0 --start-offset 0" in held.advice


def test_a_clock_that_differs_from_that_of_the_brokers_is_found(broker: Broker, prefix: str) -> None:
    target = Target(app=APP, prefix=prefix, servers=broker.bootstrap_servers, timeout_s=30.0)

    def told(shift_ms: int) -> Finding:
        clock = Case(
            target=target,
            topology=made(broker, prefix),
            settings=target.kafka(),
            clock_ms=lambda: time.time_ns() // 1_000_000 + shift_ms,
        )
        return next(one for one in findings(clock) if one.check == "clock of the brokers")

    assert told(0).verdict is Verdict.OK
    assert (told(HOUR_MS).verdict, told(-HOUR_MS).verdict) == (Verdict.WRONG, Verdict.WRONG)
    assert " s behind the local clock" in told(HOUR_MS).found
    assert " s ahead of the local clock" in told(-HOUR_MS).found


# The disk -----------------------------------------------------------------------------------------------------------


def test_a_state_directory_without_room_is_wrong(broker: Broker, prefix: str, tmp_path: Path) -> None:
    made(broker, prefix)

    code, found = doctor(broker, prefix, "--state-dir", str(tmp_path / "state"), "--free-mb", "1000000000")

    assert (code, found["space"].verdict) == (1, Verdict.WRONG)
    assert "expected 1,000,000,000 MB to be free" in found["space"].found
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_that_cannot_be_written_is_wrong(broker: Broker, prefix: str, tmp_path: Path) -> None:
    made(broker, prefix)
    (tmp_path / "file").touch()

    code, found = doctor(broker, prefix, "--state-dir", str(tmp_path / "file"))

    assert (code, found["state directory"].verdict) == (1, Verdict.WRONG)
    assert "Not a directory" in found["state directory"].found


# Rights -------------------------------------------------------------------------------------------------------------

GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


def let(broker: Broker, kind: ResourceType, name: str, **operations: AclPermissionType) -> None:
    """What everybody may do, and may not, of one resource."""
    literal = ResourcePatternType.LITERAL
    bindings = [
        AclBinding(kind, name, literal, "User:ANONYMOUS", "*", AclOperation[operation.upper()], permission)
        for operation, permission in operations.items()
    ]
    admin = broker.admin()
    for future in admin.create_acls(bindings).values():
        future.result(ENOUGH_S)


@pytest.fixture(scope="module")
def refused() -> Iterator[tuple[int, Told]]:
    """What the doctor says where writing a topic, reading a group and beginning a transaction are refused."""
    allow, deny = AclPermissionType.ALLOW, AclPermissionType.DENY
    with open_private_broker(BrokerSettings(overrides=GUARDED)) as broker:
        made(broker, "guarded")
        let(broker, ResourceType.TOPIC, "guarded.doubting.events", write=deny, describe=allow, describe_configs=allow)
        let(broker, ResourceType.GROUP, "guarded.doubting", read=deny, describe=allow)
        let(broker, ResourceType.TRANSACTIONAL_ID, "guarded.doctor", write=deny, describe=allow)
        until(lambda: doctor(broker, "guarded")[0] == 1, "the rights to be taken away", ENOUGH_S)
        yield doctor(broker, "guarded")


@pytest.mark.parametrize(
    ("check", "told", "advice"),
    [
        (
            "guarded.doubting.events",
            "lacks READ, WRITE on the topic",
            "--operation Read --operation Write --topic guarded.",
        ),
        ("guarded.doubting", "lacks READ on the group", "--operation Read --group guarded."),
        ("transactions", "a transaction could not be started: ", "--transactional-id guarded."),
    ],
)
def test_a_right_that_is_refused_is_found_with_the_command_that_gives_it(
    refused: tuple[int, Told], check: str, told: str, advice: str
) -> None:
    code, found = refused

    assert (code, found[check].verdict) == (1, Verdict.WRONG)
    assert told in found[check].found
    assert advice in found[check].advice
