"""Messages, which processors decide on, and their ids.

| message | id |
|---|---|
| a record | `<topic>-<partition>-<offset>` |
| a timer | `<processor>-<partition>-timer-<due_at_ms>-<length of key>-<key>-<name>` |
| what a record caused | `<processor>/<id of the record>#<count>` |
| what a timer caused | `<id of the timer>#<count>` |

Ids are made and parsed in this module only.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Generic, TypeVar, final

import msgspec

V_co = TypeVar("V_co", covariant=True)

PARTITIONS_CACHED: Final = 4_096
TIMER: Final = "-timer-"
_TIMER: Final = re.compile(r"[^/]+-[0-9]+-timer-[0-9]+-[0-9]+-")


class Coordinates(msgspec.Struct, frozen=True, gc=False):
    """The position of a record in Kafka. No other record ever has the same."""

    topic: str
    partition: int
    offset: int

    @property
    def id(self) -> str:
        """The id of the message that the record is."""
        return f"{id_prefix(self.topic, self.partition)}{self.offset}"


def id_prefix(topic: str, partition: int) -> str:
    """The ids of all records of a partition: this prefix, then the offset."""
    return f"{topic}-{partition}-"


def timer_id(shard: str, key: str, name: str, due_at_ms: int) -> str:
    """The id of the message that a due timer is. The length separates key and name."""
    return f"{shard}{TIMER}{due_at_ms}-{len(key)}-{key}-{name}"


def coordinates_of(message_id: str) -> Coordinates | None:
    """The record that a message is, or that caused it. None if a timer caused it."""
    before, _, after = message_id.rpartition("-")
    partition = _topic_and_partition(before)
    if partition is None:
        return None
    offset = after if after.isdecimal() else after.partition("#")[0]
    return Coordinates(partition[0], partition[1], int(offset)) if offset.isdecimal() else None


@lru_cache(PARTITIONS_CACHED)
def _topic_and_partition(text: str) -> tuple[str, int] | None:
    """The topic and partition in an id, from the part before its last hyphen."""
    if _TIMER.match(text):
        return None
    topic, _, partition = text.rpartition("/")[2].rpartition("-")
    return (topic, int(partition)) if topic and partition.isdecimal() else None


class Message(msgspec.Struct, Generic[V_co], frozen=True, gc=False):
    """A record on its way through the fold.

    `id` is made from the coordinates of the record that began the cascade and a count, so the same input gives the
    same id on every attempt: whoever must recognise a repetition can do so by comparing ids.
    """

    key: str
    value: V_co
    id: str
    trace: str | None = None
    headers: Sequence[tuple[str, bytes]] = ()


class Foreign(msgspec.Struct, frozen=True, gc=False):
    """The value of a message from a stream that takes records of any form: one that is not ours, as it was read."""

    value: bytes | None
    key: bytes | None
    topic: str
    partition: int
    offset: int


@final
class TimerDue(msgspec.Struct, frozen=True, gc=False):
    """The value of the message that a processor gets when one of its timers has come due."""

    name: str
    due_at_ms: int
