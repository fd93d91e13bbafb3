"""Which triggers are armed: a pure function of the active version and the properties, independent of the past.

So activating, deactivating, reverting, disabling and deleting take effect at once, and doing one twice does nothing.
"""

from collections.abc import Mapping
from typing import Final

from kapelle.processors.definitions import parse_workflow
from kapelle.processors.definitions.models import MatchParam, SignalTrigger
from kapelle.processors.params import duration_ms
from kapelle.processors.signals.matching import Condition
from kapelle.processors.triggers.definition import SignalMatch, Trigger, written
from kapelle.processors.wiring import TRIGGER_INTERNAL, trigger_key
from kapelle.processors.workflows.processor import WorkflowDraft
from kapelle.processors.workflows.reading import definition_of, properties_of
from kapelle.processors.workflows.schedules import arm_schedules
from kapelle.processors.workflows.tables import Workflow
from kapelle.schemas import contracts as c

# A trigger waits before there is an instance, so no parameter can say for how long.
NO_PARAMS: Final[Mapping[str, object]] = {}


def arm(draft: WorkflowDraft, now_ms: int) -> None:
    """Bring the armed triggers in line with the workflow as it is now."""
    _arm_signals(draft, now_ms)
    arm_schedules(draft, now_ms)


def _arm_signals(draft: WorkflowDraft, now_ms: int) -> None:
    workflow = draft.state.workflows.get((draft.key,)) or Workflow()
    wanted = _wanted(draft, workflow)
    armed = {trigger_id: row for (_, trigger_id), row in draft.state.armed.prefix((draft.key,))}
    version = workflow.active_version
    new = [trigger_id for trigger_id in wanted if trigger_id not in armed or armed[trigger_id].version != version]
    gone = [trigger_id for trigger_id in armed if trigger_id not in wanted]
    if not new and not gone:
        return
    draft.emit(
        c.TriggersArmed(workflow_id=draft.key, version=version, armed=tuple(new), disarmed=tuple(gone), at_ms=now_ms)
    )
    for trigger_id in gone:
        removed = c.RemoveTrigger(draft.key, trigger_id, now_ms)
        draft.send(TRIGGER_INTERNAL, trigger_key(draft.key, trigger_id), removed)
    for trigger_id in new:
        armed_now = c.SetTrigger(
            workflow_id=draft.key,
            trigger_id=trigger_id,
            version=version,
            definition=wanted[trigger_id].json(),
            at_ms=now_ms,
        )
        draft.send(TRIGGER_INTERNAL, trigger_key(draft.key, trigger_id), armed_now)


def _wanted(draft: WorkflowDraft, workflow: Workflow) -> dict[str, Trigger]:
    properties = properties_of(draft.state, draft.key, workflow)
    if workflow.is_deleted or not workflow.active_version or (properties and properties.signal_trigger_disabled):
        return {}
    definition = parse_workflow(definition_of(draft.state, draft.key, workflow.active_version))
    triggers: dict[str, Trigger] = {}
    for trigger in map(trigger_as_run, definition.signal_triggers):
        triggers[trigger.id] = trigger
    return triggers


def trigger_as_run(trigger: SignalTrigger) -> Trigger:
    """A trigger of a definition, as the processor `triggers` takes it."""
    names = {
        name: SignalMatch(
            match=tuple(_condition(param, condition) for param, condition in match.match_params.items()),
            join_keys=match.join_keys,
            is_latest=match.is_latest,
        )
        for name, match in trigger.definitions.items()
    }
    return Trigger(
        names=names,
        params=written(trigger.params),
        condition=trigger.condition,
        dedup_expr=trigger.dedup_expr,
        since_at_ms=trigger.since_at_ms,
        expires_after_ms=None if trigger.expiry is None else duration_ms(trigger.expiry, NO_PARAMS.__getitem__),
    )


def _condition(param: str, match: MatchParam) -> Condition:
    value = match.value
    return Condition(param, match.operator, list(value) if isinstance(value, tuple) else value)
