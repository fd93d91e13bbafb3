"""What happens when a later layer gives a parameter that an earlier one has given.

1. A literal MAP is merged key by key, a literal STRING_MAP becomes the union in which the later wins; all other values
   are replaced. A literal map does not merge onto a map that is an expression.
2. The type stays that of the baseline; a literal is converted to it.
3. Tags become the union by name; the later validator and meta win where they are given.
4. The mode may become stricter, never looser.
5. A change needs a baseline whose mode allows the stage (`ALLOWED`); saying the same again is always allowed.
6. RESERVED parameters are the system's. Parents of subworkflows and loops may change what the system set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kapelle.processors.params.coercion import coerced, found_in_words
from kapelle.processors.params.definitions import Definition, Definitions
from kapelle.processors.params.errors import MergeRefused, NotConvertible
from kapelle.processors.params.types import InternalMode, Mode, ParamType, ParamValue, Source

AT_START: Final = frozenset({Mode.MUTABLE, Mode.MUTABLE_ON_START, Mode.MUTABLE_ON_START_RESTART})
AT_RESTART: Final = frozenset({Mode.MUTABLE, Mode.MUTABLE_ON_START_RESTART})
BY_OUTPUT: Final = frozenset({Mode.MUTABLE})

# Which modes of the baseline let a stage change the parameter. The stages of the system are free.
ALLOWED: Final[Mapping[Source, frozenset[Mode]]] = {
    Source.DEFINITION: AT_START,
    Source.LAUNCH: AT_START,
    Source.SIGNAL: AT_START,
    Source.TIME_TRIGGER: AT_START,
    Source.SUBWORKFLOW: AT_START,
    Source.FOREACH: AT_START,
    Source.WHILE: AT_START,
    Source.TEMPLATE: AT_START,
    Source.RESTART: AT_RESTART,
    Source.OUTPUT_PARAMETER: BY_OUTPUT,
}


class Stage(msgspec.Struct, frozen=True):
    """Who merges: the layer's name for people, its source for the rules."""

    layer: str
    source: Source
    is_upstream: bool = False
    is_restart: bool = False
    parent_mode: Mode | None = None

    @property
    def is_system(self) -> bool:
        """Whether the rules on modes do not apply."""
        return self.source not in ALLOWED

    @property
    def allowed(self) -> frozenset[Mode]:
        """The modes of the baseline that this stage may change."""
        allowed = ALLOWED[self.source]
        return allowed & AT_RESTART if self.is_restart else allowed


def merge(baseline: Definitions, changes: Definitions, stage: Stage) -> dict[str, Definition]:
    """The baseline with the changes of one stage."""
    result = dict(baseline)
    for name, change in changes.items():
        result[name] = merged_one(name, baseline.get(name), change, stage)
    return result


def merged_one(name: str, base: Definition | None, change: Definition, stage: Stage) -> Definition:
    """One parameter after one stage."""
    if not stage.is_system and change.internal_mode is not None:
        raise MergeRefused(name, stage.layer, "the internal mode can only be set by the system")
    mode = _mode(base, change, stage)
    made = Definition(
        type=base.type if base else change.type,
        value=_value(name, base, change, stage),
        expression=change.expression,
        mode=mode,
        validator=change.validator if change.validator is not None or base is None else base.validator,
        tags=_tags(base, change),
        meta={**(base.meta if base else {}), **change.meta},
        internal_mode=base.internal_mode if base and base.internal_mode else change.internal_mode,
        source=change.source if base is None and stage.is_system and change.source else stage.source,
        layer=stage.layer,
    )
    if base is None:
        return made
    if made.same_as(base):
        return base
    if not stage.is_system and not (stage.is_upstream and _is_set_by_system(base)):
        _refuse_unless_allowed(name, base, made, stage)
    return made


def _refuse_unless_allowed(name: str, base: Definition, made: Definition, stage: Stage) -> None:
    if base.internal_mode is InternalMode.RESERVED:
        raise MergeRefused(name, stage.layer, "it is reserved for the system")
    if base.effective_mode not in stage.allowed:
        raise MergeRefused(name, stage.layer, f"its mode is {base.effective_mode} ({stage.source})")
    if made.effective_mode.strictness < base.effective_mode.strictness:
        raise MergeRefused(
            name, stage.layer, f"{made.effective_mode} is less strict than its mode {base.effective_mode}"
        )


def _is_set_by_system(base: Definition) -> bool:
    return base.source is not None and base.source not in ALLOWED


def _mode(base: Definition | None, change: Definition, stage: Stage) -> Mode:
    internal = base.internal_mode if base and base.internal_mode else change.internal_mode
    mode = change.mode or (base.mode if base else None) or Mode.MUTABLE
    stricter = [mode]
    if internal is InternalMode.RESERVED:
        stricter.append(Mode.CONSTANT)
    if stage.is_upstream and base is not None:
        stricter.append(base.effective_mode)
    if stage.parent_mode is not None:
        stricter.append(stage.parent_mode)
    return max(stricter, key=lambda m: m.strictness)


def _value(name: str, base: Definition | None, change: Definition, stage: Stage) -> ParamValue:
    if change.type is ParamType.MAP and isinstance(change.value, dict):
        parent = msgspec.structs.replace(stage, parent_mode=_parent_mode(base, change, stage))
        return merge(_base_map(name, base, ParamType.MAP, stage), change.value, parent)
    if change.type is ParamType.STRING_MAP and isinstance(change.value, dict):
        return {**_base_map(name, base, ParamType.STRING_MAP, stage), **change.value}
    if base is None or change.value is None:
        return change.value
    try:
        return coerced(name, base.type, change.value).value
    except NotConvertible:
        raise MergeRefused(
            name, stage.layer, f"its type is {base.type} and the change is {found_in_words(change.value)}"
        ) from None


def _parent_mode(base: Definition | None, change: Definition, stage: Stage) -> Mode | None:
    own = (base or change).mode
    modes = [m for m in (own, stage.parent_mode) if m is not None]
    return max(modes, key=lambda m: m.strictness) if modes else None


def _base_map(name: str, base: Definition | None, kind: ParamType, stage: Stage) -> dict[str, ParamValue]:
    if base is None:
        return {}
    if base.type is not kind:
        raise MergeRefused(name, stage.layer, f"its type is {base.type} and the change is a {kind}")
    if not base.is_literal:
        raise MergeRefused(name, stage.layer, "it is an expression and the change is a literal map")
    return base.value if isinstance(base.value, dict) else {}


def _tags(base: Definition | None, change: Definition) -> tuple[Mapping[str, object], ...]:
    both = [*(base.tags if base else ()), *change.tags]
    return tuple({tag["name"]: tag for tag in both}.values())
