"""Refuses bodies that are too large before they are read, or while they are read."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kapelle.api.problems import TooLarge, problem_response

LENGTH: Final = b"content-length"


class BodyLimit:
    """A middleware. A body whose length is not told is counted as it comes."""

    def __init__(self, app: ASGIApp, bytes_max: int) -> None:
        self._app = app
        self._bytes_max = bytes_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = dict(scope["headers"]).get(LENGTH, b"0")
        if length.isdigit() and int(length) > self._bytes_max:
            await problem_response(self._problem())(scope, receive, send)
            return
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        count = 0

        async def counted() -> Message:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            if count > self._bytes_max:
                raise self._problem()
            return message

        return counted

    def _problem(self) -> TooLarge:
        return TooLarge(f"Expected a body of at most {self._bytes_max:,} bytes, but found a larger one")
