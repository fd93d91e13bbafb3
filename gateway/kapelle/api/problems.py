"""The errors of requests, in the form of RFC 9457: `application/problem+json`.

    Problem
    ├── BadRequest 400          the request is not valid; all problems are listed
    ├── Unauthorised 401        the token is missing or unknown
    ├── Forbidden 403           the role of the token does not allow this
    ├── NotFound 404            the resource does not exist
    ├── NotYet 412              a read waited for a request that was not made, or is not visible yet
    ├── TooLarge 413            larger than a record may be
    ├── Unprocessable 422       cannot be executed in the current state
    ├── Refused 400…422         the engine refused the command, with a reason
    └── Unavailable 503         the log cannot be reached, or the view has stopped

`NotSeen` is not a problem: the request is in the log, and its outcome is not visible yet.
"""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from kapelle.schemas import RecordTooLarge, SchemaError
from kapelle.schemas.contracts import Refusal
from kapelle.sources.field_errors import no_json, sentence
from kapelle.topology.errors import FoldError
from kapelle.topology.journal import JournalError
from kapelle.views import BadCursor, ViewFailed

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 1
DETAIL_CHARS_MAX: Final = 2_000
ERRORS_MAX: Final = 100

STATUS_OF: Final = {
    Refusal.INVALID: 400,
    Refusal.NOT_FOUND: 404,
    Refusal.CONFLICT: 409,
    Refusal.PRECONDITION_FAILED: 412,
    Refusal.UNPROCESSABLE: 422,
    Refusal.OTHER: 400,
}


class Problem(Exception):
    """An error that is the answer to a request."""

    status = 500

    def __init__(self, detail: str, errors: Sequence[str] = (), *, request_id: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = list(errors)
        self.request_id = request_id


class BadRequest(Problem):
    """The request is not valid."""

    status = 400


class Unauthorised(Problem):
    """The token is missing or unknown."""

    status = 401


class Forbidden(Problem):
    """The role of the token does not allow this."""

    status = 403


class NotFound(Problem):
    """The resource does not exist."""

    status = 404


class NotYet(Problem):
    """The request that a read waits for is not visible in time."""

    status = 412


class TooLarge(Problem):
    """The request is larger than a record may be."""

    status = 413


class Unprocessable(Problem):
    """The request cannot be executed in the current state."""

    status = 422


class Unavailable(Problem):
    """The node cannot answer now. A retry may succeed."""

    status = 503


class Refused(Problem):
    """The engine refused the command."""

    def __init__(self, refusal: Refusal, message: str, errors: Sequence[str], request_id: str) -> None:
        super().__init__(message, errors, request_id=request_id)
        self.status = STATUS_OF.get(refusal, 400)


class NotSeen(Exception):
    """The request is in the log. Its outcome is not visible yet."""

    def __init__(self, request_id: str) -> None:
        super().__init__(request_id)
        self.request_id = request_id


def problem_response(problem: Problem) -> Response:
    """The response for a problem."""
    body: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail[:DETAIL_CHARS_MAX],
        "errors": problem.errors[:ERRORS_MAX],
        "request_id": problem.request_id,
    }
    later = {"Retry-After": str(RETRY_AFTER_S)}
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: later}.get(problem.status)
    if isinstance(problem, NotYet):
        headers = later
    return Response(msgspec.json.encode(body), problem.status, headers, MEDIA_TYPE)


def _of_validation(error: RequestValidationError, content_type: str | None) -> Problem:
    unread = no_json(error.errors(), content_type)
    if unread is not None:
        return BadRequest(unread)
    errors = [f"{'.'.join(str(part) for part in problem['loc'])}: {sentence(problem)}" for problem in error.errors()]
    count = len(errors)
    return BadRequest(f"Expected a valid request, but found {count} problem{'s' * (count != 1)}", errors)


def _of_http(error: HTTPException) -> Problem:
    problem = Problem(f"Expected a route of the API, but: {error.detail}")
    problem.status = error.status_code
    return problem


def problem_of(error: Exception, content_type: str | None = None) -> Problem | None:
    """The problem that an error is for the caller; None if it is a bug of the server."""
    match error:
        case Problem():
            return error
        case RequestValidationError():
            return _of_validation(error, content_type)
        case HTTPException():
            return _of_http(error)
        case RecordTooLarge():
            return TooLarge(str(error))
        case JournalError() | ViewFailed():
            return Unavailable(str(error))
        case BadCursor() | SchemaError() | FoldError():
            return BadRequest(str(error))
    return None


HANDLED: Final = (
    Problem,
    RequestValidationError,
    HTTPException,
    SchemaError,
    JournalError,
    ViewFailed,
    BadCursor,
    FoldError,
)


async def handle_problem(request: Request, error: Exception) -> Response:
    """The response to a request that failed."""
    problem = problem_of(error, request.headers.get("content-type")) or Problem(
        "The server failed unexpectedly. Its log has the details"
    )
    if problem.request_id is None:
        problem.request_id = getattr(request.state, "request_id", None)
    return problem_response(problem)


async def handle_not_seen(_request: Request, error: Exception) -> Response:
    """The answer to a write whose effect is not visible yet."""
    body = {"request_id": getattr(error, "request_id", None), "status": "ACCEPTED"}
    return Response(msgspec.json.encode(body), 202, media_type="application/json")
