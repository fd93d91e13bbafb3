"""The limits of connections: their number, and the time that a client may take.

| what | what is done |
|---|---|
| more connections than there may be | the one without a request for longest is closed; if each has one, 503 |
| a request whose head is not complete in time | closed |
| a body that is not complete in time | closed |
| an answer that is not read | closed |
| no descriptor left to accept with | said once in a while; accepting goes on after a second |

A descriptor that a connection has is one that the store cannot have, so their number is below the limit of the process.
"""

import asyncio
import logging
import resource
import time
from collections.abc import Callable
from typing import ClassVar, Final

import h11
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kapelle.topology.tables.descriptors import open_files_max

OTHERS_SHARE: Final = 4  # a quarter is for the view, the log, tails (each has a reader) and what is just being accepted
OTHERS_MAX: Final = 512
CONNECTIONS_MIN: Final = 16
CONNECTIONS_MAX: Final = 10_000
ACCEPTED_AT_ONCE: Final = 16  # between two looks at how many there are
DESCRIPTORS_MAX: Final = 65_536  # to raise the limit further than that brings nothing
QUIET_S: Final = 10.0
FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 42\r\n"
    b"Retry-After: 1\r\nConnection: close\r\n\r\nThis node has too many connections: retry."
)

_log = logging.getLogger("kapelle.api.connections")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one server allows its connections."""

    connections: int
    head_s: float
    body_s: float
    unread_s: float


def raise_descriptor_limit() -> None:
    """Let this process have as many descriptors as it may. For commands: a library leaves its process alone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS_MAX)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def connections_of(descriptors: int) -> int:
    """How many connections a process with this many descriptors may have."""
    reserved = open_files_max(descriptors) + min(descriptors // OTHERS_SHARE, OTHERS_MAX)
    return max(CONNECTIONS_MIN, min(descriptors - reserved, CONNECTIONS_MAX))


def connections_here() -> int:
    """How many connections this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if soft == resource.RLIM_INFINITY else connections_of(soft)


class OncePerInterval(logging.Filter):
    """Lets a warning of the same words pass once in a while, however often it is given. Errors always pass."""

    def __init__(self, every_s: float = QUIET_S, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._every_s = every_s
        self._now_s = now_s
        self._told_s: dict[str, float] = {}  # by the words of our own code, which are few

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno > logging.WARNING:
            return True
        now_s = self._now_s()
        if now_s - self._told_s.get(record.msg, -self._every_s) < self._every_s:
            return False
        self._told_s[record.msg] = now_s
        return True


_log.addFilter(OncePerInterval())


class LimitedProtocol(H11Protocol):
    """One connection. `waiting` are all of its server's that have no request, the longest first."""

    limits: ClassVar[Limits]
    waiting: ClassVar[dict["LimitedProtocol", None]]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.logger = _log
        self._phase: object = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections and not self._displaces():
            _log.warning("refused a connection: limit reached, and no connection is idle")
            transport.write(FULL)
            transport.close()
            return
        self._look()

    def _displaces(self) -> bool:
        """Close the connection that has been without a request for longest. False if there is none."""
        oldest = next(iter(self.waiting), None)
        if oldest is None:
            return False
        _log.warning("too many connections: closed an idle one")
        oldest.give_up()
        return True

    def give_up(self) -> None:
        """Close it now."""
        self.waiting.pop(self, None)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.pop(self, None)
        for timer in (self._deadline, self._unread):
            if timer is not None:
                timer.cancel()
        self._phase = h11.CLOSED
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """Begin a new time-out when the connection has come to another part of a request."""
        phase = self.conn.their_state
        if phase is self._phase or self._phase is h11.CLOSED:
            return
        self._phase = phase
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if phase is h11.IDLE:
            self.waiting[self] = None
            self._deadline = self.loop.call_later(self.limits.head_s, self.give_up)
        else:
            self.waiting.pop(self, None)
            if phase is h11.SEND_BODY:
                self._deadline = self.loop.call_later(self.limits.body_s, self.give_up)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self.limits.unread_s, self.give_up)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


def limited(limits: Limits) -> type[LimitedProtocol]:
    """The protocol of one server."""
    return type("Limited", (LimitedProtocol,), {"limits": limits, "waiting": {}})


def quiet(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """The exception handler of a server's loop. asyncio would write a traceback for each accept that fails."""
    if isinstance(context.get("exception"), OSError) and "socket" in context and "accept" in str(context["message"]):
        _log.warning("no file descriptor is left to accept a connection: the limit of open files is too low")
        return
    loop.default_exception_handler(context)
