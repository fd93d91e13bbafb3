"""Records per second of one runtime: started, warmed by a few records, then timed from the opening of the gate."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from benchmarks.figures import progress
from benchmarks.harness import Bench, Gate, Place
from benchmarks.programs import Program
from benchmarks.workload import Given

FIRST_RECORDS = 64  # enough that every partition gets some

Command = Callable[[Place], Sequence[str]]


@dataclass(frozen=True)
class Load:
    """How much work a runtime is given: enough to be warm (a JVM takes long), then what is timed."""

    records: int
    warm_up: int


@dataclass(frozen=True)
class Speed:
    """One run. CPU is that of the runtime's process, not of the broker."""

    name: str
    records: int
    records_per_s: float
    cpu_s_per_100k: float


class Standby:
    """A program that is up, owns its partitions and has nothing to do; leaving the `with` block stops it."""

    def __init__(self, bench: Bench, command: Command, member: str = "first") -> None:
        self.bench = bench
        self.ends = bench.give(bench.route.records(FIRST_RECORDS, f"{member}-{time.monotonic_ns()}"))
        self.began = time.perf_counter()
        self.program = Program(bench.name, command(bench.place(member)))
        self.ready_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.program.close()

    def await_ready(self) -> float:
        """Wait until the first records are committed; returns the seconds from the start of the program."""
        if self.ready_s is None:
            self.ready_s = self.bench.await_committed(self.ends, self.program.check) - self.began
        return self.ready_s

    def wave(self, records: Sequence[Given]) -> tuple[float, float]:
        """Let the program do this load; returns the seconds and the CPU seconds that it took."""
        self.await_ready()
        with Gate(self.bench) as gate:
            ends = gate.load(records)
            cpu_s = self.program.cpu_s()
            began = gate.open()
            seconds = self.bench.await_committed(ends, self.program.check) - began
        return seconds, self.program.cpu_s() - cpu_s

    def measure(self, load: Load) -> Speed:
        """Time the load through the program, stop it, and refuse the figure if an output is wrong."""
        if load.warm_up:
            self.wave(self.bench.route.records(load.warm_up, "warm"))
        seconds, cpu_s = self.wave(self.bench.route.records(load.records, "load"))
        self.program.stop()
        self.bench.verify()
        speed = Speed(self.bench.name, load.records, load.records / seconds, cpu_s / load.records * 100_000)
        progress(f"{speed.name}: {speed.records_per_s:,.0f} records/s, {speed.cpu_s_per_100k:.1f} CPU-s per 100,000")
        return speed
