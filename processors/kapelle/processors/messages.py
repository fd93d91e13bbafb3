"""What a processor is handed: one message, with the key that it is partitioned by and an id that never changes."""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

V = TypeVar("V")


class Message(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """A record on its way through the fold.

    `id` is made from the coordinates of the record that began the cascade and a count, so the same input gives the
    same id on every attempt: whoever must recognise a repetition can do so by comparing ids.
    """

    key: str
    value: V
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


class TimerDue(msgspec.Struct, frozen=True, gc=False):
    """The value of the message that a processor gets when one of its timers has come due."""

    name: str
    due_at_ms: int
