"""The public topics as an AsyncAPI 3 document, written from the streams and their contracts.

python -m kapelle.cli.asyncapi docs/asyncapi.yaml
"""

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Final, TypedDict

import yaml

from kapelle.processors.publisher.streams import KEYS
from kapelle.processors.streams import Keep, Stream
from kapelle.processors.wiring import SIGNALS
from kapelle.registry.contracts import public_streams
from kapelle.schemas import Contract
from kapelle.topology.build import Topology

AVRO: Final = "application/vnd.apache.avro+json;version=1.9.0"
CLEANUP: Final = {Keep.FOR_EVER: "delete", Keep.A_WEEK: "delete", Keep.LATEST: "compact"}
DESCRIPTION: Final = (
    "What Kapelle tells others, and how they announce signals to it. Records are CloudEvents in binary mode. Each key "
    "of a topic of changes numbers its records 1, 2, 3 …, without gaps. A topic of states has the latest change of a "
    "key. Read with isolation.level=read_committed: then every record is there exactly once."
)


class Channel(TypedDict):
    """A topic."""

    address: str
    description: str
    messages: dict[str, dict[str, str]]
    bindings: dict[str, dict[str, object]]


class Message(TypedDict):
    """The records of one contract."""

    name: str
    summary: str
    contentType: str
    payload: dict[str, object]
    bindings: dict[str, dict[str, object]]


class Components(TypedDict):
    """The parts that channels refer to."""

    messages: dict[str, Message]


class Document(TypedDict):
    """The parts of the document that Kapelle writes."""

    asyncapi: str
    info: dict[str, str]
    defaultContentType: str
    channels: dict[str, Channel]
    operations: dict[str, dict[str, object]]
    components: Components


def document(topology: Topology) -> Document:
    """The whole document."""
    streams = public_streams(topology)
    taken = [stream for stream in topology.streams.values() if stream == SIGNALS]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Kapelle",
            "version": importlib.metadata.version("kapelle"),
            "description": DESCRIPTION,
        },
        "defaultContentType": "application/vnd.apache.avro+binary",
        "channels": {_id(stream): _channel(topology, stream) for stream in (*streams, *taken)},
        "operations": {
            **{f"send-{_id(stream)}": _operation("send", stream) for stream in streams},
            **{f"receive-{_id(stream)}": _operation("receive", stream) for stream in taken},
        },
        "components": {
            "messages": {
                contract.__name__: _message(contract) for stream in (*streams, *taken) for contract in stream.ours
            }
        },
    }


def as_yaml(document_: Document) -> str:
    """The document as it is kept and shown."""
    return yaml.safe_dump(document_, sort_keys=False, allow_unicode=True, width=120)


def _id(stream: Stream) -> str:
    return stream.name.replace(".", "-")


def _channel(topology: Topology, stream: Stream) -> Channel:
    kafka = {
        "bindingVersion": "0.5.0",
        "topic": topology.topic(stream),
        "partitions": topology.partitions(stream),
        "topicConfiguration": {"cleanup.policy": [CLEANUP[stream.keep]]},
    }
    names = [contract.__name__ for contract in stream.ours]
    return {
        "address": topology.topic(stream),
        "description": f"Key: {KEYS.get(stream, 'signal name')}. Kept: {stream.keep.value}.",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {"kafka": kafka},
    }


def _operation(action: str, stream: Stream) -> dict[str, object]:
    return {"action": action, "channel": {"$ref": f"#/channels/{_id(stream)}"}}


def _message(contract: type[Contract]) -> Message:
    schema = json.loads(contract.SCHEMA)
    return {
        "name": contract.FULL_NAME,
        "summary": schema.get("doc", ""),
        "contentType": "application/vnd.apache.avro+binary",
        "payload": {"schemaFormat": AVRO, "schema": schema},
        "bindings": {
            "kafka": {
                "bindingVersion": "0.5.0",
                "key": {"type": "string"},
                "schemaIdLocation": "payload",
                "schemaLookupStrategy": "TopicNameStrategy",
            }
        },
    }


def main(arguments: list[str]) -> int:
    from kapelle.topology.page import topology  # noqa: PLC0415 - all processors are slow to import

    Path(arguments[0]).write_text(as_yaml(document(topology())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
