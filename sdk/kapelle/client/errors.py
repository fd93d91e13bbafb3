"""What can come of a call instead of an answer, by who must act.

ApiError
├── caller
│   ├── Invalid              400  the request makes no sense: `errors` are all that is wrong with it
│   ├── NotFound             404  there is no such thing
│   ├── Conflict             409  something else is in the way
│   ├── PreconditionFailed   412  it is not in a state that allows this
│   ├── TooLarge             413  more than a record can hold
│   └── Unprocessable        422  it is understood, and not allowed as things are
├── operator
│   ├── BadAddress                the address is none, or what answers there is not Kapelle
│   ├── Unauthorized         401  no token, or one that is not known
│   ├── Forbidden            403  the token's role may not do this
│   └── ServerFailed         500  a defect of the server
└── time
    ├── Unavailable          503  nobody answers, or the server cannot reach its log
    └── TimedOut                  no answer, or no effect, in time: it may happen still
"""

from collections.abc import Sequence
from typing import Final

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """What the server says is wrong (RFC 9457)."""

    title: str = ""
    status: int = 0
    detail: str = ""
    errors: Sequence[str] = ()
    request_id: str | None = None


class ApiError(Exception):
    """A call that was not answered as asked for. `problem` is what the server said, if it was the server."""

    def __init__(self, message: str, problem: Problem | None = None) -> None:
        super().__init__(message)
        self.problem = problem or Problem(detail=message)

    @property
    def errors(self) -> Sequence[str]:
        """All that is wrong, one by one, where there is more than one thing to say."""
        return self.problem.errors

    @property
    def request_id(self) -> str | None:
        """The id of the request: the same call with it changes nothing twice."""
        return self.problem.request_id


class Invalid(ApiError):
    """The request makes no sense."""


class NotFound(ApiError):
    """There is no such thing."""


class Conflict(ApiError):
    """Something else is in the way."""


class PreconditionFailed(ApiError):
    """It is not in a state that allows this."""


class TooLarge(ApiError):
    """More than can be taken."""


class Unprocessable(ApiError):
    """It is understood, and not allowed as things are."""


class BadAddress(ApiError):
    """There is no Kapelle at this address, and there never will be."""


class Unauthorized(ApiError):
    """Who asks is not known."""


class Forbidden(ApiError):
    """Who asks may not."""


class ServerFailed(ApiError):
    """A defect of the server: its log tells more."""


class Unavailable(ApiError):
    """Not now. Trying again may help."""


class TimedOut(ApiError):
    """Not in time. It may happen still: ask again with the same request id."""


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
