"""The tables of `permits`, by what is limited: the limit, its holders, and the queue of those that wait.

Every decision reads the row of the limit and the row of one attempt. The next attempt to admit is the first row of a
queue, so an admission costs the same among 100,000 that wait as among ten.
"""

from typing import Final

import msgspec

from kapelle.processors.tables import Tables, table
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality

# Earlier classes come first.
CLASSES: Final = (Criticality.CRITICAL, Criticality.HIGH, Criticality.MEDIUM, Criticality.LOW)
NONE_OF_EACH: Final = (0, 0, 0, 0)

ByClass = tuple[int, int, int, int]


class Limit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A limit, and how many attempts hold a permit or wait for one."""

    max: int | None = None  # no limit
    author: str = ""
    extra: str = "{}"
    snapshot: int = 0  # the number of the properties that the limit is from
    sequence: int = 0  # how often the limit was set or removed
    held: int = 0
    ticket: int = 0  # the last one that was given
    waiting: ByClass = NONE_OF_EACH
    turn: ByClass = NONE_OF_EACH  # the latest turn from which an attempt was admitted
    passed_over: ByClass = NONE_OF_EACH  # admissions of other classes in a row while this one waited
    is_admitting: bool = False  # a timer admits the next batch
    batch: int = 0  # the number of the last batch that a timer was set for


class Permit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An attempt that holds a permit or waits for one."""

    workflow_id: str
    criticality: Criticality
    is_held: bool
    turn: int = 0
    ticket: int = 0


class Waiting(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An attempt in its place in the queue."""

    holder: c.PermitHolder
    workflow_id: str
    criticality: Criticality


class Turn(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The last turn that a workflow has taken, and how many of its attempts wait."""

    turn: int
    waiting: int = 0


class Watcher(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A partition of `runs` that is told whether the tag is limited."""


class Answer(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """That a request was carried out."""


class PermitTables(Tables):
    """The tables of one partition."""

    limits = table("limits", key=tuple[str], row=Limit)
    # By instance, step, run, iteration and attempt.
    permits = table("permits", key=tuple[str, str, str, int, int, int], row=Permit)
    queue = table("queue", key=tuple[str, int, int, int], row=Waiting)  # by class, turn and ticket
    turns = table("turns", key=tuple[str, int, str], row=Turn)  # by class and workflow
    watchers = table("watchers", key=tuple[str, str], row=Watcher)  # by the key of an instance
    answers = table("answers", key=tuple[str, str], row=Answer)  # by request id


def holder_key(limited: str, holder: c.PermitHolder) -> tuple[str, str, str, int, int, int]:
    """The key of the row of an attempt."""
    return (limited, holder.key, holder.step_id, holder.run_id, holder.iteration, holder.attempt)


def class_of(criticality: Criticality) -> int:
    """The class of a criticality, from 0 for the first. One that this release does not know is MEDIUM."""
    return CLASSES.index(criticality if criticality in CLASSES else Criticality.MEDIUM)
