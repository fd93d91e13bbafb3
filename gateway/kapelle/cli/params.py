"""Parameters on a command line: NAME=VALUE, where the value is JSON, or else a string."""

import json
from collections.abc import Sequence

from kapelle.cli.errors import BadParam


def given(words: Sequence[str], option: str = "--param") -> dict[str, object]:
    """The parameters by their names."""
    params: dict[str, object] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.strip():
            raise BadParam(f"Expected {option} NAME=VALUE, but found {word!r}")
        if name.strip() in params:
            raise BadParam(f"Expected each parameter once, but found {name.strip()!r} again")
        params[name.strip()] = _value(text)
    return params


def strict_json(text: str) -> object:
    """What JSON says, and nothing that only Python takes for JSON: NaN would reach the server as null."""
    return json.loads(text, parse_constant=_refused)


def _refused(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _value(text: str) -> object:
    try:
        value = strict_json(text)
    except (ValueError, RecursionError):
        return text
    return text if value is None else value
