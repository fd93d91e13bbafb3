"""The server of the application. It binds its address before it reports that it is ready, and stops in order.

serve(app, "127.0.0.1", 8080, ready=print)          # in this thread, until a signal

with ApiServer(app, "127.0.0.1", 0) as server:      # in a thread of its own
    httpx.get(f"{server.url}/health")
"""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Final, Self

import uvicorn
from fastapi import FastAPI

from kapelle.api.auth import check_exposure
from kapelle.api.connections import ACCEPTED_AT_ONCE, Limits, connections_here, limited, quiet
from kapelle.api.context import Context
from kapelle.api.errors import AddressTaken
from kapelle.api.settings import ApiSettings

STOP_S: Final = 5  # how long requests may take to end once we are told to stop
START_S: Final = 10.0
BACKLOG: Final = 2_048
VANISHED_MS: Final = 60_000  # how long a peer may leave what was sent unacknowledged


class _Server(uvicorn.Server):
    """Tells when it is ready, and lets waiting requests go as soon as it is told to stop."""

    def __init__(self, config: uvicorn.Config, context: Context, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._context = context
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_exception_handler(quiet)
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(BACKLOG)  # asyncio accepts few at a time, and has the kernel keep no more than that
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's own signature
        """Stop; at a second Ctrl-C at once. Uvicorn's own would raise the signal again, past those who must close."""
        self._context.stop()
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True


class ApiServer:
    """The API on an address. The address is taken when it is made: port 0 is any that is free."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        self._context: Context = app.state.context
        check_exposure(host, self._context.settings.tokens)
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._is_ready = threading.Event()
        self._on_ready: Callable[[str], None] = lambda _: None
        settings = self._context.settings
        config = uvicorn.Config(
            app,
            http=limited(limits_of(settings)),
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=STOP_S,
            server_header=False,
            backlog=ACCEPTED_AT_ONCE,
        )
        config.timeout_keep_alive = settings.idle_ms / 1000  # a fraction will do as well
        self._server = _Server(config, self._context, self._tell_ready)
        self._thread = threading.Thread(target=self._run, name="kapelle-api", daemon=True)

    def run(self, ready: Callable[[str], None] = lambda _: None) -> None:
        """Serve in this thread until SIGINT, SIGTERM or `stop`. `ready` is told the URL."""
        self._on_ready = ready
        self._run()

    def start(self) -> Self:
        """Serve in a thread of its own; returns when requests are answered."""
        self._thread.start()
        if not self._is_ready.wait(START_S):
            raise TimeoutError(f"Expected the API to be ready within {START_S} s, but it is not")
        return self

    def stop(self) -> None:
        """End what is being answered, then stop. May be called from any thread."""
        self._context.stop()
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def _tell_ready(self) -> None:
        self._is_ready.set()
        self._on_ready(self.url)


def serve(app: FastAPI, host: str, port: int, ready: Callable[[str], None] = lambda _: None) -> None:
    """Serve until SIGINT or SIGTERM. An address that others can reach is refused without tokens."""
    ApiServer(app, host, port).run(ready)


def limits_of(settings: ApiSettings) -> Limits:
    """What the settings of an API allow its connections."""
    return Limits(
        connections=connections_here() if settings.connections_max is None else settings.connections_max,
        head_s=settings.head_ms / 1000,
        body_s=settings.body_ms / 1000,
        unread_s=settings.unread_ms / 1000,
    )


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By name: asyncio turns off Nagle's delay (40 ms an answer) only for sockets that say that they are TCP.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # What is accepted inherits it: a peer that has vanished without a word is noticed, and its connection closed.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED_MS)
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise AddressTaken(host, port, str(error)) from error
    return bound
