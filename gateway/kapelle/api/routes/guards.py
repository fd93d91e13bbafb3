"""The roles that routes require, and the error responses that they document."""

from typing import Final

from fastapi import Depends

from kapelle.api.answers.common import Accepted, Problem
from kapelle.api.auth import Role
from kapelle.api.callers import needs
from kapelle.api.problems import MEDIA_TYPE
from kapelle.api.shapes import Responses, answer

VIEWER: Final = [Depends(needs(Role.VIEWER))]
OPERATOR: Final = [Depends(needs(Role.OPERATOR))]
ADMIN: Final = [Depends(needs(Role.ADMIN))]


def _problem(description: str) -> dict[str, object]:
    return answer(Problem, description=description, media_type=MEDIA_TYPE)


READS: Final[Responses] = {
    400: _problem("The request is not valid. `errors` lists all problems."),
    401: _problem("The token is missing or unknown."),
    403: _problem("The role of the token does not allow this."),
    404: _problem("The resource does not exist."),
    412: _problem("A precondition of the request does not hold."),
    503: _problem("The log cannot be reached, or the view is behind. Retry later."),
}
WRITES: Final[Responses] = {
    **READS,
    202: answer(Accepted, description="The request is in the log. Its effect is not visible yet."),
    409: _problem("The request conflicts with the current state."),
    413: _problem("The request is larger than a record may be."),
    422: _problem("The request cannot be executed in the current state."),
}
