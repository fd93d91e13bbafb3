"""The measurements of the engine, on any log: throughput, latency, queues, and their cost.

Every measurement pushes workflows of its own, publishes their starts, and is over when the last `InstanceEnded` has
been read. Whether all of it was right is looked at in the end, from the whole history (`Subject.verify`).
"""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Protocol, TypeVar

from benchmarks.engine_work import (
    CHAIN_STEPS,
    NOOP,
    WIDE_STEPS,
    WORKFLOW_IDS,
    Command,
    Held,
    Truth,
    chain,
    push,
    start,
    wide,
)
from benchmarks.figures import percentile, progress
from benchmarks.harness import Refused
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c

E = TypeVar("E", bound=Contract)

TIMEOUT_S: Final = 120.0
READ_WAIT_S: Final = 0.2
PARALLEL: Final = 1_000
STEADY_SKIPPED: Final = 0.1  # of a steady stream: the first ones meet cold connections


class Subject(Protocol):
    """The engine on some log, with a client beside it."""

    def send(self, commands: Sequence[Command], *, at_once: bool = False) -> None:
        """Publish commands in order; `at_once` without waiting for others to go with them."""
        ...

    def answer(self, held: Sequence[Held]) -> None:
        """Answer the tasks that keep workflows busy: those of these instances."""
        ...

    def events(self, contract: type[E], wait_s: float) -> list[E]:
        """Events of this type among those committed since the last call; waits only while there are none at all."""
        ...

    def cpu_s(self) -> float:
        """CPU seconds so far of all processes: engine, broker, client, worker."""
        ...

    def engine_cpu_s(self) -> float:
        """CPU seconds so far of the engine's loop, without the threads of its log, its store and its clients."""
        ...

    def check(self) -> None:
        """Refuse to continue if a process has died."""
        ...

    def verify(self, truths: Sequence[Truth]) -> None:
        """Refuse all figures unless the whole history is right."""
        ...


@dataclass(frozen=True)
class Sizes:
    """The sizes of the measurements."""

    warm_up: int
    workflows: int
    chains: int
    wide_rounds: int
    alone: int
    alone_warm_up: int  # a new broker's transactions are slow until its compiler has seen some hundreds of them
    steady_per_s: int
    steady_s: float
    rounds: int
    queued: int
    queue_slice: int  # how many starts and launches are measured in a round
    queue_rounds: int = 1


FULL = Sizes(
    warm_up=2_000,
    workflows=4_000,
    chains=600,
    wide_rounds=5,
    alone=300,
    alone_warm_up=200,
    steady_per_s=50,
    steady_s=6.0,
    rounds=3,
    queued=100_000,
    queue_slice=1_000,
    queue_rounds=3,
)
QUICK = Sizes(
    warm_up=300,
    workflows=800,
    chains=160,
    wide_rounds=1,
    alone=40,
    alone_warm_up=10,
    steady_per_s=50,
    steady_s=1.5,
    rounds=1,
    queued=4_000,
    queue_slice=1_000,
    queue_rounds=2,
)


class Measures:
    """The measurements on one subject, with steps of one kind."""

    def __init__(self, subject: Subject, sizes: Sizes, kind: str = NOOP) -> None:
        self.subject = subject
        self.sizes = sizes
        self.kind = kind
        self.truths: list[Truth] = []
        self._numbers = count(1)

    def all(self) -> dict[str, float]:
        """Every figure that is measured with steps of every kind."""
        return self.throughput() | self.latency()

    # Throughput -------------------------------------------------------------------------------------------------------

    def throughput(self) -> dict[str, float]:
        """At full speed: workflows of one step, chains of ten, and a thousand steps at once."""
        sizes = self.sizes
        self._flat_out("warm", chain(1, self.kind), sizes.warm_up)
        single = [self._flat_out("single", chain(1, self.kind), sizes.workflows) for _ in range(sizes.rounds)]
        chains = [self._flat_out("chain", chain(CHAIN_STEPS, self.kind), sizes.chains) for _ in range(sizes.rounds)]
        broad = [self._flat_out("wide", wide(WIDE_STEPS, self.kind), 4) for _ in range(sizes.wide_rounds)]
        return {
            "workflows_per_s": round(statistics.median(sizes.workflows / s for s, _ in single), 1),
            "chain_steps_per_s": round(statistics.median(sizes.chains * CHAIN_STEPS / s for s, _ in chains), 1),
            "parallel_steps_per_s": round(statistics.median(4 * WIDE_STEPS / s for s, _ in broad), 1),
            "cpu_s_per_1000": round(statistics.median(cpu / sizes.workflows * 1_000 for _, cpu in single), 2),
        }

    def _flat_out(self, name: str, steps: list[dict[str, Any]], instances: int) -> tuple[float, float]:
        """Seconds, and CPU seconds of all processes, until the last of these instances has ended."""
        ids = self.pushed(name, steps, min(WORKFLOW_IDS, instances))
        each = instances // len(ids)
        starts = [start(one, number) for number in range(1, each + 1) for one in ids]
        cpu_s, began = self.subject.cpu_s(), time.perf_counter()
        self.subject.send(starts)
        self.await_ended(len(starts))
        seconds, cpu_s = time.perf_counter() - began, self.subject.cpu_s() - cpu_s
        self.truths += [Truth(one, each, len(steps)) for one in ids]
        progress(
            f"{len(starts)} instances of {len(steps)} {self.kind} ({name}): {len(starts) / seconds:,.0f}/s, "
            f"{len(starts) * len(steps) / seconds:,.0f} steps/s, {cpu_s:.2f} CPU-s"
        )
        return seconds, cpu_s

    def pushed(self, name: str, steps: list[dict[str, Any]], ids: int) -> list[str]:
        """Workflows of these steps, with ids of their own."""
        number = next(self._numbers)
        found = [f"{name}-{self.kind.lower()}-{number}-{index}" for index in range(ids)]
        self.subject.send([push(one, steps, strategy=PARALLEL) for one in found])
        self.await_events(c.VersionActivated, ids)
        return found

    def await_ended(self, expected: int) -> int:
        """Read until at least this number of instances have ended; returns how many."""
        return self.await_events(c.InstanceEnded, expected)

    def await_events(self, contract: type[Contract], expected: int) -> int:
        """Read until at least this number of events of this type have come; returns how many."""
        seen = 0
        deadline = time.monotonic() + TIMEOUT_S
        while seen < expected:
            found = self.subject.events(contract, READ_WAIT_S)
            seen += len(found)
            if found:
                deadline = time.monotonic() + TIMEOUT_S
            elif time.monotonic() > deadline:
                raise Refused(f"Expected {expected} of {contract.__name__}, but only {seen} have come")
            else:
                self.subject.check()
        return seen

    # Latency ----------------------------------------------------------------------------------------------------------

    def latency(self) -> dict[str, float]:
        """Milliseconds from publishing a start to reading its end: one at a time, then in a steady stream."""
        alone = self._alone()
        steady = self._steady()
        found = {
            "latency_p50_ms": percentile(alone, 50),
            "latency_p99_ms": percentile(alone, 99),
            "latency_steady_p50_ms": percentile(steady, 50),
            "latency_steady_p99_ms": percentile(steady, 99),
        }
        progress(f"{self.kind}: {', '.join(f'{name} {value:.1f}' for name, value in found.items())}")
        return {name: round(value, 2) for name, value in found.items()}

    def _alone(self) -> list[float]:
        (workflow_id,) = self.pushed("alone", chain(1, self.kind), 1)
        found = []
        warm = self.sizes.alone_warm_up
        for number in range(1, warm + self.sizes.alone + 1):
            began = time.perf_counter()
            self.subject.send([start(workflow_id, number)], at_once=True)
            self.await_ended(1)
            found.append((time.perf_counter() - began) * 1_000)
        self.truths.append(Truth(workflow_id, len(found), 1))
        return found[warm:]

    def _steady(self) -> list[float]:
        """Sent at an even pace by the clock, so that a late one does not delay the later ones."""
        ids = self.pushed("steady", chain(1, self.kind), WORKFLOW_IDS)
        each = int(self.sizes.steady_per_s * self.sizes.steady_s) // len(ids)
        planned = [(one, number) for number in range(1, each + 1) for one in ids]
        sent_at: dict[tuple[str, int], float] = {}
        seen_at: dict[tuple[str, int], float] = {}
        began = time.perf_counter()
        for index, run in enumerate(planned):
            due = began + index / self.sizes.steady_per_s
            while (wait_s := due - time.perf_counter()) > 0:
                self._note_ends(seen_at, wait_s)
            sent_at[run] = time.perf_counter()
            self.subject.send([start(*run)], at_once=True)
        deadline = time.monotonic() + TIMEOUT_S
        while len(seen_at) < len(planned):
            self._note_ends(seen_at, READ_WAIT_S)
            if time.monotonic() > deadline:
                raise Refused(f"Expected {len(planned)} instances to end, but only {len(seen_at)} have")
        self.truths += [Truth(one, each, 1) for one in ids]
        skipped = int(len(planned) * STEADY_SKIPPED)
        return [(seen_at[run] - sent_at[run]) * 1_000 for run in planned[skipped:]]

    def _note_ends(self, seen_at: dict[tuple[str, int], float], wait_s: float) -> None:
        for event in self.subject.events(c.InstanceEnded, wait_s):
            seen_at[event.workflow_id, event.instance_id] = time.perf_counter()
        self.subject.check()
