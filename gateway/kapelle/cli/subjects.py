"""The subjects that `kapelle replay` can show, and their rows in the tables.

workflow etl            all that `workflows` knows of it
queue etl               the runs that wait
instance etl 12         its run, steps, waits and timers, and its place in the workflow
trigger etl on-orders   the trigger, and the signals that wait for their partners
signal orders           the name, its signals, and who wants to hear of them
table runs steps        a whole table of a processor, of all partitions
all                     every row (only to compare)
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from kapelle.cli.errors import BadParam, UnknownProcessor

if TYPE_CHECKING:
    from kapelle.topology.build import Topology
    from kapelle.topology.replay.lookup import Subject


class SubjectKind(StrEnum):
    """The kinds of things that can be shown."""

    WORKFLOW = "workflow"
    QUEUE = "queue"
    INSTANCE = "instance"
    TRIGGER = "trigger"
    SIGNAL = "signal"
    TABLE = "table"
    ALL = "all"


NAMES: Final = {
    SubjectKind.WORKFLOW: ("WORKFLOW",),
    SubjectKind.QUEUE: ("WORKFLOW",),
    SubjectKind.INSTANCE: ("WORKFLOW", "NUMBER"),
    SubjectKind.TRIGGER: ("WORKFLOW", "TRIGGER"),
    SubjectKind.SIGNAL: ("NAME",),
    SubjectKind.TABLE: ("PROCESSOR", "TABLE"),
    SubjectKind.ALL: (),
}
# Where an instance stands among the others of its workflow.
OF_WORKFLOW: Final = ("instances", "origins", "queue", "running", "failed")


def subjects(topology: "Topology", what: SubjectKind, names: Sequence[str]) -> "list[Subject]":
    """The rows that were asked for."""
    expected = NAMES[what]
    if len(names) != len(expected):
        words = " ".join([what.value, *expected])
        raise BadParam(f"Expected {words}, but found {' '.join([what.value, *names])}")
    named = _MADE[what](topology, names)
    unknown = sorted({subject.processor for subject in named} - set(topology.processors))
    if unknown:
        raise UnknownProcessor(unknown, list(topology.processors))
    return named


def _keyed(topology: "Topology", processor: str, key: str, tables: Sequence[str] = ()) -> "Subject":
    from kapelle.topology.build import partition_of  # noqa: PLC0415 - slow to import
    from kapelle.topology.replay.lookup import Subject  # noqa: PLC0415

    if processor not in topology.processors:
        raise UnknownProcessor([processor], list(topology.processors))
    return Subject(processor, partition_of(key, topology.processor_partitions(processor)), tables, (key,))


def _workflow(topology: "Topology", names: Sequence[str]) -> "list[Subject]":
    return [_keyed(topology, "workflows", names[0])]


def _queue(topology: "Topology", names: Sequence[str]) -> "list[Subject]":
    return [_keyed(topology, "workflows", names[0], ("queue",))]


def _instance(topology: "Topology", names: Sequence[str]) -> "list[Subject]":
    import msgspec  # noqa: PLC0415

    from kapelle.processors.wiring import run_key  # noqa: PLC0415 - slow to import

    workflow_id, number = names
    if not number.isdecimal():
        raise BadParam(f"Expected the number of an instance, but found {number!r}")
    place = _keyed(topology, "workflows", workflow_id, OF_WORKFLOW)
    return [
        msgspec.structs.replace(place, prefix=(workflow_id, int(number))),
        _keyed(topology, "runs", run_key(workflow_id, int(number))),
    ]


def _trigger(topology: "Topology", names: Sequence[str]) -> "list[Subject]":
    from kapelle.processors.wiring import trigger_key  # noqa: PLC0415 - slow to import

    return [_keyed(topology, "triggers", trigger_key(*names))]


def _signal(topology: "Topology", names: Sequence[str]) -> "list[Subject]":
    return [_keyed(topology, "signals", names[0])]


def _table(topology: "Topology", names: Sequence[str]) -> "list[Subject]":
    from kapelle.topology.replay.lookup import TIMERS, Subject  # noqa: PLC0415 - slow to import

    processor, table = names
    if processor not in topology.processors:
        raise UnknownProcessor([processor], list(topology.processors))
    known = [*(spec.name for spec in topology.processors[processor].tables.specs()), TIMERS]
    if table not in known:
        raise BadParam(f"Expected a table of {processor} among {', '.join(known)}, but found {table!r}")
    return [Subject(processor, None, (table,))]


def _all(topology: "Topology", _: Sequence[str]) -> "list[Subject]":
    from kapelle.topology.replay.lookup import Subject  # noqa: PLC0415 - slow to import

    return [Subject(processor) for processor in topology.processors]


_MADE: "Final[dict[SubjectKind, Callable[[Topology, Sequence[str]], list[Subject]]]]" = {
    SubjectKind.WORKFLOW: _workflow,
    SubjectKind.QUEUE: _queue,
    SubjectKind.INSTANCE: _instance,
    SubjectKind.TRIGGER: _trigger,
    SubjectKind.SIGNAL: _signal,
    SubjectKind.TABLE: _table,
    SubjectKind.ALL: _all,
}
