"""Changes without a new version: properties and tags. A change of the run strategy has a precondition."""

import msgspec
from msgspec.structs import replace

from kapelle.processors.decisions import Done
from kapelle.processors.definitions import (
    DefinitionRefused,
    Properties,
    PropertiesChange,
    Tag,
    TagNamespace,
    merged_properties,
    parse_tag,
)
from kapelle.processors.refusals import Refused, badly_defined, not_found
from kapelle.processors.workflows.arming import arm
from kapelle.processors.workflows.limits import step_concurrency_of, tell_limit
from kapelle.processors.workflows.processor import WorkflowDraft, on_draft
from kapelle.processors.workflows.queue import launch_queued
from kapelle.processors.workflows.reading import counts_of, properties_of, strategy_of, there, workflow_of
from kapelle.processors.workflows.strategies import refusal_of_switch
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Refusal


def change(
    draft: WorkflowDraft,
    command: c.PushVersion | c.ChangeProperties | c.TagWorkflow | c.UntagWorkflow,
    *,
    properties: Properties,
    changes: str,
    now_ms: int,
) -> None:
    """Make these the properties, unless the run strategy cannot be switched now."""
    before = strategy_of(draft.state, draft.key)
    counts = counts_of(draft.state, draft.key)
    if refusal := refusal_of_switch(before.rule, properties.run_strategy.rule, counts):
        raise Refused(Refusal.PRECONDITION_FAILED, refusal)
    limit = step_concurrency_of(draft.state, draft.key)
    draft.emit(
        c.PropertiesChanged(
            request_id=command.request_id,
            author=command.author,
            workflow_id=draft.key,
            properties=properties.json(),
            changes=changes,
            at_ms=now_ms,
        )
    )
    tell_limit(draft, command.author, before=limit)


def _current(draft: WorkflowDraft) -> Properties:
    workflow = workflow_of(draft.state, draft.key)
    return there(properties_of(draft.state, draft.key, workflow), "properties", draft.key, workflow.snapshot)


@on_draft.carries_out(c.ChangeProperties)
def change_properties(command: c.ChangeProperties, draft: WorkflowDraft, now_ms: int) -> Done:
    current = _current(draft)
    try:
        made = merged_properties(current, PropertiesChange.parse(command.changes), is_push=False)
    except DefinitionRefused as error:
        raise badly_defined("a change of properties", error) from None
    change(draft, command, properties=made, changes=command.changes, now_ms=now_ms)
    arm(draft, now_ms)
    launch_queued(draft, now_ms)
    return Done()


@on_draft.carries_out(c.TagWorkflow)
def tag_workflow(command: c.TagWorkflow, draft: WorkflowDraft, now_ms: int) -> Done:
    current = _current(draft)
    try:
        tag = parse_tag(command.tag)
    except DefinitionRefused as error:
        raise badly_defined("a tag", error) from None
    made = current.with_tag(_by_platform(tag, command.author, now_ms))
    change(draft, command, properties=made, changes=_tag_change("add", command.tag), now_ms=now_ms)
    return Done()


def _by_platform(tag: Tag, author: str, now_ms: int) -> Tag:
    attributes = {**tag.attributes, "creator": author, "created_at": now_ms}
    return replace(tag, namespace=TagNamespace.PLATFORM, attributes=attributes)


@on_draft.carries_out(c.UntagWorkflow)
def untag_workflow(command: c.UntagWorkflow, draft: WorkflowDraft, now_ms: int) -> Done:
    current = _current(draft)
    if command.tag_name not in {tag.name for tag in current.tags}:
        raise not_found(
            f"Expected workflow {draft.key!r} to have the tag {command.tag_name!r}, but it does not have it"
        )
    made = current.without_tag(command.tag_name)
    changes = _tag_change("remove", msgspec.json.encode(command.tag_name).decode())
    change(draft, command, properties=made, changes=changes, now_ms=now_ms)
    return Done()


def _tag_change(verb: str, tag: str) -> str:
    return f'{{"tag":{{"{verb}":{tag}}}}}'
