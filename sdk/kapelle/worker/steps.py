"""A function as a step: its parameters, and their values from a task.

Parameters are filled by name. A parameter that is annotated `Context` gets the context; one with `**` gets all
remaining parameters. Values are converted to the annotation as pydantic does it. A missing value is replaced by the
default.
"""

import functools
import inspect
import typing
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from kapelle.worker.context import Context
from kapelle.worker.errors import BadParameter, BadStep

StepFunction = Callable[..., object] | Callable[..., Awaitable[object]]

SHOWN_CHARS_MAX: Final = 80


class Parameter(msgspec.Struct, frozen=True):
    """One parameter of a step's function."""

    name: str
    adapter: TypeAdapter[object] | None  # None: as it is
    expected: str
    is_required: bool


class Step:
    """A function that serves tasks of one type."""

    def __init__(self, type: str, function: StepFunction) -> None:  # noqa: A002 - the name in definitions
        if not type:
            raise BadStep(f"Expected a type for {_name_of(function)}, but found an empty string")
        self.type = type
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object may have an async __call__
        )
        self._contexts: list[str] = []
        self._parameters: list[Parameter] = []
        self._takes_rest = False
        hints = _hints_of(function)
        for parameter in inspect.signature(function).parameters.values():
            self._add(parameter, hints)

    def _add(self, parameter: inspect.Parameter, hints: Mapping[str, object]) -> None:
        name = parameter.name
        if parameter.kind is parameter.VAR_KEYWORD:
            self._takes_rest = True
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise BadStep(
                f"Expected parameters of step {self.type!r} that can be given by name, but {name!r} of "
                f"{_name_of(self.function)} can only be given by position"
            )
        elif hints.get(name) is Context:
            self._contexts.append(name)
        else:
            required = parameter.default is parameter.empty
            hint = hints.get(name, Any)
            adapter = None if hint is Any else _adapter(self, name, hint)
            self._parameters.append(Parameter(name, adapter, _words(hint), required))

    def arguments(self, params_json: str, context: Context) -> dict[str, Any]:
        """The arguments of the function, of the types that its author chose."""
        params: dict[str, object] = msgspec.json.decode(params_json)
        context.params = params
        arguments: dict[str, object] = dict.fromkeys(self._contexts, context)
        for parameter in self._parameters:
            if parameter.name in params:
                arguments[parameter.name] = _converted(parameter, params[parameter.name])
            elif parameter.is_required:
                raise BadParameter(parameter.name, parameter.expected, "none: the step does not define it")
        if self._takes_rest:
            arguments |= {name: value for name, value in params.items() if name not in arguments}
        return arguments


def _converted(parameter: Parameter, value: object) -> object:
    if parameter.adapter is None:
        return value
    try:
        return parameter.adapter.validate_python(value)
    except ValidationError as error:
        raise BadParameter(parameter.name, parameter.expected, _problem(value, error)) from error


def _problem(value: object, error: ValidationError) -> str:
    text = repr(value)
    shown = text if len(text) <= SHOWN_CHARS_MAX else text[:SHOWN_CHARS_MAX] + "…"
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{shown} ({where + ': ' if where else ''}{first['msg']})"


def _adapter(step: Step, name: str, hint: Any) -> TypeAdapter[object]:
    try:
        return TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise BadStep(
            f"Expected parameter {name!r} of step {step.type!r} to have a type that pydantic knows, but found "
            f"{_words(hint)}: {error}"
        ) from error


def _hints_of(function: StepFunction) -> dict[str, object]:
    while isinstance(function, functools.partial):
        function = function.func
    plain = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(inspect.unwrap(plain), include_extras=True)
    except NameError as error:
        raise BadStep(f"Expected annotations of {_name_of(function)} that can be resolved, but {error}") from error


def _words(hint: object) -> str:
    return hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")


def _name_of(function: StepFunction) -> str:
    return f"the function {getattr(function, '__qualname__', repr(function))!r}"
