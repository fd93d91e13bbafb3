"""The log for code outside the fold: publish commands, and follow the events that they cause.

    journal.publish(WORKFLOW_COMMANDS, "etl", command).result()     # a Position, once it is durable
    follower = journal.follow([WORKFLOW_EVENTS], {})                # from the beginning
    entries = follower.take(1_000, wait_s=0.5)

Laws, which one suite of tests holds for every journal:

1. A follower sees each committed record of a partition once, in its order, from the offset that it was given.
2. What it has seen, and more than that what it has passed by, stands in `positions`: starting there misses nothing.
3. A record that cannot be read is an entry without a value: it is passed by, and nothing after it is lost.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from enum import StrEnum
from typing import Protocol

import msgspec

from kapelle.processors.streams import Stream
from kapelle.schemas.contract import Contract
from kapelle.topology.embedded.inbox import Position

Point = tuple[str, int]  # the name of a stream, and a partition of it

__all__ = ["Entry", "Follower", "Journal", "Mode", "Point", "Position", "pending"]


class Mode(StrEnum):
    """Which kind of log there is."""

    EMBEDDED = "embedded"
    KAFKA = "kafka"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A record as it was read. `value` is None where it could not be, and `problem` says why."""

    stream: str
    partition: int
    offset: int
    key: str
    value: Contract | None
    at_ms: int
    problem: str = ""


class Follower(Protocol):
    """Reads on and on. It is for one thread, but `close` may come from another."""

    @property
    def positions(self) -> Mapping[Point, int]:
        """For each point the offset that comes next."""
        ...

    def take(self, records_max: int, wait_s: float) -> Sequence[Entry]:
        """What is there, up to the limit; waits only while there is nothing. It may be decoded as it is walked."""
        ...

    def close(self) -> None: ...


class Journal(Protocol):
    """A log from outside."""

    @property
    def mode(self) -> Mode: ...

    @property
    def identity(self) -> str:
        """What tells this log from another one, so that nobody reads on in the wrong one."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """Why nothing more will ever come of what is published; None while all is well."""
        ...

    def publish(self, stream: Stream, key: str, value: Contract, trace: str | None = None) -> "Future[Position]":
        """Publish a record. The future tells where it stands once it is durable, or fails with `JournalUnavailable`.

        `trace` is the trace context of whoever asks, as W3C writes it: all that comes of the record carries it on.
        """
        ...

    def follow(self, streams: Sequence[Stream], starts: Mapping[Point, int]) -> Follower:
        """Follow all partitions of some streams, from these offsets; from the beginning where none is given."""
        ...

    def ends(self, stream: Stream) -> dict[int, int]:
        """For each partition the offset after the last committed record."""
        ...

    def close(self) -> None: ...


def pending() -> "Future[Position]":
    """A future of a record that is on its way. It can no longer be called back, so whoever waits cannot cancel it."""
    answer: Future[Position] = Future()
    answer.set_running_or_notify_cancel()
    return answer
