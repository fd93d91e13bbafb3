"""Access to a server: the client, its token and user, and the exit codes of its errors."""

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kapelle.cli import errors as e
from kapelle.cli.options.client import TOKEN_VARIABLE

if TYPE_CHECKING:  # httpx is slow to import, and most commands do not need it
    from kapelle.client import ApiError, Client

USER_VARIABLE: Final = "KAPELLE_USER"


def token() -> str | None:
    """The token from the environment. There is no flag: others can see those."""
    return os.environ.get(TOKEN_VARIABLE) or None


def user() -> str:
    """Who asks, for the history."""
    try:
        return os.environ.get(USER_VARIABLE) or getpass.getuser()
    except (OSError, KeyError):
        return "anonymous"


@contextmanager
def connected(url: str) -> Iterator["Client"]:
    """A client for the server at a URL. What it refuses becomes an error of the command."""
    from kapelle.client import ApiError, BadWorkflow, Client  # noqa: PLC0415 - slow to import

    try:
        with Client(url, token=token(), user=user()) as client:
            yield client
    except ApiError as error:
        raise refused(error) from error
    except BadWorkflow as error:
        raise e.BadParam(str(error)) from error


def refused(error: "ApiError") -> e.CommandError:
    """What an error of the client means for a command."""
    from kapelle.client import errors as c  # noqa: PLC0415 - slow to import

    kinds: list[tuple[tuple[type[ApiError], ...], type[e.CommandError]]] = [
        ((c.BadAddress,), e.WrongServer),
        ((c.NotFound,), e.NotThere),
        ((c.Conflict, c.PreconditionFailed, c.Unauthorized, c.Forbidden), e.InTheWay),
        ((c.Unavailable, c.TimedOut), e.NotInTime),
    ]
    made = next((made for kind, made in kinds if isinstance(error, kind)), e.Refused)
    hint = HINTS.get(type(error).__name__, "")
    return made(f"{error}{hint}")


HINTS: Final = {
    "Unauthorized": f": set {TOKEN_VARIABLE}",
    "Unavailable": ". Is the server running? `kapelle dev` starts one",
}
