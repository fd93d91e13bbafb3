"""Does this checkout fold ordinary work as fast as another one? Two checkouts on one CPU, in turns.

    python -m benchmarks.before_after /path/to/other                    CPU time, fifteen rounds
    python -m benchmarks.before_after /path/to/other --rounds 3 --starts 50
    python -m benchmarks.before_after /path/to/other --instructions     counted by valgrind: slow, but repeatable

The other checkout needs an environment of its own (`tools/setup` there makes `.venv`). Three processes fold batches of
the same starts, each on an embedded log of its own: this checkout, the other one, and the other one a second time. They
are pinned to one CPU and take turns, so the drift of the machine is the same for all of them.

    noop, chain, beside                  workflows of one NoOp, of ten one after the other, of ten beside each other
    tagged                               as chain, each step with three tags that nobody limits
    …_throughput                         of this checkout as a part of the other's: the median of the rounds
    …_throughput_low, …_throughput_high  the lowest and the highest round
    …_noise, …_noise_low, …_noise_high   the same of the other checkout against itself
    …_instructions                       the instructions of the other checkout over those of this one

Progress goes to stderr; the last line on stdout is one JSON object.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from benchmarks.command import end
from benchmarks.figures import progress
from benchmarks.programs import ROOT

PROGRAM: Final = ROOT / "benchmarks" / "before_after_program.py"
WORK: Final = ("noop", "chain", "beside", "tagged")
COLLECTED: Final = re.compile(r"Collected : (\d+)")
WARM_UP: Final = 2  # batches
STOP_S: Final = 60.0


def python_of(text: str) -> Path:
    """The interpreter of a checkout."""
    found = Path(text).resolve() / ".venv" / "bin" / "python"
    if not found.exists():
        raise argparse.ArgumentTypeError(f"expected a checkout with an environment, but found no {found}")
    return found


def positive(text: str) -> int:
    """A number of things."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, but found {text!r}")
    return int(text)


class Folder:
    """A process that folds batches when it is told to."""

    def __init__(self, python: Path, cpu: int, wrapper: Sequence[str] = ()) -> None:
        command = [*wrapper, str(python), "-P", str(PROGRAM), str(cpu)]  # -P: nothing of this directory is imported
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=tempfile.gettempdir())

    def fold(self, work: str, starts: int) -> float:
        """The seconds of CPU that a batch takes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{work} {starts}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"Expected an answer to {work!r}, but the process ended: see its output above")
        return float(json.loads(answer)["cpu_s"])

    def close(self) -> None:
        """Let it end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def cpu_times(other: Path, options: argparse.Namespace) -> dict[str, float]:
    """Throughput as a part of the other's, and the noise."""
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        folders = [Folder(python, options.cpu) for python in (other, other, Path(sys.executable))]
        for folder in folders:
            stack.callback(folder.close)
        for work in WORK:
            rounds = []
            progress(f"{work}: {options.rounds} rounds of {options.starts} starts")
            for number in range(WARM_UP + options.rounds):
                turn = number % len(folders)  # each is first as often as the others
                took = {one: folders[one].fold(work, options.starts) for one in (*range(turn, 3), *range(turn))}
                rounds.append((took[0], took[1], took[2]))
            counted = rounds[WARM_UP:]
            figures |= spread(f"{work}_throughput", [before / now for before, _, now in counted])
            figures |= spread(f"{work}_noise", [before / again for before, again, _ in counted])
    return figures


def spread(name: str, ratios: Sequence[float]) -> dict[str, float]:
    """The median of ratios, and how far they are apart."""
    found = {"": statistics.median(ratios), "_low": min(ratios), "_high": max(ratios)}
    return {f"{name}{part}": round(value, 3) for part, value in found.items()}


def instructions(other: Path, options: argparse.Namespace) -> dict[str, float]:
    """The other's instructions over those of this checkout. What a process needs to start is taken away."""
    figures = {}
    for work in WORK:
        counts = []
        for python in (other, Path(sys.executable)):
            progress(f"{work}: counting the instructions of {python}")
            one, two = (_count(python, options.cpu, work, [options.starts] * batches) for batches in (1, 2))
            counts.append(two - one)
        figures[f"{work}_instructions"] = round(counts[0] / counts[1], 3)
    return figures


def _count(python: Path, cpu: int, work: str, batches: Sequence[int]) -> int:
    with tempfile.TemporaryDirectory(prefix="before-after-") as directory:
        log = Path(directory) / "valgrind.log"
        out = Path(directory) / "callgrind.out"
        wrapper = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--log-file={log}"]
        folder = Folder(python, cpu, wrapper)
        try:
            for starts in batches:
                folder.fold(work, starts)
        finally:
            folder.close()
        found = COLLECTED.search(log.read_text())
    if found is None:
        raise RuntimeError("Expected valgrind to say how many instructions it has counted, but it did not")
    return int(found[1])


def parser() -> argparse.ArgumentParser:
    """What can be asked for."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.before_after",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("other", type=python_of, metavar="CHECKOUT", help="Path of the other checkout")
    made.add_argument("--rounds", type=positive, default=15, help="Batches of each workflow (default: 15)")
    made.add_argument("--starts", type=positive, default=200, help="Starts of each batch (default: 200)")
    made.add_argument(
        "--cpu", type=int, default=min(os.sched_getaffinity(0)), help="The CPU of all processes (default: the first)"
    )
    made.add_argument("--instructions", action="store_true", help="Count instructions with valgrind instead")
    return made


def main(argv: Sequence[str]) -> int:
    asked = parser()
    options = asked.parse_args(argv)
    if options.instructions and shutil.which("valgrind") is None:
        asked.error("expected valgrind to be installed, but found none: leave out --instructions")
    measured = instructions(options.other, options) if options.instructions else cpu_times(options.other, options)
    figures: dict[str, Any] = {"benchmark": "before_after", "rounds": options.rounds, "starts": options.starts}
    end({**figures, **measured}, {})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
