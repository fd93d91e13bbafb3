"""Error values of librdkafka where an offset or an id is expected: no answer, never data."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kapelle.topology.errors import BrokerRefused, ChangelogShortened, CycleAborted, Unanswered
from kapelle.topology.kafka.admin import Admin
from kapelle.topology.kafka.answers import (
    LATEST,
    committed_positions,
    is_committed,
    is_there,
    list_offsets,
    real_offset,
    topic_ids,
    watermarks,
)
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.offsets import Offsets
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.kafka.transactions import Transactor
from kapelle.topology.log import Place
from kapelle.topology.page import topology
from kapelle.topology.settings import Limits, MemberSettings
from tests.unit.topology.world import LIMITS, World, processor_of, tick

NO_OFFSETS = (-1001, -1000, -2, -1, None)
AWAY = KafkaError(KafkaError._TRANSPORT)
PLACE = Place("t", 3)


class Client:
    """What librdkafka gives, for each call, whatever is asked."""

    def __init__(self, given: Any) -> None:
        self._given = given

    def list_offsets(self, asked: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, "Future[Any]"]:
        return {place: _done(SimpleNamespace(offset=self._given)) for place in asked}

    def describe_topics(self, names: Any, **_: Any) -> dict[str, "Future[Any]"]:  # noqa: ARG002
        return {"t": _done(SimpleNamespace(topic_id=self._given))}

    def committed(self, places: list[TopicPartition], timeout_s: float) -> list[Any]:  # noqa: ARG002
        return [self._given for _ in places]

    def get_watermark_offsets(self, place: TopicPartition, timeout_s: float) -> Any:  # noqa: ARG002
        return self._given


def _done(result: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(result)
    return future


def position(offset: int, error: KafkaError | None = None) -> Any:
    return SimpleNamespace(topic="t", partition=3, offset=offset, error=error, metadata="")


@pytest.mark.parametrize("found", NO_OFFSETS)
def test_a_number_that_is_no_offset_is_no_answer(found: Any) -> None:
    with pytest.raises(Unanswered, match=r"No broker has answered where it ends, for t-3 .* retried") as caught:
        real_offset(PLACE, found)

    assert isinstance(caught.value, CycleAborted)  # the member asks again, and never stops for it
    with pytest.raises(Unanswered, match="t-3"):
        list_offsets(Client(found), [PLACE], LATEST, timeout_s=1)  # type: ignore[arg-type]


def test_the_first_offset_of_all_is_an_answer() -> None:
    assert list_offsets(Client(0), [PLACE], LATEST, timeout_s=1) == {PLACE: 0}  # type: ignore[arg-type]
    assert list_offsets(Client(None), [], LATEST, timeout_s=1) == {}  # type: ignore[arg-type]


def test_a_group_without_an_offset_is_an_answer_but_an_error_beside_it_is_none() -> None:
    (found,) = committed_positions(Client(position(-1001)), [PLACE], 1)  # type: ignore[arg-type]
    assert not is_committed(found)

    for given in (position(-1001, AWAY), position(7, AWAY), position(-1), position(-2), position(-1000)):
        with pytest.raises(Unanswered, match="what the group has committed, for t-3"):
            committed_positions(Client(given), [PLACE], 1)  # type: ignore[arg-type]


class NewCluster:
    """A cluster that looks for the coordinator of a group when it is first asked about one."""

    def __init__(self, *errors: int) -> None:
        self._errors = list(errors)

    def committed(self, places: list[TopicPartition], timeout_s: float) -> list[Any]:  # noqa: ARG002
        if self._errors:
            raise KafkaException(KafkaError(self._errors.pop(0)))
        return [position(-1001)]


def test_a_group_without_a_coordinator_is_asked_again_until_the_time_is_over() -> None:
    coming = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)

    (found,) = committed_positions(NewCluster(*coming), [PLACE], 10)  # type: ignore[arg-type]
    assert not is_committed(found)

    with pytest.raises(KafkaException):
        committed_positions(NewCluster(*coming), [PLACE], 0)  # type: ignore[arg-type]
    with pytest.raises(KafkaException):
        committed_positions(NewCluster(KafkaError.GROUP_AUTHORIZATION_FAILED), [PLACE], 10)  # type: ignore[arg-type]


def test_a_refusal_beside_an_offset_stays_a_refusal() -> None:
    denied = position(-1001, KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))

    with pytest.raises(BrokerRefused):
        committed_positions(Client(denied), [PLACE], 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [None, (-1001, -1001), (0, -1001), (-1, 5)])
def test_watermarks_that_nobody_knows_are_no_answer(found: Any) -> None:
    with pytest.raises(Unanswered, match="t-3"):
        watermarks(Client(found), PLACE, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("found", [None, "", "AAAAAAAAAAAAAAAAAAAAAA"])
def test_a_topic_without_an_id_is_no_other_topic(found: Any) -> None:
    with pytest.raises(Unanswered, match="its id"):
        topic_ids(Client(found), ["t"], 1)  # type: ignore[arg-type]


def test_a_topic_whose_leader_is_away_is_not_missing() -> None:
    def topic(code: int | None) -> Any:
        return SimpleNamespace(topic="t", error=None if code is None else KafkaError(code), partitions={0: None})

    assert is_there(topic(None))
    assert not is_there(topic(KafkaError.UNKNOWN_TOPIC_OR_PART))
    with pytest.raises(Unanswered):
        is_there(topic(KafkaError.LEADER_NOT_AVAILABLE))


def test_offsets_that_are_not_told_are_asked_for_with_a_new_client() -> None:
    offsets = Offsets(KafkaSettings(bootstrap_servers="127.0.0.1:1"))
    offsets._admin._client = Client(-1001)  # type: ignore[assignment]

    with pytest.raises(Unanswered):
        offsets.ends([PLACE])

    assert offsets._admin._client is None


def test_rows_that_were_acknowledged_without_an_offset_are_read_back_from_the_changelog() -> None:
    settings = KafkaSettings(bootstrap_servers="127.0.0.1:1")
    transactor = Transactor(settings, "one", on_statistics=lambda _: None)

    def produce(*arguments: Any) -> None:
        arguments[-1](None, SimpleNamespace(offset=lambda: -1001))

    transactor._produce = produce
    transactor.send_rows(PLACE, [(b"k", b"v")])

    with pytest.raises(Unanswered, match="where the rows of this cycle were kept, for t-3"):
        transactor.row_end(PLACE)


@pytest.mark.parametrize("method", ["ends", "committed"])
def test_a_member_goes_on_when_the_answer_comes_and_keeps_its_tables(method: str) -> None:
    world = World(processor_of())
    world.publish("ticks", "a", tick("1"))
    world.run()
    world.restart()
    unanswered = Unanswered(Place("w.counting.changelog", 0), "where it ends", "-1001")
    world.log.errors[method] = [unanswered] * 20

    world.run()
    world.publish("ticks", "a", tick("2"))
    world.run()

    assert [event.count for _, event in world.events("counting")] == [1, 2]
    assert (world.log.errors[method], world.member.counters.wipes) == ([], 0)


def test_a_member_waits_for_the_second_answer_before_it_stops() -> None:
    world = World(processor_of(), settings=MemberSettings(limits=LIMITS))
    world.publish("ticks", "a", tick("1"))
    world.run()
    world.restart()
    changelog = Place("w.counting.changelog", 0)
    kept, world.cluster.partitions[changelog] = world.cluster.partitions[changelog], []

    world.step(5)
    assert not world.member.ready
    world.cluster.partitions[changelog] = kept
    world.run()
    assert world.member.counters.wipes == 0

    world.restart()
    world.cluster.partitions[changelog] = []
    world.step(5)
    world.now_ms += Limits().doubt_ms
    with pytest.raises(ChangelogShortened):
        world.step()


def test_a_client_that_was_not_answered_is_let_go() -> None:
    """librdkafka goes on asking the controller that it knows, for as long as that broker is away."""
    admin = Admin(KafkaSettings(bootstrap_servers="127.0.0.1:1"))
    first = admin.client

    with admin.asking("describe topics") as asked:
        assert asked is first
    with pytest.raises(BrokerRefused), admin.asking("describe topics"):
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert admin.client is first
    with pytest.raises(CycleAborted), admin.asking("describe topics"):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
    assert admin.client is not first


def test_the_ids_of_topics_are_asked_for_again_by_another_client(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics(topology(), KafkaSettings(bootstrap_servers="127.0.0.1:1"))
    asked: list[Any] = []

    def away(client: Any, *_: Any) -> dict[str, str]:
        asked.append(client)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr("kapelle.topology.kafka.topics.topic_ids", away)
    for _ in range(2):
        with pytest.raises(CycleAborted):
            topics.identities(["t"])

    assert asked[0] is not asked[1]
