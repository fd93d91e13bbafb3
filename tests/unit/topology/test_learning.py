"""Records of newer processes: their schemas are looked up when they are first met, and the records are folded."""

import json

from kapelle.schemas import Catalog, wire
from kapelle.schemas.schema_topic import SchemaRecord, to_records
from tests.proof.contracts import Tick
from tests.proof.processors import counting
from tests.unit.topology.world import World, tick


def newer(field: str) -> tuple[bytes, list[SchemaRecord]]:
    """A tick as a newer process writes it, with one more field, and the schema that it publishes first."""
    schema = json.loads(Tick.SCHEMA)
    schema["fields"].append({"name": field, "type": "string", "default": ""})
    catalog = Catalog()
    fingerprint = catalog.learn(json.dumps(schema))
    head = b"\xc3\x01" + fingerprint.to_bytes(8, "little")
    return tick(f"with {field}").to_avro(head) + wire.string("more"), [
        SchemaRecord(*one, "schemas-0 at 0") for one in to_records(catalog)
    ]


def counted(world: World) -> list[str]:
    return [event.id for _, event in world.events("counting")]


def test_a_schema_that_a_newer_process_has_published_is_looked_up_and_its_record_is_folded() -> None:
    data, schemas = newer("colour")
    world = World(counting)
    world.log.published_schemas = schemas
    world.publish("ticks", "a", tick("before"))
    world.publish("ticks", "a", data)
    world.publish("ticks", "a", tick("after"))

    world.run()

    assert counted(world) == ["before", "with colour", "after"]
    assert world.letters() == []


def test_a_schema_is_looked_up_once() -> None:
    data, schemas = newer("colour")
    world = World(counting)
    world.log.published_schemas = schemas
    for _ in range(5):
        world.publish("ticks", "a", data)

    world.run()

    assert (len(counted(world)), world.log.schemas_asked) == (5, 1)


def test_records_whose_schema_nobody_has_published_are_put_aside_without_a_look_for_each() -> None:
    world = World(counting)
    for _ in range(5):
        world.publish("ticks", "a", newer("colour")[0])

    world.run()

    assert [letter.error for letter in world.letters()] == ["UnknownFingerprint"] * 5
    assert world.log.schemas_asked == 1


def test_a_schema_that_comes_later_is_found_after_a_while() -> None:
    data, schemas = newer("colour")
    world = World(counting)
    world.publish("ticks", "a", data)
    world.run()
    world.log.published_schemas = schemas
    world.now_ms += 1_000
    world.publish("ticks", "a", data)

    world.run()

    assert (counted(world), len(world.letters())) == (["with colour"], 1)


def test_a_stray_record_does_not_keep_the_next_one_from_being_looked_up() -> None:
    data, schemas = newer("colour")
    world = World(counting)
    world.publish("ticks", "a", newer("size")[0])
    world.run()
    world.log.published_schemas = schemas
    world.publish("ticks", "a", data)

    world.run()

    assert (counted(world), [letter.offset for letter in world.letters()]) == (["with colour"], [0])


def test_what_is_no_schema_on_the_schema_topic_is_passed_over() -> None:
    data, schemas = newer("colour")
    world = World(counting)
    junk = [(b"\xff", b"\xff"), (b"key", b"{}"), (b"key", None), (b"key", b"[")]
    places = [SchemaRecord(*one, f"schemas-0 at {offset}") for offset, one in enumerate(junk)]
    world.log.published_schemas = [*places[:3], *schemas, places[3]]
    world.publish("ticks", "a", data)

    world.run()

    assert counted(world) == ["with colour"]
