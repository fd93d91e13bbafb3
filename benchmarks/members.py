"""What a member of Kapelle does besides folding: it restores, grows, fails over, and waits."""

import statistics
import threading
import time
from collections.abc import Iterator
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
SETTLE_S = 2.0


@dataclass(frozen=True)
class Growth:
    """The cost per record with many keys in the table, over that with few, in waves made side by side."""

    keys: int
    ratios: list[float]

    @property
    def ratio(self) -> float:
        return round(statistics.median(self.ratios), 3)


@dataclass(frozen=True)
class Failover:
    """Seconds from the kill of a member until another has folded what was there then, and until readers see it."""

    committed_s: float
    visible_s: float


def measure_restore(bootstrap_servers: str, command: Command, rows: int) -> float:
    """Rows per second from a changelog into empty tables: a start without local state, less a start with it."""
    with Bench(bootstrap_servers, "restore", ours.TICKS) as bench:
        ours.fill_changelog(bench, rows)
        with Standby(bench, command) as standby:
            empty_s = standby.await_ready()
        with Standby(bench, command) as standby:
            kept_s = standby.await_ready()
        bench.verify()
    progress(f"restore of {rows:,} rows: ready in {empty_s:.2f} s without and in {kept_s:.2f} s with local state")
    if empty_s <= kept_s:
        raise Refused(f"Expected a start without local state to be the slower one, but {empty_s:.2f} <= {kept_s:.2f} s")
    return rows / (empty_s - kept_s)


def measure_growth(bootstrap_servers: str, command: Command, *, keys: int, records: int, waves: int) -> Growth:
    """Two members, one with a thousand keys and one with many, take the same number of records in turn."""
    with (
        Bench(bootstrap_servers, "few-keys", ours.TICKS) as few,
        Bench(bootstrap_servers, "many-keys", ours.TICKS) as many,
    ):
        ours.fill_changelog(few, KEYS)
        ours.fill_changelog(many, keys)
        with Standby(few, command) as first, Standby(many, command) as second:
            ratios = [_growth(first, second, keys, records, f"wave-{number}") for number in range(waves)]
        few.verify()
        many.verify()
    return Growth(keys, ratios)


def _growth(few: Standby, many: Standby, keys: int, records: int, series: str) -> float:
    few_s, few_cpu_s = few.wave(ticks(records, series))
    many_s, many_cpu_s = many.wave(ticks(records, series, keys))
    progress(
        f"{records:,} records: {few_s:.2f} s ({few_cpu_s:.2f} CPU-s) with {KEYS:,} keys, "
        f"{many_s:.2f} s ({many_cpu_s:.2f} CPU-s) with {keys:,}"
    )
    return many_s / few_s


def measure_idle(bootstrap_servers: str, command: Command, seconds: float) -> float:
    """Per cent of a core that a member takes when nothing comes in."""
    with Bench(bootstrap_servers, "idle", ours.TICKS) as bench, Standby(bench, command) as standby:
        standby.await_ready()
        time.sleep(SETTLE_S)
        cpu_s, began = standby.program.cpu_s(), time.perf_counter()
        time.sleep(seconds)
        return (standby.program.cpu_s() - cpu_s) / (time.perf_counter() - began) * 100


def measure_failover(bootstrap_servers: str, command: Command) -> Failover:
    """Kill one of two members, under a trickle, and wait for the other to take over."""
    with (
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
            committed_at = bench.await_committed(bench.ends(), second.program.check)
            visible_at = bench.await_visible()
        bench.await_committed(bench.ends(), second.program.check)
        second.program.stop()
        bench.verify()
    return Failover(committed_at - killed_at, visible_at - killed_at)


def await_shared(bench: Bench, *, members: int) -> None:
    """Wait until so many members of the group have partitions."""
    deadline = time.monotonic() + SHARED_TIMEOUT_S
    while time.monotonic() < deadline:
        group = bench.admin.describe_consumer_groups([bench.group])[bench.group].result(10)
        if sum(bool(m.assignment and m.assignment.topic_partitions) for m in group.members) == members:
            return
        time.sleep(0.1)
    raise Refused(f"Expected {members} members of {bench.group} to have partitions within {SHARED_TIMEOUT_S} s")


@contextmanager
def trickle(bench: Bench) -> Iterator[None]:
    """A little of everything all the time, from another thread."""
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
