"""The engine's proof: workflows of every run strategy on a real broker, while all of its processes are killed.

    python -m tests.proof.engine.prove                 the full proof: 500 instances, a minute of kills
    python -m tests.proof.engine.prove --instances 60 --kills-s 15 --seed 7

Two processes host the product's processors, by its own command, and two answer tasks. Every two seconds, on average,
one of the four is killed and started anew, or two are. Then everything must end, and a `read_committed` reader replays
the histories: each request has one instance, no run strategy was ever violated, each step has succeeded once, by the
answer of its own attempt, nothing stood still for longer than a lease and a failover, tables are what history says, and
so are the public topics: each record once, in order, no number missing.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from kapelle.processors.wiring import RUN_EVENTS, TASKS
from kapelle.topology.build import DEAD_LETTERS
from kapelle.topology.kafka.config import KafkaSettings, Protocol
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from tests.proof.checks import Seen
from tests.proof.engine.checks import counts_of, engine_violations
from tests.proof.engine.waits import wait_ms_max
from tests.proof.engine.watching import Watch
from tests.proof.engine.workload import workload
from tests.proof.fleet import Fleet
from tests.proof.kafka import committed_lag, publish, seen, unfolded, written_ms
from tests.proof.publishing import STATES, publishing_violations
from tests.proof.tables import table_problems
from tests.proof.workload import Published
from tests.support.broker import Broker, BrokerSettings, open_private_broker

PARTITIONS: Final = 4
PROCESSORS: Final = (0, 1)
WORKERS: Final = (2, 3)
EVERYONE: Final = (*PROCESSORS, *WORKERS)
KILL_EVERY_S: Final = 2.0  # on average: some come while the last one is being got over, some long after it
KILL_PAUSE_S: Final = (0.3, 8.0)
BOTH: Final = 0.25  # how often two are killed at once
SESSION_MS: Final = 2_500
TRANSACTION_MS: Final = 5_000
BEGIN_S: Final = 60.0
DRAIN_S: Final = 240.0
# The sessions of the new group protocol are the broker's.
SESSIONS: Final = {
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.heartbeat.interval.ms": str(SESSION_MS // 5),
}
QUIET_CHECKS: Final = 2


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to prove, and how hard to try to break it."""

    instances: int = 500
    kills_s: float = 60.0
    seed: int = 1
    protocol: Protocol = Protocol.CLASSIC
    verbose: bool = True


class Company(Fleet):
    """The processes: those of the processors first, then the workers."""

    def _program(self, number: int) -> list[str]:
        if number in WORKERS:
            return ["tests.proof.engine.worker"]
        options = ["--transaction-timeout-ms", str(TRANSACTION_MS), "--log-level", "warning"]
        return ["kapelle.cli.main", "processors", "run", "--state-dir", str(self._state_of(number)), *options]


class EngineProof:
    """One run. `run` returns the violations; an empty list is the proof."""

    def __init__(self, broker: Broker, directory: Path, plan: Plan) -> None:
        self.plan = plan
        self.work = workload(plan.seed, plan.instances, plan.kills_s)
        self.killed = Counter[str]()
        self.counts: dict[str, int] = {}
        self._kills_ms: list[int] = []
        self._start_s = 0.0
        self._chance = random.Random(plan.seed)
        self._servers = broker.bootstrap_servers
        self._directory = directory
        prefix = f"engine-{plan.seed}-{random.SystemRandom().randrange(10**9)}"
        self._topology = topology(prefix=prefix, partitions=PARTITIONS)
        self.company = Company(directory, self._arguments(prefix))
        self._over = threading.Event()

    def _arguments(self, prefix: str) -> list[str]:
        return [
            *("--bootstrap-servers", self._servers, "--prefix", prefix, "--partitions", str(PARTITIONS)),
            *("--session-timeout-ms", str(SESSION_MS)),
        ]

    def run(self) -> list[str]:
        Topics(self._topology, KafkaSettings(bootstrap_servers=self._servers)).apply()
        self._publish(self.work.pushes())
        publisher = threading.Thread(target=publish, args=(self._servers, self._topology, self._in_time()))
        watch = Watch(self._servers, self._topology, self.work)
        try:
            for number in EVERYONE:
                self._start(number)
            publisher.start()
            problems = self._await_work(watch) or self._kill_for_a_while(watch) or self._drain(watch)
        finally:
            self._over.set()
            publisher.join()
            self.company.stop_all()
            watch.close()
        return problems or self._check()

    def _check(self) -> list[str]:
        events = [processor.events for processor in self._topology.processors.values()]
        found: Seen = seen(self._servers, self._topology, [*events, *STATES, TASKS, DEAD_LETTERS])
        self.counts = counts_of(self.work, found, self._kills_ms)
        limit_ms = wait_ms_max(SESSION_MS / 1000, self._start_s)
        self.counts["limit of a wait without a kill (ms)"] = limit_ms
        runs_ms = written_ms(self._servers, self._topology, RUN_EVENTS)
        problems = engine_violations(self.work, found, self._kills_ms, wait_ms_max=limit_ms, runs_ms=runs_ms)
        problems += publishing_violations(found)
        self.counts["public records"] = sum(
            len(rows) for name, places in found.items() if name.startswith("public.") for rows in places.values()
        )
        return problems + table_problems(self._servers, self._topology, self._directory, found)

    def _publish(self, what: list[Published]) -> None:
        publish(self._servers, self._topology, what)

    def _in_time(self) -> Iterator[Published]:
        """The starts, each at its moment."""
        began = time.monotonic()
        for one in self.work.asked:
            self._over.wait(max(0.0, began + one.after_s - time.monotonic()))
            yield one.published()

    def _start(self, number: int) -> None:
        """Same-cycle delivery is mixed: it must make no difference."""
        if number in WORKERS:
            self.company.start(number)
            return
        delivery = self._chance.choice(("--same-cycle", "--same-cycle", "--no-same-cycle"))
        self.company.start(number, delivery, "--protocol", self.plan.protocol.value)

    def _await_work(self, watch: Watch) -> list[str]:
        """Kills that find nothing under way would prove little. How long it takes tells how fast processes come up."""
        began = time.monotonic()
        while not watch.has_begun and time.monotonic() < began + BEGIN_S:
            self._publish(watch.look(0.1))
        self._start_s = time.monotonic() - began
        return [] if watch.has_begun else [f"expected an instance within {BEGIN_S} s", *self.company.failed()]

    def _kill_for_a_while(self, watch: Watch) -> list[str]:
        until = time.monotonic() + self.plan.kills_s
        while time.monotonic() < until:
            shortest_s, longest_s = KILL_PAUSE_S
            pause_s = min(max(self._chance.expovariate(1 / KILL_EVERY_S), shortest_s), longest_s)
            next_kill = time.monotonic() + pause_s
            while (left_s := next_kill - time.monotonic()) > 0:
                self._publish(watch.look(min(left_s, 0.5)))
            for number in self._chance.sample(EVERYONE, 2 if self._chance.random() < BOTH else 1):
                self._kill(number)
            if problems := self.company.failed():
                return problems
            self._say(f"{sum(self.killed.values())} kills; {watch.left()}")
        return []

    def _kill(self, number: int) -> None:
        if not self.company.running(number):
            return
        self.company.kill(number)
        self._kills_ms.append(time.time_ns() // 1_000_000)
        self.killed["workers killed" if number in WORKERS else "processes of processors killed"] += 1
        self._start(number)

    def _drain(self, watch: Watch) -> list[str]:
        """Wait until everything has ended, and nothing is left to fold."""
        until, quiet, last = time.monotonic() + DRAIN_S, 0, -1
        while quiet < QUIET_CHECKS:
            self._publish(watch.look(0.5))
            if problems := self.company.failed():
                return problems
            if time.monotonic() > until:
                return [f"expected an end within {DRAIN_S} s, but found {watch.left()}, {last} offsets to fold"]
            if watch.is_over:
                lag = committed_lag(self._servers, self._topology)
                quiet, last = quiet + 1 if lag == last else 0, lag
            if quiet == QUIET_CHECKS and unfolded(self._servers, self._topology):
                quiet = 0  # nothing moves, because a publisher is just being taken over
        self._say("drained")
        return []

    def _say(self, text: str) -> None:
        if self.plan.verbose:
            print(text, file=sys.stderr, flush=True)


def prove_on(broker: Broker, plan: Plan) -> tuple[list[str], EngineProof]:
    """Prove on a broker that stays as it is."""
    with tempfile.TemporaryDirectory(prefix="kapelle-engine-") as directory:
        proof = EngineProof(broker, Path(directory), plan)
        return proof.run(), proof


def show(proof: EngineProof, problems: list[str], took_s: float) -> None:
    """What happened, as a table."""
    table = Table("what", "count", box=None, padding=(0, 3, 0, 0))
    rows = {**proof.killed, "processes started": proof.company.starts, **proof.counts, "violations": len(problems)}
    for what, count in rows.items():
        table.add_row(what, f"{count:,}")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"seed {proof.plan.seed}, {took_s:.0f} s")
    for problem in problems[:20]:
        console.print(problem, markup=False)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.engine.prove", description=__doc__)
    parser.add_argument("--instances", type=int, default=Plan().instances)
    parser.add_argument("--kills-s", type=float, default=Plan().kills_s)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--protocol", choices=[p.value for p in Protocol], default=Plan().protocol.value)
    args = parser.parse_args(argv)
    began = time.monotonic()
    plan = Plan(instances=args.instances, kills_s=args.kills_s, seed=args.seed, protocol=Protocol(args.protocol))
    with open_private_broker(BrokerSettings(overrides=SESSIONS)) as broker:
        problems, proof = prove_on(broker, plan)
    show(proof, problems, time.monotonic() - began)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
