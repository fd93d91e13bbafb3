"""Four processors in sequence, in one process: with same-cycle delivery, and through the topics between them."""

import time
from dataclasses import dataclass

from benchmarks.figures import progress
from benchmarks.harness import DEADLINE_S, Bench, Gate, Refused, watcher
from benchmarks.latency import Hop, Pace, measure_hop
from benchmarks.throughput import Load, Standby

READ_RECORDS_MAX = 10_000


@dataclass(frozen=True)
class Stages:
    """Four hops, end to end."""

    records_per_s: float
    hop: Hop


def measure_stages(standby: Standby, *, load: Load, pace: Pace) -> Stages:
    """Latency of an idle pipeline first, then its throughput."""
    bench = standby.bench
    hop = measure_hop(standby, pace)
    _flat_out(bench, standby, load.warm_up, "warm")
    seconds = _flat_out(bench, standby, load.records, "load")
    standby.program.stop()
    bench.verify()
    progress(f"{bench.name}: {load.records / seconds:,.0f} records/s through four hops")
    return Stages(load.records / seconds, hop)


def _flat_out(bench: Bench, standby: Standby, count: int, series: str) -> float:
    """Seconds until the last record has reached the end.

    The groups between are no measure of it: with same-cycle delivery nothing stands in their topics.
    """
    expected = len(bench.given) + count
    reader = watcher(bench.bootstrap_servers, bench.sink)
    seen = 0
    with Gate(bench) as gate:
        gate.load(bench.route.records(count, f"flat-out-{series}"))
        while seen < expected - count:
            seen += len(reader.consume(READ_RECORDS_MAX, 0.1))
        began = gate.open()
        deadline = time.monotonic() + DEADLINE_S
        while seen < expected:
            seen += len(reader.consume(READ_RECORDS_MAX, 0.01))
            standby.program.check()
            if time.monotonic() > deadline:
                raise Refused(f"Expected {expected} outputs in {DEADLINE_S} s, but {seen} have come")
        ended = time.perf_counter()
    reader.close()
    return ended - began
