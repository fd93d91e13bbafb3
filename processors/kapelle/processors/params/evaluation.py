"""Evaluating parameters: each once, what it refers to first, in a time linear in their number.

References are known before anything runs: from name analysis for expressions, from the `$` signs for literals. They are
followed with a stack of our own, so a chain of any length is no deeper for Python; a reference back into the chain is a
cycle, and the error names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kapelle.processors.params.coercion import coerced
from kapelle.processors.params.definitions import Definition, Definitions, definition_json
from kapelle.processors.params.errors import CyclicReference, UnknownReference, failed_of
from kapelle.processors.params.interpolation import Count, interpolated, references
from kapelle.processors.params.language import new_budget
from kapelle.processors.params.room import Room
from kapelle.processors.params.scopes import Own, Scope
from kapelle.processors.params.types import ParamType, ParamValue, Source
from kapelle.processors.params.validators import validate
from kapelle.processors.sel import Budget, Extension, ExtensionFailed, Host, Sel, SelError, Value, seeded

CHARS_MAX: Final = 750_000
PARAM_VISITS: Final = 10  # what a parameter takes besides its expression
REFERENCE_VISITS: Final = 3  # what a reference in a text takes, to be found and to be filled in
PARAMS: Final = "params"


class Context(msgspec.Struct, frozen=True):
    """What the caller fixes for an evaluation, so that a replay gives the same values.

    `seed` names what is evaluated, such as the step attempt: ids and random numbers are made from it. Evaluations of
    the same decision share one budget.
    """

    sel: Sel
    now_ms: int
    seed: str
    extension: Extension
    chars_max: int = CHARS_MAX
    budget: Budget = msgspec.field(default_factory=new_budget)


class Evaluated(msgspec.Struct, frozen=True):
    """A parameter with its value, and with where it came from."""

    name: str
    definition: Definition
    value: ParamValue
    evaluated_at_ms: int
    notes: tuple[str, ...] = ()

    @property
    def layer(self) -> str:
        """The name of the layer that set it."""
        return self.definition.layer

    @property
    def source(self) -> Source | None:
        """The stage that set it."""
        return self.definition.source

    def as_json(self) -> dict[str, object]:
        """The definition with the evaluated result and time."""
        out = {
            **definition_json(self.definition),
            "evaluated_result": self.value,
            "evaluated_time": self.evaluated_at_ms,
        }
        return {**out, "info": list(self.notes)} if self.notes else out


def evaluate(own: Definitions, scope: Scope, context: Context) -> dict[str, Evaluated]:
    """Evaluate all parameters of a workflow or of a step, in their order."""
    run = _Evaluation(own, scope, context)
    for name in own:
        run.reach(name)
    return {name: run.done[name] for name in own}


class _Visit(msgspec.Struct):
    """A parameter on the way to its value: the references still to be followed, and the values found."""

    name: str
    pending: list[str]
    inputs: dict[str, Value]


class _Given(msgspec.Struct, frozen=True):
    """What the value of one parameter is made with. Those inside of a map share it."""

    inputs: Mapping[str, Value]
    host: Host
    count: Count
    notes: list[str]


class _Evaluation(Extension):
    """The state of one evaluation. It is also what `params` means inside an expression."""

    def __init__(self, own: Definitions, scope: Scope, context: Context) -> None:
        self.own = own
        self.scope = scope
        self.context = context
        self.done: dict[str, Evaluated] = {}
        self.room = Room(scope.where, context.chars_max, context.budget)

    def reach(self, name: str) -> None:
        """Evaluate one parameter, and before it whatever it needs."""
        if name in self.done:
            return
        path: dict[str, _Visit] = {name: self._visit(name)}
        while path:
            visit = path[next(reversed(path))]
            needed = self._advance(visit)
            if needed is None:
                self.done[visit.name] = self._finished(visit)
                del path[visit.name]
            elif needed in path:
                names = list(path)
                raise CyclicReference(tuple(names[names.index(needed) :]))
            else:
                path[needed] = self._visit(needed)

    def _visit(self, name: str) -> _Visit:
        try:
            self.context.budget.work(PARAM_VISITS)
            names = list(dict.fromkeys(self._references(self.own[name])))
        except SelError as error:
            raise failed_of(name, error) from error
        return _Visit(name, names[::-1], {})

    def _references(self, definition: Definition) -> Iterator[str]:
        if definition.expression is not None:
            program = self.context.sel.program(definition.expression, self.context.budget)
            yield from (name for name in program.names if name != PARAMS)
            yield from (key for key in program.keys if self.scope.waits_for(key, self.own))
        elif definition.type is ParamType.MAP:
            for inner in definition.value.values():
                yield from self._references(inner)
        else:
            for text in _texts(definition):
                if "$" in text:
                    self.context.budget.work(REFERENCE_VISITS * text.count("$"))
                    yield from references(text)

    def _advance(self, visit: _Visit) -> str | None:
        """Follow the references; stop at the first that has to be evaluated before."""
        while visit.pending:
            reference = visit.pending[-1]
            source = self.scope.find(reference, self.own, self.done)
            if source is None:
                raise UnknownReference(visit.name, reference, self.scope.where)
            if isinstance(source, Own):
                if source.name not in self.done:
                    return source.name
                visit.inputs[reference] = self.done[source.name].value
            else:
                visit.inputs[reference] = source.value
            visit.pending.pop()
        return None

    def _finished(self, visit: _Visit) -> Evaluated:
        definition = self.own[visit.name]
        notes: list[str] = []
        host = seeded(f"{self.context.seed}/{visit.name}", self.context.now_ms, self)
        try:
            given = _Given(visit.inputs, host, self.room.text(visit.name), notes)
            value = self._value(visit.name, definition, given)
            self.room.keep(visit.name, value)
        except SelError as error:
            raise failed_of(visit.name, error) from error
        validate(visit.name, definition, value, self.context)
        return Evaluated(visit.name, definition, value, self.context.now_ms, tuple(notes))

    def _value(self, name: str, definition: Definition, given: _Given) -> ParamValue:
        if definition.expression is not None:
            try:
                result = self.context.sel.evaluate(
                    definition.expression, given.inputs, given.host, budget=self.context.budget
                )
            except SelError as error:
                raise failed_of(name, error) from error
            made = coerced(name, definition.type, result.value)
            if made.note:
                given.notes.append(made.note)
            return made.value
        if definition.type is ParamType.MAP:
            self.context.budget.work(PARAM_VISITS * len(definition.value))
            return {key: self._value(f"{name}.{key}", inner, given) for key, inner in definition.value.items()}
        return _literal_value(definition, given.inputs, given.count)

    def get(self, name: str) -> Value:
        """`params.get(name)`: a parameter of the workflow."""
        value = self.scope.param(name, self.done)
        if value is None and self.scope.waits_for(name, self.own):
            raise ExtensionFailed(
                f"Expected {name!r} to be evaluated before, but it is not", hint="refer to it by its name"
            )
        return value

    def contains(self, name: str) -> bool:
        """`params.containsKey(name)`."""
        return self.scope.param(name, self.done) is not None or self.scope.waits_for(name, self.own)

    def call(self, function: str, args: tuple[Value, ...]) -> Value:
        """The functions that the engine answers."""
        return self.context.extension.call(function, args)


def _texts(definition: Definition) -> Iterator[str]:
    """The strings of a literal that may hold references."""
    value = definition.value
    if definition.type is ParamType.STRING:
        yield value
    elif definition.type is ParamType.STRING_ARRAY:
        yield from value
    elif definition.type is ParamType.STRING_MAP:
        for key, item in value.items():
            yield key
            yield item


def _literal_value(definition: Definition, inputs: Mapping[str, Value], count: Count) -> ParamValue:
    value, lookup = definition.value, inputs.__getitem__
    if definition.type is ParamType.STRING:
        return interpolated(value, lookup, count)
    if definition.type is ParamType.STRING_ARRAY:
        return type(value)(interpolated(item, lookup, count) for item in value)
    if definition.type is ParamType.STRING_MAP:
        return {interpolated(key, lookup, count): interpolated(item, lookup, count) for key, item in value.items()}
    return value
