"""Workflow definitions: what people write, checked, as the engine sees it. See `docs/definitions.md`."""

from kapelle.processors.definitions.graph import Graph, Loop, graph_of
from kapelle.processors.definitions.models import (
    Backoff,
    BackoffType,
    FailureMode,
    RetryPolicy,
    Rule,
    Step,
    StepKind,
    Tag,
    TagNamespace,
    Workflow,
)
from kapelle.processors.definitions.parsing import Push, parse_push, parse_workflow
from kapelle.processors.definitions.problems import DefinitionRefused, Problem
from kapelle.processors.definitions.properties import (
    Properties,
    PropertiesChange,
    RunStrategy,
    merged_properties,
    parse_tag,
)
from kapelle.processors.definitions.writing import workflow_json
from kapelle.processors.definitions.yaml_form import yaml_push

__all__ = [
    "Backoff",
    "BackoffType",
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
    "Workflow",
    "graph_of",
    "merged_properties",
    "parse_push",
    "parse_tag",
    "parse_workflow",
    "workflow_json",
    "yaml_push",
]
