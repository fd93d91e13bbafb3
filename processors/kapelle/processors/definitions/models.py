"""A workflow as the engine sees it: checked, immutable, and with every default filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from kapelle.processors.params import Definition
from kapelle.processors.signals.matching import Operator
from kapelle.schemas.contracts import Criticality

# A count or a duration as written: a number, or text that may refer to parameters of the workflow.
Parsable = int | str


class StepKind(StrEnum):
    """The key that a step is wrapped by."""

    STEP = "step"
    SUBWORKFLOW = "subworkflow"
    FOREACH = "foreach"
    WHILE = "while"
    TEMPLATE = "template"


# The kinds that the engine runs. A push of any other kind is refused, wherever in the workflow the step is.
RUNNABLE_KINDS: Final = frozenset({StepKind.STEP, StepKind.FOREACH, StepKind.WHILE, StepKind.SUBWORKFLOW})


class FailureMode(StrEnum):
    """What becomes of the other steps when one has failed for good."""

    FAIL_AFTER_RUNNING = "FAIL_AFTER_RUNNING"
    FAIL_IMMEDIATELY = "FAIL_IMMEDIATELY"
    IGNORE_FAILURE = "IGNORE_FAILURE"


class BackoffType(StrEnum):
    """How the delay grows from one retry to the next."""

    EXPONENTIAL_BACKOFF = "EXPONENTIAL_BACKOFF"
    FIXED_BACKOFF = "FIXED_BACKOFF"


class TagNamespace(StrEnum):
    """Who a tag comes from."""

    SYSTEM = "SYSTEM"
    RUNTIME = "RUNTIME"
    JOB_TEMPLATE = "JOB_TEMPLATE"
    NOTEBOOK_TEMPLATE = "NOTEBOOK_TEMPLATE"
    USER_DEFINED = "USER_DEFINED"
    PLATFORM = "PLATFORM"


class TimeTriggerType(StrEnum):
    """How the times of a time trigger are written."""

    CRON = "CRON"
    PREDEFINED = "PREDEFINED"
    INTERVAL = "INTERVAL"


class CatchUp(StrEnum):
    """Which of the times start the workflow that passed while nothing could start it."""

    ALL = "ALL"
    LATEST = "LATEST"
    NONE = "NONE"


class Rule(StrEnum):
    """What becomes of an instance while others run."""

    SEQUENTIAL = "SEQUENTIAL"
    STRICT_SEQUENTIAL = "STRICT_SEQUENTIAL"
    FIRST_ONLY = "FIRST_ONLY"
    LAST_ONLY = "LAST_ONLY"
    PARALLEL = "PARALLEL"
    SERIAL_LATEST_ONLY = "SERIAL_LATEST_ONLY"


# The cron texts that have names. Of several names the first is the one that is written.
PREDEFINED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@midnight": "0 0 * * *",
    "@annually": "0 0 1 1 *",
}


class Tag(msgspec.Struct, frozen=True):
    """A name that limits, alerts and people find things by."""

    name: str
    namespace: TagNamespace = TagNamespace.USER_DEFINED
    attributes: Mapping[str, Any] = {}

    def as_json(self) -> str | dict[str, object]:
        """The short form where nothing is lost by it."""
        if self == Tag(self.name):
            return self.name
        return {"name": self.name, "namespace": str(self.namespace), **self.attributes}


class Backoff(msgspec.Struct, frozen=True):
    """The delays before retries, for each kind of failure. Exponents and limits mean nothing to a fixed backoff."""

    type: BackoffType = BackoffType.EXPONENTIAL_BACKOFF
    error_retry_backoff_in_secs: Parsable = 60
    error_retry_exponent: Parsable = 2
    error_retry_limit_in_secs: Parsable = 600
    platform_retry_backoff_in_secs: Parsable = 60
    platform_retry_exponent: Parsable = 2
    platform_retry_limit_in_secs: Parsable = 3600
    timeout_retry_backoff_in_secs: Parsable = 60
    timeout_retry_exponent: Parsable = 2
    timeout_retry_limit_in_secs: Parsable = 3600


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often a step is tried again by the system."""

    error_retry_limit: Parsable = 2
    platform_retry_limit: Parsable = 10
    timeout_retry_limit: Parsable = 0
    backoff: Backoff = Backoff()


class MatchParam(msgspec.Struct, frozen=True):
    """What a parameter of a signal must be for a trigger to see it."""

    value: str | int | tuple[str | int, ...]
    operator: Operator = Operator.EQUAL


class SignalMatch(msgspec.Struct, frozen=True):
    """Which signals of one name a trigger takes, and by which of their parameters it joins them with others."""

    match_params: Mapping[str, MatchParam] = {}
    join_keys: tuple[str, ...] = ()
    is_latest: bool = False  # of those that wait the newest, rather than all in their order


class SignalTrigger(msgspec.Struct, frozen=True):
    """Signals that together start the workflow."""

    definitions: Mapping[str, SignalMatch]
    params: Mapping[str, Definition] = {}
    condition: str | None = None
    dedup_expr: str | None = None
    since_at_ms: int | None = None  # signals of the past that happened since then count too
    expiry: Parsable | None = None  # for how long a signal waits for its partners


class TimeTrigger(msgspec.Struct, frozen=True):
    """Times that start the workflow. `cron` is the text of five, six or seven fields also for a predefined one.

    What is written stays as it is; `time_triggers.schedule_from` gives the times.
    """

    type: TimeTriggerType
    cron: str = ""
    timezone: str = "UTC"
    fuzzy_max_delay: Parsable | None = None
    catch_up: CatchUp = CatchUp.LATEST
    interval: Parsable | None = None
    start: int | str | None = None  # no time before it: a time of the zone, or milliseconds since 1970
    anchor: int | str | None = None  # an interval has its times at whole intervals from it


class DependencyParam(msgspec.Struct, frozen=True):
    """What a parameter of a signal must be for a waiting step to go on."""

    param: Definition
    operator: Operator = Operator.EQUAL


class SignalDependency(msgspec.Struct, frozen=True):
    """A signal that a step waits for."""

    name: str
    match_params: Mapping[str, DependencyParam] = {}
    is_latest: bool = False  # of those that are there the newest, rather than any


class SignalOutput(msgspec.Struct, frozen=True):
    """A signal that a step announces when it has succeeded."""

    name: str
    params: Mapping[str, Definition] = {}
    payload: Mapping[str, Any] = {}


class Step(msgspec.Struct, frozen=True):
    """A node of the graph. What its kind does not have keeps its default."""

    kind: StepKind
    id: str
    type: str
    name: str = ""
    description: str = ""
    sub_type: str | None = None
    sub_type_version: str | None = None
    params: Mapping[str, Definition] = {}
    successors: Mapping[str, str] = {}
    failure_mode: FailureMode = FailureMode.FAIL_AFTER_RUNNING
    timeout: Parsable | None = None
    tags: tuple[Tag, ...] = ()
    retry_policy: RetryPolicy = RetryPolicy()
    idempotent: bool = True
    signal_dependencies: tuple[SignalDependency, ...] = ()
    signal_outputs: tuple[SignalOutput, ...] = ()
    steps: tuple[Step, ...] = ()
    condition: str | None = None
    concurrency: int | None = None
    strict_ordering: bool = False
    sync: bool = True
    explicit_params: bool = False


class Workflow(msgspec.Struct, frozen=True):
    """The definition of one version."""

    id: str
    name: str
    steps: tuple[Step, ...]
    description: str = ""
    tags: tuple[Tag, ...] = ()
    timeout: Parsable | None = None
    criticality: Criticality = Criticality.MEDIUM
    instance_step_concurrency: int | None = None
    params: Mapping[str, Definition] = {}
    time_triggers: tuple[TimeTrigger, ...] = ()
    signal_triggers: tuple[SignalTrigger, ...] = ()

    def all_steps(self) -> Iterator[Step]:
        """Its steps and those inside of its loops, at any depth."""
        pending = list(self.steps)
        while pending:
            step = pending.pop()
            yield step
            pending.extend(step.steps)

    @property
    def first_timezone(self) -> str:
        """The zone of the first time trigger, or nothing."""
        return self.time_triggers[0].timezone if self.time_triggers else ""
