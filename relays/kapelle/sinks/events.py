"""A public record as a CloudEvent with JSON in it, for whoever does not read Avro."""

from hashlib import sha256
from typing import Final
from urllib.parse import quote

import msgspec

from kapelle.schemas.contract import Contract
from kapelle.schemas.errors import BadHeader
from kapelle.schemas.headers import Headers, read, rfc3339

JSON: Final = "application/json"
STRUCTURED: Final = "application/cloudevents+json"
# Of the characters that may stand in a header, those that CloudEvents wants to be escaped there as well.
PLAIN: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


class CloudEvent(msgspec.Struct, frozen=True):
    """One event to be delivered. `key` is what its order counts by."""

    attributes: dict[str, str]  # by their names in CloudEvents, extensions among them
    key: str
    data: dict[str, object]

    @property
    def id(self) -> str:
        """What is the same whenever this event is delivered, and never for another."""
        return self.attributes["id"]

    @property
    def digest(self) -> str:
        """The same where only letters and digits may stand."""
        return sha256(self.id.encode()).hexdigest()

    def structured(self) -> bytes:
        """All of it as one JSON object."""
        return msgspec.json.encode({**self.attributes, "data": self.data})

    def body(self) -> bytes:
        """The data alone."""
        return msgspec.json.encode(self.data)

    def headers(self) -> dict[str, str]:
        """The attributes as headers of HTTP, beside the data."""
        named = {name: value for name, value in self.attributes.items() if name != "datacontenttype"}
        return {f"ce-{name}": quote(value, safe=PLAIN) for name, value in named.items()}


def cloud_event(key: str, value: Contract, headers: Headers) -> CloudEvent:
    """The event that a record tells of. Raises `BadHeader`."""
    envelope = read(headers)
    if envelope.event is None:
        raise BadHeader("ce_specversion", expected="1.0", found="nothing")
    event, data = envelope.event, msgspec.to_builtins(value)
    attributes = {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "datacontenttype": JSON,
        "subject": key,
        "partitionkey": key,
        "sequence": str(data.get("sequence", "")),
    }
    if event.time_ms is not None:
        attributes["time"] = rfc3339(event.time_ms).decode()
    if envelope.trace is not None:
        attributes["traceparent"] = envelope.trace
    return CloudEvent({name: text for name, text in attributes.items() if text}, key, data)
