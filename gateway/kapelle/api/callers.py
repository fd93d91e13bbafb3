"""The caller, the resource and the wait time: what routes read from headers, paths and query parameters."""

import time
import uuid
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated, Final

from fastapi import Depends, Header, Path, Query, Request

from kapelle.api.access import ROLE
from kapelle.api.auth import Role
from kapelle.api.context import Context, Here
from kapelle.api.freshness import CHARS_MAX, reached
from kapelle.api.problems import BadRequest, Forbidden, NotYet
from kapelle.schemas.headers import trace_of
from kapelle.views.projection.news import request_news
from kapelle.views.queries.pages import LIMIT_DEFAULT, LIMIT_MAX, PageRequest
from kapelle.views.queries.requests import outcomes

REQUEST_ID_CHARS_MAX: Final = 256
USER_CHARS_MAX: Final = 256
INT_MAX: Final = 2**63 - 1

WorkflowId = Annotated[str, Path(min_length=1, max_length=256, description="The id of a workflow.")]
InstanceId = Annotated[int, Path(ge=1, le=INT_MAX, description="The number of an instance.")]
StepId = Annotated[str, Path(min_length=1, max_length=256, description="The id of a step.")]
Selector = Annotated[
    str,
    Path(
        max_length=64,
        description="A version: a number, `active`, `latest` or `default`. `default` is the active version, or "
        "the latest if none is active.",
    ),
]
RunSelector = Annotated[str, Path(max_length=64, description="A number, or `latest`.")]


class EndAction(StrEnum):
    """An action on instances."""

    STOP = "stop"
    KILL = "kill"
    UNBLOCK = "unblock"


class StepAction(StrEnum):
    """An action on a step."""

    STOP = "stop"
    KILL = "kill"
    SKIP = "skip"
    BYPASS = "bypass"


EndActionAt = Annotated[EndAction, Path(description="The action: `stop`, `kill` or `unblock`.")]
StepActionAt = Annotated[StepAction, Path(description="The action: `stop`, `kill`, `skip` or `bypass`.")]


def _instance_at(workflow_id: WorkflowId, instance_id: InstanceId) -> tuple[str, int]:
    return workflow_id, instance_id


def _step_at(workflow_id: WorkflowId, instance_id: InstanceId, step_id: StepId) -> tuple[str, int, str]:
    return workflow_id, instance_id, step_id


def _version_at(workflow_id: WorkflowId, version: Selector) -> tuple[str, str]:
    return workflow_id, version


def _run_at(workflow_id: WorkflowId, instance_id: InstanceId, run_id: RunSelector) -> tuple[str, int, str]:
    return workflow_id, instance_id, run_id


VersionAt = Annotated[tuple[str, str], Depends(_version_at)]
RunAt = Annotated[tuple[str, int, str], Depends(_run_at)]
InstanceAt = Annotated[tuple[str, int], Depends(_instance_at)]
StepAt = Annotated[tuple[str, int, str], Depends(_step_at)]


def needs(role: Role) -> Callable[[Request], Awaitable[None]]:
    """A dependency that admits callers with this role or a higher one."""

    async def check(request: Request) -> None:
        held: Role = getattr(request.state, ROLE)
        if held < role:
            raise Forbidden(f"Expected a token of the role {role.name.lower()}, but found {held.name.lower()}")

    return check


def number_of(selector: str, what: str) -> int | None:
    """A number, or None for `latest`."""
    if selector.lower() == "latest":
        return None
    if not (selector.isascii() and selector.isdigit()) or not 1 <= int(selector) <= INT_MAX:
        raise BadRequest(f"Expected `latest` or a number as {what}, but found {selector!r}")
    return int(selector)


def trace_in(request: Request) -> str | None:
    """The trace context of a request. A header that is not valid by W3C Trace Context is ignored."""
    return trace_of([("traceparent", request.headers.get("traceparent", "").encode())])


class Caller:
    """The caller of a write: the user, the request id, and how long to wait for the effect."""

    def __init__(
        self,
        request: Request,
        here: Here,
        user: Annotated[str, Header(max_length=USER_CHARS_MAX, description="The name of the user.")] = "anonymous",
        idempotency_key: Annotated[
            str | None,
            Header(
                min_length=1,
                max_length=REQUEST_ID_CHARS_MAX,
                description="The id of the request. A request with the same id is not executed twice.",
            ),
        ] = None,
        wait_ms: Annotated[
            int | None, Query(ge=0, le=600_000, description="Wait at most this long until the effect is visible.")
        ] = None,
    ) -> None:
        self.user = user or "anonymous"
        self.is_new = idempotency_key is None  # an id that we made was never used before
        self.request_id = idempotency_key or uuid.uuid4().hex
        given = here.settings.wait_ms if wait_ms is None else wait_ms
        self.wait_s = min(given, here.settings.wait_ms_max) / 1000
        self.trace = trace_in(request)
        self._request = request
        request.state.request_id = self.request_id

    def named(self, request_id: str | None) -> "Caller":
        """The same caller with the request id of the body. The id of the header, if any, must be equal."""
        if request_id is None:
            return self
        if not self.is_new and request_id != self.request_id:
            raise BadRequest("Expected one request id, but the header Idempotency-Key and the body have two")
        self.request_id, self.is_new = request_id, False
        self._request.state.request_id = request_id
        return self


Writer = Annotated[Caller, Depends()]


def _wait_s(
    here: Here,
    wait_ms: Annotated[int | None, Query(ge=0, le=600_000, description="Wait at most this long for the view.")] = None,
) -> float:
    given = here.settings.wait_ms if wait_ms is None else wait_ms
    return min(given, here.settings.wait_ms_max) / 1000


async def _fresh_enough(
    here: Here,
    wait_s: Annotated[float, Depends(_wait_s)],
    wait_for: Annotated[
        str | None,
        Query(max_length=REQUEST_ID_CHARS_MAX, description="Wait until the effect of this request is visible."),
    ] = None,
    min_offset: Annotated[
        str | None,
        Query(max_length=CHARS_MAX, description="Wait until the view has reached `stream-partition:offset,…`."),
    ] = None,
    kapelle_watermark: Annotated[
        str | None,
        Header(
            max_length=CHARS_MAX, description="Wait until the view has reached this watermark of an earlier answer."
        ),
    ] = None,
) -> Context:
    """Before a read: wait until the view has reached the position that the caller asks for."""
    until_s = time.monotonic() + wait_s
    if wait_for:
        news = [request_news(wait_for)]
        if await here.seen(news, lambda connection: outcomes(connection, wait_for) or None, wait_s) is None:
            raise NotYet(f"Expected to see request {wait_for!r} within {wait_s:g} s, but it is not visible yet")
    for text in (min_offset, kapelle_watermark):
        if text:
            await reached(here, text, max(until_s - time.monotonic(), 0.0))
    return here


Reader = Annotated[Context, Depends(_fresh_enough)]


def _page(
    first: Annotated[
        int | None, Query(ge=1, le=LIMIT_MAX, description="Return this many items after the cursor.")
    ] = None,
    last: Annotated[
        int | None, Query(ge=1, le=LIMIT_MAX, description="Return this many items before the cursor.")
    ] = None,
    limit: Annotated[int | None, Query(ge=1, le=LIMIT_MAX, description="The same as `first`.")] = None,
    cursor: Annotated[
        str | None, Query(max_length=1_000, description="Continue from this cursor of an earlier page.")
    ] = None,
) -> PageRequest:
    """The requested page of a list."""
    if last is not None and (first is not None or limit is not None):
        raise BadRequest("Expected `first` or `last`, but found both")
    return PageRequest(last or first or limit or LIMIT_DEFAULT, cursor or None, backwards=last is not None)


Page = Annotated[PageRequest, Depends(_page)]
