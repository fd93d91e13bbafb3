"""Versions: pushing, activating and deactivating them, and deleting the workflow."""

import msgspec

from kapelle.processors.decisions import Done, unchanged
from kapelle.processors.definitions import DefinitionRefused, Push, merged_properties, parse_push
from kapelle.processors.refusals import Refused, badly_defined, invalid
from kapelle.processors.workflows.arming import arm
from kapelle.processors.workflows.limits import step_concurrency_of, tell_limit
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft
from kapelle.processors.workflows.properties import change
from kapelle.processors.workflows.queue import launch_queued
from kapelle.processors.workflows.reading import counts_of, properties_of, version_by, workflow_of
from kapelle.processors.workflows.tables import Workflow
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Refusal


@on_draft.carries_out(c.PushVersion)
def push_version(command: c.PushVersion, draft: WorkflowDraft, now_ms: int) -> Done:
    push = _parsed(command, draft.key)
    before = draft.state.workflows.get((draft.key,)) or Workflow()
    version = before.latest_version + 1
    draft.emit(
        c.VersionPushed(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            version=version,
            definition=push.workflow_json,
            metadata=push.metadata_json,
            at_ms=now_ms,
        )
    )
    _change_properties(command, draft, push, now_ms=now_ms)
    if push.is_active:
        _activate(command, draft, version, now_ms=now_ms)
    arm(draft, now_ms)
    launch_queued(draft, now_ms)
    return Done(version=version)


def _parsed(command: c.PushVersion, key: str) -> Push:
    try:
        push = parse_push(command.definition, runnable=True)
    except DefinitionRefused as error:
        raise badly_defined("a definition that can be run", error) from None
    if push.workflow.id != key:
        raise invalid(f"Expected the definition of workflow {key!r}, but found that of {push.workflow.id!r}")
    return push


def _change_properties(command: c.PushVersion, draft: WorkflowDraft, push: Push, *, now_ms: int) -> None:
    current = properties_of(draft.state, draft.key, workflow_of(draft.state, draft.key))
    if push.properties is None:
        if current is None:
            raise invalid("Expected properties.owner in the first push of a workflow, but found none")
        return
    try:
        made = merged_properties(current, push.properties, is_push=True)
    except DefinitionRefused as error:
        raise badly_defined("properties of a workflow", error) from None
    change(draft, command, properties=made, changes=_pushed_properties(command), now_ms=now_ms)


class _Request(msgspec.Struct):
    properties: msgspec.Raw


def _pushed_properties(command: c.PushVersion) -> str:
    """The properties as they were pushed."""
    return bytes(msgspec.json.decode(command.definition, type=_Request).properties).decode()


def _activate(command: c.PushVersion | c.ActivateVersion, draft: WorkflowDraft, version: int, *, now_ms: int) -> None:
    draft.emit(
        c.VersionActivated(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            version=version,
            previous_version=workflow_of(draft.state, draft.key).active_version,
            at_ms=now_ms,
        )
    )


@on_draft.carries_out(c.ActivateVersion)
def activate_version(command: c.ActivateVersion, draft: WorkflowDraft, now_ms: int) -> Done:
    workflow = workflow_of(draft.state, draft.key)
    version = version_by(command.version, workflow, draft.key)
    if version == workflow.active_version:
        return unchanged(f"Version {version} is active already", version=version)
    _activate(command, draft, version, now_ms=now_ms)
    arm(draft, now_ms)
    return Done(version=version)


@on_draft.carries_out(c.DeactivateWorkflow)
def deactivate_workflow(command: c.DeactivateWorkflow, draft: WorkflowDraft, now_ms: int) -> Done:
    workflow = workflow_of(draft.state, draft.key)
    if not workflow.active_version:
        return unchanged("No version is active")
    draft.emit(
        c.WorkflowDeactivated(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            previous_version=workflow.active_version,
            at_ms=now_ms,
        )
    )
    arm(draft, now_ms)
    return Done(version=workflow.active_version)


@on_draft.carries_out(c.DeleteWorkflow)
def delete_workflow(command: c.DeleteWorkflow, draft: WorkflowDraft, now_ms: int) -> Done:
    workflow = workflow_of(draft.state, draft.key)
    limit = step_concurrency_of(draft.state, draft.key)
    counts = counts_of(draft.state, draft.key)
    if counts.queued or counts.running:
        raise Refused(
            Refusal.CONFLICT,
            f"Workflow {draft.key!r} has {counts.queued} queued and {counts.running} running instances",
        )
    lanes = [backfill_id for (_, backfill_id), row in draft.state.backfills.prefix((draft.key,)) if row.running]
    if lanes:
        raise Refused(
            Refusal.CONFLICT, f"Workflow {draft.key!r} has running instances of backfills: {', '.join(lanes)}"
        )
    draft.emit(
        c.WorkflowDeleted(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            at_ms=now_ms,
            snapshot=workflow.snapshot + 1,
        )
    )
    tell_limit(draft, command.author, before=limit)
    arm(draft, now_ms)
    return Done()
