"""How long one hop takes: from the call that produces a record to its output in a `read_committed` consumer."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Producer

from benchmarks.figures import progress, spread
from benchmarks.harness import Bench, Refused, watcher
from benchmarks.throughput import Standby
from benchmarks.workload import Given

SETTLE_S = 0.5
WARM_UP_RECORDS = 50
ANSWER_TIMEOUT_S = 30.0
SKIPPED = 0.1  # of the records of a steady stream: the first ones meet cold connections


@dataclass(frozen=True)
class Hop:
    """Milliseconds per record: one at a time, and in a steady stream."""

    alone_ms: list[float]
    steady_ms: list[float]

    def figures(self) -> dict[str, dict[str, float]]:
        return {"alone": spread(self.alone_ms), "steady": spread(self.steady_ms)}


@dataclass(frozen=True)
class Pace:
    """How many records are sent one at a time, then how many per second for how long."""

    alone: int
    records_per_s: int
    seconds: float


class Pulse:
    """Sends records and sees their outputs."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.sent_at: dict[str, float] = {}
        self.seen_at: dict[str, float] = {}
        self.producer = Producer(
            {"bootstrap.servers": bench.bootstrap_servers, "linger.ms": 0, "partitioner": "murmur2_random"}
        )
        self.arrived = threading.Event()
        self.running = True
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        reader = watcher(self.bench.bootstrap_servers, self.bench.sink)
        identify = self.bench.route.identify
        while self.running:
            message = reader.poll(0.2)
            if message is None or message.error() is not None:
                continue
            now = time.perf_counter()
            self.seen_at.setdefault(identify(message), now)
            self.arrived.set()
        reader.close()

    def send(self, given: Given) -> str:
        headers = given.headers()
        self.bench.given.append(given)
        self.sent_at[given.id] = time.perf_counter()
        self.producer.produce(self.bench.source, given.value, given.key, headers=headers)
        self.producer.poll(0)
        return given.id

    def await_seen(self, *ids: str) -> None:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while any(name not in self.seen_at for name in ids):
            if time.monotonic() > deadline:
                missing = sum(name not in self.seen_at for name in ids)
                raise Refused(f"Expected {len(ids)} outputs in {ANSWER_TIMEOUT_S} s, but {missing} have not come")
            self.arrived.clear()
            if any(name not in self.seen_at for name in ids):
                self.arrived.wait(0.1)

    def milliseconds(self, ids: list[str]) -> list[float]:
        return [(self.seen_at[name] - self.sent_at[name]) * 1_000 for name in ids]

    def close(self) -> None:
        self.running = False
        self.thread.join()
        self.producer.close()


def measure_hop(standby: Standby, pace: Pace) -> Hop:
    """The latency of a program that is up and idle."""
    standby.await_ready()
    records = standby.bench.route.records
    pulse = Pulse(standby.bench)
    try:
        # The first answers meet cold connections on all sides; the watcher must also get past the first records.
        pulse.await_seen(*[pulse.send(given) for given in records(WARM_UP_RECORDS, "pulse-warm")])
        time.sleep(SETTLE_S)
        alone: list[str] = []
        for given in records(pace.alone, "pulse-alone"):
            alone.append(pulse.send(given))
            pulse.await_seen(alone[-1])
        stream = records(int(pace.records_per_s * pace.seconds), "pulse-steady")
        steady = _steady(pulse, stream, pace.records_per_s)
        pulse.await_seen(*steady)
        skipped = int(len(steady) * SKIPPED)
        hop = Hop(pulse.milliseconds(alone), pulse.milliseconds(steady[skipped:]))
    finally:
        pulse.close()
    progress(f"{standby.bench.name}: one hop {hop.figures()}")
    return hop


def _steady(pulse: Pulse, records: Sequence[Given], records_per_s: int) -> list[str]:
    """Send at an even pace by the clock, so that a late record does not delay the later ones."""
    began = time.perf_counter()
    sent = []
    for number, given in enumerate(records):
        wait_s = began + number / records_per_s - time.perf_counter()
        if wait_s > 0:
            time.sleep(wait_s)
        sent.append(pulse.send(given))
    return sent
