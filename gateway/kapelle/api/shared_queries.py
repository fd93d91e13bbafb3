"""One query of the view for all callers with the same question: a thousand waiting workers cost as much as one."""

import asyncio
import sqlite3
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from kapelle.api.context import Context

T = TypeVar("T")

KEPT_MAX: Final = 1_000


class SharedQueries:
    """What was found in the present state of the view, by name of the question. For one event loop."""

    def __init__(self, here: Context) -> None:
        self._here = here
        self._known: dict[Hashable, tuple[object, asyncio.Future[Any]]] = {}

    async def ask(self, name: Hashable, query: Callable[[sqlite3.Connection], T]) -> T:
        """What a query finds. It is asked again when the view has moved on, or if it failed."""
        # The view has a new watermark with every commit, and only then. Who is told of news finds it there already.
        state = self._here.views.watermark
        known = self._known.get(name)
        if known is None or known[0] is not state or _failed(known[1]):
            if len(self._known) >= KEPT_MAX:
                self._known.clear()
            known = self._known[name] = state, asyncio.ensure_future(self._here.read(query))
        # One of those who wait may be cancelled: the others still want to know.
        value: T = await asyncio.shield(known[1])
        return value


def _failed(future: asyncio.Future[object]) -> bool:
    return future.done() and (future.cancelled() or future.exception() is not None)
