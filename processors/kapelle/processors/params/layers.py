"""The layers of parameters and the orders in which they are merged. This page is the whole of it.

A later layer is merged onto the earlier ones by the rules of `merge`. Where a layer's source is None it is that of the
start: LAUNCH by a person, or SIGNAL, TIME_TRIGGER, SUBWORKFLOW, FOREACH, WHILE; RESTART when an instance is restarted.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kapelle.processors.params.definitions import Definition, Definitions
from kapelle.processors.params.errors import MissingParam
from kapelle.processors.params.merge import Stage, merge
from kapelle.processors.params.types import InternalMode, Mode, ParamType, Source


class Layer(msgspec.Struct, frozen=True):
    """A named layer, and the stage at which it is merged."""

    name: str
    source: Source | None


SYSTEM_DEFAULTS: Final = Layer("system defaults", Source.SYSTEM_DEFAULT)
WORKFLOW_DEFINITION: Final = Layer("workflow definition", Source.DEFINITION)
PREVIOUS_RUN: Final = Layer("previous run", Source.SYSTEM)
RUN_PARAMS: Final = Layer("run params", None)
RESTART_PARAMS: Final = Layer("restart params", None)

RESERVED_GENERAL: Final = Layer("reserved general", Source.SYSTEM_DEFAULT)
TYPED_DEFAULTS: Final = Layer("typed defaults", Source.SYSTEM_DEFAULT)
INJECTED_BY_RUNTIME: Final = Layer("injected by the step runtime", Source.TEMPLATE_SCHEMA)
WORKFLOW_AND_STEP_INFO: Final = Layer("workflow and step info", Source.SYSTEM_INJECTED)
UNDEFINED_USER_PARAMS: Final = Layer("undefined user params", None)
STEP_DEFINITION: Final = Layer("step definition", Source.DEFINITION)
RUN_AND_RESTART_OVERRIDES: Final = Layer("run and restart overrides", None)

# What is given as              is merged as                  from first to last.
WORKFLOW_START: Final = (
    ("system defaults", SYSTEM_DEFAULTS),
    ("definition", WORKFLOW_DEFINITION),
    ("run params", RUN_PARAMS),
)
WORKFLOW_RESTART: Final = (
    ("previous run", PREVIOUS_RUN),
    ("run params", RUN_PARAMS),
    ("restart params", RESTART_PARAMS),
)
STEP: Final = (
    ("step defaults", RESERVED_GENERAL),
    ("type defaults", TYPED_DEFAULTS),
    ("injected", INJECTED_BY_RUNTIME),
    ("info", WORKFLOW_AND_STEP_INFO),
    ("undefined", UNDEFINED_USER_PARAMS),
    ("definition", STEP_DEFINITION),
    ("run params", RUN_AND_RESTART_OVERRIDES),
    ("restart params", RUN_AND_RESTART_OVERRIDES),
)
Order = tuple[tuple[str, Layer], ...]
UPSTREAM: Final = frozenset({Source.SUBWORKFLOW, Source.FOREACH, Source.WHILE, Source.TEMPLATE})


def merged(
    order: Order, given: Mapping[str, Definitions], *, started_by: Source = Source.LAUNCH, is_restart: bool = False
) -> dict[str, Definition]:
    """Merge what is given, layer by layer. The order of first appearance stays; it is the order of evaluation."""
    if unknown := given.keys() - {key for key, _ in order}:
        raise ValueError(f"Expected only {[key for key, _ in order]}, but found {sorted(unknown)}")
    started = Source.RESTART if is_restart and started_by not in UPSTREAM else started_by
    if order is STEP:
        given = {**given, "undefined": _undefined(given)}
    result: dict[str, Definition] = {}
    for key, layer in order:
        source = layer.source or started
        # The parent controls its children's workflows; at the level of steps only users speak.
        upstream = started_by in UPSTREAM and order is not STEP
        stage = Stage(layer.name, source, is_upstream=upstream, is_restart=is_restart)
        result = merge(result, given.get(key, {}), stage)
    return cleaned(result)


def _undefined(given: Mapping[str, Definitions]) -> dict[str, Definition]:
    """What the user gives at start or restart and the step's definition does not know."""
    offered = {**given.get("restart params", {}), **given.get("run params", {})}
    return {name: definition for name, definition in offered.items() if name not in given.get("definition", {})}


def injected(schema: Definitions, workflow_values: Mapping[str, Definition]) -> dict[str, Definition]:
    """The parameters of a step runtime's schema; a workflow parameter of the same name overrides the schema's value."""
    out: dict[str, Definition] = {}
    for name, wanted in schema.items():
        of_workflow = workflow_values.get(name)
        if of_workflow is None:
            out[name] = wanted
        else:
            stage = Stage(INJECTED_BY_RUNTIME.name, Source.WORKFLOW_PARAMETER)
            out[name] = merge({name: wanted}, {name: of_workflow}, stage)[name]
    return out


def cleaned(params: Definitions) -> dict[str, Definition]:
    """Drop what is optional and was never given; refuse what is required and was never given."""
    out: dict[str, Definition] = {}
    for name, given in params.items():
        is_map = given.type is ParamType.MAP and isinstance(given.value, dict)
        value = cleaned(given.value) if is_map else given.value
        if given.internal_mode is InternalMode.OPTIONAL and (given.is_empty or (is_map and not value)):
            continue
        if given.is_empty:
            raise MissingParam(name, given.type.value)
        mode = Mode.CONSTANT if given.internal_mode is InternalMode.RESERVED else given.mode
        out[name] = msgspec.structs.replace(given, value=value, mode=mode, internal_mode=None)
    return out
