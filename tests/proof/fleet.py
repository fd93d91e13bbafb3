"""Members as real processes: started, killed, frozen, thawed and stopped."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from kapelle.cli.errors import ExitCode
from kapelle.cli.shutdown import LOCKED_S

STOP_S = 15.0
FORCED = ("ended before leaving in good order", f"Timeout (0:00:0{LOCKED_S}")  # the second where Python could not run


class Fleet:
    """Some member processes of one topology, each with a state directory of its own that outlives it."""

    def __init__(self, directory: Path, arguments: list[str]) -> None:
        self._directory = directory
        self._arguments = arguments
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._said_before: dict[int, int] = {}  # bytes of its output that are of earlier processes
        self.kills = 0
        self.stalls = 0
        self.starts = 0
        self.forced = 0  # told to stop, and ended before they had left in good order

    def start(self, number: int, *extra: str) -> None:
        """Start the member of this number, unless it runs."""
        if self.running(number):
            return
        state = self._state_of(number)
        state.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", *self._program(number), *self._arguments, *extra]
        with (state / "output.log").open("ab") as output:
            self._said_before[number] = output.tell()
            self._processes[number] = subprocess.Popen(command, stdout=output, stderr=output)
        self.starts += 1

    def _program(self, number: int) -> list[str]:
        """The module that is the member of this number, and what it is told besides what all are told."""
        return ["tests.proof.member", "--state-dir", str(self._state_of(number))]

    def _state_of(self, number: int) -> Path:
        return self._directory / f"member-{number}"

    def running(self, number: int) -> bool:
        process = self._processes.get(number)
        return process is not None and process.poll() is None

    def kill(self, number: int) -> None:
        if self.running(number):
            process = self._processes.pop(number)
            process.kill()
            process.wait()
            self.kills += 1

    def reap(self) -> int:
        """Count those that died by themselves since the last time, as they were told to."""
        dead = [n for n, p in self._processes.items() if p.poll() is not None and p.returncode == -signal.SIGKILL]
        for number in dead:
            del self._processes[number]
        self.kills += len(dead)
        return len(dead)

    def failed(self) -> list[str]:
        """Members that ended with an error of their own. One may be told to stop before it listens to that."""
        return [
            f"member {n} ended with {p.returncode}: {self.output(n)[-2000:]}"
            for n, p in self._processes.items()
            if p.poll() not in (None, 0, -signal.SIGKILL, -signal.SIGTERM)
        ]

    def freeze(self, number: int, seconds: float) -> None:
        """Stop the process as if the machine had stalled, then let it go on."""
        if self.running(number):
            pid = self._processes[number].pid
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)
            self.stalls += 1

    def stop(self, number: int) -> float:
        """Ask the member to leave. Returns how long it took."""
        began = time.monotonic()
        if self.running(number):
            process = self._processes[number]
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                raise AssertionError(f"member {number} did not stop:\n{self.standing(number)}") from None
            if process.returncode == ExitCode.FAILURE and self._was_forced(number):
                del self._processes[number]
                self.forced += 1
        return time.monotonic() - began

    def _was_forced(self, number: int) -> bool:
        said = (self._state_of(number) / "output.log").read_bytes()[self._said_before[number] :]
        return any(mark.encode() in said for mark in FORCED)

    def standing(self, number: int) -> str:
        """Where a member that runs stands, in its work and in all its threads, after the last that it has said."""
        for asked in (signal.SIGUSR2, signal.SIGUSR1):  # the second is answered even if Python is not running
            self._processes[number].send_signal(asked)
            time.sleep(1.0)
        return self.output(number)[-20_000:]

    def standing_all(self) -> str:
        """The same of each that runs."""
        return "\n".join(f"member {n}:\n{self.standing(n)}" for n in self._processes if self.running(n))

    def stop_all(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def output(self, number: int) -> str:
        return (self._state_of(number) / "output.log").read_text(errors="replace")

    def pick(self, chance: random.Random) -> int | None:
        """One of those that run."""
        running = [n for n in self._processes if self.running(n)]
        return chance.choice(running) if running else None
