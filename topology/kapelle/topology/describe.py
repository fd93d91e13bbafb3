"""A topology in words, as a graph and as data: pure functions, for people, documents and programs.

described = describe(topology)
as_text(described)         a page to read
as_mermaid(described)      a flowchart that GitHub and most documentation tools draw
as_data(described)         what JSON can hold
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from kapelle.processors.messages import TimerDue
from kapelle.processors.streams import Stream
from kapelle.processors.tables import Tables
from kapelle.topology.build import AnyProcessor, Topology
from kapelle.topology.tables.layout import layout

NONE = "none"
LABEL_CHARS = 12


class Role(StrEnum):
    """What a stream is to this topology."""

    INPUT = "input"  # written outside, read here
    HISTORY = "history"  # the events of one processor
    COMMANDS = "commands"  # from processor to processor: may be delivered within a cycle
    OUTPUT = "output"  # written here, read outside, or by several


class TableDescription(msgspec.Struct, frozen=True):
    """A table: the columns of its key, and its row with the types of its fields."""

    name: str
    key: tuple[str, ...]
    row: str
    fields: dict[str, str]
    version: int
    bucketed: bool


class ProcessorDescription(msgspec.Struct, frozen=True):
    """A processor, and what follows from it on Kafka."""

    name: str
    group: str
    partitions: int
    inputs: tuple[str, ...]
    events: str
    outputs: tuple[str, ...]
    tables: tuple[TableDescription, ...]
    timers: bool
    changelog: str


class StreamDescription(msgspec.Struct, frozen=True):
    """A stream, and who is at its ends within this topology."""

    name: str
    role: Role
    topic: str
    partitions: int
    keep: str
    contracts: tuple[str, ...]
    writers: tuple[str, ...]
    readers: tuple[str, ...]


class Description(msgspec.Struct, frozen=True):
    """A whole topology."""

    prefix: str
    partitions: int
    processors: tuple[ProcessorDescription, ...]
    streams: tuple[StreamDescription, ...]
    dead_letters: str
    schemas: str


def describe(topology: Topology) -> Description:
    """All that the topology says about itself."""
    return Description(
        prefix=topology.prefix,
        partitions=topology.partitions_default,
        processors=tuple(_processor(topology, p) for p in topology.processors.values()),
        streams=tuple(_stream(topology, s) for s in topology.streams.values()),
        dead_letters=topology.dead_letters,
        schemas=topology.schemas,
    )


def _processor(topology: Topology, processor: AnyProcessor) -> ProcessorDescription:
    return ProcessorDescription(
        name=processor.name,
        group=topology.group(processor.name),
        partitions=topology.processor_partitions(processor.name),
        inputs=tuple(s.name for s in processor.inputs),
        events=processor.events.name,
        outputs=tuple(s.name for s in processor.outputs),
        tables=tuple(_tables(processor.tables)),
        timers=TimerDue in processor.deciders,
        changelog=topology.changelog(processor.name),
    )


def _tables(tables: type[Tables]) -> Iterator[TableDescription]:
    for spec, laid_out in zip(tables.specs(), layout(tables), strict=True):
        yield TableDescription(
            name=spec.name,
            key=tuple(column.__name__ for column in laid_out.keys.columns),
            row=spec.row.__name__,
            fields={f.name: _type_name(f.type) for f in msgspec.structs.fields(spec.row)},
            version=spec.version,
            bucketed=spec.bucketed,
        )


def _type_name(kind: object) -> str:
    """A type as one would write it: `int`, `str | None`, `tuple[str, ...]`, a class by its own name."""
    return kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else str(kind)


def _stream(topology: Topology, stream: Stream) -> StreamDescription:
    return StreamDescription(
        name=stream.name,
        role=_role(topology, stream.name),
        topic=topology.topic(stream),
        partitions=topology.partitions(stream),
        keep=stream.keep.value,
        contracts=tuple(c.__name__ for c in stream.contracts),
        writers=topology.writers[stream.name],
        readers=topology.readers[stream.name],
    )


def _role(topology: Topology, name: str) -> Role:
    if any(p.events.name == name for p in topology.processors.values()):
        return Role.HISTORY  # even where another processor reads it: history is always written
    if name in topology.commands():
        return Role.COMMANDS
    return Role.OUTPUT if topology.writers[name] else Role.INPUT


# For people ---------------------------------------------------------------------------------------------------------


def as_text(described: Description) -> str:
    """A page: the processors, then the streams, then what every topology has."""
    counted = f"{_count(described.processors, 'processor')}, {_count(described.streams, 'stream')}"
    blocks = [
        [f"topology {described.prefix}: {counted}, {described.partitions} partitions unless a stream says otherwise"]
    ]
    blocks += [list(_processor_lines(p)) for p in described.processors]
    blocks += [list(_stream_lines(s)) for s in described.streams]
    blocks.append(["besides", _line("dead letters", [described.dead_letters]), _line("schemas", [described.schemas])])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _processor_lines(processor: ProcessorDescription) -> Iterator[str]:
    yield f"processor {processor.name}"
    yield _line("inputs", processor.inputs)
    yield _line("events", [processor.events])
    yield _line("outputs", processor.outputs)
    tables = [_table_text(t) for t in processor.tables] or [NONE]
    yield _line("tables", tables[:1])
    yield from (_line("", [table]) for table in tables[1:])
    yield _line("timers", ["yes" if processor.timers else "no"])
    yield _line("group", [processor.group])
    yield _line("changelog", [processor.changelog])
    yield _line("partitions", [str(processor.partitions)])


def _table_text(table: TableDescription) -> str:
    fields = ", ".join(f"{name}: {kind}" for name, kind in table.fields.items())
    bucketed = ", forgets by bucket" if table.bucketed else ""
    return f"{table.name} ({', '.join(table.key)}) → {table.row}({fields}), row version {table.version}{bucketed}"


def _stream_lines(stream: StreamDescription) -> Iterator[str]:
    yield f"stream {stream.name}"
    yield _line("role", [ROLES[stream.role].format(reader="".join(stream.readers[:1]))])
    yield _line("contracts", stream.contracts)
    yield _line("writers", stream.writers or ["outside"])
    yield _line("readers", stream.readers or ["outside"])
    yield _line("topic", [f"{stream.topic}, {_count(range(stream.partitions), 'partition')}"])
    yield _line("keep", [stream.keep])


ROLES = {
    Role.INPUT: "input from outside",
    Role.HISTORY: "history",
    Role.COMMANDS: "commands to {reader}, which may be delivered within a cycle",
    Role.OUTPUT: "output",
}


def _line(label: str, values: Iterable[str]) -> str:
    return f"  {label:{LABEL_CHARS}}  {', '.join(values) or NONE}"


def _count(items: Sequence[object], noun: str) -> str:
    return f"{len(items) or 'no'} {noun}{'' if len(items) == 1 else 's'}"


# For drawing --------------------------------------------------------------------------------------------------------

# How a stream looks, by its role. A dotted arrow is a message that may be delivered within the cycle that made it.
SHAPES = {
    Role.INPUT: '[/"{}"/]',
    Role.HISTORY: '[("{}")]',
    Role.COMMANDS: '(["{}"])',
    Role.OUTPUT: '[\\"{}"\\]',
}


def as_mermaid(described: Description) -> str:
    """A flowchart from left to right: processors are boxes with a double edge, streams are what lies between them."""
    lines = ["flowchart LR"]
    lines += [f'    {_id("processor", p.name)}[["{p.name}"]]' for p in described.processors]
    lines += [f"    {_id('stream', s.name)}{SHAPES[s.role].format(s.name)}" for s in described.streams]
    for stream in described.streams:
        arrow = "-.->" if stream.role is Role.COMMANDS else "-->"
        here = _id("stream", stream.name)
        lines += [f"    {_id('processor', writer)} {arrow} {here}" for writer in stream.writers]
        lines += [f"    {here} {arrow} {_id('processor', reader)}" for reader in stream.readers]
    return "\n".join(lines) + "\n"


def _id(kind: str, name: str) -> str:
    """A node's id. Mermaid would read some dashes as arrows; names have no underscores, so no two ids meet."""
    return f"{kind}.{name.replace('-', '_')}"


# For programs -------------------------------------------------------------------------------------------------------


def as_data(described: Description) -> dict[str, object]:
    """The same as plain dictionaries, lists, strings and numbers."""
    data: dict[str, object] = msgspec.json.decode(msgspec.json.encode(described))
    return data
