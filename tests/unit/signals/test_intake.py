"""Signals in every form that others write: the same words are the same signal, and wrong ones are set aside."""

import json
from typing import Any

import pytest

from kapelle.processors.effects import Send, SetAside
from kapelle.processors.intake import intake
from kapelle.processors.intake.tables import Intake
from kapelle.processors.messages import Foreign, Message
from kapelle.processors.runs.announcements import signal_id
from kapelle.processors.wiring import SIGNAL_INTERNAL
from kapelle.schemas import contracts as c
from kapelle.topology.tables import MemoryStore, ShardState

Headers = list[tuple[str, bytes]]

PLACED: dict[str, str | int] = {"day": 20260701, "shop": "eu"}
EVENT = {"specversion": "1.0", "type": "orders", "source": "/shop", "id": "4711", "time": "2026-07-01T12:00:00Z"}
BINARY: Headers = [(f"ce_{name}", value.encode()) for name, value in EVENT.items()]
STRUCTURED: Headers = [("content-type", b"application/cloudevents+json; charset=utf-8")]
AT_MS = 1_782_907_200_000


def taken(value: Any, headers: Headers | None = None) -> c.AnnounceSignal | str:
    """What intake hands on, or why it sets a record aside."""
    text = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    record = c.AnnounceSignal(*value) if isinstance(value, tuple) else Foreign(text, b"key", "kapelle.signals", 3, 14)
    state: ShardState[Intake] = ShardState(intake, 0, MemoryStore())
    message = Message("key", record, "0", headers=headers or [])
    (effect,) = intake.deciders[type(record)](message, state.reader, 0)
    if isinstance(effect, SetAside):
        return effect.reason
    assert isinstance(effect, Send)
    assert isinstance(effect.value, c.AnnounceSignal)
    assert (effect.stream, effect.key) == (SIGNAL_INTERNAL, effect.value.name)
    return effect.value


SAME: dict[str, tuple[Any, Headers | None]] = {
    "our Avro": (("orders", "/shop 4711", json.dumps(PLACED), '{"rows":[1]}', AT_MS), None),
    "JSON": (
        {"name": "orders", "params": PLACED, "id": "/shop 4711", "time": EVENT["time"], "payload": {"rows": [1]}},
        None,
    ),
    "JSON as Maestro's clients write it": (
        {"name": "orders", "params": PLACED, "request_id": "/shop 4711", "request_time": AT_MS, "rows": [1]},
        None,
    ),
    "a structured CloudEvent": ({**EVENT, "data": {**PLACED, "rows": [1]}}, STRUCTURED),
    "a structured CloudEvent without a content type": ({**EVENT, "data": {**PLACED, "rows": [1]}}, None),
    "a binary CloudEvent": ({**PLACED, "rows": [1]}, BINARY),
    "a binary CloudEvent with names in capitals": (
        {**PLACED, "rows": [1]},
        [(name.upper(), value) for name, value in BINARY],
    ),
}


@pytest.mark.parametrize("form", SAME)
def test_the_same_words_are_the_same_signal_in_every_form(form: str) -> None:
    found = taken(*SAME[form])

    assert isinstance(found, c.AnnounceSignal)
    assert (found.name, found.signal_id, found.happened_at_ms) == ("orders", "/shop 4711", AT_MS)
    assert (json.loads(found.params), json.loads(found.payload)) == (PLACED, {"rows": [1]})


@pytest.mark.parametrize("value", [{"name": "orders", "params": PLACED}, ("orders", "", json.dumps(PLACED))])
def test_without_an_id_it_is_made_from_name_and_parameters(value: Any) -> None:
    found = taken(value)

    assert isinstance(found, c.AnnounceSignal)
    assert found.signal_id == signal_id("orders", PLACED)


def test_a_signal_of_others_says_where_it_stood() -> None:
    found = taken({"name": "orders"})

    assert isinstance(found, c.AnnounceSignal)
    assert json.loads(found.source) == {"topic": "kapelle.signals", "partition": 3, "offset": 14}


@pytest.mark.parametrize(
    ("data", "params", "payload"),
    [
        ({"data": "text"}, {"data": "text"}, {}),
        ({"data": [1]}, {}, {"data": [1]}),
        ({"data": None}, {}, {"data": None}),
        ({"data": {"n": 1.5, "b": True, "big": 2**63, "s": "x"}}, {"s": "x"}, {"n": 1.5, "b": True, "big": 2**63}),
        ({"data_base64": "3q2+7w=="}, {}, {"data_base64": "3q2+7w=="}),
        ({}, {}, {}),
    ],
)
def test_of_the_data_of_an_event_strings_and_integers_are_parameters_and_all_else_is_payload(
    data: dict[str, Any], params: dict[str, Any], payload: dict[str, Any]
) -> None:
    found = taken({**EVENT, **data})

    assert isinstance(found, c.AnnounceSignal)
    assert (json.loads(found.params), json.loads(found.payload)) == (params, payload)


WRONG: list[tuple[Any, Headers | None, str]] = [
    (None, None, "Expected a signal, but the record has no value"),
    (b"no signal", None, "Expected Avro, JSON or a CloudEvent, but the value is not JSON"),
    (b"\xff", None, "Expected Avro, JSON or a CloudEvent, but the value is not JSON"),
    (b"[" * 100_000, None, "Expected Avro, JSON or a CloudEvent, but the value is not JSON"),
    ([1], None, "Expected a JSON object, but found a list"),
    ({}, None, "Expected the name of a signal, with at most 256 characters"),
    ({"name": ""}, None, "Expected the name of a signal"),
    ({"name": 7}, None, "Expected the name of a signal"),
    ({"name": "x" * 257}, None, "Expected the name of a signal"),
    ({"name": "a", "params": []}, None, "Expected 'params' to be an object, but it is not"),
    ({"name": "a", "params": {"n": 1.5}}, None, "Expected a string or an integer of 64 bits for parameter 'n'"),
    ({"name": "a", "params": {"n": True}}, None, "Expected a string or an integer of 64 bits for parameter 'n'"),
    ({"name": "a", "params": {"n": 2**63}}, None, "Expected a string or an integer of 64 bits for parameter 'n'"),
    ({"name": "a", "params": {str(n): n for n in range(129)}}, None, "Expected at most 128 parameters, but found 129"),
    ({"name": "a", "params": {"n": "x" * 20_000}}, None, "Expected at most 16,384 bytes of parameters"),
    ({"name": "a", "payload": {"n": "x" * 300_000}}, None, "Expected at most 262,144 bytes of payload"),
    ({"name": "a", "id": {}}, None, "Expected 'id' to be a string, but it is not"),
    ({"name": "a", "id": ""}, None, "Expected an id of 1 to 1024 characters"),
    ({"name": "a", "id": "x" * 1_025}, None, "Expected an id of 1 to 1024 characters"),
    ({"name": "a", "time": "yesterday"}, None, "Expected a time as ISO 8601 or in milliseconds, but found 'yesterday'"),
    ({"name": "a", "time": -1}, None, "Expected a time as ISO 8601 or in milliseconds"),
    ({**EVENT, "id": ""}, None, "Expected a CloudEvent with a source and an id, but one of them is missing"),
    ({**EVENT, "source": None}, None, "Expected a CloudEvent with a source and an id"),
    ({**EVENT, "type": ""}, None, "Expected the name of a signal"),
    ({}, [("ce_id", b"1")], "Expected a CloudEvent with a source and an id"),
    ({}, [("ce_id", b"1"), ("ce_source", b"/shop")], "Expected the name of a signal"),
    (("orders", "1", "nonsense"), None, "Expected params, payload and source as JSON objects"),
    (("orders", "1", '{"n":1.5}'), None, "Expected at most 128 parameters that are strings or integers of 64 bits"),
    (("", "1", "{}"), None, "Expected a name of at most 256"),
]


@pytest.mark.parametrize(("value", "headers", "reason"), WRONG, ids=lambda one: str(one)[:50])
def test_what_is_no_signal_is_set_aside_with_the_reason(value: Any, headers: Headers | None, reason: str) -> None:
    found = taken(value, headers)

    assert isinstance(found, str)
    assert found.startswith(reason)
