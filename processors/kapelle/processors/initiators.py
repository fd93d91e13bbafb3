"""What started an instance, read from the JSON that the start brings and every run of the instance keeps.

The caller of a start writes this JSON, so a member can hold anything. A member that is not of its type counts as
absent: the others are read all the same.
"""

from functools import lru_cache
from typing import Final

import msgspec

TEXTS_CACHED: Final = 1_024
TEXT_CACHED_CHARS_MAX: Final = 4_096

# What a text that is no JSON, or JSON of another form, can raise in its decoder.
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeEncodeError, RecursionError)
OF_CHILDREN: Final = frozenset({"FOREACH", "WHILE", "SUBWORKFLOW"})
NO_MEMBERS: Final = msgspec.Raw(b"{}")


class Cause(msgspec.Struct, omit_defaults=True, frozen=True):
    """The trace that a run is in: one from outside, that of a signal, or that of the instance at the top of its tree.

    A run that somebody started without a trace says nothing: its trace is its own.
    """

    signal: str = ""
    number: int = 0
    traceparent: str = ""
    instance: str = ""


class Initiator(msgspec.Struct, frozen=True):
    """Who or what started an instance. `params` and `signals` are decoded when an expression asks for them."""

    type: str = ""  # as written: `kind` is the spelling that everybody is given
    timezone: str | None = None
    trigger_uuid: str = ""
    trigger_time: int | None = None  # the scheduled time of a tick or a slot, in milliseconds
    signal_id_map: dict[str, int] = {}
    last_signal: str = ""
    traceparent: str | None = None
    ancestors: list[dict[str, str | int | bool]] = []
    cause: Cause | None = None
    params: msgspec.Raw = NO_MEMBERS
    signals: msgspec.Raw = NO_MEMBERS

    @property
    def kind(self) -> str:
        """The type in capitals: MANUAL, TIME, SIGNAL, SUBWORKFLOW."""
        return self.type.upper()

    @property
    def root_cause(self) -> Cause | None:
        """The cause of the instance at the top of the tree. Only children have one: others may write what they like."""
        return self.cause if self.kind in OF_CHILDREN else None

    @property
    def signal(self) -> tuple[str, int] | None:
        """The name and number of the signal that a trigger fired with; of several, the one that came last."""
        signals = self.signal_id_map
        if not signals or not self.trigger_uuid or self.kind != "SIGNAL":
            return None
        # A trigger of one signal does not say which came last.
        last = self.last_signal if self.last_signal in signals else next(iter(signals))
        return last, signals[last]


NOBODY: Final = Initiator()

_whole: Final = msgspec.json.Decoder(Initiator).decode
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_types: Final = {field.name: field.type for field in msgspec.structs.fields(Initiator)}


def initiator_of(text: str) -> Initiator:
    """What an initiator says. A text that is no JSON object says nothing."""
    return _cached(text) if len(text) <= TEXT_CACHED_CHARS_MAX else _read(text)


def _read(text: str) -> Initiator:
    try:
        return _whole(text)
    except UNREADABLE:
        return _read_by_member(text)


def _read_by_member(text: str) -> Initiator:
    try:
        members = _members(text)
    except UNREADABLE:
        return NOBODY
    fields = {}
    for name in _types.keys() & members.keys():
        try:
            fields[name] = msgspec.json.decode(members[name], type=_types[name])
        except UNREADABLE:
            continue  # the caller of the start wrote it
    return Initiator(**fields)


_cached = lru_cache(maxsize=TEXTS_CACHED)(_read)
