"""Workflow definitions: what people write, checked, as the engine sees it. See `docs/definitions.md`."""

from kapelle.processors.definitions.composites import (
    CONDITION,
    LOOP_INDEX,
    LOOP_PARAMS,
    LOOPS,
    SUBWORKFLOW_ID,
    SUBWORKFLOW_VERSION,
    blocks_of,
    combination,
    handed_down,
    iterations_of,
    loop_definitions,
)
from kapelle.processors.definitions.graph import Graph, Loop, graph_of
from kapelle.processors.definitions.models import (
    RUNNABLE_KINDS,
    Backoff,
    BackoffType,
    CatchUp,
    FailureMode,
    RetryPolicy,
    Rule,
    Step,
    StepKind,
    Tag,
    TagNamespace,
    TimeTrigger,
    TimeTriggerType,
    Workflow,
)
from kapelle.processors.definitions.parsing import Push, parse_push, parse_workflow
from kapelle.processors.definitions.pictures import picture_of
from kapelle.processors.definitions.problems import DefinitionRefused, Problem
from kapelle.processors.definitions.properties import (
    Properties,
    PropertiesChange,
    RunStrategy,
    merged_properties,
    parse_tag,
)
from kapelle.processors.definitions.time_triggers import fuzzy_max_delay_ms, schedule_from
from kapelle.processors.definitions.writing import workflow_json
from kapelle.processors.definitions.yaml_form import yaml_push

__all__ = [
    "CONDITION",
    "LOOPS",
    "LOOP_INDEX",
    "LOOP_PARAMS",
    "RUNNABLE_KINDS",
    "SUBWORKFLOW_ID",
    "SUBWORKFLOW_VERSION",
    "Backoff",
    "BackoffType",
    "CatchUp",
    "DefinitionRefused",
    "FailureMode",
    "Graph",
    "Loop",
    "Problem",
    "Properties",
    "PropertiesChange",
    "Push",
    "RetryPolicy",
    "Rule",
    "RunStrategy",
    "Step",
    "StepKind",
    "Tag",
    "TagNamespace",
    "TimeTrigger",
    "TimeTriggerType",
    "Workflow",
    "blocks_of",
    "combination",
    "fuzzy_max_delay_ms",
    "graph_of",
    "handed_down",
    "iterations_of",
    "loop_definitions",
    "merged_properties",
    "parse_push",
    "parse_tag",
    "parse_workflow",
    "picture_of",
    "schedule_from",
    "workflow_json",
    "yaml_push",
]
