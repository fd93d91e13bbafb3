"""The same workload on the engine in memory: no kills, but late answers, repeated starts and tasks given out twice.

It takes a second, so it is where the proof itself is tried: an engine broken on purpose must not pass.
"""

import random
from collections import defaultdict
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from kapelle.processors.wiring import RUN_COMMANDS, TASKS, WORKFLOW_EVENTS, run_key
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from kapelle.testing.engine import Engine
from tests.proof.checks import Seen, table_violations
from tests.proof.engine.behaviour import STARTED, words_of
from tests.proof.engine.checks import engine_violations
from tests.proof.engine.unblocking import unblock
from tests.proof.engine.workload import Workload
from tests.proof.workload import Published

PATIENCE_MS: Final = 600_000  # nothing but the time-outs of runs is farther away
DELIVERED_TWICE: Final = 0.05
READ_MAX: Final = 1_000


class Rehearsal:
    """One workload on one engine, until nothing is left to do."""

    def __init__(self, work: Workload) -> None:
        self.engine = Engine(partitions=2)
        self._work = work
        self._codec = Codec(self.engine.topology.catalog())
        self._agenda: list[tuple[int, int, Published]] = []
        self._numbers = count()
        self._read = defaultdict[tuple[str, int], int](int)

    def run(self) -> list[str]:
        """The violations."""
        began_ms = self.engine.clock.now_ms
        for push in self._work.pushes():
            self._later(began_ms, push)
        for one in self._work.asked:
            self._later(began_ms + int(one.after_s * 1000) + 1, one.published())
        while self._step():
            pass
        seen = self.seen()
        shards = [(s.processor, s.partition, s.state) for s in self.engine.runtime.member.shards.values()]
        return engine_violations(self._work, seen) + table_violations(shards, seen)

    def _later(self, at_ms: int, what: Published) -> None:
        heappush(self._agenda, (at_ms, next(self._numbers), what))

    def _step(self) -> bool:
        """Go to the next moment at which something is to happen. False if there is none."""
        engine = self.engine
        moments = [at_ms for at_ms in (engine.runtime.next_due_at_ms(), *self._next()) if at_ms is not None]
        if not moments or min(moments) > engine.clock.now_ms + PATIENCE_MS:
            return False
        engine.clock.advance_to(min(moments))
        while self._agenda and self._agenda[0][0] <= engine.clock.now_ms:
            engine.runtime.publish(*heappop(self._agenda)[2])
        engine.runtime.step_until_idle()
        for _, task in self._new(TASKS.name):
            self._deliver(task)
        for workflow_id, event in self._new(WORKFLOW_EVENTS.name):
            if isinstance(event, c.InstanceEnded) and event.status is InstanceStatus.FAILED:
                self._later(engine.clock.now_ms + 500, unblock(workflow_id, event.instance_id))
        return True

    def _next(self) -> list[int]:
        return [self._agenda[0][0]] if self._agenda else []

    def _deliver(self, task: c.Task) -> None:
        """Two workers share the tasks, and some tasks come to both."""
        chance = random.Random(f"delivery of {task.token}")
        workers = chance.sample(["worker-1", "worker-2"], 2 if chance.random() < DELIVERED_TWICE else 1)
        for worker in workers:
            taken_ms = self.engine.clock.now_ms + chance.randint(1, 20)
            for word in (STARTED, *words_of(task)):
                key = run_key(task.workflow_id, task.instance_id)
                self._later(taken_ms + word.after_ms, (RUN_COMMANDS.name, key, word.of(task, worker)))

    def _new(self, stream: str) -> list[tuple[str, Any]]:
        """What came to a stream since the last time."""
        found = []
        for partition in range(self.engine.topology.partitions(self.engine.topology.streams[stream])):
            rows = self._rows(stream, partition, self._read[stream, partition])
            self._read[stream, partition] += len(rows)
            found += rows
        return found

    def _rows(self, stream: str, partition: int, at: int) -> list[tuple[str, Any]]:
        found: list[tuple[str, Any]] = []
        while records := self.engine.runtime.read(stream, partition, at, READ_MAX):
            found += [((r.key or b"").decode(), self._codec.decode(r.value or b"")) for r in records]
            at = records[-1].offset + 1
        return found

    def seen(self) -> Seen:
        """Everything on every stream."""
        topology = self.engine.topology
        return {
            name: {partition: self._rows(name, partition, 0) for partition in range(topology.partitions(stream))}
            for name, stream in topology.streams.items()
        }
