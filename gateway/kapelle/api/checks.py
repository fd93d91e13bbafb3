"""Definitions are checked one at a time, off the event loop, so that a check never delays other requests.

A check may take a third of a second of computing. Several at a time would share the interpreter with every read; one
at a time leaves most of it to the others. Callers wait for their turn, and when too many wait the next one is asked to
come back.
"""

import sys
import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import anyio.to_thread
from anyio import CapacityLimiter

from kapelle.api.problems import Unavailable
from kapelle.topology.collector import at_rest

P = ParamSpec("P")
T = TypeVar("T")

WAITING_MAX: Final = 8
SWITCH_S: Final = 0.000_5

_ONE = threading.Lock()  # the interval is the process's own, whatever the number of applications in it


def _yielding(check: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a check in this thread, which gives way to others ten times as often as threads do by default.

    A read takes the interpreter a dozen times, whenever it comes back from the database or the network. Every time it
    would wait for a whole interval. The garbage collector would stop everyone for longer still: a check makes many
    objects, and none that outlives it.
    """
    with _ONE, at_rest():
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        try:
            return check(*args, **kwargs)
        finally:
            sys.setswitchinterval(before)


class Checks:
    """The turn that checks of definitions take."""

    def __init__(self) -> None:
        self._turn = CapacityLimiter(1)
        self._asked = 0

    async def run(self, check: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a check when its turn comes. 503 if too many wait already."""
        if self._asked > WAITING_MAX:
            raise Unavailable(
                f"Expected at most {WAITING_MAX} definitions to wait for their check, but there are more: "
                "try again in a second"
            )
        self._asked += 1
        try:
            return await anyio.to_thread.run_sync(lambda: _yielding(check, *args, **kwargs), limiter=self._turn)
        finally:
            self._asked -= 1
