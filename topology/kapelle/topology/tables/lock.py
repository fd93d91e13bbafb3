"""One process at a time in a directory: a lock that the system takes back when its holder dies."""

import fcntl
import os
import socket
import time
from pathlib import Path
from typing import Final

from kapelle.topology.tables.errors import StoreFailed, StoreLocked

LOCK_NAME: Final = "kapelle.lock"
_POLL_S: Final = 0.02


class DirectoryLock:
    """Held from the moment it is made until `release`, or until the process ends, however it ends.

    The lock is the system's; what is written in the file only tells who holds it. A file that a dead process left
    behind therefore keeps nobody out.
    """

    def __init__(self, directory: Path, *, wait_s: float = 0.0) -> None:
        self._directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreFailed(directory, str(error)) from error
        try:
            self._acquire(time.monotonic() + wait_s)
        except BaseException:
            os.close(self._file)
            raise
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)

    def _acquire(self, deadline_s: float) -> None:
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    holder = os.pread(self._file, 200, 0).decode("utf-8", "replace")
                    raise StoreLocked(self._directory, holder or "a process that is just starting") from None
            time.sleep(_POLL_S)
