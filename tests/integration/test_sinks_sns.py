"""Public events reach Amazon SNS, as moto plays it: with their attributes, in order, and what it refuses put aside."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from kapelle.schemas.contracts import InstanceStatus
from tests.integration.sinks.world import World, served
from tests.support.broker import Broker

pytestmark = pytest.mark.timeout(290)

REGION = "eu-central-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"}


class Amazon:
    """Topics with a queue behind each, at an address on this machine."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.got: list[dict[str, Any]] = []  # all messages that were taken from queues
        self._sns: Any = self._client("sns")
        self._sqs: Any = self._client("sqs")

    def topic(self, name: str) -> tuple[str, str]:
        """A topic, and the queue that gets its messages as they are."""
        fifo = {"FifoTopic": "true"} if name.endswith(".fifo") else {}
        topic: str = self._sns.create_topic(Name=name, Attributes=fifo)["TopicArn"]
        queue = self._sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if fifo else {})["QueueUrl"]
        arn = self._sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        raw = {"RawMessageDelivery": "true"}
        self._sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes=raw)
        return topic, queue

    def taken(self, queue: str) -> list[dict[str, Any]]:
        """What came until now, with what was taken before."""
        found = self._sqs.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
        ).get("Messages", [])
        for message in found:
            self._sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        self.got += found
        return self.got

    def _client(self, service: str) -> Any:
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client(service, endpoint_url=self.url, region_name=REGION, **keys)


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Amazon]:
    for name, value in CREDENTIALS.items():
        monkeypatch.setitem(os.environ, name, value)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield Amazon(f"http://{host}:{port}")
    server.stop()


@pytest.fixture
def world(broker: Broker, tmp_path: Path) -> World:
    return World(broker, tmp_path)


def test_events_are_published_with_their_attributes(world: World, amazon: Amazon) -> None:
    topic, queue = amazon.topic("audit")
    world.sinks(audit={"sns": {"topic": topic, "endpoint": amazon.url}, "filter": {"/status": "FAILED"}})
    world.write(3)
    ids = world.write(4, status=InstanceStatus.FAILED)

    with world.run() as running:
        world.until(lambda: len(amazon.taken(queue)) >= 4, "four messages")
        assert running.terminate() == 0, running.said()

    told = [{n: a["StringValue"] for n, a in message["MessageAttributes"].items()} for message in amazon.got]
    assert sorted(one["ce_id"] for one in told) == sorted(ids)
    assert {one["status"] for one in told} == {"FAILED"}
    assert {one["ce_type"] for one in told} == {"InstanceStatusChange"}
    assert all(len(one) <= 10 for one in told)
    for attributes, message in zip(told, amazon.got, strict=True):
        assert json.loads(message["Body"])["workflow_id"] == attributes["workflow_id"] == attributes["ce_subject"]


def test_a_fifo_topic_keeps_the_order_of_each_key(world: World, amazon: Amazon) -> None:
    topic, queue = amazon.topic("orders.fifo")
    world.sinks(orders={"sns": {"topic": topic, "endpoint": amazon.url}})
    ids = world.write(20, workflows=2)

    with world.run() as running:
        world.until(lambda: len(amazon.taken(queue)) >= 20, "twenty messages")
        assert running.terminate() == 0, running.said()

    assert sorted(message["Attributes"]["MessageDeduplicationId"] for message in amazon.got) == sorted(ids)
    for key in ("wf0", "wf1"):
        of_key = [message for message in amazon.got if message["Attributes"]["MessageGroupId"] == key]
        assert [json.loads(message["Body"])["sequence"] for message in of_key] == list(range(1, 11))


def test_a_topic_that_is_not_there_is_waited_for(world: World, amazon: Amazon) -> None:
    missing = f"arn:aws:sns:{REGION}:123456789012:later"
    world.sinks(later={"sns": {"topic": missing, "endpoint": amazon.url}})
    world.write(2)
    with world.run("--metrics-port", "0") as running:
        world.until(lambda: served(running).get("failed/later", 0) >= 8, "the sink to be tried")

        topic, queue = amazon.topic("later")
        world.until(lambda: served(running).get("delivered/later", 0) == 2, "the waiting events to be delivered")
        ids = world.write(2)  # those before may have been published before the queue was subscribed
        world.until(lambda: set(ids) <= {_id(message) for message in amazon.taken(queue)}, "the messages")
        assert running.terminate() == 0, running.said()

    assert topic == missing
    assert world.place.letters() == []


def _id(message: dict[str, Any]) -> str:
    found: str = message["MessageAttributes"]["ce_id"]["StringValue"]
    return found
