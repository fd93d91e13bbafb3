"""The tables of `triggers`: the triggers, and the signals that wait for their partners."""

import msgspec

from kapelle.processors.tables import Tables, table


class TriggerRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A trigger. Each time that it is armed it gets a new generation: what an earlier one had kept is not its own."""

    workflow_id: str
    trigger_id: str
    version: int
    definition: str
    generation: int
    is_armed: bool = True


class First(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Of the signals of one name that wait with one join value, the one whose turn is next."""

    sequence: int
    signal_id: str
    params: str
    expires_at_ms: int | None = None
    behind: int = 0  # how many wait behind it, in `kept`


class WaitingRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Which signals wait with one join value: the first of each name."""

    first: dict[str, First] = {}


class KeptRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A signal that waits behind another of its name."""

    signal_id: str
    params: str
    expires_at_ms: int | None = None


class Triggers(Tables):
    """The state of one partition of `triggers`."""

    triggers = table("triggers", key=tuple[str], row=TriggerRow)
    # by key, generation, join value: one look tells whether the partners of a signal are there
    waiting = table("waiting", key=tuple[str, int, str], row=WaitingRow)
    # by key, generation, join value, name, sequence: those behind the first of their name, in the order of their turns
    kept = table("kept", key=tuple[str, int, str, str, int], row=KeptRow)
