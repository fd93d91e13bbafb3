"""The built-in step type `Http`: one request, to hosts that the operator has allowed.

    worker.add("Http", HttpStep(allow=["api.example.com", "*.internal.example.com"]))

A step has `http` (a MAP of `url`, `method`, `headers` and `body`) and sets `status_code` and `response_body`. Its
`state_expr` says what a response means. By default 2xx succeeds, 4xx fails without a retry, and any other status is an
error that is retried. A request without a response is a platform failure.

A workflow's author chooses the URL, so the worker must not give the author access to other hosts: a host is allowed by
name, its address is looked up once and checked, the connection goes to that address, and a redirect may not leave the
host. Log lines and messages show URLs without credentials and queries.
"""

import asyncio
import base64
from collections.abc import Callable, Collection, Mapping
from typing import Final
from urllib.parse import unquote_to_bytes

import httpx
from pydantic import BaseModel, ConfigDict

from kapelle.worker.addresses import addresses_of, checked_address
from kapelle.worker.answers import ACCEPTED_ENCODINGS, read_bounded, text_of
from kapelle.worker.context import Context
from kapelle.worker.errors import NonRetryable, PlatformFailure, Retryable
from kapelle.worker.urls import fit, parsed, shown

TYPE: Final = "Http"
TIMEOUT_S: Final = 30.0
REDIRECTS_MAX: Final = 5
SHOWN_CHARS_MAX: Final = 500
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Set by the transport itself, or about the connection rather than the request.
OWNED_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection"})

# Tells the state from the expression and what it may refer to: DONE, FATAL_ERROR, USER_ERROR or PLATFORM_ERROR.
Evaluator = Callable[[str, Mapping[str, object]], object]
Resolver = Callable[[str, int], Collection[str]]


class HttpRequest(BaseModel):
    """The parameter `http` of a step."""

    model_config = ConfigDict(extra="forbid")

    url: str
    method: str = "GET"
    headers: dict[str, str] = {}
    body: str | None = None


class HttpStep:
    """The function of the step type `Http`. `allow` lists host names; `*.name` allows all subdomains."""

    def __init__(
        self,
        allow: Collection[str],
        *,
        evaluate: Evaluator | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        resolve: Resolver | None = None,
    ) -> None:
        self._allow = frozenset(host.lower() for host in allow)
        self._evaluate = evaluate
        self._transport = transport
        self._resolve = resolve or addresses_of

    async def __call__(self, http: HttpRequest, context: Context, state_expr: str = "") -> dict[str, object]:
        method = http.method.upper()
        if method not in METHODS:
            raise NonRetryable(f"Expected a method among {', '.join(sorted(METHODS))}, but found {http.method!r}")
        status, body = await self._answer(http, method)
        context.log(f"{method} {shown(http.url)} answered {status}")
        outcome = self._state(state_expr, status, body)
        failure = FAILURES.get(outcome)
        if failure is not None:
            raise failure(f"{method} {shown(http.url)} answered {status}: {body[:SHOWN_CHARS_MAX]}")
        return {"status_code": status, "response_body": body}

    def _state(self, state_expr: str, status: int, body: str) -> str:
        if self._evaluate is None or not state_expr:
            return default_state(status)
        state = self._evaluate(state_expr, {"status_code": status, "response_body": body})
        if state != DONE and state not in FAILURES:
            raise NonRetryable(f"Expected state_expr to be one of {', '.join([DONE, *FAILURES])}, but it is {state!r}")
        return str(state)

    async def _answer(self, http: HttpRequest, method: str) -> tuple[int, str]:
        url = self._checked(http.url)
        headers = {name: value for name, value in http.headers.items() if name.lower() not in OWNED_HEADERS}
        try:
            async with asyncio.timeout(TIMEOUT_S), self._opened() as transport:
                for _ in range(REDIRECTS_MAX + 1):
                    request = await self._request(method, url, headers, http)
                    status, body, location = await self._once(transport, request)
                    if location is None:
                        return status, body
                    url = self._redirected(url, location)
                    if status == httpx.codes.SEE_OTHER:
                        method, http = "GET", http.model_copy(update={"body": None})
        except (httpx.HTTPError, OSError, TimeoutError) as error:
            raise PlatformFailure(
                f"Expected {shown(http.url)} to answer within {TIMEOUT_S:g} s, but {error!r}"
            ) from error
        raise NonRetryable(f"Expected at most {REDIRECTS_MAX} redirects of {shown(http.url)}, but found more")

    def _opened(self) -> httpx.AsyncBaseTransport:
        # Proxies and credentials of the worker's own environment are not for workflows. A client would write whole URLs
        # to its log, so there is none around the transport.
        return self._transport or httpx.AsyncHTTPTransport(trust_env=False)

    async def _request(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], http: HttpRequest
    ) -> httpx.Request:
        """A request to the address that was checked, under the name that was asked for."""
        port = url.port or (443 if url.scheme == "https" else 80)
        addresses = await asyncio.get_running_loop().run_in_executor(None, self._resolve, url.host, port)
        address = checked_address(url.host, addresses)
        return httpx.Request(
            method,
            url.copy_with(host=address, userinfo=b""),
            headers=_merged(_defaults(url), headers, {"Host": url.netloc.decode()}),
            content=http.body.encode() if http.body else None,
            extensions={"sni_hostname": url.host, "timeout": httpx.Timeout(TIMEOUT_S).as_dict()},
        )

    @staticmethod
    async def _once(transport: httpx.AsyncBaseTransport, request: httpx.Request) -> tuple[int, str, str | None]:
        response = await transport.handle_async_request(request)
        try:
            chunks = response.stream
            if not isinstance(chunks, httpx.AsyncByteStream):
                raise TypeError(f"Expected a transport that answers asynchronously, but found {type(chunks).__name__}")
            body = await read_bounded(chunks, response.headers.get("content-encoding", ""))
        finally:
            await response.aclose()
        location = response.headers.get("location") if response.has_redirect_location else None
        return response.status_code, text_of(body, response.headers.get("content-type", "")), location

    def _checked(self, text: str) -> httpx.URL:
        url = parsed(text)
        if not self._is_allowed(url.host.lower()):
            raise NonRetryable(f"Expected a host that this worker may reach, but found {url.host!r}")
        return url

    def _is_allowed(self, host: str) -> bool:
        parents = host.split(".")
        below = ["*." + ".".join(parents[at:]) for at in range(1, len(parents))]
        return any(name in self._allow for name in [host, *below])

    def _redirected(self, url: httpx.URL, location: str) -> httpx.URL:
        try:
            to = self._checked(str(url.join(fit(location))))
        except httpx.InvalidURL as error:
            raise NonRetryable(f"Expected a redirect to a URL, but found {shown(location)!r}") from error
        if (to.host, to.port) != (url.host, url.port) or to.scheme != url.scheme:
            raise NonRetryable(f"Expected redirects to stay at {url.host!r}, but one leads to {shown(str(to))!r}")
        return to


def _merged(*parts: Mapping[str, str]) -> httpx.Headers:
    """Headers, of which a later one replaces an earlier one of its name in whatever case."""
    merged = httpx.Headers()
    for part in parts:
        merged.update(part)
    return merged


def _defaults(url: httpx.URL) -> dict[str, str]:
    """Headers that a step may replace. Credentials of the URL are sent as a client would send them."""
    accepted = {"Accept-Encoding": ACCEPTED_ENCODINGS}
    if not url.userinfo:
        return accepted
    user, _, password = url.userinfo.partition(b":")
    basic = base64.b64encode(unquote_to_bytes(user) + b":" + unquote_to_bytes(password)).decode()
    return {"Authorization": f"Basic {basic}", **accepted}


DONE: Final = "DONE"
FAILURES: Final[Mapping[str, type[Exception]]] = {
    "FATAL_ERROR": NonRetryable,
    "USER_ERROR": Retryable,
    "PLATFORM_ERROR": PlatformFailure,
}


def default_state(status: int) -> str:
    """What an answer means, unless the step says otherwise."""
    return {2: DONE, 4: "FATAL_ERROR"}.get(status // 100, "USER_ERROR")
