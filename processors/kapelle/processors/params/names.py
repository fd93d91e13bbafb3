"""Names that belong to the system, and the bounds on what a request may give."""

from collections.abc import Iterable
from typing import Final

from kapelle.processors.params.errors import BadDefinition

RUN_PARAMS_MAX: Final = 128
RESERVED_NAMES: Final = frozenset(
    {
        form(package)
        for package in ("maestro", "scheduler", "util", "params")
        for form in (str.lower, str.title, str.upper)
    }
    | {
        "AUTH_BLOB",
        "AUTH_DATA",
        "AUTH_ACTING_ON_BEHALF_OF_BLOB",
        "AUTH_TRIGGERING_ON_BEHALF_OF_BLOB",
        "AUTHORIZED_MANAGERS",
    }
)


def check_run_params(names: Iterable[str]) -> None:
    """Refuse reserved names and too many of them in a start or restart request."""
    given = list(names)
    if len(given) > RUN_PARAMS_MAX:
        raise BadDefinition(given[RUN_PARAMS_MAX], f"a request may give {RUN_PARAMS_MAX} parameters")
    for name in given:
        if name in RESERVED_NAMES:
            raise BadDefinition(name, "the name is reserved for the system")
