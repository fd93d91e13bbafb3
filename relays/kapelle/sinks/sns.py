"""Amazon SNS: each event is published with its CloudEvents attributes beside it, so that subscriptions can filter.

In a FIFO topic the key of an event is its group and its id is the id of the message: order is kept within a key, and
what is published twice within Amazon's five minutes is one message.
"""

import re
from hashlib import sha256
from typing import Final, Protocol

from kapelle.sinks.errors import NotDelivered, SinkLacks, Undeliverable
from kapelle.sinks.events import CloudEvent
from kapelle.sinks.models import SnsRule

try:
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
except ModuleNotFoundError as error:
    raise SinkLacks(
        f"Expected the client of Amazon SNS, but {error.name} is not installed: pip install 'kapelle[sns]'"
    ) from error

FIFO: Final = ".fifo"
# What Amazon takes as the id of a group or of a message.
ID: Final = re.compile(r"[A-Za-z0-9!-/:-@\[-`{-~]{1,128}", re.ASCII)
# Of what the event is about, for the filters of subscriptions. SQS takes ten attributes of a message, if it is raw.
FACTS: Final = ("workflow_id", "status")
LEFT_OUT: Final = frozenset({"datacontenttype", "partitionkey", "traceparent"})
ATTRIBUTES_MAX: Final = 10
# The operator has to mend these, or time: the event has no part in them.
AWAY: Final = (401, 403, 404, 408, 429, 500, 502, 503, 504)
THROTTLED: Final = re.compile("Throttl|TooManyRequests|RequestLimit|Expired|Credential|Token|Authori[sz]ation", re.I)


class _Client(Protocol):
    """The part of Amazon's client that is used."""

    def publish(self, **arguments: object) -> object: ...

    def close(self) -> None: ...


class SnsTopic:
    """Publishes events to one topic."""

    def __init__(self, rule: SnsRule) -> None:
        self._topic = rule.topic
        self._is_fifo = rule.topic.endswith(FIFO)
        timeout_s = rule.timeout_ms / 1000
        # Retries are ours: Amazon's would hide them from the metrics, and from a stop.
        config = Config(connect_timeout=timeout_s, read_timeout=timeout_s, retries={"total_max_attempts": 1})
        self._client: _Client = boto3.client(
            "sns", region_name=rule.topic.split(":")[3], endpoint_url=rule.endpoint, config=config
        )

    def send(self, event: CloudEvent) -> None:
        order = {}
        if self._is_fifo:
            order = {
                "MessageGroupId": _fitting(event.key),
                "MessageDeduplicationId": _fitting(event.id),
            }
        try:
            self._client.publish(
                TopicArn=self._topic, Message=event.body().decode(), MessageAttributes=_attributes(event), **order
            )
        except ClientError as error:
            raise _meaning(error) from error
        except BotoCoreError as error:
            raise NotDelivered(f"Expected SNS to answer, but {type(error).__name__}: {error}", is_away=True) from error

    def close(self) -> None:
        self._client.close()


def _attributes(event: CloudEvent) -> dict[str, dict[str, str]]:
    named = {f"ce_{name}": text for name, text in event.attributes.items() if name not in LEFT_OUT}
    named |= {name: str(event.data[name]) for name in FACTS if event.data.get(name)}
    return {name: {"DataType": "String", "StringValue": named[name]} for name in list(named)[:ATTRIBUTES_MAX]}


def _fitting(text: str) -> str:
    """A text as Amazon takes it for an id; one that does not fit stands for itself by its digest."""
    return text if ID.fullmatch(text) else sha256(text.encode()).hexdigest()


def _meaning(error: ClientError) -> NotDelivered | Undeliverable:
    cause = error.response.get("Error", {})
    code, status = str(cause.get("Code", "")), int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    reason = f"Expected SNS to take the event, but found {status} {code}: {cause.get('Message', '')}"
    if status in AWAY or status >= 500 or THROTTLED.search(code):
        return NotDelivered(reason, is_away=True)
    return Undeliverable(reason)
