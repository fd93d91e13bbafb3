"""How long one hop takes: from the call that produces a record to its output in a `read_committed` consumer."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer

from benchmarks.figures import progress, spread
from benchmarks.harness import Bench, Refused, watcher
from benchmarks.throughput import Standby
from benchmarks.workload import tick, tick_headers, word

SETTLE_S = 0.5
ANSWER_TIMEOUT_S = 30.0
SKIPPED = 0.1  # of the records of a steady stream: the first ones meet cold connections

Identify = Callable[[Any], str]


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
    """Sends ticks and sees their outputs. `topic` and `identify` say where an output is and which tick it is for."""

    def __init__(self, bench: Bench, *, topic: str, identify: Identify) -> None:
        self.bench = bench
        self.identify = identify
        self.sent_at: dict[str, float] = {}
        self.seen_at: dict[str, float] = {}
        self.producer = Producer(
            {"bootstrap.servers": bench.bootstrap_servers, "linger.ms": 0, "partitioner": "murmur2_random"}
        )
        self.arrived = threading.Event()
        self.running = True
        self.thread = threading.Thread(target=self._watch, args=(watcher(bench.bootstrap_servers, topic),), daemon=True)
        self.thread.start()

    def _watch(self, reader: Consumer) -> None:
        while self.running:
            message = reader.poll(0.2)
            if message is None or message.error() is not None:
                continue
            now = time.perf_counter()
            self.seen_at.setdefault(self.identify(message), now)
            self.arrived.set()
        reader.close()

    def send(self, number: int) -> str:
        beat = tick(number, word(number % 1_000), series="pulse")
        headers = tick_headers(beat.id)
        self.sent_at[beat.id] = time.perf_counter()
        self.producer.produce(self.bench.ticks, beat.value, beat.word, headers=headers)
        self.producer.poll(0)
        return beat.id

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


def measure_hop(standby: Standby, pace: Pace, *, topic: str, identify: Identify) -> Hop:
    """The latency of a program that is up and idle."""
    standby.await_ready()
    pulse = Pulse(standby.bench, topic=topic, identify=identify)
    try:
        # The first answers meet cold connections on all sides; the watcher must also get past the first records.
        pulse.await_seen(*[pulse.send(number) for number in range(20)])
        time.sleep(SETTLE_S)
        alone = []
        for number in range(100, 100 + pace.alone):
            alone.append(pulse.send(number))
            pulse.await_seen(alone[-1])
        steady = _steady(pulse, pace)
        pulse.await_seen(*steady)
        skipped = int(len(steady) * SKIPPED)
        hop = Hop(pulse.milliseconds(alone), pulse.milliseconds(steady[skipped:]))
    finally:
        pulse.close()
    progress(f"{standby.name}: one hop {hop.figures()}")
    return hop


def _steady(pulse: Pulse, pace: Pace) -> list[str]:
    """Send at an even pace by the clock, so that a late record does not delay the later ones."""
    began = time.perf_counter()
    sent = []
    for number in range(int(pace.records_per_s * pace.seconds)):
        wait_s = began + number / pace.records_per_s - time.perf_counter()
        if wait_s > 0:
            time.sleep(wait_s)
        sent.append(pulse.send(1_000_000 + number))
    return sent
