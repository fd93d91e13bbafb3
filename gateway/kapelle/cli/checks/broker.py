"""The brokers: whether they answer, how old they are, and their settings that matter to us."""

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kapelle.cli.checks.case import Case, Finding, Verdict
from kapelle.cli.reach import why
from kapelle.topology.kafka.config import Protocol, Setting

ASK_S: Final = 5.0
SLICE_S: Final = 0.05
REPLICAS: Final = 3
OFFSETS_RETENTION_MINUTES: Final = 7 * 24 * 60
FAILOVER_MS: Final = 15_000

# What librdkafka says of each request that a broker takes, if asked to tell of features.
_API: Final = re.compile(r"ApiKey \S+ \((\d+)\) Versions (\d+)\.\.(\d+)")
Apis = Mapping[int, tuple[int, int]]
# The number of a request, the version of it that a release was the first to take, and that release; newest first.
RELEASES: Final = (
    (88, 0, (4, 1)),  # StreamsGroupHeartbeat
    (80, 0, (3, 9)),  # AddRaftVoter
    (75, 0, (3, 8)),  # DescribeTopicPartitions
    (68, 0, (3, 7)),  # ConsumerGroupHeartbeat
    (65, 0, (3, 0)),  # DescribeTransactions
    (60, 0, (2, 8)),  # DescribeCluster
    (28, 3, (2, 5)),  # TxnOffsetCommit with the generation of the group
)
FETCH, FETCH_MIN_SINCE_4 = 1, 4  # Kafka 4.0 ceased to take older ones
LEAST, ADVISED = (2, 5), (4, 0)


def reached(case: Case) -> Iterator[Finding]:
    """Whether any broker answers. Without one there is nothing else to look at."""
    servers = case.settings.bootstrap_servers
    try:
        count = len(case.brokers)
    except KafkaException as error:
        cause = why(case.settings) or error.args[0]
        yield Finding(
            "broker",
            Verdict.WRONG,
            f"no broker at {servers} answered within {case.timeout_s:g} s: {cause.str()}",
            "Start a broker, or correct the address, network, TLS or login in --bootstrap-servers, --config and -X",
        )
        return
    if count < REPLICAS:
        noun = "broker" if count == 1 else "brokers"
        advice = (
            f"This is enough for development. For production, run {REPLICAS} or more, with three replicas of each topic"
        )
        yield Finding("broker", Verdict.WARNING, f"{count} {noun} at {servers}: a lost disk means lost data", advice)
    else:
        yield Finding("broker", Verdict.OK, f"{count} brokers at {servers}")


def release(case: Case) -> Iterator[Finding]:
    """How old the brokers are, by the requests that they take: they do not tell their version."""
    apis = taken_by(case)
    if not apis:
        yield Finding("version", Verdict.WARNING, "the client could not detect the version of the brokers")
        return
    version = release_of(apis)
    text = f"Apache Kafka {version[0]}.{version[1]} or newer, or compatible"
    if version < LEAST:
        advice = "Upgrade to Kafka 4.0 or newer: brokers before 2.5 do not fence members that lost their partitions"
        yield Finding("version", Verdict.WRONG, "older than Apache Kafka 2.5", advice)
    elif version < ADVISED:
        advice = "This version works. 4.0 or newer has KIP-848 and fewer causes of hanging transactions"
        yield Finding("version", Verdict.WARNING, text, advice)
    else:
        yield Finding("version", Verdict.OK, text)


def release_of(apis: Apis) -> tuple[int, int]:
    """The oldest release that takes all of these requests, as far as the table tells."""
    release = next((since for key, version, since in RELEASES if apis.get(key, (0, -1))[1] >= version), (0, 0))
    if release < ADVISED and apis.get(FETCH, (0, 0))[0] >= FETCH_MIN_SINCE_4:
        return ADVISED
    return release


def taken_by(case: Case) -> Apis:
    """The requests that the first broker to answer takes, with their least and greatest versions."""
    lines: list[str] = []
    logger = logging.Logger("kapelle.doctor", logging.DEBUG)
    logger.addHandler(_Keeping(lines))
    config: dict[str, Setting] = {**case.settings.admin(), "debug": "feature", "log_level": 7}
    admin = AdminClient(config, logger=logger)
    until = time.monotonic() + min(ASK_S, case.timeout_s)
    while not any("ApiKey Fetch " in line for line in lines) and time.monotonic() < until:
        admin.poll(SLICE_S)
    admin.poll(SLICE_S)  # the rest of what was said at once
    ranges = [matched.groups() for line in lines for matched in _API.finditer(line)]
    return {int(key): (int(least), int(most)) for key, least, most in ranges}


class _Keeping(logging.Handler):
    """Keeps lines instead of writing them."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


class Rule(NamedTuple):
    """What a setting of the brokers must be: `holds` is asked only where they have it."""

    setting: str
    verdict: Verdict
    holds: Callable[[str, Case], bool]
    expected: Callable[[Case], str]
    advice: str


def _classic(case: Case) -> bool:
    return case.settings.protocol is Protocol.CLASSIC


RULES: Final = (
    Rule(
        "transaction.max.timeout.ms",
        Verdict.WRONG,
        lambda value, case: int(value) >= case.settings.transaction_timeout_ms,
        lambda case: f"at least {case.settings.transaction_timeout_ms}",
        "Raise it on the brokers, or give processors a shorter --transaction-timeout-ms",
    ),
    Rule(
        "group.min.session.timeout.ms",
        Verdict.WRONG,
        lambda value, case: not _classic(case) or int(value) <= case.settings.session_timeout_ms,
        lambda case: f"at most {case.settings.session_timeout_ms}",
        "Lower it on the brokers, or give processors a longer --session-timeout-ms",
    ),
    Rule(
        "group.max.session.timeout.ms",
        Verdict.WRONG,
        lambda value, case: not _classic(case) or int(value) >= case.settings.session_timeout_ms,
        lambda case: f"at least {case.settings.session_timeout_ms}",
        "Raise it on the brokers, or give processors a shorter --session-timeout-ms",
    ),
    Rule(
        "group.coordinator.rebalance.protocols",
        Verdict.WRONG,
        lambda value, case: case.settings.protocol.value in value.split(","),
        lambda case: f"{case.settings.protocol.value} among them",
        "Add it on the brokers, or run with the other --protocol",
    ),
    Rule(
        "group.consumer.session.timeout.ms",
        Verdict.WARNING,
        lambda value, case: _classic(case) or int(value) <= FAILOVER_MS,
        lambda _: f"at most {FAILOVER_MS}",
        "Lower it, for the groups or the brokers: no process takes over from a dead one before this time",
    ),
    Rule(
        "socket.request.max.bytes",
        Verdict.WRONG,
        lambda value, case: int(value) >= case.settings.wire_bytes_max,
        lambda case: f"at least {case.settings.wire_bytes_max}",
        "Raise it on the brokers: the largest records cannot be sent",
    ),
    Rule(
        "offsets.retention.minutes",
        Verdict.WARNING,
        lambda value, _: int(value) >= OFFSETS_RETENTION_MINUTES,
        lambda _: f"at least {OFFSETS_RETENTION_MINUTES}",
        "Raise it: a group without members loses its offsets after this time, and processors refuse to start",
    ),
    Rule(
        "log.cleaner.enable",
        Verdict.WRONG,
        lambda value, _: value == "true",
        lambda _: "true",
        "Enable it: otherwise changelogs grow without limit, and restoring takes longer and longer",
    ),
    Rule(
        "unclean.leader.election.enable",
        Verdict.WARNING,
        lambda value, _: value == "false",
        lambda _: "false",
        "Disable it: a broker that is behind may become leader and lose acknowledged records",
    ),
    Rule(
        "auto.create.topics.enable",
        Verdict.WARNING,
        lambda value, _: value == "false",
        lambda _: "false",
        "Disable it: a mistyped name creates a topic, with the wrong number of partitions",
    ),
)


def settings(case: Case) -> Iterator[Finding]:
    """The settings of the brokers, one by one."""
    configs = case.broker_configs
    for rule in RULES:
        values = {number: config[rule.setting] for number, config in configs.items() if config.get(rule.setting)}
        wrong = {number: value for number, value in values.items() if not rule.holds(value, case)}
        if wrong:
            shown = ", ".join(f"{value} (broker {number})" for number, value in wrong.items())
            found = f"expected {rule.expected(case)}, but found {shown}"
            yield Finding(rule.setting, rule.verdict, found, rule.advice)
        elif values:
            yield Finding(rule.setting, Verdict.OK, ", ".join(sorted(set(values.values()))))


OFFSETS: Final = "__consumer_offsets"
# The topics in which brokers keep offsets and transactions, and the settings that they are made by.
INTERNAL: Final = (
    (OFFSETS, "offsets.topic.replication.factor", "min.insync.replicas"),
    ("__transaction_state", "transaction.state.log.replication.factor", "transaction.state.log.min.isr"),
)


def internal(case: Case) -> Iterator[Finding]:
    """Whether the brokers can keep offsets and transactions, and lose none when one of them is lost."""
    config = next(iter(case.broker_configs.values()))
    count = len(case.brokers)
    for topic, factor, least in INTERNAL:
        replicas = case.replicas(topic)
        wanted = replicas or int(config.get(factor) or 1)
        in_sync = int(config.get(least) or 1)
        if wanted > count:
            case.has_groups &= topic != OFFSETS
            found = f"needs {wanted} brokers for its replicas, but found {count}: the topic cannot be created"
            yield Finding(topic, Verdict.WRONG, found, f"Lower {factor} on the brokers, or run {wanted} of them")
        elif in_sync > wanted:
            found = f"has {wanted} replicas, but {least} is {in_sync}: no record can be written"
            yield Finding(topic, Verdict.WRONG, found, f"Lower {least} on the brokers, or give the topic more replicas")
        elif wanted < min(REPLICAS, count):
            advice = f"Give it {min(REPLICAS, count)} with kafka-reassign-partitions, and raise {factor}"
            yield Finding(topic, Verdict.WARNING, f"has {wanted} of {count} possible replicas", advice)
        else:
            yield Finding(topic, Verdict.OK, f"{'has' if replicas else 'will have'} {wanted} of {count} replicas")
