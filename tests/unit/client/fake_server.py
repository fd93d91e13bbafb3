"""A server made of answers: what a client asked, and what it is told."""

import json
from collections.abc import Callable
from typing import Any

import httpx

Answer = httpx.Response | Exception


class FakeServer:
    """Answers requests in order, the last answer again and again. `asked` are the requests that came."""

    def __init__(self, *answers: Answer | Callable[[httpx.Request], httpx.Response]) -> None:
        self._answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(found, Exception):
            raise found
        if isinstance(found, httpx.Response):
            return httpx.Response(found.status_code, headers=found.headers, content=found.content)
        return found(request)

    @property
    def transport(self) -> httpx.MockTransport:
        return httpx.MockTransport(self)

    @property
    def body(self) -> Any:
        """The body of the last request."""
        return json.loads(self.asked[-1].content)

    @property
    def line(self) -> str:
        """The last request: its method, path and query."""
        last = self.asked[-1]
        return f"{last.method} {last.url.raw_path.decode()}"


def ok(**members: Any) -> httpx.Response:
    return httpx.Response(200, json=members)


def problem(status: int, detail: str, *errors: str) -> httpx.Response:
    body = {"type": "about:blank", "title": "T", "status": status, "detail": detail, "errors": list(errors)}
    return httpx.Response(
        status, json={**body, "request_id": "r-1"}, headers={"content-type": "application/problem+json"}
    )
