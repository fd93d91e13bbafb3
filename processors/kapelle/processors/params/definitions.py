"""Parameter definitions: the ten types, who may change a parameter, where it came from, and its JSON form.

    {"type": "LONG", "value": 3, "mode": "MUTABLE_ON_START", "validator": "value > 0", "tags": ["x"], "unit": "rows"}

Exactly one of `value` and `expression` is given. Keys beyond the known ones are kept as `meta`. `source` and
`internal_mode` belong to the system: a user who writes them is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kapelle.processors.params.coercion import coerced
from kapelle.processors.params.errors import BadDefinition, NotConvertible
from kapelle.processors.params.nesting import NESTED_JSON_MAX, is_deep
from kapelle.processors.params.types import InternalMode, Mode, ParamType, ParamValue, Source

NESTING_MAX: Final = 16


class Definition(msgspec.Struct, frozen=True):
    """One parameter as a layer gives it, or as the layers together give it. Equality leaves out where it came from."""

    type: ParamType
    value: ParamValue = None
    expression: str | None = None
    mode: Mode | None = None
    validator: str | None = None
    tags: tuple[Mapping[str, Any], ...] = ()
    meta: Mapping[str, Any] = {}
    internal_mode: InternalMode | None = None
    source: Source | None = None
    layer: str = ""

    @property
    def is_literal(self) -> bool:
        """Whether it has a value rather than an expression."""
        return self.expression is None

    @property
    def is_empty(self) -> bool:
        """Whether it has neither."""
        return self.expression is None and self.value is None

    @property
    def effective_mode(self) -> Mode:
        """The mode that counts when none is written."""
        return self.mode or Mode.MUTABLE

    def same_as(self, other: Definition) -> bool:
        """Whether both say the same, wherever they come from and whatever their meta."""
        return all(getattr(self, field) == getattr(other, field) for field in COMPARED) and _same_value(self, other)


COMPARED: Final = ("type", "expression", "effective_mode", "validator", "tags")


def _same_value(left: Definition, right: Definition) -> bool:
    if left.type is not ParamType.MAP or not isinstance(left.value, dict) or not isinstance(right.value, dict):
        return bool(left.value == right.value)
    return left.value.keys() == right.value.keys() and all(
        d.same_as(right.value[name]) for name, d in left.value.items()
    )


Definitions = Mapping[str, Definition]
KEYS: Final = frozenset({"type", "value", "expression", "mode", "validator", "tags", "name"})
SYSTEM_KEYS: Final = frozenset({"source", "internal_mode"})


def definitions_of(raw: Mapping[str, object], *, trusted: bool = False) -> dict[str, Definition]:
    """Read the `params` object of a workflow, a step or a request."""
    return {name: definition_of(name, body, trusted=trusted) for name, body in raw.items()}


def definition_of(name: str, raw: object, *, trusted: bool = False, depth: int = 0) -> Definition:
    """Read one definition. A trusted one may carry what belongs to the system, and may lack a value."""
    if not name:
        raise BadDefinition(name, "its name is empty")
    if not isinstance(raw, Mapping):
        raise BadDefinition(name, "it is not an object with a type")
    if depth > NESTING_MAX:
        raise BadDefinition(name, f"it nests deeper than {NESTING_MAX}")
    if not trusted and (taken := SYSTEM_KEYS & raw.keys()):
        raise BadDefinition(name, f"{min(taken)!r} can only be set by the system")
    kind = _choice(ParamType, raw.get("type"), name, "type")
    expression = _text(raw, "expression", name)
    has_value = raw.get("value") is not None
    if has_value == (expression is not None) and not (trusted and not has_value):
        raise BadDefinition(name, "it needs exactly one of 'value' and 'expression'")
    known = KEYS | (SYSTEM_KEYS if trusted else frozenset())
    if is_deep([value for key, value in raw.items() if key != "value"]):
        raise BadDefinition(name, f"it holds JSON that nests deeper than {NESTED_JSON_MAX}")
    return Definition(
        type=kind,
        value=_literal(name, kind, raw["value"], (trusted, depth)) if has_value else None,
        expression=expression,
        mode=_optional(Mode, raw, "mode", name),
        validator=_text(raw, "validator", name),
        tags=_tags(name, raw.get("tags")),
        meta={key: value for key, value in raw.items() if key not in known},
        internal_mode=_optional(InternalMode, raw, "internal_mode", name) if trusted else None,
        source=_optional(Source, raw, "source", name) if trusted else None,
    )


def _literal(name: str, kind: ParamType, value: object, nested: tuple[bool, int]) -> ParamValue:
    trusted, depth = nested
    if kind is ParamType.MAP:
        if not isinstance(value, Mapping):
            raise BadDefinition(name, "the value of a MAP is an object of definitions")
        return {k: definition_of(k, body, trusted=trusted, depth=depth + 1) for k, body in value.items()}
    try:
        return coerced(name, kind, value).value
    except NotConvertible as error:
        raise BadDefinition(name, f"its value is {error.found}, which is not a {kind}") from None


def _choice(options: type[Any], value: object, name: str, what: str) -> Any:
    try:
        return options(str(value).upper())
    except ValueError:
        raise BadDefinition(
            name, f"{value!r} is not a valid {what}: expected one of {', '.join(str(option) for option in options)}"
        ) from None


def _optional(options: type[object], raw: Mapping[str, object], key: str, name: str) -> Any:
    return None if raw.get(key) is None else _choice(options, raw[key], name, key)


def _text(raw: Mapping[str, object], key: str, name: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise BadDefinition(name, f"{key!r} is not a string")
    return value


def _tags(name: str, raw: object) -> tuple[Mapping[str, object], ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list | tuple):
        raise BadDefinition(name, "'tags' is not a list")
    tags = [{"name": tag} if isinstance(tag, str) else tag for tag in raw]
    if any(not isinstance(tag, Mapping) or not isinstance(tag.get("name"), str) for tag in tags):
        raise BadDefinition(name, "a tag is a string or an object with a name")
    return tuple(dict(tag) for tag in tags)


def definition_json(definition: Definition) -> dict[str, object]:
    """The JSON form, with what the system added."""
    out: dict[str, object] = {"type": definition.type.value}
    if definition.expression is not None:
        out["expression"] = definition.expression
    elif definition.value is not None:
        out["value"] = _json_value(definition)
    for key in ("mode", "internal_mode", "source", "validator"):
        if getattr(definition, key) is not None:
            out[key] = str(getattr(definition, key))
    if definition.tags:
        out["tags"] = [dict(tag) for tag in definition.tags]
    if definition.layer:
        out["layer"] = definition.layer
    return {**definition.meta, **out}


def _json_value(definition: Definition) -> object:
    if definition.type is ParamType.MAP:
        return {name: definition_json(inner) for name, inner in definition.value.items()}
    return definition.value
