"""The tables of the publishers: the number of each key's last record, and earlier fields that records repeat."""

import msgspec

from kapelle.processors.tables import Tables, table
from kapelle.schemas.contracts import ChildKind, InitiatorType, RunStrategyRule


class Number(msgspec.Struct, frozen=True, gc=False):
    """How many records a key has in a public topic."""

    last: int


class Numbered(Tables):
    """The tables of a publisher that needs no others."""

    numbers = table("numbers", key=tuple[str], row=Number)


class Live(msgspec.Struct, frozen=True, gc=False):
    """What is known of a run that has not ended."""

    run_id: int
    version: int
    initiator: InitiatorType
    author: str
    request_id: str
    correlation_id: str
    created_at_ms: int
    started_at_ms: int | None = None


class Above(msgspec.Struct, frozen=True, gc=False):
    """The step that has started an instance, and the top of the tree that both are in."""

    parent: str
    parent_run_id: int
    parent_step_id: str
    child_number: int
    child_kind: ChildKind
    root: str


class Instances(Numbered):
    """The runs that have not ended, and the parents of those that are children, by workflow and instance."""

    live = table("live", key=tuple[str, int], row=Live)
    parents = table("parents", key=tuple[str, int], row=Above)


class Current(msgspec.Struct, frozen=True, gc=False):
    """What a workflow is, and the number of its last change."""

    sequence: int = 0
    latest_version: int = 0
    active_version: int | None = None
    owner: str = ""
    run_strategy: RunStrategyRule = RunStrategyRule.SEQUENTIAL
    workflow_concurrency: int = 1
    step_concurrency: int | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    is_deleted: bool = False


class Workflows(Tables):
    """The workflows."""

    current = table("current", key=tuple[str], row=Current)
