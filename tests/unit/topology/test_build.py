"""Building a topology: what is refused, what follows from it, and where keys go."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from kapelle.processors.errors import BadDeclaration
from kapelle.processors.processor import Processor
from kapelle.processors.streams import Keep, Stream
from kapelle.processors.tables import Tables
from kapelle.schemas.contracts import DeadLetter
from kapelle.topology.build import DEAD_LETTERS, PARTITIONS_MAX, Topology, partition_of
from kapelle.topology.errors import BadTopology
from tests.proof.contracts import Counted, Hop, Hopped, Tick
from tests.proof.processors import counting, joining, stages, topology

ticks = Stream("ticks", (Tick,))
hops = Stream("hops", (Hop,))


def nothing(*_: Any) -> Any:
    """Decides and applies nothing."""
    return ()


def processor(
    name: str, inputs: Iterable[Stream] = (ticks,), events: Stream | None = None, outputs: Iterable[Stream] = ()
) -> Processor[Any]:
    """A processor with a handler for everything, which does nothing."""
    history = events or Stream(f"{name}.events", (Counted,), Keep.FOR_EVER)
    made: Processor[Any] = Processor(name, tables=Tables, inputs=inputs, events=history, outputs=outputs)
    for contract in {c for stream in made.inputs for c in stream.contracts}:
        made.decides(contract)(nothing)
    for contract in history.contracts:
        made.applies(contract)(nothing)
    return made


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "Upper", "under_score", "spa ce", ".dot", "-dash", "a/b", "é", "x" * 101, "a\n"])
def test_names_that_are_no_topics_everywhere_are_refused(name: str) -> None:
    named: list[Callable[[], Topology]] = [
        lambda: Topology([counting], prefix=name),
        lambda: Topology([processor(name, events=Stream("events", (Counted,), Keep.FOR_EVER))]),
        lambda: Topology([processor("p", inputs=[Stream(name, (Tick,))])]),
        lambda: Topology([processor("p", outputs=[Stream(name, (Hop,))])]),
    ]

    for make in named:
        with pytest.raises(BadTopology, match="Expected a name of lower-case letters, digits, dots and dashes"):
            make()


def test_the_longest_name_is_accepted() -> None:
    Topology([processor("p" * 100, events=Stream("e" * 100, (Counted,), Keep.FOR_EVER))], prefix="x" * 100)


def test_inputs_that_are_not_co_partitioned_are_refused_with_their_numbers() -> None:
    with pytest.raises(BadTopology, match=r"'p' to be co-partitioned, but ticks has 12, hops has 3, p.events has 12"):
        Topology([processor("p", inputs=[ticks, Stream("hops", (Hop,), partitions=3)])])


def test_events_that_are_not_co_partitioned_with_the_inputs_are_refused() -> None:
    events = Stream("p.events", (Counted,), Keep.FOR_EVER, partitions=1)

    with pytest.raises(BadTopology, match=r"ticks has 12, p.events has 1"):
        Topology([processor("p", events=events)])


def test_outputs_may_have_any_number_of_partitions() -> None:
    made = Topology([processor("p", outputs=[Stream("hops", (Hop,), partitions=3)])])

    assert made.partitions(made.streams["hops"]) == 3


@pytest.mark.parametrize("partitions", [0, -1, PARTITIONS_MAX + 1])
def test_numbers_of_partitions_that_cannot_be_are_refused(partitions: int) -> None:
    with pytest.raises(BadTopology, match=f"Expected 1 to {PARTITIONS_MAX} partitions"):
        Topology([processor("p")], partitions=partitions)


def test_an_output_without_partitions_is_refused() -> None:
    with pytest.raises(BadTopology, match="partitions for 'hops', found 0"):
        Topology([processor("p", outputs=[Stream("hops", (Hop,), partitions=0)])])


def test_a_second_writer_of_a_history_is_refused() -> None:
    history = Stream("p.events", (Counted,), Keep.FOR_EVER)

    with pytest.raises(BadTopology, match=r"the only writer of its history 'p.events', but q write to it too"):
        Topology([processor("p", events=history), processor("q", outputs=[history])])


def test_two_processors_with_one_history_are_refused() -> None:
    history = Stream("events", (Counted,), Keep.FOR_EVER)

    with pytest.raises(BadTopology, match="the only writer"):
        Topology([processor("p", events=history), processor("q", events=history)])


@pytest.mark.parametrize(
    "other",
    [
        Stream("ticks", (Hop,)),
        Stream("ticks", (Tick,), Keep.FOR_EVER),
        Stream("ticks", (Tick,), partitions=12),
        Stream("ticks", (Tick, Hop)),
    ],
)
def test_two_declarations_of_one_stream_that_differ_are_refused(other: Stream) -> None:
    with pytest.raises(BadTopology, match="one declaration of stream 'ticks', but found two that differ"):
        Topology([processor("p"), processor("q", inputs=[other])])


def test_equal_declarations_of_one_stream_are_one() -> None:
    made = Topology([processor("p"), processor("q", inputs=[Stream("ticks", (Tick,))])])

    assert made.readers["ticks"] == ("p", "q")


def test_a_processor_twice_is_refused() -> None:
    with pytest.raises(BadTopology, match="Expected each processor once, but found p, p"):
        Topology([processor("p"), processor("p", events=Stream("e", (Counted,), Keep.FOR_EVER))])


def test_an_input_twice_is_refused() -> None:
    with pytest.raises(BadTopology, match="'p' to read 'ticks' once"):
        Topology([processor("p", inputs=[ticks, ticks])])


@pytest.mark.parametrize("name", ["p.changelog", "schemas", "dead-letters"])
def test_a_stream_with_the_topic_of_something_else_is_refused(name: str) -> None:
    with pytest.raises(BadTopology, match=rf"'kapelle.{name}' to be one topic"):
        Topology([processor("p", outputs=[Stream(name, (Hop,))])])


def test_dead_letters_may_be_read_as_any_stream() -> None:
    events = Stream("p.events", (Counted,), Keep.FOR_EVER, partitions=1)

    made = Topology([processor("p", inputs=[DEAD_LETTERS], events=events)])

    assert [t.name for t in made.topics()].count("kapelle.dead-letters") == 1


def test_a_type_without_a_decide_is_refused() -> None:
    made: Processor[Any] = Processor("p", tables=Tables, inputs=[ticks], events=Stream("e", (Counted,), Keep.FOR_EVER))
    made.applies(Counted)(nothing)

    with pytest.raises(BadDeclaration, match=r"one @p.decides for each type of its streams, but Tick have none"):
        Topology([made])


def test_a_type_without_an_apply_is_refused() -> None:
    made = processor("p", events=Stream("e", (Counted, Hopped), Keep.FOR_EVER))
    del made.appliers[Hopped]

    with pytest.raises(BadDeclaration, match=r"one @p.applies for each type of its streams, but Hopped have none"):
        Topology([made])


def test_handlers_of_types_on_no_stream_are_refused() -> None:
    made = processor("p")
    made.decides(Hop)(nothing)

    with pytest.raises(BadDeclaration, match="no types have none and Hop are on no stream"):
        Topology([made])


def test_a_processor_without_inputs_is_refused() -> None:
    with pytest.raises(BadDeclaration, match="'p' to have an input stream, but it has none"):
        Topology([processor("p", inputs=[])])


# What follows from it -----------------------------------------------------------------------------------------------


def test_streams_between_processors_are_commands_of_their_one_reader() -> None:
    assert topology().commands() == {"stage-2": "stage-2", "stage-3": "stage-3", "stage-4": "stage-4"}


def test_a_stream_with_two_readers_is_no_command() -> None:
    made = Topology([processor("p", outputs=[hops]), processor("q", inputs=[hops]), processor("r", inputs=[hops])])

    assert made.commands() == {}


def test_a_stream_that_nobody_reads_is_no_command() -> None:
    assert Topology([processor("p", outputs=[hops])]).commands() == {}


def test_a_stream_that_only_others_write_is_no_command() -> None:
    assert Topology([processor("p")]).commands() == {}


@pytest.mark.parametrize("keep", [Keep.FOR_EVER, Keep.LATEST])
def test_a_stream_that_is_kept_for_others_is_no_command(keep: Keep) -> None:
    kept = Stream("hops", (Hop,), keep)

    assert Topology([processor("p", outputs=[kept]), processor("q", inputs=[kept])]).commands() == {}


def test_a_processor_may_send_commands_to_itself() -> None:
    assert Topology([processor("p", inputs=[hops], outputs=[hops])]).commands() == {"hops": "p"}


def test_topics_are_all_streams_then_changelogs_dead_letters_and_schemas() -> None:
    made = Topology([counting, joining], prefix="x", partitions=3)

    assert [(t.name, t.partitions, t.keep) for t in made.topics()] == [
        ("x.ticks", 3, Keep.A_WEEK),
        ("x.counting.events", 3, Keep.FOR_EVER),
        ("x.offers", 3, Keep.A_WEEK),
        ("x.joining.events", 3, Keep.FOR_EVER),
        ("x.pairs", 3, Keep.FOR_EVER),
        ("x.counting.changelog", 3, Keep.LATEST),
        ("x.joining.changelog", 3, Keep.LATEST),
        ("x.dead-letters", 1, Keep.FOR_EVER),
        ("x.schemas", 1, Keep.LATEST),
    ]


def test_the_catalog_holds_every_contract_of_the_streams_and_ours() -> None:
    catalog = Topology(stages).catalog()

    assert set(catalog) == {Hop, Hopped, DeadLetter}


def test_groups_and_changelogs_are_named_after_the_processor() -> None:
    made = Topology([counting], prefix="x")

    assert (made.group("counting"), made.changelog("counting")) == ("x.counting", "x.counting.changelog")


# Where keys go ------------------------------------------------------------------------------------------------------

# The vectors of Kafka's own UtilsTest.testMurmur2.
MURMUR2 = {
    "21": -973932308,
    "foobar": -790332482,
    "a-little-bit-long-string": -985981536,
    "a-little-bit-longer-string": -1486304829,
    "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    "abc": 479470107,
}


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 12, 100, PARTITIONS_MAX])
@pytest.mark.parametrize("key", MURMUR2)
def test_keys_go_where_java_puts_them(key: str, partitions: int) -> None:
    assert partition_of(key, partitions) == (MURMUR2[key] & 0x7FFFFFFF) % partitions


def test_keys_are_partitioned_by_their_utf_8_bytes() -> None:
    assert partition_of("größe", 10_000) == (murmur2("größe".encode()) & 0x7FFFFFFF) % 10_000


def murmur2(data: bytes) -> int:
    """Murmur2 as Kafka's Java client has it, to the letter."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = h * m & mask ^ k
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


@pytest.mark.parametrize("key", MURMUR2)
def test_our_reading_of_murmur2_agrees_with_its_vectors(key: str) -> None:
    assert murmur2(key.encode()) == MURMUR2[key]
