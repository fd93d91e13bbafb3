"""The way in: the JSON of a push or of a stored workflow, and the models that it means."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from kapelle.processors.definitions.checks import check, check_kinds
from kapelle.processors.definitions.json_text import read_json, write_json
from kapelle.processors.definitions.models import RUNNABLE_KINDS, Workflow
from kapelle.processors.definitions.problems import Report
from kapelle.processors.definitions.properties import PropertiesChange
from kapelle.processors.definitions.reading import Reader

# A definition of the largest size takes some megabytes when parsed; most take a few kilobytes.
PARSED_KEPT: Final = 512


class Push(msgspec.Struct, frozen=True):
    """A request to add a version: all of it is right."""

    workflow: Workflow
    workflow_json: str
    properties: PropertiesChange | None = None
    is_active: bool = True
    metadata_json: str = "{}"


def parse_push(text: str | bytes, *, runnable: bool = False) -> Push:
    """The push that the text asks for. Refused with all its problems at once.

    `runnable`: kinds of steps that the engine does not run yet are problems too. So the engine asks, and so must
    whoever says beforehand whether it will take a push.
    """
    raw = read_json(text)
    report = Report()
    if not isinstance(raw, dict):
        report.add("the request", raw, "an object")
        report.refuse_if_any()
    reader = Reader(report)
    workflow = reader.workflow(raw.get("workflow"), "workflow")
    check(workflow, reader)
    if runnable:
        check_kinds(workflow.steps, RUNNABLE_KINDS, "workflow.steps", report)
    properties = raw.get("properties")
    change = (
        None if properties is None else PropertiesChange.read(properties, "properties", report=report, is_push=True)
    )
    is_active = raw.get("is_active")
    if not isinstance(is_active, bool | None):
        report.add("is_active", is_active, "true or false")
    report.refuse_if_any()
    metadata = {key: value for key, value in raw.items() if key not in ("workflow", "properties", "is_active")}
    return Push(workflow, write_json(raw["workflow"]), change, is_active is not False, write_json(metadata))


@lru_cache(PARSED_KEPT)
def parse_workflow(text: str | bytes) -> Workflow:
    """A stored workflow. It was checked when it was pushed, so only its form is looked at."""
    report = Report()
    workflow = Reader(report).workflow(read_json(text), "workflow")
    report.refuse_if_any()
    return workflow
