"""What stands on the topic of tasks and is no task of ours is passed over by a worker, with a line in the log."""

import logging

import pytest
from confluent_kafka import Message
from msgspec.structs import replace

from kapelle.schemas import Catalog, Codec
from kapelle.schemas.contracts import CancelTask, Criticality, ReportTask, Task
from kapelle.worker.kafka import KafkaTransport

CODEC = Codec(Catalog([Task, CancelTask, ReportTask]))
GOOD = Task("token", "etl", 1, 1, "load", 1, 1, "work", "{}", "key", Criticality.MEDIUM, 1_000, 4_000_000_000_000, 1)
BAD = [
    *(replace(GOOD, instance_id=number) for number in (0, -1, -(2**63))),
    *(replace(GOOD, workflow_id=name) for name in ("", "a/b")),
    *(replace(GOOD, deadline_at_ms=at_ms) for at_ms in (2**63 - 1, -(2**63))),
    replace(GOOD, step_id=""),
    replace(GOOD, lease_ms=0),
]


def record(value: bytes | None, headers: list[tuple[str, str | bytes | None]] | None = None) -> Message:
    return Message(topic="kapelle.tasks", partition=2, offset=7, key=b"k", value=value, headers=headers)


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\xff", b"{}", b"\xc3\x01", b"\xc3\x01" + b"?" * 20, *map(CODEC.encode, BAD)],
)
def test_a_record_that_is_no_task_is_passed_over(
    value: bytes | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    transport = KafkaTransport("127.0.0.1:1")
    monkeypatch.setattr(transport._clients, "schemas", lambda _: [])  # there is no broker to ask for schemas

    with caplog.at_level(logging.WARNING, "kapelle.worker.kafka"):
        assert transport._task(record(value)) is None

    assert "skipped kapelle.tasks-2@7: Expected" in caplog.text


@pytest.mark.parametrize("headers", [None, [], [("traceparent", b"\xff")], [("traceparent", b"x" * 9_000), ("", b"")]])
def test_a_task_is_taken_whatever_its_headers_are(headers: list[tuple[str, str | bytes | None]] | None) -> None:
    assert KafkaTransport("127.0.0.1:1")._task(record(CODEC.encode(GOOD), headers)) == GOOD
