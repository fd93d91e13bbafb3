"""The measurements of loops and subworkflows, on any log: throughput, cost, latency, and what others wait meanwhile."""

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from benchmarks.engine_measures import Subject
from benchmarks.engine_work import AUTHOR, Command, start
from benchmarks.figures import percentile, progress
from benchmarks.harness import Refused
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus

TIMEOUT_S: Final = 300.0
READ_WAIT_S: Final = 0.2
PARALLEL: Final = 1_000
BYSTANDER: Final = "bystander"
BYSTANDER_EVERY_S: Final = 0.05
PARAMS_CHARS: Final = 100_000

Json = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """The sizes of the measurements."""

    warm_up: int
    foreach: int
    side: int  # of a nested loop
    subworkflows: int
    alone: int
    growth: Sequence[int]  # iterations of a loop
    growth_rounds: int
    crowd: int  # iterations of the loop that others have to bear
    quiet_s: float


FULL = Sizes(
    warm_up=2_000,
    foreach=10_000,
    side=100,
    subworkflows=2_000,
    alone=100,
    growth=(100, 1_000, 10_000, 25_000),
    growth_rounds=3,
    crowd=25_000,
    quiet_s=10.0,
)
QUICK = Sizes(
    warm_up=300,
    foreach=2_000,
    side=30,
    subworkflows=300,
    alone=20,
    growth=(100, 1_000),
    growth_rounds=2,
    crowd=5_000,
    quiet_s=2.0,
)


def noop(step_id: str) -> Json:
    """A step that is done at once."""
    return {"step": {"id": step_id, "type": "NoOp"}}


def loop(step_id: str, iterations: int, *steps: Json) -> Json:
    """A foreach with this number of iterations."""
    values = {f"{step_id}_value": {"type": "LONG_ARRAY", "value": list(range(iterations))}}
    return {
        "foreach": {
            "id": step_id,
            "params": {"loop_params": {"type": "MAP", "value": values}},
            "steps": list(steps),
        }
    }


def call(step_id: str, workflow_id: str) -> Json:
    """A step that starts an instance of another workflow, and waits for it."""
    return {"subworkflow": {"id": step_id, "params": {"subworkflow_id": {"type": "STRING", "value": workflow_id}}}}


class CompositeMeasures:
    """The measurements on one subject."""

    def __init__(self, subject: Subject, sizes: Sizes) -> None:
        self.subject = subject
        self.sizes = sizes
        self._numbers = count(1)
        self._ended: dict[tuple[str, int], float] = {}

    def all(self) -> dict[str, float]:
        """Every figure."""
        self._loop_s(self.pushed([loop("loop", self.sizes.warm_up, noop("only"))]), 1)
        return self.throughput() | self.latency() | self.growth() | self.bystander()

    # Throughput -------------------------------------------------------------------------------------------------------

    def throughput(self) -> dict[str, float]:
        """Iterations and subworkflows a second, at full speed."""
        sizes = self.sizes
        flat = self._timed("one loop", sizes.foreach, [loop("loop", sizes.foreach, noop("only"))])
        inner = loop("inner", sizes.side, noop("only"))
        nested = self._timed("nested loops", sizes.side**2, [loop("outer", sizes.side, inner)])
        child = self.pushed([noop("only")])
        called = self._timed(
            "subworkflows", sizes.subworkflows, [loop("loop", sizes.subworkflows, call("call", child))]
        )
        return {"foreach_per_s": flat, "nested_per_s": nested, "subworkflows_per_s": called}

    def _timed(self, name: str, iterations: int, steps: list[Json]) -> float:
        seconds, cpu_s = self._loop_s(self.pushed(steps), 1)
        per_s = iterations / seconds
        progress(f"{iterations} of {name}: {per_s:,.0f}/s, {cpu_s / iterations * 1e6:,.0f} us CPU of the engine's loop")
        return round(per_s, 1)

    def _loop_s(self, workflow_id: str, number: int) -> tuple[float, float]:
        """Seconds until an instance has ended, and CPU seconds of the engine's loop."""
        cpu_s, began = self.subject.engine_cpu_s(), time.perf_counter()
        self.subject.send([start(workflow_id, number)], at_once=True)
        self.await_end(workflow_id, number)
        return time.perf_counter() - began, self.subject.engine_cpu_s() - cpu_s

    # Latency ----------------------------------------------------------------------------------------------------------

    def latency(self) -> dict[str, float]:
        """Milliseconds from publishing a start to reading its end: a loop of ten, one at a time."""
        workflow_id = self.pushed([loop("loop", 10, noop("only"))])
        times = [self._loop_s(workflow_id, number)[0] * 1_000 for number in range(1, self.sizes.alone + 1)]
        times = times[len(times) // 10 :]
        progress(f"a loop of ten: p50 {percentile(times, 50):.1f} ms, p99 {percentile(times, 99):.1f} ms")
        return {"ten_p50_ms": round(percentile(times, 50), 2), "ten_p99_ms": round(percentile(times, 99), 2)}

    # Growth -----------------------------------------------------------------------------------------------------------

    def growth(self) -> dict[str, float]:
        """CPU of an iteration in loops of different sizes, in turn, the same number of iterations of each."""
        ids = {size: self.pushed([loop("loop", size, noop("only"))]) for size in self.sizes.growth}
        largest = max(ids)
        costs: dict[int, list[float]] = {size: [] for size in ids}
        numbers = dict.fromkeys(ids, 0)
        for _ in range(self.sizes.growth_rounds):
            for size, workflow_id in ids.items():
                cpu_s, loops = 0.0, max(1, min(largest, 10_000) // size)
                for _ in range(loops):
                    numbers[size] += 1
                    cpu_s += self._loop_s(workflow_id, numbers[size])[1]
                costs[size].append(cpu_s / (loops * size) * 1e6)
        found = {size: statistics.median(cost) for size, cost in costs.items()}
        progress(f"us CPU of an iteration: {', '.join(f'{cost:.0f} of {size}' for size, cost in found.items())}")
        figures = {f"iteration_cpu_us_{size}": round(cost, 1) for size, cost in found.items()}
        return figures | {"growth_iterations": round(max(found.values()) / found[min(found)], 3)}

    # Others -----------------------------------------------------------------------------------------------------------

    def bystander(self) -> dict[str, float]:
        """What starts of another workflow take while a large loop runs, over what they take without it."""
        workflow_id = self.pushed([noop("only")], name=BYSTANDER)
        large = self.pushed([loop("loop", self.sizes.crowd, noop("only"))])
        until = time.perf_counter() + self.sizes.quiet_s
        numbers = count(1)
        quiet = self._starts(workflow_id, numbers, lambda: time.perf_counter() < until)
        self.subject.send([start(large, 1)], at_once=True)
        crowded = self._starts(workflow_id, numbers, lambda: (large, 1) not in self._ended)
        self.await_end(large, 1)
        found = {
            f"bystander_{name}_p{percent}_ms": round(percentile(times, percent), 1)
            for name, times in (("quiet", quiet), ("crowded", crowded))
            for percent in (50, 99)
        }
        progress(f"{found}, {len(quiet)} and {len(crowded)} starts")
        ratio = found["bystander_crowded_p99_ms"] / found["bystander_quiet_p99_ms"]
        return found | {"bystander_crowded_vs_quiet": round(ratio, 2)}

    def _starts(self, workflow_id: str, numbers: Any, goes_on: Any) -> list[float]:
        times: list[float] = []
        while goes_on() or not times:
            began = time.perf_counter()
            number = next(numbers)
            self.subject.send([start(workflow_id, number)], at_once=True)
            self.await_end(workflow_id, number)
            times.append((time.perf_counter() - began) * 1_000)
            rest_until = began + BYSTANDER_EVERY_S
            while (left_s := rest_until - time.perf_counter()) > 0:
                self._note(left_s)
        return times

    # The subject ------------------------------------------------------------------------------------------------------

    def pushed(self, steps: list[Json], *, name: str = "workflow", params: Json | None = None) -> str:
        """A workflow of these steps, with an id of its own."""
        workflow_id = f"{name}-{next(self._numbers)}"
        self.subject.send([push(workflow_id, steps, params or {})])
        deadline = time.monotonic() + TIMEOUT_S
        while not any(one.workflow_id == workflow_id for one in self.subject.events(c.VersionActivated, READ_WAIT_S)):
            self._check(deadline, f"a version of {workflow_id}")
        return workflow_id

    def await_end(self, workflow_id: str, number: int) -> None:
        """Read until this instance has succeeded."""
        deadline = time.monotonic() + TIMEOUT_S
        while (workflow_id, number) not in self._ended:
            self._note(READ_WAIT_S)
            self._check(deadline, f"the end of {workflow_id}/{number}")

    def _note(self, wait_s: float) -> None:
        for event in self.subject.events(c.InstanceEnded, wait_s):
            if event.status is not InstanceStatus.SUCCEEDED:
                raise Refused(f"Expected {event.workflow_id}/{event.instance_id} to succeed, but it is {event.status}")
            self._ended[event.workflow_id, event.instance_id] = time.perf_counter()

    def _check(self, deadline: float, what: str) -> None:
        self.subject.check()
        if time.monotonic() > deadline:
            raise Refused(f"Expected {what} within {TIMEOUT_S} s, but it has not come")


def push(workflow_id: str, steps: list[Json], params: Json) -> Command:
    """Push a workflow."""
    properties = {"owner": AUTHOR, "run_strategy": PARALLEL}
    text = json.dumps({"properties": properties, "workflow": {"id": workflow_id, "steps": steps, "params": params}})
    return workflow_id, c.PushVersion(f"{workflow_id}-push", AUTHOR, text)


def large_params() -> Json:
    """Parameters of a workflow that are large, as text."""
    return {"large": {"type": "STRING", "value": "x" * PARAMS_CHARS}}
