"""The tables of `runs`: runs with their progress, steps, and what waits for what.

All keys begin with the key of the instance, `workflow/instance`. The rows of steps outlive a run: together they are the
instance as all its runs have left it, and a restart takes away those that run again.
"""

from typing import Final

import msgspec

from kapelle.processors.tables import Tables, table
from kapelle.schemas.contracts import (
    Action,
    Breakpoint,
    ChildKind,
    InstanceStatus,
    Parent,
    RestartPolicy,
    StepStatus,
)

BYPASSED: Final = 0  # the number of no signal: the step goes on without the one that it waited for


class DefinitionRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The definition of a workflow, by its digest: runs of the same version share it."""

    text: str


class RunRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The latest run of an instance."""

    workflow_id: str
    instance_id: int
    run_id: int
    request_id: str
    version: int
    digest: str
    status: InstanceStatus
    initiator: str
    params: str
    run_params: str
    step_run_params: str
    run_properties: str
    correlation_id: str
    restart: str | None
    started_at_ms: int
    timeout_at_ms: int
    baseline: InstanceStatus | None = None  # what the instance was before this run
    ended_at_ms: int | None = None
    author: str = ""  # of the start or restart that asked for the run
    parent: Parent | None = None  # the step that the instance is a child of
    layers: tuple[str, ...] = ()  # digests of shared parameters, which come before `params`
    resumes: tuple[str, ...] = ()  # composite steps that keep the children which have succeeded
    ends_as: InstanceStatus | None = None  # the run ends so when the children of its steps have ended
    ends_because: str = ""
    breakpoints: tuple[Breakpoint, ...] = ()  # those that are for this run
    breakpoints_generation: int = 0


class ProgressRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How far the latest run is: counts of its steps, so that no decision has to look at all of them."""

    sequence: int = 0  # attempts made
    active: int = 0
    failed: int = 0
    timed_out: int = 0
    stopped: int = 0


class StepRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The latest attempt of a step."""

    run_id: int
    attempt: int
    iteration: int
    sequence: int
    status: StepStatus
    created_at_ms: int
    changed_at_ms: int
    started_at_ms: int | None = None
    token: str | None = None
    worker: str | None = None
    timeout_at_ms: int | None = None
    due_at_ms: int | None = None
    lease_at_ms: int | None = None
    retries: dict[str, int] = {}
    successors: dict[str, bool] = {}
    repeats: dict[str, bool] = {}
    permits: tuple[str, ...] = ()  # what the attempt needs permits for, in the order in which it asks for them
    held: int = 0  # how many of them it has


class JoinRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a step that is not created yet knows of its predecessors."""

    arrived: int
    satisfied: bool


class LoopRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A loop of the workflow: which iteration it is in, what it waits for, and whether it is to be repeated."""

    iteration: int
    pending: int
    again: bool = False


class ParamsRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The evaluated parameters of a step, as JSON."""

    text: str


class WaitRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A signal that a step waits for, or has. A restart keeps what a step has, another iteration of a loop does not."""

    name: str
    match: str
    sequence: int | None = None
    signal_id: str = ""
    params: str = "{}"


class AnswerRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """That a request was carried out, and the run that it was about or has led to."""

    run_id: int
    is_restart: bool = False
    is_pending: bool = False  # `workflows` was asked for the run: it may refuse it, or its queue may


class EndingRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """How a composite step will end when its children have ended."""

    action: Action
    status: StepStatus
    reason: str
    is_alone: bool  # the step ends, not the whole run
    told: int  # the highest number of a child that was told to stop


class FanRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The children of a composite step, counted, so that no decision has to look at all of them."""

    run_id: int
    attempt: int
    iteration: int
    kind: ChildKind
    total: int
    window: int  # how many may run at the same time; 0 if there is no limit
    is_strict: bool
    fan_run: int  # how often the step has been run
    kept_since: int  # children that succeeded in this run of the step or a later one are kept
    counted_since: int  # children that failed in this run of the step or a later one count
    digest: str  # of the parameters of the step
    next: int = 1  # the first number that was not looked at yet
    oldest: int = 1  # kept for a strict order only: the lowest number that runs in its turn; `next` if none does
    running: int = 0
    failed: int = 0
    timed_out: int = 0
    stopped: int = 0
    is_sync: bool = True  # the step waits for the ends of its children
    values: str = "{}"  # of the latest round of a while step
    due_at_ms: int | None = None
    ending: EndingRow | None = None
    is_discarded: bool = False  # the step has begun again without these children, and has not planned others yet
    downstream_policy: RestartPolicy | None = None  # how children restart that run again but did not succeed


class ChildRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The latest run of a child."""

    run_id: int
    fan_run: int  # the run of the step that has started it
    status: InstanceStatus
    child: str = ""  # the key of a subworkflow; those of iterations and rounds follow from their number
    given: str = "{}"  # the loop values of a round
    values: str = "{}"  # what the child was asked for
    reason: str = ""
    launched: int = 1  # how often


class TagRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What this partition knows about the limit of a tag."""

    is_limited: bool  # also while it is not known
    sequence: int  # how often the limit was set or removed; 0 if this partition has asked and has no answer


class Runs(Tables):
    """The state of one partition of `runs`."""

    definitions = table("definitions", key=tuple[str], row=DefinitionRow)
    runs = table("runs", key=tuple[str], row=RunRow)
    progress = table("progress", key=tuple[str], row=ProgressRow)
    steps = table("steps", key=tuple[str, str], row=StepRow)
    joins = table("joins", key=tuple[str, str], row=JoinRow)
    loops = table("loops", key=tuple[str, str], row=LoopRow)
    waits = table("waits", key=tuple[str, str, int], row=WaitRow)  # by the place of the dependency
    inputs = table("inputs", key=tuple[str, str], row=ParamsRow)  # of attempts that are under way
    answers = table("answers", key=tuple[str, str], row=AnswerRow)  # by request id
    outputs = table("outputs", key=tuple[str, str], row=ParamsRow)  # of steps that were complete
    fans = table("fans", key=tuple[str, str], row=FanRow)  # by composite step
    children = table("children", key=tuple[str, str, int], row=ChildRow)  # by composite step and number
    shared = table("shared", key=tuple[str], row=ParamsRow)  # by digest: parameters that many instances share
    tags = table("tags", key=tuple[str], row=TagRow)  # by the key of the limit
