"""Groups of options that several commands take. A command declares one parameter for a whole group."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import get_type_hints

import msgspec

Command = Callable[..., None]


def taking(
    parameter: str, group: type[msgspec.Struct], names: Sequence[str], defaults: Mapping[str, object]
) -> Callable[[Command], Command]:
    """Replace one parameter of a command by options. The command gets one `group` made of their values.

    Each option is a field of the group. `names` selects the fields, and `defaults` replaces some of their defaults.
    Typer reads options from a signature, so the decorated command has a signature in which the options stand in the
    place of the parameter.
    """
    hints = get_type_hints(group, include_extras=True)
    usual = {field.name: field.default for field in msgspec.structs.fields(group)} | dict(defaults)
    options = [Parameter(name, Parameter.KEYWORD_ONLY, default=usual[name], annotation=hints[name]) for name in names]

    def decorated(command: Command) -> Command:
        signature = inspect.signature(command)
        parameters = [
            each
            for declared in signature.parameters.values()
            for each in (options if declared.name == parameter else [declared])
        ]

        @functools.wraps(command)
        def called(**values: object) -> None:
            made = group(**{name: values.pop(name) for name in names})
            command(**{parameter: made}, **values)

        del called.__wrapped__  # Typer would read the signature of the command itself
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined] # read by inspect
        return called

    return decorated
