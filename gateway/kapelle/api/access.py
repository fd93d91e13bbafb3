"""Refuses unknown callers before their requests are read. Routes check the role of a caller with `needs`."""

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from kapelle.api.auth import SCHEME, Role, Tokens, host_of, is_local
from kapelle.api.problems import BadRequest, Forbidden, Problem, Unauthorised, problem_response

ROLE: Final = "role"
HOST_CHARS_SHOWN: Final = 80


class Guard:
    """A middleware for all that lies below a path, but for what is open to everyone: paths, and what is below `…/`."""

    def __init__(self, app: ASGIApp, tokens: Tokens | None, *, below: str, open_to_all: frozenset[str]) -> None:
        self._app = app
        self._tokens = tokens
        self._below = f"{below}/"
        self._open_to_all = open_to_all
        self._open_below = tuple(path for path in open_to_all if path.endswith("/"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_guarded(scope["path"]):
            try:
                headers = Headers(scope=scope)
                check_host(headers.getlist("host"))
                scope.setdefault("state", {})[ROLE] = self._role(headers)
            except Problem as problem:
                await problem_response(problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _is_guarded(self, path: str) -> bool:
        is_open = path in self._open_to_all or path.startswith(self._open_below)
        return path.startswith(self._below) and not is_open

    def _role(self, headers: Mapping[str, str]) -> Role:
        """The role of whoever asks. Without tokens this machine may do everything, and nobody else anything."""
        if self._tokens is None:
            if not is_local(headers.get("host"), headers.get("origin")):
                raise Forbidden("Expected a request from this machine, because no tokens are configured")
            return Role.ADMIN
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != SCHEME or not token:
            raise Unauthorised("Expected the header `Authorization: Bearer <token>`, but found none")
        role = self._tokens.role_of(token.strip())
        if role is None:
            raise Unauthorised("The token is unknown")
        return role


def check_host(hosts: Sequence[str]) -> None:
    """Refuse a request whose header Host is no host: parsers would not agree on where it was meant to go."""
    if len(hosts) > 1 or any(text and host_of(text) is None for text in hosts):
        shown = ", ".join(hosts)[:HOST_CHARS_SHOWN]
        raise BadRequest(f"Expected one header `Host` of host or host:port, but found {shown!r}")
