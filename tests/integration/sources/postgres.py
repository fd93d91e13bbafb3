"""A real PostgreSQL server on a free port, from the system's packages. Without one the tests fail: they never skip."""

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from tests.support.commands import run
from tests.support.processes import LeashedProcess
from tests.support.settings import free_ports

READY_S = 60.0
USER = "postgres"


class Postgres:
    """A server with an empty database, which is gone after the block."""

    def __init__(self) -> None:
        self._binaries = installed()
        self._directory = Path(tempfile.mkdtemp(prefix="kapelle-postgres-"))
        self.port = free_ports().client  # none that an outgoing connection gets while the files are made
        self.dsn = f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"

    def __enter__(self) -> Self:
        if os.geteuid() == 0:
            shutil.chown(self._directory, USER, USER)
        files = self._directory / "files"
        run([*_as_user(), str(self._binaries / "initdb"), "-D", str(files), "-U", USER, "-A", "trust", "--no-sync"])
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "port": self.port}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [*_as_user(), str(self._binaries / "postgres"), "-D", str(files), *options]
        self._process = LeashedProcess(command, log=self._directory / "log", scratch=self._directory)
        self._await_ready()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.signal(signal.SIGINT)  # "fast": it does not wait for clients to leave
        self._process.wait(READY_S)
        shutil.rmtree(self._directory, ignore_errors=True)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.dsn)

    def _await_ready(self) -> None:
        until = time.monotonic() + READY_S
        while True:
            try:
                self.connect().close()
            except psycopg.OperationalError:
                said = (self._directory / "log").read_text(errors="replace")[-2_000:]
                assert self._process.alive(), f"Expected PostgreSQL to start, but it says: {said}"
                assert time.monotonic() < until, f"Expected PostgreSQL within {READY_S:g} s: {said}"
                time.sleep(0.1)
            else:
                return


def installed() -> Path:
    """Where the server's programs are, from Debian's packages if need be."""
    if (found := _found()) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        run(["apt-get", "update", "-q"])
        run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "postgresql"])
        found = _found()
    assert found is not None, "Expected PostgreSQL's `initdb` and `postgres`, but found none: install the server"
    return found


def _found() -> Path | None:
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if on_path := shutil.which("initdb"):
        places.append(Path(on_path).resolve().parent)
    return next((place for place in places if (place / "postgres").exists() and (place / "initdb").exists()), None)


def _as_user() -> list[str]:
    """The server refuses to run as root."""
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"] if os.geteuid() == 0 else []
