"""What a step's output data does to its parameters, and what a restart takes over from the run before."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from kapelle.processors.params.definitions import Definition, Definitions
from kapelle.processors.params.errors import MergeRefused
from kapelle.processors.params.evaluation import Evaluated
from kapelle.processors.params.language import new_budget
from kapelle.processors.params.merge import Stage, merged_one
from kapelle.processors.params.names import RESERVED_NAMES
from kapelle.processors.params.types import Mode, ParamType, ParamValue, Source
from kapelle.processors.params.validators import Means, validate
from kapelle.processors.sel import BooleanArray, Budget, DoubleArray, LongArray, Sel, StringArray

OUTPUT_LAYER = "output data"
OUTPUT_STAGE = Stage(OUTPUT_LAYER, Source.OUTPUT_PARAMETER)


class Validating(msgspec.Struct, frozen=True):
    """What validators of output data are evaluated with."""

    sel: Sel
    budget: Budget = msgspec.field(default_factory=new_budget)


def with_outputs(
    params: Mapping[str, Evaluated], outputs: Definitions, *, means: Means, now_ms: int
) -> dict[str, Evaluated]:
    """The parameters after output data: each must exist and be MUTABLE; maps are merged, all else is replaced."""
    result = dict(params)
    for name, output in outputs.items():
        if name not in params:
            raise MergeRefused(name, OUTPUT_LAYER, "it is not defined in params")
        if output.value is None:
            raise MergeRefused(name, OUTPUT_LAYER, "outputs must be literal values, not expressions")
        before = literal(params[name])
        made = merged_one(name, before, output, OUTPUT_STAGE)
        if made is before:
            continue
        value = plain_value(made)
        validate(name, made, value, means)
        result[name] = Evaluated(name, made, value, now_ms)
    return result


def plain_value(definition: Definition) -> ParamValue:
    """The value of a literal as it is written: output data is not interpolated."""
    if definition.type is ParamType.MAP:
        return {name: plain_value(inner) for name, inner in definition.value.items()}
    return definition.value


def literal(param: Evaluated) -> Definition:
    """The evaluated parameter as a definition that has its value."""
    return _literal(param.definition, param.value, escape=False)


def taken_over(params: Mapping[str, Evaluated]) -> dict[str, Definition]:
    """What a restart begins with: values as they were, except that IMMUTABLE ones keep their definition."""
    return {
        name: param.definition
        if param.definition.mode is Mode.IMMUTABLE
        else _literal(param.definition, param.value, escape=True)
        for name, param in params.items()
        if name not in RESERVED_NAMES
    }


def frozen(value: ParamValue) -> Definition:
    """A definition that has this value, and keeps it when it is evaluated."""
    return _literal(Definition(type=type_of(value)), value, escape=True)


def as_declared(given: Definitions, declared: Definitions) -> dict[str, Definition]:
    """What a parent gives, with the types that its child declares: values alone do not tell a STRING_MAP from a MAP."""
    return {name: _as_declared(definition, declared.get(name)) for name, definition in given.items()}


def _as_declared(given: Definition, declared: Definition | None) -> Definition:
    if declared is None or given.type is not ParamType.MAP or not isinstance(given.value, dict):
        return given
    if declared.type is ParamType.MAP and isinstance(declared.value, dict):
        return msgspec.structs.replace(given, value=as_declared(given.value, declared.value))
    if declared.type is ParamType.STRING_MAP and all(item.type is ParamType.STRING for item in given.value.values()):
        texts = {key.replace("$", "$$"): item.value for key, item in given.value.items()}
        return msgspec.structs.replace(given, type=ParamType.STRING_MAP, value=texts)
    return given


def _literal(definition: Definition, value: ParamValue, *, escape: bool) -> Definition:
    if definition.type is ParamType.MAP:
        inner = definition.value if isinstance(definition.value, dict) else {}
        value = {
            key: _literal(inner.get(key) or Definition(type=type_of(item)), item, escape=escape)
            for key, item in value.items()
        }
    elif escape:
        value = _escaped(value)
    return msgspec.structs.replace(definition, value=value, expression=None)


def _escaped(value: ParamValue) -> ParamValue:
    """A literal is interpolated when it is evaluated again; doubled dollar signs keep it as it was."""
    if isinstance(value, str):
        return value.replace("$", "$$")
    if isinstance(value, StringArray):
        return StringArray(item.replace("$", "$$") for item in value)
    if isinstance(value, dict):
        return {key.replace("$", "$$"): item.replace("$", "$$") for key, item in value.items()}
    return value


TYPES: dict[type[Any], ParamType] = {
    str: ParamType.STRING,
    bool: ParamType.BOOLEAN,
    int: ParamType.LONG,
    float: ParamType.DOUBLE,
    Decimal: ParamType.DOUBLE,
    StringArray: ParamType.STRING_ARRAY,
    LongArray: ParamType.LONG_ARRAY,
    DoubleArray: ParamType.DOUBLE_ARRAY,
    BooleanArray: ParamType.BOOLEAN_ARRAY,
    dict: ParamType.MAP,
}


def type_of(value: ParamValue) -> ParamType:
    """The type of a value that came from an expression."""
    return TYPES[type(value)]
