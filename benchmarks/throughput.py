"""Records per second of one runtime: started, warmed by a few records, then timed from the opening of the gate."""

import functools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import progress
from benchmarks.harness import Bench, Gate, produce_now
from benchmarks.programs import Program
from benchmarks.workload import Tick, tick, ticks, word

FIRST_RECORDS = 64  # enough that every partition gets some


@dataclass(frozen=True)
class Place:
    """What a program is told: where the broker is, the prefix of its topics, where to keep its state."""

    bootstrap_servers: str
    prefix: str
    state_dir: Path

    def arguments(self) -> list[str]:
        return [
            *("--bootstrap-servers", self.bootstrap_servers),
            *("--prefix", self.prefix),
            *("--state-dir", str(self.state_dir)),
        ]


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


@functools.cache
def first_ticks() -> list[Tick]:
    return [tick(number, word(number), series="first") for number in range(FIRST_RECORDS)]


class Standby:
    """A program that is up, owns its partitions and has nothing to do."""

    def __init__(self, name: str, bench: Bench, program: Program) -> None:
        self.name = name
        self.bench = bench
        self.program = program
        self.began = time.perf_counter()
        self.given = [*first_ticks()]
        self.ready_s: float | None = None

    def await_ready(self) -> float:
        """Wait until the first records are committed; returns the seconds from the start of the program."""
        if self.ready_s is None:
            ends = self.bench.ends(self.bench.ticks)
            self.ready_s = self.bench.await_committed(ends, self.program.check) - self.began
        return self.ready_s

    def wave(self, records: list[Tick]) -> tuple[float, float]:
        """Let the program do this load; returns the seconds and the CPU seconds that it took."""
        self.await_ready()
        with Gate(self.bench) as gate:
            ends = gate.load(records)
            cpu_s = self.program.cpu_s()
            began = gate.open()
            seconds = self.bench.await_committed(ends, self.program.check) - began
        self.given += records
        return seconds, self.program.cpu_s() - cpu_s

    def measure(self, load: Load) -> Speed:
        """Time the load through the program, stop it, and refuse the figure if an output is wrong."""
        if load.warm_up:
            self.wave(ticks(load.warm_up, series="warm"))
        seconds, cpu_s = self.wave(ticks(load.records))
        self.program.stop()
        self.bench.verify(self.given)
        speed = Speed(self.name, load.records, load.records / seconds, cpu_s / load.records * 100_000)
        progress(f"{self.name}: {speed.records_per_s:,.0f} records/s, {speed.cpu_s_per_100k:.1f} CPU-s per 100,000")
        return speed


@contextmanager
def standby(name: str, bootstrap_servers: str, command: Command) -> Iterator[Standby]:
    """Start a program on topics of its own, with a few records to show when it is ready."""
    bench = Bench(bootstrap_servers, name)
    bench.create_topics()
    produce_now(bench, first_ticks())
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as directory:
        place = Place(bootstrap_servers, bench.prefix, Path(directory) / "state")
        with Program(name, command(place)) as program:
            yield Standby(name, bench, program)
    bench.delete_topics()
