"""A topology is told as a page, as a graph and as data; the proof's own stands as it was last looked at by a person."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.processors.tables import RowForm, Tables, table
from kapelle.topology.build import Topology
from kapelle.topology.describe import Description, Role, as_data, as_mermaid, as_text, describe
from kapelle.topology.page import topology as product
from tests.proof.contracts import Hop, Hopped
from tests.proof.processors import topology as proof

REPOSITORY = Path(__file__).parents[3]
GOLDENS = Path(__file__).parent / "described"
COMMAND = "kapelle topology --app tests.proof.processors:topology -o {} > {}"


def as_json(described: Description) -> str:
    return msgspec.json.format(msgspec.json.encode(as_data(described)), indent=2).decode() + "\n"


@pytest.mark.parametrize(
    ("form", "name", "told"),
    [("text", "proof.txt", as_text), ("mermaid", "proof.mmd", as_mermaid), ("json", "proof.json", as_json)],
)
def test_the_topology_of_the_proof_is_told_as_it_was(form: str, name: str, told: Callable[[Description], str]) -> None:
    found = told(describe(proof()))

    mend = COMMAND.format(form, (GOLDENS / name).relative_to(REPOSITORY))
    assert found == (GOLDENS / name).read_text(), f"Look at the difference; if it is meant: {mend}"


def test_an_empty_topology_is_told_in_every_form() -> None:
    described = describe(Topology([]))

    assert as_text(described) == (
        "topology kapelle: no processors, no streams, 12 partitions unless a stream says otherwise\n\n"
        "besides\n  dead letters  kapelle.dead-letters\n  schemas       kapelle.schemas\n"
    )
    assert as_mermaid(described) == "flowchart LR\n"
    assert as_data(described)["processors"] == []


def test_the_product_names_its_topology_on_one_page() -> None:
    assert (product().prefix, product().partitions_default) == ("kapelle", 12)
    assert product(prefix="staging", partitions=3).dead_letters == "staging.dead-letters"
    assert [topic.name for topic in product().topics()][-2:] == ["kapelle.dead-letters", "kapelle.schemas"]


# A topology with all that the proof's has not -------------------------------------------------------------------------


class Seen(msgspec.Struct, frozen=True):
    at_ms: int
    by: str | None = None
    names: tuple[str, ...] = ()


class Empty(Tables):
    pass


class Shelf(Tables):
    seen = table("seen", key=tuple[int, bytes], row=Seen, form=RowForm(version=1), bucketed=True)


def processor(name: str, *, tables: type[Tables], inputs: list[Stream], outputs: list[Stream]) -> Processor[Tables]:
    made = Processor(
        name,
        tables=tables,
        inputs=inputs,
        events=Stream(f"{name}.events", (Hopped,), Keep.FOR_EVER, inputs[0].partitions),
        outputs=outputs,
    )

    @made.decides(Hop)
    def decide(message: Message[Hop], state: Tables, now_ms: int) -> Iterator[Effect]:
        yield from ()

    @made.applies(Hopped)
    def apply(message: Message[Hopped], state: Tables) -> None:
        pass

    return made


ONE = Stream("one", (Hop,), partitions=1)
FAN = Stream("fan", (Hop,))
LAST = Stream("last.state", (Hop,), Keep.LATEST)


def shop() -> Topology:
    """One stream of a single partition, one read by two, one that is compacted, and a table that forgets by bucket."""
    return Topology(
        [
            processor("first", tables=Empty, inputs=[ONE], outputs=[FAN, LAST]),
            processor("left-hand", tables=Shelf, inputs=[FAN], outputs=[]),
            processor("right-hand", tables=Empty, inputs=[FAN], outputs=[]),
        ],
        prefix="shop",
        partitions=6,
    )


def test_streams_have_the_role_that_follows_from_who_reads_and_writes_them() -> None:
    roles = {stream.name: stream.role for stream in describe(shop()).streams}

    assert roles == {
        "one": Role.INPUT,
        "first.events": Role.HISTORY,
        "fan": Role.OUTPUT,  # two read it, so it always takes its topic
        "last.state": Role.OUTPUT,
        "left-hand.events": Role.HISTORY,
        "right-hand.events": Role.HISTORY,
    }


def test_only_commands_between_processors_may_be_delivered_within_a_cycle() -> None:
    described = describe(proof())

    assert {s.name for s in described.streams if s.role is Role.COMMANDS} == set(proof().commands())


def test_a_page_tells_partitions_readers_and_what_is_kept() -> None:
    page = as_text(describe(shop()))

    assert "stream one\n  role          input from outside\n" in page
    assert "  topic         shop.one, 1 partition\n" in page
    assert "  readers       left-hand, right-hand\n" in page
    assert "  keep          latest per key\n" in page
    assert "  tables        none\n" in page


def test_a_table_is_told_with_the_types_of_its_key_and_row() -> None:
    [told] = describe(shop()).processors[1].tables

    assert told.key == ("int", "bytes")
    assert told.fields == {"at_ms": "int", "by": "str | None", "names": "tuple[str, ...]"}
    assert (
        "seen (int, bytes) → Seen(at_ms: int, by: str | None, names: tuple[str, ...]), row version 1, forgets by bucket"
        in as_text(describe(shop()))
    )


def test_every_node_of_a_graph_that_an_arrow_names_is_drawn_once() -> None:
    for topology in (proof(), shop(), product()):
        lines = as_mermaid(describe(topology)).splitlines()[1:]
        drawn = [m.group(1) for line in lines if (m := re.match(r"    ([\w.]+)[\[(]", line))]
        arrows = [m.groups() for line in lines if (m := re.match(r"    ([\w.]+) -(?:-|\.-)> ([\w.]+)$", line))]

        assert len(drawn) == len(set(drawn))
        assert {node for arrow in arrows for node in arrow} <= set(drawn)
        assert len(drawn) + len(arrows) == len(lines)


def test_names_that_differ_only_in_dots_and_dashes_are_different_nodes() -> None:
    streams = [Stream("a.b", (Hop,)), Stream("a-b", (Hop,)), Stream("a--b", (Hop,))]

    graph = as_mermaid(describe(Topology([processor("p", tables=Empty, inputs=streams, outputs=[])])))

    assert graph.count('[/"') == 3
    assert len(set(re.findall(r"    (stream\.\S+?)\[/", graph))) == 3


def test_data_survives_json() -> None:
    for topology in (proof(), shop(), product()):
        data = as_data(describe(topology))

        assert json.loads(json.dumps(data)) == data
