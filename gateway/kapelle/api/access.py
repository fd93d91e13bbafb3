"""Refuses unknown callers before their requests are read. Routes check the role of a caller with `needs`."""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from kapelle.api.auth import SCHEME, Role, Tokens, host_of, is_local, is_same_origin
from kapelle.api.problems import BadRequest, Forbidden, Problem, Unauthorised, problem_response

ROLE: Final = "role"
READS: Final = ("GET", "HEAD", "OPTIONS")
OWN_SITES: Final = ("same-origin", "none")  # of the header Sec-Fetch-Site
HOST_CHARS_SHOWN: Final = 80


class Guard:
    """A middleware for everything: the host of each request, and below a path who sends it.

    Without tokens only this machine may ask. A page in a browser of this machine is not this machine: it may read
    nothing and change nothing, unless this server has served it. Paths that are open to everyone, and those below an
    open `…/`, are served without a token.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens | None, *, below: str, open_to_all: frozenset[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._below = f"{below}/"
        self._open_to_all = open_to_all
        self._open_below = tuple(path for path in open_to_all if path.endswith("/"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                headers = Headers(scope=scope)
                check_host(headers.getlist("host"))
                if self._is_guarded(scope["path"]):
                    scope.setdefault("state", {})[ROLE] = self._role(headers)
                if self._tokens is None and not scope["path"].startswith(self._open_below):
                    _check_sender(scope["method"], headers)
            except Problem as problem:
                await problem_response(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_guarded(self, path: str) -> bool:
        is_open = path in self._open_to_all or path.startswith(self._open_below)
        return path.startswith(self._below) and not is_open

    def _role(self, headers: Mapping[str, str]) -> Role:
        """The role of the caller. Without tokens this machine may do everything (`_check_sender`)."""
        if self._tokens is None:
            return Role.ADMIN
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != SCHEME or not token:
            raise Unauthorised("Expected the header `Authorization: Bearer <token>`, but found none")
        role = self._tokens.role_of(token.strip())
        if role is None:
            raise Unauthorised("The token is unknown")
        return role


def _check_sender(method: str, headers: Mapping[str, str]) -> None:
    """Refuse what others send where there are no tokens: another machine, or a page that another server has served.

    A browser sends simple writes of any page without asking, also to another port of this machine. It cannot hide
    where the page is from.
    """
    host, origin = headers.get("host"), headers.get("origin")
    if not is_local(host, origin):
        raise Forbidden("Expected a request from this machine, because no tokens are configured")
    if method in READS:
        return
    is_own = origin is None or is_same_origin(origin, host)
    if not is_own or headers.get("sec-fetch-site", "none") not in OWN_SITES:
        raise Forbidden("Expected no write from a web page of another origin, because no tokens are configured")


def check_host(hosts: Sequence[str]) -> None:
    """Refuse a request whose header Host is no host: parsers would not agree on where it was meant to go."""
    if len(hosts) > 1 or any(text and host_of(text) is None for text in hosts):
        shown = ", ".join(hosts)[:HOST_CHARS_SHOWN]
        raise BadRequest(f"Expected one header `Host` of host or host:port, but found {shown!r}")
