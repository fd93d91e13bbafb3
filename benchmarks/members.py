"""What a member does besides folding: it restores, grows, fails over, and waits."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer

from benchmarks import ours
from benchmarks.figures import progress
from benchmarks.harness import Bench, Refused
from benchmarks.throughput import Command, Standby
from benchmarks.workload import KEYS, ticks

TRICKLE_PER_S = 100
TRICKLE_RECORDS_MAX = 10_000
SHARED_TIMEOUT_S = 60.0
SETTLE_S = 1.0


@dataclass(frozen=True)
class Growth:
    """How fast rows come back from the changelog, and the cost per record with many keys in the table over that with
    few, in waves made side by side."""

    keys: int
    restored_per_s: float
    ratios: list[float]

    @property
    def ratio(self) -> float:
        return round(statistics.median(self.ratios), 3)


@dataclass(frozen=True)
class Failover:
    """Seconds from the kill of a member until another has folded what was there then, and until readers see it."""

    committed_s: float
    visible_s: float


@contextmanager
def filled(bootstrap_servers: str, keys: int) -> Iterator[tuple[Bench, Bench]]:
    """Topics of two members whose changelogs hold a thousand keys and many."""
    with (
        Bench(bootstrap_servers, "few-keys", ours.TICKS) as few,
        Bench(bootstrap_servers, "many-keys", ours.TICKS) as many,
    ):
        ours.fill_changelog(few, KEYS)
        ours.fill_changelog(many, keys)
        yield few, many


def measure_growth(benches: tuple[Bench, Bench], command: Command, *, keys: int, records: int, waves: int) -> Growth:
    """Two members, one with a thousand keys and one with many, restore them and then take records in turn."""
    few, many = benches
    with Standby(few, command) as first:
        few_ready_s = first.await_ready()
        with Standby(many, command) as second:
            many_ready_s = second.await_ready()
            ratios = [_growth(first, second, keys, records, f"wave-{number}") for number in range(waves)]
    few.verify()
    many.verify()
    progress(f"ready in {few_ready_s:.2f} s with {KEYS:,} rows to restore and in {many_ready_s:.2f} s with {keys:,}")
    if many_ready_s <= few_ready_s:
        raise Refused(f"Expected {keys} rows to take longer than {KEYS}, but {many_ready_s:.2f} <= {few_ready_s:.2f} s")
    return Growth(keys, (keys - KEYS) / (many_ready_s - few_ready_s), ratios)


def _growth(few: Standby, many: Standby, keys: int, records: int, series: str) -> float:
    few_s, few_cpu_s = few.wave(ticks(records, series))
    many_s, many_cpu_s = many.wave(ticks(records, series, keys))
    progress(
        f"{records:,} records: {few_s:.2f} s ({few_cpu_s:.2f} CPU-s) with {KEYS:,} keys, "
        f"{many_s:.2f} s ({many_cpu_s:.2f} CPU-s) with {keys:,}"
    )
    return many_s / few_s


def measure_idle(standby: Standby, seconds: float) -> float:
    """Per cent of a core that a program uses without input."""
    standby.await_ready()
    time.sleep(SETTLE_S)
    cpu_s, began = standby.program.cpu_s(), time.perf_counter()
    time.sleep(seconds)
    percent = (standby.program.cpu_s() - cpu_s) / (time.perf_counter() - began) * 100
    progress(f"{standby.bench.name}: {percent:.2f} % of a core when idle")
    return percent


def measure_failover(bootstrap_servers: str, command: Command, meanwhile: Callable[[], None]) -> Failover:
    """Kill one of two members, under a trickle, and wait for the other to take over.

    That is a wait for a session to end, in which something else can be done.
    """
    with (
        ThreadPoolExecutor(1) as aside,
        Bench(bootstrap_servers, "failover", ours.TICKS) as bench,
        Standby(bench, command, "first") as first,
        Standby(bench, command, "second") as second,
    ):
        first.await_ready()
        await_shared(bench, members=2)
        with trickle(bench):
            time.sleep(1.0)
            killed_at = time.perf_counter()
            first.program.kill()
            done = aside.submit(meanwhile)
            committed_at = bench.await_committed(bench.ends(), second.program.check)
            visible_at = bench.await_visible()
        bench.await_committed(bench.ends(), second.program.check)
        second.program.stop()
        bench.verify()
        done.result()
    found = Failover(committed_at - killed_at, visible_at - killed_at)
    progress(f"killed member: folding again after {found.committed_s:.2f} s, visible after {found.visible_s:.2f} s")
    return found


def await_shared(bench: Bench, *, members: int) -> None:
    """Wait until this number of members of the group have partitions."""
    deadline = time.monotonic() + SHARED_TIMEOUT_S
    while time.monotonic() < deadline:
        group = bench.admin.describe_consumer_groups([bench.group])[bench.group].result(10)
        if sum(bool(m.assignment and m.assignment.topic_partitions) for m in group.members) == members:
            return
        time.sleep(0.1)
    raise Refused(f"Expected {members} members of {bench.group} to have partitions within {SHARED_TIMEOUT_S} s")


@contextmanager
def trickle(bench: Bench) -> Iterator[None]:
    """A few records all the time, from another thread."""
    stopped = threading.Event()

    def produce() -> None:
        with Producer({"bootstrap.servers": bench.bootstrap_servers, "partitioner": "murmur2_random"}) as producer:
            for given in ticks(TRICKLE_RECORDS_MAX, "trickle"):
                if stopped.wait(1 / TRICKLE_PER_S):
                    return
                bench.write(producer, [given])

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
