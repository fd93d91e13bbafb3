"""What people write, key by key: one pydantic form for each kind of object.

A form checks keys and single values. What concerns several objects, such as references between steps, is checked when
all of them are there (`checks`). Null means the same as a key that is not there.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from kapelle.processors.definitions.fields import (
    AnyOne,
    Condition,
    FilledName,
    Flag,
    InTurn,
    Name,
    OptionalInstant,
    OptionalName,
    OptionalNumber,
    OptionalText,
    OptionalTypeName,
    SignalValue,
    Since,
    StepId,
    TagName,
    Text,
    TypeName,
    WorkflowId,
    WrittenNumber,
    boolean,
    integer,
    one_of,
    text,
    wrong,
)
from kapelle.processors.definitions.limits import (
    FOREACH_CONCURRENCY_MAX,
    INSTANCE_STEP_CONCURRENCY_MAX,
    NAME_CHARS_MAX,
    STEP_CONCURRENCY_MAX,
    WORKFLOW_CONCURRENCY_MAX,
)
from kapelle.processors.definitions.models import (
    BackoffType,
    CatchUp,
    FailureMode,
    Rule,
    StepKind,
    TagNamespace,
    TimeTriggerType,
)
from kapelle.processors.signals.matching import Operator
from kapelle.schemas.contracts import Criticality

Raw = dict[str, Any]


class Form(BaseModel):
    """An object whose keys are all known."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _tag(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


class TagForm(Form):
    """A tag; further keys are its attributes."""

    model_config = ConfigDict(extra="allow")

    name: TagName
    namespace: Annotated[TagNamespace, PlainValidator(one_of(TagNamespace))] = TagNamespace.USER_DEFINED


TagField = Annotated[TagForm, BeforeValidator(_tag)]


class TransitionForm(Form):
    """The steps that follow, with the conditions under which they do."""

    successors: dict[str, Condition] = {}
    predecessors: list[str] | None = None


class BackoffForm(Form):
    """The delays before retries, the same each time."""

    type: Annotated[BackoffType, PlainValidator(one_of(BackoffType))] = BackoffType.EXPONENTIAL_BACKOFF
    error_retry_backoff_in_secs: WrittenNumber = 60
    platform_retry_backoff_in_secs: WrittenNumber = 60
    timeout_retry_backoff_in_secs: WrittenNumber = 60


class ExponentialBackoffForm(BackoffForm):
    """The delays before retries, growing up to a limit."""

    error_retry_exponent: WrittenNumber = 2
    error_retry_limit_in_secs: WrittenNumber = 600
    platform_retry_exponent: WrittenNumber = 2
    platform_retry_limit_in_secs: WrittenNumber = 3600
    timeout_retry_exponent: WrittenNumber = 2
    timeout_retry_limit_in_secs: WrittenNumber = 3600


class RetryForm(Form):
    """How often a step is tried again."""

    error_retry_limit: WrittenNumber = 2
    platform_retry_limit: WrittenNumber = 10
    timeout_retry_limit: WrittenNumber = 0
    backoff: Raw = {}


OperatorField = Annotated[Operator, PlainValidator(one_of(Operator))]


class MatchForm(Form):
    """What a parameter of a signal must be, in a trigger."""

    value: SignalValue
    operator: OperatorField = Operator.EQUAL


class SignalMatchForm(Form):
    """The signals of one name, in a trigger."""

    match_params: dict[str, MatchForm] = {}
    join_keys: list[FilledName] = []
    match: InTurn = False


class SignalTriggerForm(Form):
    """Signals that together start the workflow."""

    definitions: dict[str, SignalMatchForm]
    params: Raw = {}
    condition: OptionalText = None
    dedup_expr: OptionalText = None
    since: Since = Field(default=None, alias="from")
    expiry: OptionalNumber = None


class TimeTriggerForm(Form):
    """Times that start the workflow."""

    type: Annotated[TimeTriggerType, PlainValidator(one_of(TimeTriggerType))]
    cron: OptionalName = None
    expression: OptionalName = None
    interval: OptionalNumber = None
    start: OptionalInstant = None
    anchor: OptionalInstant = None
    timezone: FilledName = "UTC"
    fuzzy_max_delay: OptionalNumber = None
    catch_up: Annotated[CatchUp, PlainValidator(one_of(CatchUp))] = CatchUp.LATEST


class DependencyMatchForm(Form):
    """What a parameter of a signal must be, in a dependency."""

    param: Raw
    operator: OperatorField = Operator.EQUAL


class DependencyForm(Form):
    """A signal that a step waits for."""

    name: FilledName
    match_params: dict[str, DependencyMatchForm] = {}
    match: AnyOne = False


class OutputForm(Form):
    """A signal that a step announces."""

    name: FilledName
    params: Raw = {}
    payload: Raw = {}


def _listed(value: object) -> object:
    """Signals of a step are a list, or an object that holds the list."""
    return value["definitions"] if isinstance(value, dict) and value.keys() == {"definitions"} else value


class StepForm(Form):
    """What steps of every kind have."""

    id: StepId
    name: Name = ""
    description: Text = ""
    transition: TransitionForm = TransitionForm()
    failure_mode: Annotated[FailureMode, PlainValidator(one_of(FailureMode))] = FailureMode.FAIL_AFTER_RUNNING
    tags: list[TagField] = []
    timeout: OptionalNumber = None
    signal_dependencies: Annotated[list[DependencyForm], BeforeValidator(_listed)] = []
    signal_outputs: Annotated[list[OutputForm], BeforeValidator(_listed)] = []
    params: Raw = {}


class TypedStepForm(StepForm):
    """A step that does something itself, or that a worker does."""

    type: TypeName
    sub_type: OptionalTypeName = None
    sub_type_version: OptionalName = None
    retry_policy: RetryForm = RetryForm()
    idempotent: Flag = True


class SubworkflowForm(StepForm):
    """A step that runs another workflow."""

    sync: Flag = True
    explicit_params: Flag = False


class ForeachForm(StepForm):
    """Steps that run once for each combination of values."""

    concurrency: Annotated[int | None, PlainValidator(integer(1, FOREACH_CONCURRENCY_MAX))] = None
    strict_ordering: Flag = False
    steps: list[Any]


class WhileForm(StepForm):
    """Steps that run as long as a condition holds."""

    condition: Condition
    steps: list[Any]


class TemplateForm(StepForm):
    """A step that a template expands to."""

    sub_type: TypeName
    sub_type_version: OptionalName = None


class WorkflowForm(Form):
    """A workflow. Its steps are read one by one, so that what is wrong with one does not hide the others."""

    id: WorkflowId
    name: OptionalName = None
    description: Text = ""
    tags: list[TagField] = []
    timeout: OptionalNumber = None
    time_triggers: list[TimeTriggerForm] = []
    signal_triggers: list[SignalTriggerForm] = []
    criticality: Annotated[Criticality, PlainValidator(one_of(Criticality))] = Criticality.MEDIUM
    instance_step_concurrency: Annotated[int | None, PlainValidator(integer(1, INSTANCE_STEP_CONCURRENCY_MAX))] = None
    params: Raw = {}
    steps: list[Any]


class StrategyForm(Form):
    """A run strategy as an object."""

    rule: Annotated[Rule | None, PlainValidator(one_of(Rule))] = None
    workflow_concurrency: Annotated[int | None, PlainValidator(integer(1, WORKFLOW_CONCURRENCY_MAX))] = None


def _owner(value: object) -> Raw:
    expected = "a name, or an object with a name"
    owner = {"name": value} if isinstance(value, str) else value
    if not isinstance(owner, dict) or not isinstance(owner.get("name"), str):
        raise wrong(expected)
    text(NAME_CHARS_MAX, expected=expected, chars_min=1)(owner["name"])
    return owner


class PropertiesForm(Form):
    """The properties of a push."""

    owner: Annotated[Raw | None, PlainValidator(_owner)] = None
    access_control: Raw = {}
    run_strategy: Any = None
    step_concurrency: Annotated[int | None, PlainValidator(integer(1, STEP_CONCURRENCY_MAX))] = None
    alerting: Raw = {}
    alerting_disabled: Annotated[bool | None, PlainValidator(boolean)] = None
    signal_trigger_disabled: Annotated[bool | None, PlainValidator(boolean)] = None
    time_trigger_disabled: Annotated[bool | None, PlainValidator(boolean)] = None
    description: OptionalText = None
    tags: list[TagField] = []


class UpdateForm(PropertiesForm):
    """The properties of an update, and what it sets back."""

    reset_run_strategy_rule: Flag = False
    reset_workflow_concurrency: Flag = False
    reset_step_concurrency: Flag = False


STEP_FORMS: Final[dict[StepKind, type[StepForm]]] = {
    StepKind.STEP: TypedStepForm,
    StepKind.SUBWORKFLOW: SubworkflowForm,
    StepKind.FOREACH: ForeachForm,
    StepKind.WHILE: WhileForm,
    StepKind.TEMPLATE: TemplateForm,
}
