"""Who may use which routes, and what they may answer, as decorators of routes say it."""

from typing import Any, Final

from fastapi import Depends
from pydantic import BaseModel

from kapelle.api.auth import Role
from kapelle.api.callers import needs
from kapelle.api.problems import MEDIA_TYPE

VIEWER: Final = [Depends(needs(Role.VIEWER))]
OPERATOR: Final = [Depends(needs(Role.OPERATOR))]
ADMIN: Final = [Depends(needs(Role.ADMIN))]


class ProblemBody(BaseModel):
    """What is wrong, as RFC 9457 writes it."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[str]
    request_id: str | None = None


class AcceptedBody(BaseModel):
    """The request is in the log; what came of it is not visible yet."""

    request_id: str
    status: str


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA_TYPE: {"schema": ProblemBody.model_json_schema()}}}


READS: Final[dict[int | str, dict[str, Any]]] = {
    400: _problem("The request makes no sense: all errors at once."),
    401: _problem("No token, or none that is known."),
    403: _problem("The role of the token is too small."),
    404: _problem("There is no such thing."),
    503: _problem("The log cannot be reached, or the view is not that far."),
}
WRITES: Final[dict[int | str, dict[str, Any]]] = {
    **READS,
    202: {"description": "In the log; its effect is not visible yet.", "model": AcceptedBody},
    409: _problem("It is in conflict with what is there."),
    412: _problem("What it needs is not so."),
    413: _problem("More than a record can hold."),
    422: _problem("It cannot be done as things are."),
}
