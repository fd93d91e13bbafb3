"""The roles that routes require, and the error responses that they document."""

from typing import Final, TypeAlias

from fastapi import Depends
from pydantic import BaseModel

from kapelle.api.auth import Role
from kapelle.api.callers import needs
from kapelle.api.problems import MEDIA_TYPE

Responses: TypeAlias = dict[int | str, dict[str, object]]  # by status, as FastAPI takes them

VIEWER: Final = [Depends(needs(Role.VIEWER))]
OPERATOR: Final = [Depends(needs(Role.OPERATOR))]
ADMIN: Final = [Depends(needs(Role.ADMIN))]


class ProblemBody(BaseModel):
    """An error, in the form of RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[str]
    request_id: str | None = None


class AcceptedBody(BaseModel):
    """The request is in the log. Its outcome is not visible yet."""

    request_id: str
    status: str


def _problem(description: str) -> dict[str, object]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": ProblemBody.model_json_schema()}}}


READS: Final[Responses] = {
    400: _problem("The request is not valid. `errors` lists all problems."),
    401: _problem("The token is missing or unknown."),
    403: _problem("The role of the token does not allow this."),
    404: _problem("The resource does not exist."),
    503: _problem("The log cannot be reached, or the view is behind. Retry later."),
}
WRITES: Final[Responses] = {
    **READS,
    202: {"description": "The request is in the log. Its effect is not visible yet.", "model": AcceptedBody},
    409: _problem("The request conflicts with the current state."),
    412: _problem("A precondition of the request does not hold."),
    413: _problem("The request is larger than a record may be."),
    422: _problem("The request cannot be executed in the current state."),
}
