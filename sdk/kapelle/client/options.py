"""What can be said of a start besides its parameters, and by what instances can be found."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict


class StartOptions(TypedDict, total=False):
    """The same `request_id` twice is the same start. `initiator` says who or what asks; others are kept as given."""

    request_id: str
    initiator: dict[str, Any]
    runtime_tags: Sequence[Any]
    artifacts: dict[str, Any]
    correlation_id: str
    persist_failed_run: bool


class InstanceFilters(TypedDict, total=False):
    """Which instances: those for which all of this holds."""

    status: str | Iterable[str]  # one of them
    tags: Iterable[str]  # all of them
    params: Mapping[str, str | int | bool | float]  # values of parameters
    initiator: str  # manual, signal, time, …
    since: int | str | datetime  # created then or later
    until: int | str | datetime  # created before
