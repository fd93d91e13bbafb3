"""Parameters on a command line: NAME=VALUE, where the value is JSON, or else a string."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from kapelle.cli.errors import BadParam

Param = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A parameter: JSON, or else a string. Again for more."),
]


def given(words: Sequence[str]) -> dict[str, Any]:
    """The parameters by their names."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise BadParam(f"Expected --param NAME=VALUE, but found {word!r}")
        if name in found:
            raise BadParam(f"Expected each parameter once, but found {name!r} again")
        found[name.strip()] = _value(text)
    return found


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if value is None else value
