"""The tables of `signals`: signals, subscriptions, and the ids by which duplicates are recognized.

All keys but those of `seen` begin with the name of the signal. `seen` forgets by generations (windows.py).
"""

import msgspec

from kapelle.processors.tables import Tables, table

Ranges = tuple[tuple[int, int], ...]  # of times, in milliseconds: first and last, in order


class NameRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A name: how many signals it has had, and which times they gave, by when they were accepted.

    `times` are those of signals of the generation, `before` those of the generation before it; they are known by their
    ids. `forgotten` are those of all others.
    """

    sequence: int = 0
    generation: int = 0
    times: Ranges = ()
    before: Ranges = ()
    forgotten: Ranges = ()


class UsedRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Which parameters, and which kinds of comparison of each, the subscriptions to a name use, and how many do."""

    kinds: dict[str, dict[str, int]] = {}


class SignalRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An accepted signal."""

    signal_id: str
    params: str
    happened_at_ms: int


class SeenRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The signal that an id stands for."""

    sequence: int


class SubscriptionRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Who wants to hear of which signals, and from which on: a trigger, or an attempt of a step."""

    match: str
    access: list[str]
    since: int  # signals after this one
    workflow_id: str
    trigger_id: str = ""
    instance_id: int = 0
    run_id: int = 0
    step_id: str = ""
    attempt: int = 0
    iteration: int = 0
    index: int = 0
    generation: int = 0  # of the trigger: which arming of it asked


class Entered(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """That a subscription is at this place of the index."""


class Crowd(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How many subscriptions are at one place of the index; if they are few, which: one look instead of a scan."""

    count: int = 0
    few: list[str] = []  # in order; empty if they are many


class ClockRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Time as the signals tell it: the latest at which something happened, over all names of the partition.

    Ids are kept by the generation in which their signals were accepted; this one began with a signal of `began_ms`.
    """

    at_ms: int
    generation: int
    began_ms: int


class Signals(Tables):
    """The state of one partition of `signals`."""

    names = table("names", key=tuple[str], row=NameRow)
    used = table("used", key=tuple[str], row=UsedRow)
    signals = table("signals", key=tuple[str, int], row=SignalRow)
    by_param = table("by_param", key=tuple[str, str, str, int], row=Entered)  # name, parameter, value, sequence
    seen = table("seen", key=tuple[int, str, str], row=SeenRow, bucketed=True)  # generation, name, id
    subscriptions = table("subscriptions", key=tuple[str, str], row=SubscriptionRow)
    index = table(
        "index", key=tuple[str, str, str, str, str], row=Entered
    )  # name, parameter, kind, value, subscription
    crowds = table("crowds", key=tuple[str, str, str, str], row=Crowd)
    clock = table("clock", key=tuple[str], row=ClockRow)
