"""The errors of calls, by who must act.

ApiError
├── caller
│   ├── Invalid              400  the request is not valid: `errors` lists all problems
│   ├── NotFound             404  the resource does not exist
│   ├── Conflict             409  the request conflicts with the current state
│   ├── PreconditionFailed   412  a precondition of the request does not hold
│   ├── TooLarge             413  the request is larger than a record may be
│   └── Unprocessable        422  the request cannot be executed in the current state
├── operator
│   ├── BadAddress                the address is not valid, or is not a Kapelle server
│   ├── Unauthorized         401  the token is missing or unknown
│   ├── Forbidden            403  the role of the token does not allow this
│   └── ServerFailed         500  a defect of the server
└── nobody: retry later
    ├── Unavailable          503  the server is unreachable, or cannot reach its log
    └── TimedOut                  no answer or no effect in time; the effect may still happen
"""

from collections.abc import Sequence
from typing import Final

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """An error answer of the server (RFC 9457)."""

    title: str = ""
    status: int = 0
    detail: str = ""
    errors: Sequence[str] = ()
    request_id: str | None = None


class ApiError(Exception):
    """A failed call. `problem` is the answer of the server, if it answered."""

    def __init__(self, message: str, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.problem = problem or Problem(detail=message)

    @property
    def errors(self) -> Sequence[str]:
        """All problems, one by one, if there are several."""
        return self.problem.errors

    @property
    def request_id(self) -> str | None:
        """The id of the request. A call with the same id is not executed twice."""
        return self.problem.request_id


class Invalid(ApiError):
    """The request is not valid."""


class NotFound(ApiError):
    """The resource does not exist."""


class Conflict(ApiError):
    """The request conflicts with the current state."""


class PreconditionFailed(ApiError):
    """A precondition of the request does not hold."""


class TooLarge(ApiError):
    """The request is larger than a record may be."""


class Unprocessable(ApiError):
    """The request cannot be executed in the current state."""


class BadAddress(ApiError):
    """The address is not valid, or is not a Kapelle server. A retry does not help."""


class Unauthorized(ApiError):
    """The token is missing or unknown."""


class Forbidden(ApiError):
    """The role of the token does not allow this."""


class ServerFailed(ApiError):
    """A defect of the server. Its log has the details."""


class Unavailable(ApiError):
    """The server is unreachable, or cannot reach its log. A retry may succeed."""


class TimedOut(ApiError):
    """No answer or no effect in time. The effect may still happen: retry with the same request id."""


OF_STATUS: Final[dict[int, type[ApiError]]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    408: TimedOut,
    409: Conflict,
    412: PreconditionFailed,
    413: TooLarge,
    422: Unprocessable,
    429: Unavailable,
    502: Unavailable,
    503: Unavailable,
    504: TimedOut,
}
