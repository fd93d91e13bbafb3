"""From a call to a request, and from a response to an answer or an error: the same for both clients."""

import time
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final, TypedDict, TypeVar

import httpx
import msgspec

from kapelle.client.calls import Call, QueryValue
from kapelle.client.errors import OF_STATUS, ApiError, BadAddress, Problem, ServerFailed, TimedOut, Unavailable

T = TypeVar("T")

TIMEOUT_S: Final = 40.0  # more than a server ever waits for an effect
RETRY_S: Final = (0.1, 0.3, 1.0)  # pauses between attempts: a server that restarts is back within them
SHOWN_CHARS_MAX: Final = 300
WATERMARK: Final = "Kapelle-Watermark"
FRESH_S: Final = 60.0  # for so long reads wait for what was written
URL_EXAMPLE: Final = "http://127.0.0.1:8080"


class ClientSettings(TypedDict):
    """The settings of a client of httpx."""

    base_url: httpx.URL
    headers: dict[str, str]


class RequestArguments(TypedDict):
    """The arguments of `httpx.Client.request`."""

    method: str
    url: str
    params: dict[str, QueryValue]
    content: bytes | None
    headers: dict[str, str]


class Address(msgspec.Struct, frozen=True):
    """The address of the server, and the caller."""

    url: str
    token: str | None = None
    user: str | None = None

    def settings(self) -> ClientSettings:
        """The settings of a client of httpx for this address."""
        headers = {"Accept": "application/json"}
        if self.token is not None:
            if not (self.token.isascii() and self.token.isprintable() and self.token.strip()):
                raise BadAddress("Expected a token of visible ASCII characters, but it has other characters")
            headers["Authorization"] = f"Bearer {self.token}"
        if self.user is not None:
            headers["user"] = self.user.encode("latin-1", "replace").decode("latin-1")
        return {"base_url": self._checked_url(), "headers": headers}

    def _checked_url(self) -> httpx.URL:
        try:
            url = httpx.URL(self.url.rstrip("/"))
        except httpx.InvalidURL as error:
            raise BadAddress(f"Expected a URL such as {URL_EXAMPLE}, but found {self.url!r}: {error}") from error
        if url.scheme not in ("http", "https") or not url.host:
            raise BadAddress(f"Expected a URL such as {URL_EXAMPLE}, but found {self.url!r}")
        return url


class LastWrite:
    """The position of the server's view after the last write of this client: later reads must show that write.

    Another node may answer the read, and its view may be behind. After a while all nodes have reached the position, and
    it is not sent any more.
    """

    def __init__(self) -> None:
        self._mark: str | None = None
        self._until_s = 0.0

    def headers(self, call: Call[object]) -> dict[str, str]:
        """What a read says of it."""
        is_told = call.key is None and self._mark is not None and time.monotonic() < self._until_s
        return {WATERMARK: self._mark} if is_told and self._mark is not None else {}

    def note(self, call: Call[object], response: httpx.Response) -> None:
        """A write was answered."""
        if call.key is not None and response.is_success and WATERMARK in response.headers:
            self._mark = response.headers[WATERMARK]
            self._until_s = time.monotonic() + FRESH_S


def arguments(call: Call[object], last_write: LastWrite) -> RequestArguments:
    """The arguments of `httpx.Client.request` for a call."""
    headers = last_write.headers(call)
    if call.content is not None:
        headers["Content-Type"] = call.content_type
    if call.key is not None:
        headers["Idempotency-Key"] = call.key
    return {
        "method": call.method,
        "url": call.path,
        "params": dict(call.query),
        "content": call.content,
        "headers": headers,
    }


def pauses() -> Iterator[float | None]:
    """How long to wait after each attempt that found nobody; None after the last."""
    yield from RETRY_S
    yield None


def answer(call: Call[T], response: httpx.Response) -> T:
    """The answer of a response, or the error that it means."""
    if not response.is_success:
        raise refusal(response)
    if response.status_code == HTTPStatus.ACCEPTED:
        raise TimedOut(
            f"Expected to see the effect of request {call.key} in time, but it is not visible yet: it will be",
            Problem(status=HTTPStatus.ACCEPTED, request_id=call.key),
        )
    try:
        value: T = msgspec.json.decode(response.content, type=call.answer)
    except msgspec.DecodeError as error:
        raise BadAddress(f"Expected an answer of Kapelle's API from {response.url}, but {error}") from error
    return value


def refusal(response: httpx.Response) -> ApiError:
    """The error that an unsuccessful response means."""
    status = response.status_code
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except msgspec.DecodeError:
        problem = Problem()
    kind = OF_STATUS.get(status, ServerFailed if status >= HTTPStatus.INTERNAL_SERVER_ERROR else BadAddress)
    if not problem.detail:
        body_text = response.text.strip()[:SHOWN_CHARS_MAX]
        text = f"Expected {response.url} to answer as Kapelle does, but it answered {status} {body_text}".rstrip()
        return kind(text, Problem(status=status, detail=body_text))
    others = [error for error in problem.errors if error != problem.detail]
    return kind("\n  ".join([problem.detail, *others]), problem)


def absence(error: httpx.HTTPError, url: str, call: Call[object]) -> ApiError:
    """The error that a missing response means."""
    problem = Problem(request_id=call.key)
    if isinstance(error, httpx.TimeoutException) and not isinstance(error, httpx.ConnectTimeout):
        return TimedOut(f"Expected {url} to answer in time, but it did not", problem)
    why = str(error) or type(error).__name__
    return Unavailable(f"Expected Kapelle at {url}, but there is no answer: {why}", problem)


def may_try_again(error: httpx.HTTPError) -> bool:
    """Whether the server was unreachable, so that the call can be retried. Its key makes sure that it counts once."""
    return isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.ConnectTimeout)
