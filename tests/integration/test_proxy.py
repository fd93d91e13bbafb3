"""The proxy against a real broker: what is lost, what confluent-kafka makes of it, and how an outcome is unknown."""

import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.broker import Broker
from tests.support.proxy import END_TXN, Loss, Part, Proxy, Then

COMMIT_TIMEOUT_S = 1.0
ENOUGH_S = 15.0


class Scene:
    """A topic, and transactional producers of one id that write to it through the proxy."""

    def __init__(self, broker: Broker, proxy: Proxy) -> None:
        self.broker = broker
        self.proxy = proxy
        self.topic = broker.create_topic(f"proxy-{uuid.uuid4()}")

    def open_transaction(self, value: str) -> Producer:
        """A new producer with one record in an open transaction, written but not committed."""
        producer = Producer(
            {"bootstrap.servers": self.broker.proxied_servers, "transactional.id": self.topic, "retry.backoff.ms": 5}
            | {"log_level": 0, "error_cb": lambda _: None}
        )
        producer.init_transactions(ENOUGH_S)
        producer.begin_transaction()
        producer.produce(self.topic, value.encode())
        producer.flush(ENOUGH_S)
        return producer

    def lose_commit(self, *, part: Part, then: Then) -> Loss:
        """Lose the next EndTxn of our producers: those of earlier tests may still be trying theirs."""
        return self.proxy.lose_next(END_TXN, part=part, then=then, naming=self.topic)

    def committed(self) -> list[str]:
        """What a reader of committed records finds in the topic, up to its end."""
        consumer = Consumer(
            {"bootstrap.servers": self.broker.bootstrap_servers, "group.id": self.topic, "log_level": 0}
            | {"enable.auto.commit": False, "enable.partition.eof": True, "isolation.level": "read_committed"}
        )
        consumer.assign([TopicPartition(self.topic, 0, 0)])
        found: list[str] = []
        try:
            while (message := consumer.poll(ENOUGH_S)) is not None:
                if error := message.error():
                    assert error.code() == KafkaError._PARTITION_EOF
                    return found
                found.append((message.value() or b"").decode())
        finally:
            consumer.close()
        raise AssertionError(f"Expected the end of {self.topic} within {ENOUGH_S} s, but found only {found}")


@pytest.fixture
def scene(own_broker: Broker, proxy: Proxy) -> Scene:
    return Scene(own_broker, proxy)


@pytest.fixture
def admin(own_broker: Broker) -> AdminClient:
    """A client behind the proxy; `proxy` must be asked for too."""
    return AdminClient({"bootstrap.servers": own_broker.proxied_servers, "log_level": 0})


def error_of(call: Callable[[], object]) -> KafkaError:
    with pytest.raises(KafkaException) as raised:
        call()
    error = raised.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def test_a_commit_passes_through_the_proxy(scene: Scene) -> None:
    producer = scene.open_transaction("a")

    producer.commit_transaction(ENOUGH_S)

    assert scene.proxy.seen[END_TXN] >= 1
    assert scene.committed() == ["a"]


@pytest.mark.parametrize("part", Part)
def test_a_commit_that_loses_one_message_is_asked_for_again_and_succeeds_once(scene: Scene, part: Part) -> None:
    producer = scene.open_transaction("a")
    loss = scene.lose_commit(part=part, then=Then.CUT)

    producer.commit_transaction(ENOUGH_S)

    assert loss.happened.is_set()
    assert scene.proxy.seen[END_TXN] >= 2
    assert scene.committed() == ["a"]


@pytest.mark.parametrize(("part", "found"), [(Part.RESPONSE, ["a"]), (Part.REQUEST, [])])
def test_the_outcome_of_a_commit_is_unknown_when_the_way_back_is_closed(
    scene: Scene, part: Part, found: list[str]
) -> None:
    producer = scene.open_transaction("a")
    scene.lose_commit(part=part, then=Then.REFUSE)

    error = error_of(lambda: producer.commit_transaction(COMMIT_TIMEOUT_S))

    # The very same error for a transaction that is committed and for one that is not.
    assert error.code() == KafkaError._TIMED_OUT
    assert (error.retriable(), error.txn_requires_abort(), error.fatal()) == (True, False, False)
    assert scene.committed() == found


def test_a_commit_of_unknown_outcome_cannot_be_aborted(scene: Scene) -> None:
    producer = scene.open_transaction("a")
    scene.lose_commit(part=Part.RESPONSE, then=Then.REFUSE)
    error_of(lambda: producer.commit_transaction(COMMIT_TIMEOUT_S))

    error = error_of(lambda: producer.abort_transaction(COMMIT_TIMEOUT_S))

    assert error.code() == KafkaError._CONFLICT


@pytest.mark.parametrize(("part", "found"), [(Part.RESPONSE, ["a", "b"]), (Part.REQUEST, ["b"])])
def test_a_new_producer_of_the_same_id_settles_an_unknown_outcome(scene: Scene, part: Part, found: list[str]) -> None:
    old = scene.open_transaction("a")
    scene.lose_commit(part=part, then=Then.REFUSE)
    error_of(lambda: old.commit_transaction(COMMIT_TIMEOUT_S))

    # Nothing of the old producer may come through before the new one is there: it would still commit.
    scene.proxy.delay(END_TXN, 1.0)
    scene.proxy.accept()
    new = scene.open_transaction("b")
    error = error_of(lambda: old.commit_transaction(ENOUGH_S))
    scene.proxy.delay(END_TXN, 0)
    new.commit_transaction(ENOUGH_S)

    assert (error.code(), error.fatal()) == (KafkaError._FENCED, True)
    assert scene.committed() == found


def test_a_delayed_commit_takes_effect_after_its_caller_has_given_up(scene: Scene) -> None:
    producer = scene.open_transaction("a")
    scene.proxy.delay(END_TXN, 2 * COMMIT_TIMEOUT_S)

    error = error_of(lambda: producer.commit_transaction(COMMIT_TIMEOUT_S))
    before = scene.committed()
    producer.commit_transaction(ENOUGH_S)  # goes on waiting for the request that is under way

    assert error.code() == KafkaError._TIMED_OUT
    assert before == []
    assert scene.committed() == ["a"]


def test_a_stalled_proxy_answers_nothing_until_it_flows(admin: AdminClient, proxy: Proxy) -> None:
    admin.list_topics(timeout=ENOUGH_S)

    proxy.stall()
    error_of(lambda: admin.list_topics(timeout=0.5))
    proxy.flow()

    admin.list_topics(timeout=ENOUGH_S)


def test_clients_come_back_after_a_cut(admin: AdminClient, proxy: Proxy) -> None:
    admin.list_topics(timeout=ENOUGH_S)

    proxy.cut()

    admin.list_topics(timeout=ENOUGH_S)


def test_clients_are_refused_until_they_are_accepted(admin: AdminClient, proxy: Proxy) -> None:
    proxy.refuse()
    error_of(lambda: admin.list_topics(timeout=0.5))

    proxy.accept()

    admin.list_topics(timeout=ENOUGH_S)
