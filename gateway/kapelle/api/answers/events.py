"""The shapes of events."""

from msgspec import UNSET, Struct, UnsetType

from kapelle.api.answers.common import AtMs, Members


class Event(Struct, kw_only=True):
    """An event with its place in the log. `event` has the fields of its contract, which is named by `type`."""

    type: str
    time: AtMs
    stream: str
    partition: int
    offset: int
    key: str
    event: Members
    workflow_id: str | UnsetType = UNSET
    workflow_instance_id: int | UnsetType = UNSET


class History(Struct, kw_only=True):
    """The events of an instance, in the order of the log. `is_cut`: there are more."""

    workflow_id: str
    workflow_instance_id: int
    is_cut: bool
    elements: list[Event]
