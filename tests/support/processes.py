"""Server processes that end with the process that started them, whichever way that ends."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

LEASH = Path(__file__).with_name("leash.py")


class LeashedProcess:
    """A command on a leash. `pid` is the command's own, so signals reach it and not the leash."""

    def __init__(self, command: list[str], *, log: Path, scratch: Path | None = None) -> None:
        """Start it, its output appended to `log`. `scratch` is removed if we die before we could."""
        arguments = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), str(scratch or "-"), *command]
        with log.open("ab") as output:
            self._leash = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output)
        assert self._leash.stdin is not None, "it was asked for as a pipe"
        assert self._leash.stdout is not None, "it was asked for as a pipe"
        self._lifeline = self._leash.stdin
        with self._leash.stdout as said:
            self.pid = int(said.readline())

    @property
    def leash_pid(self) -> int:
        return self._leash.pid

    def alive(self) -> bool:
        return self._leash.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self.alive():
            os.kill(self.pid, number)

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended in time."""
        try:
            self._leash.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        self._lifeline.close()
        return True

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self.signal(signal.SIGKILL)
        self.wait(timeout_s=10)

    def stop(self, timeout_s: float) -> None:
        """Ask it to end, then make it end. A paused process must go on to hear the request."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        if not self.wait(timeout_s):
            self.kill()


def is_stopped(pid: int) -> bool:
    """Whether every thread of a process has heard a SIGSTOP."""
    states = [
        line
        for status in Path(f"/proc/{pid}/task").glob("*/status")
        for line in status.read_text().splitlines()
        if line.startswith("State:")
    ]
    return all("T (stopped)" in state for state in states)


def client_threads() -> set[int]:
    """The threads of this process that belong to Kafka clients."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # it has ended meanwhile
            if (task / "comm").read_text().startswith("rdk:"):
                found.add(int(task.name))
    return found
