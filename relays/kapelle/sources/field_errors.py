"""Messages about invalid fields of a request or a file: what was expected, and what was found."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kapelle.processors.definitions.problems import shown

# By the name that pydantic has for what is wrong; the braces are its own details.
EXPECTED: Final = {
    "extra_forbidden": "no such member",
    "missing": "a value, which is required",
    "string_type": "text",
    "string_too_short": "text of at least {min_length} characters",
    "string_too_long": "text of at most {max_length} characters",
    "string_pattern_mismatch": "text that matches {pattern}",
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_parsing_size": "an integer of 64 bits",
    "int_from_float": "an integer",
    "greater_than_equal": "{ge} or more",
    "less_than_equal": "{le} or less",
    "enum": "one of {expected}",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "list_type": "a list",
    "too_short": "{min_length} or more of them",
    "too_long": "at most {max_length} of them",
}
OUR_OWN: Final = "value_error"  # a check of ours, which has said all
PREFIX: Final = "Value error, "


def sentence(error: Mapping[str, Any], *, is_secret: bool = False) -> str:
    """One thing to mend. What was found is left out where it may be a secret."""
    kind = error["type"]
    if kind == OUR_OWN or kind not in EXPECTED:
        return str(error["msg"]).removeprefix(PREFIX)
    value = "nothing" if kind == "missing" else "another value" if is_secret else _shown(error.get("input"))
    return f"Expected {EXPECTED[kind].format(**error.get('ctx', {}))}, but found {value}"


def no_json(errors: Sequence[Mapping[str, Any]], content_type: str | None) -> str | None:
    """What to say if the body as a whole was not read, because nothing says that it is JSON."""
    is_whole = any(tuple(error["loc"]) == ("body",) for error in errors)
    kind = (content_type or "").partition(";")[0].strip().lower()
    if not is_whole or kind == "application/json" or kind.endswith("+json"):
        return None
    return f"Expected a body with the header `Content-Type: application/json`, but found {content_type or 'none'!r}"


def _shown(value: object) -> str:
    try:
        return shown(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return f"a {type(value).__name__}"
