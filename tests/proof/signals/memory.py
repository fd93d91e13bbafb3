"""The same announcements on the engine in memory: it takes seconds, so it is where the proof itself is tried."""

from typing import Final

from kapelle.testing.engine import Engine
from tests.proof.checks import Seen, table_violations
from tests.proof.signals.checks import signal_violations
from tests.proof.signals.workload import Work

AT_ONCE: Final = 200


def seen_of(engine: Engine) -> Seen:
    """Everything on every stream."""
    topology = engine.topology
    return {
        name: {number: list(engine.history(stream, number)) for number in range(topology.partitions(stream))}
        for name, stream in topology.streams.items()
    }


def rehearsed(work: Work) -> list[str]:
    """The violations of a workload on an engine that nothing happens to."""
    engine = Engine(partitions=2)
    for push in work.pushes:
        engine.runtime.publish(*push)
    engine.runtime.step_until_idle()
    for number, announcement in enumerate(work.announced, 1):
        engine.runtime.publish(*announcement)
        if number % AT_ONCE == 0:
            engine.runtime.step_until_idle()
    engine.runtime.step_until_idle()
    seen = seen_of(engine)
    shards = [(s.processor, s.partition, s.state) for s in engine.runtime.member.shards.values()]
    return signal_violations(work, seen) + table_violations(shards, seen)
