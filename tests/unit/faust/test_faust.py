"""What the Faust extra does without Faust: its topics, its bytes, the signals that it refuses, and what it says."""

from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pytest

from kapelle.faust import BadSignal, FaustMissing, FaustUnfit, Kapelle, signals
from kapelle.faust.codec import PUBLIC, PublicCodec
from kapelle.faust.signals import signal
from kapelle.faust.subscription import TOPICS
from kapelle.faust.transport import read_committed
from kapelle.processors.intake import forms
from kapelle.processors.publisher.streams import KEYS
from kapelle.processors.runs.announcements import signal_id
from kapelle.processors.signals import bounds
from kapelle.processors.wiring import SIGNALS
from kapelle.registry.server import RegistryServer
from kapelle.schemas import Catalog, Codec, Confluent, UnknownSchemaId
from kapelle.schemas import contracts as c

VERDICT = c.SignalVerdict(
    signal_name="orders",
    sequence=1,
    verdict=c.Verdict.ACCEPTED,
    reason="",
    strings={},
    longs={"day": 20260701},
    at_ms=1,
    source_topic="kapelle.signals.events",
    source_partition=0,
    source_offset=7,
)


def test_there_is_a_topic_for_each_public_stream_and_for_signals() -> None:
    assert sorted(TOPICS.values()) == sorted([*(stream.name for stream in KEYS), SIGNALS.name])
    assert [name for name in TOPICS if not isinstance(vars(Kapelle)[name], cached_property)] == []
    assert {contract for stream in KEYS for contract in stream.contracts} | {c.AnnounceSignal} == set(PUBLIC)


def test_the_bounds_of_signals_are_those_of_the_engine() -> None:
    ours = (signals.NAME_CHARS_MAX, signals.ID_CHARS_MAX, signals.LONG_MIN, signals.LONG_MAX, signals.PARAMS_MAX)

    assert ours == (bounds.NAME_CHARS_MAX, bounds.ID_CHARS_MAX, bounds.LONG_MIN, bounds.LONG_MAX, bounds.PARAMS_MAX)
    assert (signals.PARAMS_BYTES_MAX, signals.PAYLOAD_BYTES_MAX) == (bounds.PARAMS_BYTES_MAX, bounds.PAYLOAD_BYTES_MAX)


def test_a_signal_is_one_that_the_engine_takes_as_it_is() -> None:
    made = signal("orders", {"town": "Köln", "day": 20260701}, id="one", payload={"rows": [1, 2.5]}, happened_at_ms=5)

    assert forms.checked(made) == made
    assert made == c.AnnounceSignal("orders", "one", '{"day": 20260701, "town": "Köln"}', '{"rows": [1, 2.5]}', 5)


def test_a_signal_without_an_id_is_named_by_the_engine_as_one_in_json_is() -> None:
    made = signal("orders", {"b": 2, "a": 1}, payload={})

    assert forms.checked(made).signal_id == signal_id("orders", {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"name": ""}, "Expected a name of 1 to 256 characters, but found 0"),
        ({"id": "x" * 1_025}, "Expected an id of at most 1024 characters for 'orders', but found 1025"),
        ({"params": {"rate": 1.5}}, "Expected a string or an integer of 64 bits for 'rate' of 'orders', but found 1.5"),
        ({"params": {"new": True}}, "Expected a string or an integer of 64 bits for 'new' of 'orders', but found True"),
        ({"params": {"big": 2**63}}, "Expected a string or an integer of 64 bits for 'big' of 'orders'"),
        ({"params": {f"p{n}": n for n in range(129)}}, "Expected at most 128 parameters of 'orders', but found 129"),
        ({"params": {"long": "x" * 16_384}}, "Expected parameters of 'orders' of at most 16384 bytes"),
        ({"payload": {"not": object()}}, "Expected a payload of 'orders' that JSON can hold"),
        ({"payload": {"nan": float("nan")}}, "Expected a payload of 'orders' that JSON can hold"),
        ({"payload": {"long": "x" * 262_144}}, "Expected a payload of 'orders' of at most 262144 bytes"),
    ],
)
def test_what_is_no_signal_is_refused_with_a_reason(told: dict[str, Any], reason: str) -> None:
    said = {"name": "orders", "params": {}, "payload": {}, **told}

    with pytest.raises(BadSignal) as refused:
        signal(said.pop("name"), said.pop("params"), **said)

    assert reason in str(refused.value)


def test_records_are_read_by_fingerprint_and_by_the_ids_of_a_registry() -> None:
    with RegistryServer() as registry:
        number = registry.subjects.register("kapelle.public.signals.verdicts-value", VERDICT.SCHEMA)
        by_id = Codec(Catalog.of(c.SignalVerdict), Confluent({number: VERDICT.SCHEMA})).encode(VERDICT)
        codec = PublicCodec(registry.url)

        read = [codec.decode(by_id), codec.decode(by_id), codec.decode(codec.encode(VERDICT))]

    assert read == [VERDICT] * 3
    assert by_id[0] == 0


def test_an_id_without_a_registry_is_refused() -> None:
    by_id = Codec(Catalog.of(c.SignalVerdict), Confluent({7: VERDICT.SCHEMA})).encode(VERDICT)

    with pytest.raises(UnknownSchemaId):
        PublicCodec().decode(by_id)


def test_without_faust_it_is_said_what_to_install() -> None:
    with pytest.raises(FaustMissing, match=r"pip install 'kapelle\[faust\]'"):
        Kapelle(SimpleNamespace())


def test_a_consumer_that_cannot_be_told_to_read_committed_records_is_refused() -> None:
    with pytest.raises(FaustUnfit, match="would read uncommitted records"):
        read_committed(object())
