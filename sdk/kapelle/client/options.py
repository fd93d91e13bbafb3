"""Options of starts and restarts, and filters of instances."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypedDict


class StartOptions(TypedDict, total=False):
    """Options of a start. Starts with the same `request_id` are one start. `initiator` is its cause."""

    request_id: str
    initiator: dict[str, object]
    runtime_tags: Sequence[object]
    artifacts: dict[str, object]
    correlation_id: str
    persist_failed_run: bool


class StepRestartOptions(TypedDict, total=False):
    """Options of the restart of a step."""

    policy: str | None
    from_inline_root: bool
    request_id: str | None


class ResumeOptions(TypedDict, total=False):
    """Options of the resumption of a paused step. It is resumed only if it has this run and this attempt."""

    run_id: int | None
    attempt: int | None
    reason: str
    request_id: str | None


class Precision(TypedDict, total=False):
    """What a breakpoint matches. What is not given matches everything."""

    version: int | None
    instance_id: int | None
    run_id: int | None
    attempt: int | None


class InstanceFilters(TypedDict, total=False):
    """Filters of instances. All of them must hold."""

    status: str | Iterable[str]  # one of them
    tags: Iterable[str]  # all of them
    params: Mapping[str, str | int | bool | float]  # values of parameters
    initiator: str  # manual, signal, time, …
    since: int | str | datetime  # created then or later
    until: int | str | datetime  # created before
    backfill_id: str  # started by this backfill
