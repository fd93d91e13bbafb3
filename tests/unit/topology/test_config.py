"""Settings for librdkafka: what is ours, what passes through to which client, and what is never shown."""

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from kapelle.topology.deadletters import letter_bytes_max
from kapelle.topology.errors import BadSetting
from kapelle.topology.kafka.config import KINDS, OWNED, KafkaSettings, Protocol, Setting, is_secret
from kapelle.topology.log import KEY_BYTES_MAX

SECRETS = [
    "sasl.password",
    "ssl.key.password",
    "ssl.key.pem",
    "ssl.keystore.password",
    "ssl.keystore.location",
    "sasl.oauthbearer.client.secret",
    "sasl.oauthbearer.config",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.private.key.pem",
    "sasl.oauthbearer.token.endpoint.url",
]
SHOWN = ["sasl.username", "sasl.mechanism", "security.protocol", "ssl.ca.location", "linger.ms", "client.id"]


def settings(**how: Any) -> KafkaSettings:
    return KafkaSettings(**{"bootstrap_servers": "127.0.0.1:9092", **how})


# What is ours -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", *(f"{kind}." for kind in KINDS)])
@pytest.mark.parametrize("name", OWNED)
def test_a_setting_that_is_ours_is_refused_with_the_reason(name: str, kind: str) -> None:
    with pytest.raises(BadSetting) as caught:
        settings(extra={f"{kind}{name}": "x"})

    assert str(caught.value) == f"Setting {f'{kind}{name}'!r} is set by Kapelle: {OWNED[name]}"


def test_settings_without_servers_are_refused() -> None:
    with pytest.raises(BadSetting, match=r"Expected bootstrap servers such as 127.0.0.1:9092, but found none"):
        settings(bootstrap_servers="")


def test_what_exactly_once_rests_on_is_pinned() -> None:
    producer, consumer = settings().producer("me"), settings().consumer("group")

    assert {name: producer[name] for name in ("acks", "enable.idempotence", "transactional.id", "partitioner")} == {
        "acks": "all",
        "enable.idempotence": True,
        "transactional.id": "me",
        "partitioner": "murmur2_random",
    }
    assert {
        name: consumer[name]
        for name in ("isolation.level", "enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset")
    } == {
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
    }
    assert (consumer["group.id"], consumer["enable.partition.eof"]) == ("group", True)


def test_every_setting_that_we_pin_for_safety_is_ours() -> None:
    """Whoever pins another one must say whether it may be given."""
    free = {
        "client.id",
        "compression.type",
        "fetch.message.max.bytes",
        "heartbeat.interval.ms",
        "linger.ms",
        "log_level",
        "queue.buffering.max.messages",
        "queued.max.messages.kbytes",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
    }
    pinned = {*settings().producer("me"), *settings().consumer("group"), *settings().admin()}

    assert pinned - free <= set(OWNED)


def test_the_largest_letter_fits_on_the_wire() -> None:
    for record_bytes_max in (1_000, 1_000_000, 10_000_000):
        made = settings(record_bytes_max=record_bytes_max)
        assert letter_bytes_max(record_bytes_max) + 3 * KEY_BYTES_MAX < made.wire_bytes_max
        assert made.producer("me")["message.max.bytes"] == made.wire_bytes_max


# Protocols ----------------------------------------------------------------------------------------------------------


def test_the_classic_protocol_keeps_partitions_where_they_are_and_fails_over_in_time() -> None:
    made = settings(session_timeout_ms=4_000).consumer("group")

    assert made["group.protocol"] == "classic"
    assert made["partition.assignment.strategy"] == "cooperative-sticky"
    assert (made["session.timeout.ms"], made["heartbeat.interval.ms"]) == (4_000, 1_000)


def test_the_consumer_protocol_leaves_to_the_broker_what_is_the_brokers() -> None:
    made = settings(protocol=Protocol.CONSUMER).consumer("group")

    assert made["group.protocol"] == "consumer"
    assert not {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"} & set(made)


def test_readers_outside_groups_never_use_the_consumer_protocol() -> None:
    assert settings(protocol=Protocol.CONSUMER).reader("group")["group.protocol"] == "classic"


@pytest.mark.parametrize("protocol", list(Protocol))
def test_librdkafka_takes_all_that_we_give_it(protocol: Protocol) -> None:
    made = settings(protocol=protocol)

    Producer(made.producer("me"))
    AdminClient(made.admin())
    for config in (made.consumer("group"), made.reader("group")):
        Consumer(config).close()


# What passes through ------------------------------------------------------------------------------------------------


def given(made: KafkaSettings, name: str) -> dict[str, Setting | None]:
    """The value of a setting for each kind of client."""
    return {
        "producer": made.producer("me").get(name),
        "consumer": made.consumer("group").get(name),
        "reader": made.reader("group").get(name),
        "admin": made.admin().get(name),
    }


def test_a_setting_for_all_reaches_every_client() -> None:
    made = settings(extra={"client.id": "us"})

    assert given(made, "client.id") == dict.fromkeys(("producer", "consumer", "reader", "admin"), "us")


@pytest.mark.parametrize("kind", KINDS)
def test_a_setting_for_one_kind_reaches_only_that_kind(kind: str) -> None:
    found = given(settings(extra={f"{kind}.client.id": "us"}), "client.id")

    reached = {name for name, value in found.items() if value == "us"}
    assert reached == {"producer": {"producer"}, "consumer": {"consumer", "reader"}, "admin": {"admin"}}[kind]


def test_a_setting_for_one_kind_wins_over_one_for_all() -> None:
    found = given(settings(extra={"client.id": "all", "producer.client.id": "one"}), "client.id")

    assert found == {"producer": "one", "consumer": "all", "reader": "all", "admin": "all"}


@pytest.mark.parametrize("name", ["linger.ms", "compression.type", "retry.backoff.ms"])
@pytest.mark.parametrize("kind", ["", "producer."])
def test_our_choices_for_speed_give_way_to_those_of_the_user(name: str, kind: str) -> None:
    assert settings(extra={f"{kind}{name}": 7}).producer("me")[name] == 7


@pytest.mark.parametrize("kind", ["", "consumer."])
def test_our_choices_for_consumers_give_way_to_those_of_the_user(kind: str) -> None:
    made = settings(extra={f"{kind}heartbeat.interval.ms": 7, f"{kind}queued.max.messages.kbytes": 8})

    assert made.consumer("group")["heartbeat.interval.ms"] == 7
    assert given(made, "queued.max.messages.kbytes")["reader"] == 8


# What is never shown ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["", *(f"{kind}." for kind in KINDS)])
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_never_shown(name: str, kind: str) -> None:
    made = settings(extra={f"{kind}{name}": "hunter2"})

    assert made.redacted()[f"{kind}{name}"] == "•••"
    assert "hunter2" not in f"{made} {made!r} {made.redacted()} {[made]}"


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_no_secret_is_shown(name: str) -> None:
    assert not is_secret(name)
    assert settings(extra={name: "seen"}).redacted()[name] == "seen"


def test_all_that_was_chosen_is_shown() -> None:
    shown = settings(session_timeout_ms=1_234, extra={"producer.linger.ms": 5}).redacted()

    assert shown["bootstrap.servers"] == "127.0.0.1:9092"
    assert (shown["session_timeout_ms"], shown["producer.linger.ms"]) == (1_234, 5)
