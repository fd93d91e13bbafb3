"""What a decision may ask for. Effects are data: `decide` returns them, the runtime carries them out."""

from typing import final

import msgspec

from kapelle.processors.streams import Stream
from kapelle.schemas.contract import Contract


@final
class Emit(msgspec.Struct, frozen=True, gc=False):
    """An event: something that is now true. It goes to the processor's history and through `apply`, in that order."""

    value: Contract


@final
class Send(msgspec.Struct, frozen=True, gc=False):
    """A message to another key: a command to a processor, a task, a public event. The sender's tables do not see it."""

    stream: Stream
    key: str
    value: Contract


@final
class SetAside(msgspec.Struct, frozen=True, gc=False):
    """The message cannot be understood: it becomes a dead letter, with its coordinates and this reason."""

    reason: str


Effect = Emit | Send | SetAside
