"""The results of calls about signals and triggers. Times are milliseconds since 1970."""

import msgspec

from kapelle.client.results import Object


class Announced(msgspec.Struct, frozen=True):
    """The outcome of an announcement: ACCEPTED, DUPLICATED (with the first signal), or TOO_LATE."""

    name: str
    signal_id: str
    status: str
    request_id: str
    sequence: int | None = None
    duplicate_of: int | None = None
    happened_time: int | None = None
    floor_time: int | None = None


class SignalName(msgspec.Struct, frozen=True):
    """A signal name in a list."""

    name: str
    signals: int
    duplicates: int = 0
    too_late: int = 0
    triggers: int = 0
    waiting_steps: int = 0
    latest_time: int | None = None


class SignalRecord(msgspec.Struct, frozen=True):
    """A signal."""

    name: str
    sequence: int
    signal_id: str
    params: Object = {}
    payload: Object = {}
    source: Object = {}
    happened_time: int | None = None
    create_time: int | None = None


class RefusedSignal(msgspec.Struct, frozen=True):
    """A duplicate or late announcement."""

    signal_id: str
    status: str
    duplicate_of: int | None = None
    happened_time: int | None = None
    floor_time: int | None = None
    source: Object = {}
    create_time: int | None = None


class Repetitions(msgspec.Struct, frozen=True):
    """The duplicates of a signal: their number, and the latest."""

    count: int = 0
    latest: list[RefusedSignal] = []


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The verdict of a trigger or a step on a signal, with the reason. `type` is TRIGGER or STEP."""

    type: str
    workflow_id: str
    verdict: str
    reason: str | None = None
    trigger_id: str | None = None
    workflow_instance_id: int | None = None
    step_id: str | None = None
    dependency: int | None = None
    join_value: list[object] | None = None
    partners: dict[str, int] = {}
    waiting_for: list[str] = []
    request_id: str | None = None
    start: str | None = None
    message: str | None = None
    condition: Object | None = None
    time: int | None = None
    expire_time: int | None = None


class Explanation(SignalRecord, frozen=True, kw_only=True):
    """A signal with the verdict of each trigger and step that was subscribed when it arrived."""

    status: str
    verdicts: list[Verdict]
    repetitions: Repetitions = Repetitions()
    is_cut: bool = False


class LineageNode(msgspec.Struct, frozen=True, omit_defaults=True):
    """A signal or an instance. `distance` is negative for causes. `is_cut`: there are more edges."""

    id: str
    type: str
    distance: int = 0
    name: str | None = None
    sequence: int | None = None
    params: Object | None = None
    workflow_id: str | None = None
    workflow_instance_id: int | None = None
    status: str | None = None
    time: int | None = None
    is_cut: bool = False


class LineageEdge(msgspec.Struct, frozen=True, omit_defaults=True, rename={"source": "from", "target": "to"}):
    """STARTED, AWAITED, PUBLISHED or LAUNCHED, from one node to another."""

    source: str
    target: str
    type: str
    step_id: str | None = None
    trigger_id: str | None = None
    is_repetition: bool = False


class Lineage(msgspec.Struct, frozen=True):
    """The causes and effects of a signal or an instance."""

    root: str
    direction: str
    depth: int
    nodes: list[LineageNode]
    edges: list[LineageEdge]
    is_cut: bool = False


class TriggerList(msgspec.Struct, frozen=True):
    """The signal triggers of a workflow, with the signals that wait for others to join."""

    workflow_id: str
    triggers: list[Object]


class TriggerExplanation(TriggerList, frozen=True, kw_only=True):
    """Why a workflow did not start."""

    active_version_id: int | None = None
    obstacles: list[str] = []
