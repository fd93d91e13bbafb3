"""A record that nobody can read is listed by the view with its coordinates, and stops nothing."""

import json
from typing import Any

import pytest

from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import Catalog, wire
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, Report
from kapelle.schemas.schema_topic import SchemaRecord, to_records
from kapelle.testing.engine import Engine
from kapelle.topology.journal import EmbeddedJournal
from kapelle.topology.log import Place
from kapelle.views import Views
from kapelle.views.queries.instance_lists import counts
from kapelle.views.queries.unreadable import unreadable, unreadable_count

REFUSED = c.ReportRefused("load", "token", "w", Report.SUCCEEDED, "there is no such run", 1)
ENDED = c.RunEnded("etl", 1, 1, InstanceStatus.FAILED, InstanceStatus.FAILED, "", 2**62)
PUSHED = c.VersionPushed("r", "ann", "etl", 2, "no JSON", "{}", 1)


def put(engine: Engine, stream: Stream, key: bytes | None, value: Any) -> None:
    data = value if isinstance(value, bytes) else engine._codec.encode(value)
    engine.runtime.publish_at(Place(engine.topology.topic(stream), 0), (key, data, ()))
    engine.runtime.step_until_idle()


@pytest.mark.parametrize(
    ("stream", "key", "value", "reason"),
    [
        (RUN_EVENTS, b"v", REFUSED, "Expected a workflow id, a slash, and the number of an instance as the key"),
        (RUN_EVENTS, b"v/9223372036854775808", REFUSED, "as the key, but found 'v/9223372036854775808'"),
        (RUN_EVENTS, None, REFUSED, "as the key, but found ''"),
        (RUN_EVENTS, b"\xff/1", REFUSED, "Expected a UTF-8 key"),
        (RUN_EVENTS, b"etl/1", ENDED, "Expected at_ms of RunEnded within bounds"),
        (RUN_EVENTS, b"etl/2", ENDED, "Expected the key 'etl/1'"),
        (RUN_EVENTS, b"etl/1", PUSHED, "Expected an event of runs.events, but found VersionPushed"),
        (WORKFLOW_EVENTS, b"etl", PUSHED, "DecodeError"),
        (WORKFLOW_EVENTS, b"etl", b"\xff", "Expected a record that begins with"),
    ],
)
def test_a_record_that_cannot_be_read_is_listed_and_the_view_goes_on(
    stream: Stream, key: bytes | None, value: Any, reason: str
) -> None:
    engine = Engine()
    engine.push(
        {"properties": {"owner": "o"}, "workflow": {"id": "etl", "steps": [{"step": {"id": "a", "type": "x"}}]}}
    )
    engine.start("etl")
    offset = engine.runtime.end(stream, 0)
    put(engine, stream, key, value)

    views = Views(EmbeddedJournal(engine.runtime))
    views.folding.step()

    [found] = views.read(unreadable)
    assert (found.stream, found.partition, found.offset) == (stream.name, 0, offset)
    assert reason in found.reason
    assert views.read(unreadable_count) == 1
    assert views.read(counts)["IN_PROGRESS"] == 1
    assert views.lag() == 0
    views.close()


def test_junk_on_the_schema_topic_does_not_keep_a_view_from_the_event_of_a_newer_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    schema, catalog = json.loads(c.ReportRefused.SCHEMA), Catalog()
    schema["fields"].append({"name": "more", "type": "string", "default": ""})
    head = b"\xc3\x01" + catalog.learn(json.dumps(schema)).to_bytes(8, "little")
    junk = SchemaRecord(b"\xff", b"\xff", "kapelle.schemas-0 at 4")
    records = [junk, *(SchemaRecord(*one, "kapelle.schemas-0 at 5") for one in to_records(catalog)), junk]
    engine = Engine()
    monkeypatch.setattr(engine.runtime.log, "schemas", lambda: records)
    put(engine, RUN_EVENTS, b"etl/1", REFUSED.to_avro(head) + wire.string("more"))

    views = Views(EmbeddedJournal(engine.runtime))
    views.folding.step()

    assert views.read(unreadable_count) == 0
    assert views.lag() == 0
    views.close()
    told = [record.getMessage() for record in caplog.records if record.name == "kapelle.schemas"]
    assert [line.split(": ")[0] for line in told] == ["passed over kapelle.schemas-0 at 4"]
