"""Parameters: definitions, the layers that give them, their merging and their evaluation. See `docs/parameters.md`."""

from kapelle.processors.params.coercion import Coerced, coerced
from kapelle.processors.params.defaults import DRY_RUN_DEFAULTS, STEP_DEFAULTS, WORKFLOW_DEFAULTS
from kapelle.processors.params.definitions import (
    Definition,
    Definitions,
    definition_json,
    definition_of,
    definitions_of,
)
from kapelle.processors.params.durations import duration_ms, number_of
from kapelle.processors.params.errors import (
    BadDefinition,
    BadNumber,
    BudgetExceeded,
    CyclicReference,
    EvaluationFailed,
    MergeRefused,
    MissingParam,
    NotConvertible,
    ParamError,
    ParamsTooLarge,
    TextTooLong,
    UnknownReference,
    ValidatorFailed,
    failed_of,
)
from kapelle.processors.params.evaluation import Context, Evaluated, evaluate
from kapelle.processors.params.interpolation import interpolated, references
from kapelle.processors.params.language import SEL, SEL_LIMITS, new_budget
from kapelle.processors.params.layers import STEP, WORKFLOW_RESTART, WORKFLOW_START, Layer, injected, merged
from kapelle.processors.params.merge import Stage, merge
from kapelle.processors.params.names import RESERVED_NAMES, check_run_params
from kapelle.processors.params.outputs import Validating, taken_over, with_outputs
from kapelle.processors.params.scopes import StepScope, WorkflowScope
from kapelle.processors.params.type_defaults import TYPE_DEFAULTS
from kapelle.processors.params.types import InternalMode, Mode, ParamType, Source
from kapelle.processors.params.validators import check_validator

__all__ = [
    "DRY_RUN_DEFAULTS",
    "RESERVED_NAMES",
    "SEL",
    "SEL_LIMITS",
    "STEP",
    "STEP_DEFAULTS",
    "TYPE_DEFAULTS",
    "WORKFLOW_DEFAULTS",
    "WORKFLOW_RESTART",
    "WORKFLOW_START",
    "BadDefinition",
    "BadNumber",
    "BudgetExceeded",
    "Coerced",
    "Context",
    "CyclicReference",
    "Definition",
    "Definitions",
    "Evaluated",
    "EvaluationFailed",
    "InternalMode",
    "Layer",
    "MergeRefused",
    "MissingParam",
    "Mode",
    "NotConvertible",
    "ParamError",
    "ParamType",
    "ParamsTooLarge",
    "Source",
    "Stage",
    "StepScope",
    "TextTooLong",
    "UnknownReference",
    "Validating",
    "ValidatorFailed",
    "WorkflowScope",
    "check_run_params",
    "check_validator",
    "coerced",
    "definition_json",
    "definition_of",
    "definitions_of",
    "duration_ms",
    "evaluate",
    "failed_of",
    "injected",
    "interpolated",
    "merge",
    "merged",
    "new_budget",
    "number_of",
    "references",
    "taken_over",
    "with_outputs",
]
