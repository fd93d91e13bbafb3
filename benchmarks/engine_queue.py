"""The cost of a start and a launch with many queued runs, over the cost with a hundred.

One workflow has a long queue, the others have short ones. Both are measured in turn, on the same store, so that neither
the drift of the machine nor what a large store costs anybody is taken for the length of a queue. A queue is held up by
an instance whose step waits for an answer; every answer lets so many through as one round measures, up to the next one
that waits. What is left in the end is stopped where it is.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from benchmarks.engine_measures import Measures
from benchmarks.engine_work import HOLD, Command, Held, Truth, chain, neighbours, push, start, stop_after
from benchmarks.figures import progress
from kapelle.schemas import contracts as c

SHALLOW_WORKFLOWS: Final = 10
SHALLOW_QUEUED: Final = 100
BLOCK: Final = 2_000  # the client is never further ahead of the engine
QUIET_LOOK_S: Final = 0.05
QUIET_LOOKS: Final = 4  # a busy machine may let the engine wait for once
QUIET_CPU_S: Final = 0.002
QUIET_WITHIN_S: Final = 20.0
SEQUENTIAL: Final = "SEQUENTIAL"


@dataclass(frozen=True)
class Cost:
    """Microseconds of the engine's CPU."""

    start_us: float
    launch_us: float

    @property
    def both_us(self) -> float:
        return self.start_us + self.launch_us


def queue_figures(measures: Measures) -> dict[str, float]:
    """The figures of one subject."""
    sizes = measures.sizes
    queues = Queues(measures)
    first = [queues.shallow(f"shallow-before-{number}") for number in range(sizes.queue_rounds)]
    deep = queues.deep(sizes.queued)
    rounds = [(deep.cost(), queues.shallow(f"shallow-{number}")) for number in range(sizes.queue_rounds)]
    deep.close()
    many = [cost for cost, _ in rounds]
    few = [cost for _, cost in rounds]
    figures = {
        "queued_start_us": round(statistics.median(cost.start_us for cost in many), 1),
        "dequeue_us": round(statistics.median(cost.launch_us for cost in many), 1),
        "growth_queued_start": _ratio((a.start_us, b.start_us) for a, b in rounds),
        "growth_dequeue": _ratio((a.launch_us, b.launch_us) for a, b in rounds),
        "growth_queue": _ratio((a.both_us, b.both_us) for a, b in rounds),
        "growth_store": round(_median(few) / _median(first), 3),
    }
    progress(f"queue of {sizes.queued:,}: {', '.join(f'{name} {value:g}' for name, value in figures.items())}")
    return figures


def _ratio(pairs: Iterator[tuple[float, float]]) -> float:
    return round(statistics.median(many / few for many, few in pairs), 3)


def _median(costs: list[Cost]) -> float:
    return statistics.median(cost.both_us for cost in costs)


class Queues:
    """Queues of one subject."""

    def __init__(self, measures: Measures) -> None:
        self.measures = measures
        self.subject = measures.subject

    def shallow(self, name: str) -> Cost:
        """A start into and a launch out of queues of a hundred."""
        ids = neighbours(name, SHALLOW_WORKFLOWS)
        self.hold(ids)
        starts = [start(one, number + 2) for number in range(SHALLOW_QUEUED) for one in ids]
        start_us = self.cost_us(lambda: self.queued(starts))
        launch_us = self.cost_us(lambda: self.released([(one, 1) for one in ids], len(starts) + len(ids)))
        self.measures.truths += [Truth(one, SHALLOW_QUEUED + 1, 1) for one in ids]
        return Cost(start_us, launch_us)

    def deep(self, queued: int) -> "DeepQueue":
        """One long queue."""
        return DeepQueue(self, queued)

    def hold(self, ids: list[str]) -> None:
        """Sequential workflows whose first instance waits for an answer; those after it have a step of their own."""
        firsts = [command for one in ids for command in held(one, 1, self.measures.kind)]
        self.subject.send(firsts)
        self.measures.await_events(c.VersionActivated, 2 * len(ids))

    def queued(self, starts: list[Command]) -> int:
        """Send starts, and wait until they are queued."""
        self.subject.send(starts)
        return self.measures.await_events(c.InstanceCreated, len(starts))

    def released(self, waiting: list[Held], expected: int) -> int:
        """Complete the waiting instances, and wait until this number have ended."""
        self.subject.answer(waiting)
        return self.measures.await_ended(expected)

    def cost_us(self, work: Callable[[], int]) -> float:
        """CPU of the engine per operation, with everything that follows: the publisher is always behind."""
        before = self.quiet_cpu_s()
        done = work()
        return (self.quiet_cpu_s() - before) / done * 1_000_000

    def quiet_cpu_s(self) -> float:
        """CPU of the engine when it has nothing left to do."""
        found, quiet = self.subject.engine_cpu_s(), 0
        until = time.monotonic() + QUIET_WITHIN_S
        while quiet < QUIET_LOOKS and time.monotonic() < until:
            time.sleep(QUIET_LOOK_S)
            now = self.subject.engine_cpu_s()
            quiet = quiet + 1 if now - found < QUIET_CPU_S else 0
            found = now
        return found


def held(workflow_id: str, number: int, kind: str) -> list[Command]:
    """The n-th start of a workflow waits for an answer; those after it do not."""
    return [
        push(workflow_id, chain(1, HOLD), strategy=SEQUENTIAL, version=2 * number - 1),
        start(workflow_id, number),
        push(workflow_id, chain(1, kind), strategy=SEQUENTIAL, version=2 * number),
    ]


class DeepQueue:
    """A long queue, from which a part is launched in every round."""

    def __init__(self, queues: Queues, queued: int) -> None:
        self.queues = queues
        self.slice = queues.measures.sizes.queue_slice
        self.rounds = queues.measures.sizes.queue_rounds
        (self.workflow_id,) = neighbours("deep", 1)
        self.started = self._hold_at_front()
        self.ended = 0
        began = time.perf_counter()
        while (left := queued - self.started) > 0:
            queues.queued(self._next(min(left, BLOCK)))
        progress(f"{queued:,} queued at {queued / (time.perf_counter() - began):,.0f}/s")

    def _hold_at_front(self) -> int:
        """The front of the queue: one that waits, a part that is launched, and so on; the last one waits."""
        workflow_id, kind = self.workflow_id, self.queues.measures.kind
        number = 1
        for _ in range(self.rounds):
            self._held(number, kind)
            self.queues.queued([start(workflow_id, number + index) for index in range(1, self.slice)])
            number += self.slice
        self._held(number, kind)
        return number

    def _held(self, number: int, kind: str) -> None:
        self.queues.subject.send(held(self.workflow_id, number, kind))
        self.queues.measures.await_events(c.VersionActivated, 2)

    def _next(self, count: int) -> list[Command]:
        first = self.started + 1
        self.started += count
        return [start(self.workflow_id, number) for number in range(first, first + count)]

    def cost(self) -> Cost:
        """This number of starts into the queue, and of launches from it."""
        starts = self._next(self.slice)
        start_us = self.queues.cost_us(lambda: self.queues.queued(starts))
        waiting = [(self.workflow_id, self.ended + 1)]
        launch_us = self.queues.cost_us(lambda: self.queues.released(waiting, self.slice))
        self.ended += self.slice
        return Cost(start_us, launch_us)

    def close(self) -> None:
        """Stop the remaining instances, and complete the one that blocks them."""
        waits, left = self.ended + 1, self.started - self.ended - 1
        began = time.perf_counter()
        self.queues.subject.send([stop_after(self.workflow_id, waits)])
        self.queues.measures.await_ended(left)
        progress(f"{left:,} stopped in the queue at {left / (time.perf_counter() - began):,.0f}/s")
        self.queues.released([(self.workflow_id, waits)], 1)
        self.queues.measures.truths.append(Truth(self.workflow_id, waits, 1, stopped=left))
