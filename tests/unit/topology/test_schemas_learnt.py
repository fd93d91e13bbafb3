"""A schema that a member does not know: looked up where others publish theirs, and only then given up."""

import io
import json
from typing import Any

import fastavro

from kapelle.schemas import Catalog, Codec
from kapelle.schemas.schema_topic import to_records
from kapelle.testing.cluster import Cluster
from kapelle.testing.simulated_log import SimulatedLog
from kapelle.topology.build import partition_of
from kapelle.topology.log import Place
from kapelle.topology.member import Member
from kapelle.topology.tables import MemoryStore
from tests.proof.contracts import Counted, Tick
from tests.proof.processors import topology

COUNTING = topology("counting", partitions=1)


class Published(SimulatedLog):
    """A log on which somebody has published schemas."""

    records: list[tuple[bytes, bytes | None]]
    reads = 0

    def schemas(self) -> list[tuple[bytes, bytes | None]]:
        self.reads += 1
        return self.records


def newer_tick() -> tuple[str, bytes]:
    """Tick with one field more, and the bytes of such a record in single-object encoding."""
    schema: dict[str, Any] = json.loads(Tick.SCHEMA)
    schema["fields"].append({"name": "colour", "type": "string", "default": "grey"})
    catalog = Catalog()
    fingerprint = catalog.learn(json.dumps(schema))
    body = io.BytesIO()
    value = {"id": "tick-1", "word": "apple", "at_ms": 0, "weight": 1, "colour": "red"}
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), value)
    return json.dumps(schema), b"\xc3\x01" + fingerprint.to_bytes(8, "little") + body.getvalue()


def run(log: Published, records: list[bytes]) -> Member:
    place = Place("proof.ticks", partition_of("apple", 1))
    member = Member(COUNTING, log, MemoryStore(), clock=lambda: 1_000_000)
    member.join()
    log.cluster.share("counting", range(1), [log.name])
    for record in records:
        log.cluster.publish(place, b"apple", record)
    for _ in range(6):
        member.step()
    return member


def test_a_newer_schema_is_learnt_and_its_record_is_folded_in_its_turn() -> None:
    schema, record = newer_tick()
    learnt = Catalog()
    learnt.learn(schema)
    log = Published(Cluster(), COUNTING, "member")
    log.records = list(to_records(learnt))
    old = Codec(COUNTING.catalog()).encode(Tick("tick-0", "apple", 0, 1))

    member = run(log, [old, record, record])

    events = [
        Codec(COUNTING.catalog()).decode(e.value or b"")
        for _, e in log.cluster.committed_entries(Place("proof.counting.events", 0))
    ]
    assert events == [Counted("tick-0", "apple", 1), Counted("tick-1", "apple", 2), Counted("tick-1", "apple", 3)]
    assert member.counters.dead_letters == 0
    assert log.reads == 1


def test_a_schema_that_nobody_published_makes_a_dead_letter_and_is_not_looked_up_for_every_record() -> None:
    _, record = newer_tick()
    log = Published(Cluster(), COUNTING, "member")
    log.records = [(b"0" * 16, b"not a schema")]

    member = run(log, [record] * 3)

    assert member.counters.dead_letters == 3
    assert log.reads == 1
