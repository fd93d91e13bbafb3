"""The proof of composite steps: trees of loops and subworkflows on a real broker, while the processors are killed.

    python -m tests.proof.composites.prove                 the full proof: 200 trees, a minute of kills
    python -m tests.proof.composites.prove --trees 4 --kills-s 12 --seed 7

Two processes host the product's processors, by its own command, and are killed at random. Meanwhile trees are started,
one after the other, and instances and steps at every level of them are stopped, skipped, timed out and restarted. When
everything has ended, run strategies are eased and all trees are restarted where they are not complete. Then a
`read_committed` reader replays the histories: every tree has succeeded, every run began and ended once, no run ended
before its children, no run strategy saw two trees at once, parents know how their children ended, tables are what
history says, and `kapelle verify` agrees.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from kapelle.processors.runs.restarts import Restart
from kapelle.processors.wiring import RUN_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import StepStatus
from kapelle.topology.build import DEAD_LETTERS
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from tests.proof.checks import Seen
from tests.proof.composites.checks import skipped, tree_violations, unfinished
from tests.proof.composites.watching import Watch
from tests.proof.composites.workload import definitions, disturbance, easing, mending, shapes, starting
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
STARTED_WITHIN: Final = 0.7  # of the time of kills
DISTURBED_PER_S: Final = 3.0  # at least
DISTURBED_PER_TREE: Final = 5.0
SECOND_WAVE: Final = 1_000_000  # where the numbers of its disturbances begin
STILL_S: Final = 3.0  # without a new record
LOOK_S: Final = 0.5
BEGIN_S: Final = 60.0
DRAIN_S: Final = 300.0
VERIFY_S: Final = 120.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to prove, and how hard to try to break it."""

    trees: int = 200
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
        self._publish(definitions(self._trees))
        self._publish(starting(self._trees[0], self._chance))
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
            problems = problems or self._disturb_what_is_left(watch) or self._ease_and_mend(watch)
        finally:
            self._over.set()
            self.members.stop_all()
            watch.close()
        return problems or self._check()

    def rules(self) -> Counter[str]:
        """How many trees have each run strategy."""
        return Counter(str(shape.rule) for shape in self._trees)

    def _disturb_what_is_left(self, watch: Watch) -> list[str]:
        """Once nothing moves any more, restart and act where things have ended, and nobody is killed."""
        still_s, records = 0.0, watch.records
        until = time.monotonic() + DRAIN_S
        while still_s < STILL_S and time.monotonic() < until:
            watch.look(LOOK_S)
            still_s, records = (still_s + LOOK_S if watch.records == records else 0.0), watch.records
        self._say(f"nothing moves; {watch.left()}")
        chance = random.Random(self.plan.seed + 2)
        count = round(len(self._trees) * DISTURBED_PER_TREE)
        self._publish(one for n in range(count) for one in disturbance(self._trees, SECOND_WAVE + n, chance))
        return self.members.failed()

    def _ease_and_mend(self, watch: Watch) -> list[str]:
        for what in (easing(self._trees, "ease"), mending(self._trees, "mend")):
            wanted = list(what)
            self._publish(wanted)
            if problems := self._drain(watch, {command.request_id for _, _, command in wanted}):
                return problems
        return []

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
                self.counts.update(name for _, event in rows for name in _names_of(event))
        self.counts["composite steps skipped in the end"] = skipped(self._trees, found)

    def _publish(self, what: Iterable[Published]) -> None:
        publish(self._servers, self._topology, what)

    def _in_time(self) -> Iterator[Published]:
        """Starts of trees, and disturbances of those that were started, one after the other."""
        chance, begun, number = random.Random(self.plan.seed + 1), 1, 0
        trees, kills_s = self._trees, self.plan.kills_s
        starts_per_s = len(trees) / (kills_s * STARTED_WITHIN)
        disturbed_per_s = max(DISTURBED_PER_S, DISTURBED_PER_TREE * len(trees) / kills_s)
        while not self._over.wait(chance.expovariate(starts_per_s + disturbed_per_s)):
            if chance.random() * (starts_per_s + disturbed_per_s) < starts_per_s:
                yield from starting(trees[begun], chance) if begun < len(trees) else ()
                begun += 1
            else:
                number += 1
                yield from disturbance(trees[:begun], number, chance)
        for shape in trees[begun:]:
            yield from starting(shape, chance)

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


def _names_of(event: object) -> Iterator[str]:
    """What else is counted for people."""
    match event:
        case c.StepChanged():
            for status in (StepStatus.TIMED_OUT, StepStatus.SKIPPED):
                if status in event.statuses:
                    yield f"steps {status}"
        case c.RunStarted(restart=str() as text):
            yield f"runs by {Restart.parse(text).policy}"
        case c.InstanceCreated() | c.InstanceEnded() if event.reason.startswith("Stopped by "):
            yield "instances stopped by a run strategy"


def summary(proof: TreeProof, problems: list[str], took_s: float) -> str:
    """What happened, as a table in Markdown."""
    plan = proof.plan
    rows: dict[str, object] = {"seed": plan.seed, "took": f"{took_s:.0f} s", "trees": plan.trees}
    rows |= {f"trees that are {rule}": count for rule, count in sorted(proof.rules().items())}
    rows |= {"time of kills": f"{plan.kills_s:.0f} s", "kills of a processor": proof.members.kills}
    rows |= {name: f"{count:,}" for name, count in sorted(proof.counts.items())} | {"violations": len(problems)}
    return "\n".join(["| what | count |", "|---|---:|", *(f"| {what} | {count} |" for what, count in rows.items())])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.composites.prove", description=__doc__)
    parser.add_argument("--trees", type=int, default=Plan().trees)
    parser.add_argument("--kills-s", type=float, default=Plan().kills_s)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args(argv)
    began = time.monotonic()
    with open_private_broker(BrokerSettings(overrides=SESSIONS)) as broker:
        problems, proof = prove_on(broker, Plan(trees=args.trees, kills_s=args.kills_s, seed=args.seed))
    print(summary(proof, problems, time.monotonic() - began))
    for problem in problems[:20]:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
