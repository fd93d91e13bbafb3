"""The proof of composite steps: trees of loops and subworkflows on a real broker, while the processors are killed.

    python -m tests.proof.composites.prove                 the full proof: 20 trees, a minute of kills
    python -m tests.proof.composites.prove --trees 4 --kills-s 12 --seed 7

Two processes host the product's processors, by its own command, and are killed at random. Meanwhile instances and steps
at every level of the trees are stopped and restarted. When everything has ended, all trees are restarted where they are
not complete. Then a `read_committed` reader replays the histories: every tree has succeeded, every run began and ended
once, no run ended before its children, parents know how their children ended, tables are what history says, and
`kapelle verify` agrees.
"""

import argparse
import random
import subprocess
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

from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.topology.build import DEAD_LETTERS
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from tests.proof.checks import Seen
from tests.proof.composites.checks import tree_violations, unfinished
from tests.proof.composites.watching import Watch
from tests.proof.composites.workload import beginning, disturbances, mending, shapes
from tests.proof.engine.prove import SESSION_MS, SESSIONS, TRANSACTION_MS
from tests.proof.fleet import Fleet
from tests.proof.kafka import publish, seen, unfolded
from tests.proof.tables import table_problems
from tests.proof.workload import Published
from tests.support.broker import Broker, BrokerSettings, open_private_broker

PARTITIONS: Final = 4
PROCESSORS: Final = (0, 1)
KILL_EVERY_S: Final = 2.0  # on average
KILL_PAUSE_S: Final = (0.3, 8.0)
BOTH: Final = 0.25  # how often both are killed at once
TWIG_SLEEPS_S: Final = 1
DISTURBED_PER_S: Final = 3.0
BEGIN_S: Final = 60.0
DRAIN_S: Final = 240.0
VERIFY_S: Final = 120.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to prove, and how hard to try to break it."""

    trees: int = 20
    kills_s: float = 60.0
    seed: int = 1
    verbose: bool = True


class Members(Fleet):
    """The processes of the processors."""

    def _program(self, number: int) -> list[str]:
        options = ["--transaction-timeout-ms", str(TRANSACTION_MS), "--log-level", "warning"]
        return ["kapelle.cli.main", "processors", "run", "--state-dir", str(self._state_of(number)), *options]


class TreeProof:
    """One run. `run` returns the violations; an empty list is the proof."""

    def __init__(self, broker: Broker, directory: Path, plan: Plan) -> None:
        self.plan = plan
        self.counts = Counter[str]()
        self._chance = random.Random(plan.seed)
        self._trees = shapes(self._chance, plan.trees, twig_sleeps_s=TWIG_SLEEPS_S)
        self._servers = broker.bootstrap_servers
        self._directory = directory
        prefix = f"trees-{plan.seed}-{random.SystemRandom().randrange(10**9)}"
        self._topology = topology(prefix=prefix, partitions=PARTITIONS)
        self._place = ["--bootstrap-servers", self._servers, "--prefix", prefix, "--partitions", str(PARTITIONS)]
        self.members = Members(directory, [*self._place, "--session-timeout-ms", str(SESSION_MS)])
        self._over = threading.Event()

    def run(self) -> list[str]:
        Topics(self._topology, KafkaSettings(bootstrap_servers=self._servers)).apply()
        self._publish(beginning(self._trees, self._chance))
        publisher = threading.Thread(target=publish, args=(self._servers, self._topology, self._in_time()))
        watch = Watch(self._servers, self._topology)
        try:
            for number in PROCESSORS:
                self._start(number)
            problems = self._await_work(watch)
            publisher.start()
            problems = problems or self._kill_for_a_while(watch)
            self._over.set()
            publisher.join()
            problems = problems or self._drain(watch, set()) or self._mend(watch)
        finally:
            self._over.set()
            self.members.stop_all()
            watch.close()
        return problems or self._check()

    def _mend(self, watch: Watch) -> list[str]:
        wanted = list(mending(self._trees, "mend"))
        self._publish(iter(wanted))
        return self._drain(watch, {command.request_id for _, _, command in wanted})

    def _check(self) -> list[str]:
        events = [processor.events for processor in self._topology.processors.values()]
        found: Seen = seen(self._servers, self._topology, [*events, DEAD_LETTERS])
        self._count(found)
        problems = tree_violations(found) + unfinished(self._trees, found)
        return problems + table_problems(self._servers, self._topology, self._directory, found) + self._verified()

    def _verified(self) -> list[str]:
        """What the product's own command says of the tables."""
        command = [sys.executable, "-m", "kapelle.cli.main", "verify", "workflows", "runs", *self._place]
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERIFY_S, check=False)
        return [f"kapelle verify: {done.stdout[-1000:]} {done.stderr[-1000:]}"] if done.returncode else []

    def _count(self, found: Seen) -> None:
        for stream in (RUN_EVENTS.name, WORKFLOW_EVENTS.name):
            for rows in found[stream].values():
                self.counts.update(NAMES[type(event)] for _, event in rows if type(event) in NAMES)

    def _publish(self, what: Iterator[Published]) -> None:
        publish(self._servers, self._topology, what)

    def _in_time(self) -> Iterator[Published]:
        """Stops and restarts, one after the other."""
        chance = random.Random(self.plan.seed + 1)
        for one in disturbances(self._trees, chance, int(self.plan.kills_s * DISTURBED_PER_S)):
            if self._over.wait(chance.expovariate(DISTURBED_PER_S)):
                return
            yield one

    def _start(self, number: int) -> None:
        """Same-cycle delivery is mixed: it must make no difference."""
        self.members.start(number, self._chance.choice(("--same-cycle", "--same-cycle", "--no-same-cycle")))

    def _await_work(self, watch: Watch) -> list[str]:
        until = time.monotonic() + BEGIN_S
        while not watch.instances and time.monotonic() < until:
            watch.look(0.1)
        return [] if watch.instances else [f"expected an instance within {BEGIN_S} s", *self.members.failed()]

    def _kill_for_a_while(self, watch: Watch) -> list[str]:
        until = time.monotonic() + self.plan.kills_s
        while time.monotonic() < until:
            shortest_s, longest_s = KILL_PAUSE_S
            pause_s = min(max(self._chance.expovariate(1 / KILL_EVERY_S), shortest_s), longest_s)
            next_kill = time.monotonic() + pause_s
            while (left_s := next_kill - time.monotonic()) > 0:
                watch.look(min(left_s, 0.5))
            for number in self._chance.sample(PROCESSORS, 2 if self._chance.random() < BOTH else 1):
                self.members.kill(number)
                self._start(number)
            if problems := self.members.failed():
                return problems
            self._say(f"{self.members.kills} kills; {watch.left()}")
        return []

    def _drain(self, watch: Watch, requests: set[str]) -> list[str]:
        """Wait until these requests are answered, everything has ended, and nothing is left to fold."""
        until = time.monotonic() + DRAIN_S
        while True:
            watch.look(0.5)
            if problems := self.members.failed():
                return problems
            if time.monotonic() > until:
                return [f"expected an end within {DRAIN_S} s, but found {watch.left()}"]
            if watch.is_quiet and requests <= watch.answered and not unfolded(self._servers, self._topology):
                watch.look(0.5)
                if watch.is_quiet:
                    self._say(f"quiet; {watch.left()}")
                    return []

    def _say(self, text: str) -> None:
        if self.plan.verbose:
            print(text, file=sys.stderr, flush=True)


# What is counted for people.
NAMES: Final[dict[type, str]] = {
    c.RunStarted: "runs of instances",
    c.ChildrenLaunched: "launches of children",
    c.ChildEnded: "ends of children",
    c.StepEnding: "steps that waited for their children to stop",
    c.RestartRequested: "restarts of ended instances",
    c.ActionTaken: "actions taken",
    c.CommandRefused: "requests refused",
}


def prove_on(broker: Broker, plan: Plan) -> tuple[list[str], TreeProof]:
    """Prove on a broker that stays as it is."""
    with tempfile.TemporaryDirectory(prefix="kapelle-trees-") as directory:
        proof = TreeProof(broker, Path(directory), plan)
        return proof.run(), proof


def show(proof: TreeProof, problems: list[str], took_s: float) -> None:
    """What happened, as a table."""
    table = Table("what", "count", box=None, padding=(0, 3, 0, 0))
    rows = {"trees": proof.plan.trees, "kills": proof.members.kills, **proof.counts, "violations": len(problems)}
    for what, count in rows.items():
        table.add_row(what, f"{count:,}")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"seed {proof.plan.seed}, {took_s:.0f} s")
    for problem in problems[:20]:
        console.print(problem, markup=False)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.composites.prove", description=__doc__)
    parser.add_argument("--trees", type=int, default=Plan().trees)
    parser.add_argument("--kills-s", type=float, default=Plan().kills_s)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args(argv)
    began = time.monotonic()
    with open_private_broker(BrokerSettings(overrides=SESSIONS)) as broker:
        problems, proof = prove_on(broker, Plan(trees=args.trees, kills_s=args.kills_s, seed=args.seed))
    show(proof, problems, time.monotonic() - began)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
