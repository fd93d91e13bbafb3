"""The shapes of signals, of the triggers that want them, and of their outcomes."""

from enum import StrEnum

from msgspec import UNSET, Struct, UnsetType, field

from kapelle.api.answers.common import AtMs, Members, Value


class SignalStatus(StrEnum):
    """The outcome of an announcement."""

    ACCEPTED = "ACCEPTED"
    DUPLICATED = "DUPLICATED"
    TOO_LATE = "TOO_LATE"


class AnnouncedSignal(Struct, kw_only=True):
    """The outcome of an announcement. `duplicate_of` is the number of the first signal with the same id."""

    name: str
    signal_id: str
    sequence: int | None
    status: SignalStatus
    request_id: str
    duplicate_of: int | UnsetType = UNSET
    happened_time: AtMs | UnsetType = UNSET
    floor_time: AtMs | UnsetType = UNSET


class HookStatus(StrEnum):
    """The outcome of a delivery. FILTERED: the rule excludes it. CONFIRMED: a subscription was confirmed."""

    ANNOUNCED = "ANNOUNCED"
    FILTERED = "FILTERED"
    CONFIRMED = "CONFIRMED"


class Delivered(Struct, kw_only=True):
    """The outcome of a delivery, with the name and the id of the signal that was announced."""

    status: HookStatus
    name: str | UnsetType = UNSET
    id: str | UnsetType = UNSET


class SignalName(Struct, kw_only=True):
    """A name, with the number of its signals, and of the triggers and steps that wait for one."""

    name: str
    signals: int
    duplicates: int
    too_late: int
    triggers: int
    waiting_steps: int
    latest_time: AtMs | None


class Signal(Struct, kw_only=True):
    """A signal. `payload` is what is no parameter."""

    name: str
    sequence: int
    signal_id: str
    params: Members
    payload: Value
    source: Members
    happened_time: AtMs | None
    create_time: AtMs


class RefusedSignal(Struct, kw_only=True):
    """An announcement that was a duplicate or too late."""

    signal_id: str
    status: SignalStatus
    duplicate_of: int | UnsetType = UNSET
    happened_time: AtMs | UnsetType = UNSET
    floor_time: AtMs | UnsetType = UNSET
    source: Members
    create_time: AtMs


# Verdicts -------------------------------------------------------------------------------------------------------------


class SubscriberType(StrEnum):
    """The kinds of subscribers to signals."""

    TRIGGER = "TRIGGER"
    STEP = "STEP"


class VerdictType(StrEnum):
    """The outcome of a signal for one subscriber."""

    FIRED = "FIRED"
    KEPT = "KEPT"
    SKIPPED = "SKIPPED"
    PASSED_OVER = "PASSED_OVER"
    EXPIRED = "EXPIRED"
    DROPPED = "DROPPED"
    TAKEN = "TAKEN"
    OFFERED = "OFFERED"
    NOT_MATCHED = "NOT_MATCHED"
    NOT_ARMED = "NOT_ARMED"


class FiringStatus(StrEnum):
    """The outcome of the start that a trigger asked for."""

    CREATED = "CREATED"
    DUPLICATED = "DUPLICATED"
    REFUSED = "REFUSED"
    NOT_SEEN = "NOT_SEEN"


class Condition(Struct, kw_only=True):
    """A condition on a parameter of a signal."""

    param: str
    operator: str
    value: int | str


class Verdict(Struct, kw_only=True):
    """The outcome of a signal for a trigger or a step, and why."""

    type: SubscriberType
    workflow_id: str
    trigger_id: str | UnsetType = UNSET
    workflow_instance_id: int | UnsetType = UNSET
    step_id: str | UnsetType = UNSET
    dependency: int | UnsetType = UNSET
    verdict: VerdictType
    reason: str | UnsetType = UNSET
    time: AtMs | UnsetType = UNSET
    join_value: Value | UnsetType = UNSET
    partners: dict[str, int] | UnsetType = UNSET
    waiting_for: list[str] | UnsetType = UNSET
    expire_time: AtMs | UnsetType = UNSET
    request_id: str | UnsetType = UNSET
    start: FiringStatus | UnsetType = UNSET
    message: str | UnsetType = UNSET
    condition: Condition | UnsetType = UNSET


class Repetitions(Struct, kw_only=True):
    """How often the same signal was announced again, and the latest of these announcements."""

    count: int
    latest: list[RefusedSignal]


class ExplainedSignal(Signal, kw_only=True):
    """A signal with the verdict of each trigger and step. `is_cut`: there are more verdicts."""

    status: SignalStatus
    repetitions: Repetitions
    verdicts: list[Verdict]
    is_cut: bool


# Triggers -------------------------------------------------------------------------------------------------------------


class WantedSignal(Struct, kw_only=True):
    """What a trigger wants of the signals of a name."""

    match: list[str]
    join_keys: list[str]
    is_latest: bool


class KeptSignals(Struct, kw_only=True):
    """The signals of a name that a trigger has kept: the number of the next one, and how many there are."""

    next: int
    count: int


class WaitingJoin(Struct, kw_only=True):
    """The signals with a join value that wait, and the names that are missing."""

    join_value: Value
    there: dict[str, KeptSignals]
    waiting_for: list[str]


class TriggerDecision(Struct, kw_only=True):
    """The last time that a trigger fired, or did not although all signals were there."""

    time: AtMs
    signals: dict[str, int]
    request_id: str | UnsetType = UNSET
    workflow_instance_id: int | UnsetType = UNSET
    start: FiringStatus | UnsetType = UNSET
    message: str | UnsetType = UNSET
    reason: str | UnsetType | None = UNSET


class TriggerDecisions(Struct, kw_only=True):
    """The last decisions of a trigger. Null: there was none."""

    fired: TriggerDecision | None = field(name="FIRED")
    skipped: TriggerDecision | None = field(name="SKIPPED")


class Trigger(Struct, kw_only=True):
    """A signal trigger: its definition, and the signals that wait for others to join."""

    workflow_id: str
    trigger_id: str
    workflow_version_id: int
    is_armed: bool
    armed_time: AtMs | None
    disarmed_time: AtMs | None
    signals: dict[str, WantedSignal]
    condition: str | None
    dedup_expr: str | None
    kept: int
    waiting: list[WaitingJoin]
    latest: TriggerDecisions


class Triggers(Struct, kw_only=True):
    """The signal triggers of a workflow."""

    workflow_id: str
    triggers: list[Trigger]


class SeenSignal(Signal, kw_only=True):
    """The latest signal of a name, and its outcome."""

    verdict: Verdict


class ExplainedTrigger(Trigger, kw_only=True):
    """A trigger with the latest signal of each name, and what is missing, in sentences."""

    seen: dict[str, SeenSignal | None]
    missing: list[str]


class ExplainedTriggers(Struct, kw_only=True):
    """Why a workflow did not start: obstacles for all its triggers, and what each trigger lacks."""

    workflow_id: str
    active_version_id: int | None
    obstacles: list[str]
    triggers: list[ExplainedTrigger]
