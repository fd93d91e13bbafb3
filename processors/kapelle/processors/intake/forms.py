"""The forms in which clients announce signals, and which fields are read from each.

| form | name | id | when | parameters |
|---|---|---|---|---|
| our Avro, `AnnounceSignal` | `name` | `signal_id` | `happened_at_ms` | `params` |
| JSON | `name` | `id` or `request_id` | `request_time` or `time` | `params` |
| CloudEvents, structured | `type` | `source` and `id` | `time` | `data` |
| CloudEvents, binary | `ce_type` | `ce_source` and `ce_id` | `ce_time` | the value |

Parameters are strings and integers of 64 bits; all else, and what JSON has beside the known keys, is payload. A signal
without an id has one made from its name and parameters: saying the same twice is then saying it once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from kapelle.processors.messages import Foreign
from kapelle.processors.params.nesting import NESTED_JSON_MAX, nests_too_deep
from kapelle.processors.runs.announcements import signal_id
from kapelle.processors.signals.bounds import (
    ID_CHARS_MAX,
    LONG_MAX,
    NAME_CHARS_MAX,
    PARAMS_MAX,
    divided,
    is_param,
    too_large,
)
from kapelle.processors.signals.matching import Scalar
from kapelle.schemas import contracts as c

KNOWN: Final = frozenset({"name", "id", "request_id", "request_time", "time", "params", "payload"})
STRUCTURED: Final = b"application/cloudevents+json"
BYTES: Final = "data_base64"
Json = Mapping[str, object]  # an object of it

_object: Final = msgspec.json.Decoder(dict[str, Any])  # made once: to make it costs ten times what it then does


class NotASignal(Exception):
    """The record cannot be read as a signal. The message says what was expected."""


Headers = Sequence[tuple[str, bytes]]


def read(record: Foreign, headers: Headers) -> c.AnnounceSignal:
    """The signal that a record announces. Raises `NotASignal`."""
    if record.value is None:
        raise NotASignal("Expected a signal, but the record has no value")
    try:
        body = msgspec.json.decode(record.value)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotASignal(f"Expected Avro, JSON or a CloudEvent, but the value is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise NotASignal(f"Expected a JSON object, but found a {type(body).__name__}")
    if nests_too_deep(record.value, body):
        raise NotASignal(f"Expected JSON that nests at most {NESTED_JSON_MAX} deep, but found deeper nesting")
    known = {name.lower(): content for name, content in headers if content is not None}
    source = {"topic": record.topic, "partition": record.partition, "offset": record.offset}
    if "ce_id" in known:
        return _binary(body, known, source)
    if "specversion" in body or known.get("content-type", b"").startswith(STRUCTURED):
        return _structured(body, source)
    return _plain(body, source)


def _plain(body: Json, source: Json) -> c.AnnounceSignal:
    given = body.get("params", {})
    if not isinstance(given, dict):
        raise NotASignal("Expected 'params' to be an object, but it is not")
    for name, value in given.items():
        if not is_param(value):
            raise NotASignal(f"Expected a string or an integer of 64 bits for parameter {name[:80]!r}")
    payload = body.get("payload", {})
    more = {key: value for key, value in body.items() if key not in KNOWN}
    rest = {**payload, **more} if isinstance(payload, dict) else {"payload": payload, **more}
    named = body.get("id", body.get("request_id"))
    if named is not None and not isinstance(named, str | int):
        raise NotASignal("Expected 'id' to be a string, but it is not")
    when = body.get("request_time", body.get("time"))
    return _signal(body.get("name"), None if named is None else str(named), when, (given, rest, source))


def _structured(body: Json, source: Json) -> c.AnnounceSignal:
    data = body.get("data", {})
    content: Json = data if isinstance(data, dict) else {"data": data}
    params, payload = divided(content)
    if BYTES in body:  # data that is no JSON: nothing of it can be a parameter
        payload[BYTES] = body[BYTES]
    named = _event_id(body.get("source"), body.get("id"))
    return _signal(body.get("type"), named, body.get("time"), (params, payload, source))


def _binary(body: Json, known: Mapping[str, bytes], source: Json) -> c.AnnounceSignal:
    names = ("ce_id", "ce_source", "ce_type", "ce_time")
    text = {name: known[name].decode("utf-8", "replace") for name in names if name in known}
    named = _event_id(text.get("ce_source"), text.get("ce_id"))
    return _signal(text.get("ce_type"), named, text.get("ce_time"), (*divided(body), source))


def _event_id(source: object, name: object) -> str:
    if not isinstance(source, str) or not isinstance(name, str) or not source or not name:
        raise NotASignal("Expected a CloudEvent with a source and an id, but one of them is missing")
    return f"{source} {name}"


def _signal(
    name: object, named: str | None, when: object, content: tuple[Mapping[str, Scalar], Json, Json]
) -> c.AnnounceSignal:
    params, payload, source = content
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX:
        raise NotASignal(f"Expected the name of a signal, with at most {NAME_CHARS_MAX} characters")
    if named is not None and not 0 < len(named) <= ID_CHARS_MAX:
        raise NotASignal(f"Expected an id of 1 to {ID_CHARS_MAX} characters, but it has {len(named)}")
    if len(params) > PARAMS_MAX:
        raise NotASignal(f"Expected at most {PARAMS_MAX} parameters, but found {len(params)}")
    made = c.AnnounceSignal(
        name=name,
        signal_id=named or signal_id(name, params),
        params=msgspec.json.encode(params, order="sorted").decode(),
        payload=msgspec.json.encode(payload).decode(),
        happened_at_ms=_time_ms(when),
        source=msgspec.json.encode(source).decode(),
    )
    return _bounded(made)


def _bounded(signal: c.AnnounceSignal) -> c.AnnounceSignal:
    if (reason := too_large(signal)) is not None:
        raise NotASignal(reason)
    return signal


def _time_ms(when: object) -> int | None:
    if when is None:
        return None
    if type(when) is int and 0 <= when <= LONG_MAX:
        return when
    if isinstance(when, str):
        try:
            moment = datetime.fromisoformat(when)
        except ValueError:
            moment = None
        if moment is not None:
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    raise NotASignal(f"Expected a time as ISO 8601 or in milliseconds, but found {str(when)[:80]!r}")


def checked(signal: c.AnnounceSignal) -> c.AnnounceSignal:
    """A signal of ours that anyone could have written: its parts must be what they are said to be."""
    try:
        params = _object.decode(signal.params)
        _object.decode(signal.payload)
        _object.decode(signal.source)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NotASignal(f"Expected params, payload and source as JSON objects, but {error}") from None
    if not all(is_param(value) for value in params.values()) or len(params) > PARAMS_MAX:
        raise NotASignal(f"Expected at most {PARAMS_MAX} parameters that are strings or integers of 64 bits")
    if not 0 < len(signal.name) <= NAME_CHARS_MAX or len(signal.signal_id) > ID_CHARS_MAX:
        raise NotASignal(f"Expected a name of at most {NAME_CHARS_MAX} and an id of at most {ID_CHARS_MAX} characters")
    if signal.signal_id:
        return _bounded(signal)
    return _bounded(msgspec.structs.replace(signal, signal_id=signal_id(signal.name, params)))
