"""Run a runtime as a separate program: start it, measure its CPU, stop it, show its last output."""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.processes import LeashedProcess

ROOT = Path(__file__).resolve().parent.parent
CLOCK_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
STOP_TIMEOUT_S = 15.0


class ProgramDied(Exception):
    """A program ended unexpectedly."""

    def __init__(self, name: str, log: str) -> None:
        super().__init__(f"Expected {name} to be running, but it has ended; its last words:\n{log}")
        self.name = name


class Program:
    """A child process, started in the root of the repository; leaving the `with` block stops it."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        descriptor, path = tempfile.mkstemp(prefix=f"{name}-", suffix=".log")
        os.close(descriptor)
        self.log = Path(path)
        self.process = LeashedProcess(["env", "--chdir", str(ROOT), *command], log=self.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def cpu_s(self) -> float:
        """User and system time of all its threads so far."""
        return cpu_s_of(self.process.pid)

    def check(self) -> None:
        if not self.process.alive():
            raise ProgramDied(self.name, self.last_words())

    def last_words(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.process.kill()

    def close(self) -> None:
        self.stop()
        self.log.unlink(missing_ok=True)

    def stop(self) -> float:
        """Ask it to stop, and make it stop if it does not; returns the seconds that it took."""
        asked = time.monotonic()
        self.process.stop(STOP_TIMEOUT_S)
        return time.monotonic() - asked


def cpu_s_of(pid: int) -> float:
    """User and system time of all threads of a process so far."""
    # The second field is the name in parentheses, which may hold anything: count from the last parenthesis.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_S
