"""Records that a processor decides nothing on are passed over unread: by their type, or by their type and key."""

import pytest

from kapelle.processors.processor import Processor
from kapelle.schemas import Codec
from tests.proof.contracts import Tick
from tests.proof.processors import Counting
from tests.unit.topology.world import World, processor_of, tick


def reading(*keys: str) -> Processor[Counting]:
    """A processor that reads ticks with keys that begin like one of these."""
    processor = processor_of()
    processor.reads_only(Tick, keys)
    return processor


@pytest.mark.parametrize(
    ("keys", "read"), [((), []), (("a/",), ["a/1"]), (("a/", "c"), ["a/1", "c"]), (("",), ["a/1", "b/1", "c", "xa/1"])]
)
def test_records_are_read_if_their_keys_begin_with_one_of_the_texts(keys: tuple[str, ...], read: list[str]) -> None:
    world = World(reading(*keys))
    for key in ("a/1", "b/1", "c", "xa/1"):
        world.publish("ticks", key, tick(key))

    world.run()

    assert sorted(event.id for _, event in world.events("counting")) == read


def test_what_is_passed_over_is_not_decoded() -> None:
    world = World(reading("a/"))
    broken = Codec(world.topology.catalog()).encode(tick("1"))[:12]

    for key in ("a/1", "b/1"):
        world.publish("ticks", key, broken)
    world.run()

    assert [letter.key for letter in world.letters()] == [b"a/1"]
