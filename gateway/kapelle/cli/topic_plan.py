"""What differs between the topics of a topology and those of the cluster, and the command that repairs it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kapelle.cli.errors import TopicsWrong
from kapelle.cli.options.target import Target
from kapelle.cli.reach import reaching
from kapelle.topology.errors import TopicsDiffer
from kapelle.topology.kafka.topics import MENDABLE, Change, Do, Topics

SHOWN_MAX: Final = 20
REPLICATION_DEFAULT: Final = -1  # the broker's own default


def planned(target: Target, replication: int = REPLICATION_DEFAULT) -> list[Change]:
    """What differs between the topology and the cluster."""
    topology, settings = target.topology(), target.kafka()
    with reaching(settings):
        return Topics(topology, settings, replication=replication).plan()


def wrong(changes: Sequence[Change], target: Target) -> TopicsWrong:
    """The error, with the command that repairs the topics if there is one."""
    lines = [f"  {_difference(change)}" for change in changes[:SHOWN_MAX]]
    if len(changes) > SHOWN_MAX:
        lines.append(f"  and {len(changes) - SHOWN_MAX} more, listed by `kapelle topics plan`")
    if mendable(changes):
        lines.append(f"To fix it: {target.command('topics', 'apply')}")
    there = sorted({change.found for change in changes if change.do is Do.MIGRATE})
    if there:
        lines.append(
            "The number of partitions cannot be changed: keys would move away from their tables. "
            f"Run with --partitions {' or '.join(there)}, or start under another --prefix"
        )
    return TopicsWrong("\n".join(["Expected the topics of this topology, but found:", *lines]))


def _difference(change: Change) -> str:
    """A difference in one short line; what to do about partitions is said once, at the end."""
    if change.do is Do.MIGRATE:
        return f"{change.topic}: has {change.found} partitions; needs {change.partitions}"
    return str(change)


def mendable(changes: Sequence[Change]) -> bool:
    return any(change.do in MENDABLE for change in changes)


@contextmanager
def mending(target: Target) -> Iterator[None]:
    """Add the command that repairs the topics to a refusal, with the options that were given."""
    try:
        yield
    except TopicsDiffer as error:
        raise wrong(planned(target), target) from error
