"""The proof of permits and breakpoints: limited steps on a real broker, while the processors are killed.

    python -m tests.proof.permits.prove                   the full proof: twice 2,000 steps and a minute of kills
    python -m tests.proof.permits.prove --steps 200 --kills-s 12 --seed 7

Two processes host the product's processors, by its own command, and are killed at random; two others answer tasks.
Meanwhile limits are raised, lowered, removed and set again, and runs and steps are stopped, killed, skipped and
restarted; the second time breakpoints are set and deleted too, and paused steps resumed. When nothing moves any more,
histories are read: what `runs` and `permits` say of the same attempts must agree. Then breakpoints are deleted, limits
are eased, and what is not complete is restarted, until every step is done. Then a `read_committed` reader replays the
histories: no limit was exceeded at any event, each permit was returned once, every attempt paused that had to, and no
other one. Tables are what history says, and `kapelle verify` agrees.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from kapelle.schemas.contracts import InstanceStatus, StepStatus
from kapelle.topology.build import DEAD_LETTERS
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.page import topology
from tests.proof.composites.prove import BEGIN_S, BOTH, KILL_PAUSE_S, VERIFY_S
from tests.proof.engine.prove import PARTITIONS, PROCESSORS, SESSION_MS, SESSIONS, WORKERS, Company
from tests.proof.kafka import publish, seen, unfolded
from tests.proof.permits.attempts import table_claim_violations
from tests.proof.permits.checks import Found
from tests.proof.permits.people import People
from tests.proof.permits.watching import StepWatch
from tests.proof.permits.workload import Size, definitions, starting, workload
from tests.proof.tables import from_changelogs, table_problems
from tests.proof.workload import Published
from tests.support.broker import Broker, BrokerSettings, open_private_broker

LEAVES_OF_A_FLOW: Final = 20  # on average
FLOWS_PER_INSTANCE: Final = 4  # so many flows for each instance of a flow
KILL_EVERY_S: Final = 2.0  # on average
KILLS_MIN_PER_S: Final = 1 / 6
PROGRESS_MIN: Final = 20  # records between kills
PROGRESS_S_MAX: Final = 8.0  # in which there may be none, because everything waits for people
FIRST_POINTS: Final = 6
STARTED_WITHIN: Final = 0.7  # of the time of kills
DEEDS_PER_S: Final = 12.0
STILL_S: Final = 5.0  # without a new record: longer than leases, sleeps and time-outs
LOOK_S: Final = 0.5
DRAIN_S: Final = 300.0
MENDINGS_MAX: Final = 12


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to prove, and how hard to try to break it."""

    steps: int = 2_000
    kills_s: float = 60.0
    seed: int = 1
    breakpoints: bool = True
    verbose: bool = True

    @property
    def size(self) -> Size:
        """Workflows with about as many leaf steps."""
        flows = max(2, round((self.steps / LEAVES_OF_A_FLOW * FLOWS_PER_INSTANCE) ** 0.5))
        instances = max(1, round(self.steps / LEAVES_OF_A_FLOW / flows))
        return Size(flows=flows, instances=instances, heads=4, side=6, tails=4)


class PermitProof:
    """One run. `run` returns the violations; an empty list is the proof."""

    def __init__(self, broker: Broker, directory: Path, plan: Plan) -> None:
        self.plan = plan
        self.counts: dict[str, int] = {}
        self._chance = random.Random(plan.seed)
        self.work = workload(self._chance, plan.size)
        self._people = People(self.work, random.Random(plan.seed + 1), points=plan.breakpoints)
        self._servers = broker.bootstrap_servers
        self._directory = directory
        prefix = f"permits-{plan.seed}-{random.SystemRandom().randrange(10**9)}"
        self._topology = topology(prefix=prefix, partitions=PARTITIONS)
        self._place = ["--bootstrap-servers", self._servers, "--prefix", prefix, "--partitions", str(PARTITIONS)]
        self.members = Company(directory, [*self._place, "--session-timeout-ms", str(SESSION_MS)])
        self.kills = 0
        self._over = threading.Event()

    def run(self) -> list[str]:
        Topics(self._topology, KafkaSettings(bootstrap_servers=self._servers)).apply()
        first = starting(self.work, self._chance)
        self._publish([*definitions(self.work), *self._people.first_limits()])
        self._publish(self._people.first_points(FIRST_POINTS if self.plan.breakpoints else 0))
        self._publish(first[:1])
        publisher = threading.Thread(target=publish, args=(self._servers, self._topology, self._in_time(first[1:])))
        watch = StepWatch(self._servers, self._topology)
        try:
            for number in (*PROCESSORS, *WORKERS):
                self._start(number)
            problems = self._await_work(watch)
            publisher.start()
            problems = problems or self._kill_for_a_while(watch)
            self._over.set()
            publisher.join()
            problems = problems or self._look_at_rest(watch) or self._ease_and_mend(watch)
        finally:
            self._over.set()
            self.members.stop_all()
            watch.close()
        return problems or self._check()

    def _look_at_rest(self, watch: StepWatch) -> list[str]:
        """Once nothing moves any more: some attempts hold permits, wait or are paused, and all must agree on that."""
        still_s, records, until = 0.0, watch.records, time.monotonic() + DRAIN_S
        while still_s < STILL_S or unfolded(self._servers, self._topology):
            if time.monotonic() > until:
                return [f"expected rest within {DRAIN_S} s, but found {watch.left()}"]
            watch.look(LOOK_S)
            still_s, records = (still_s + LOOK_S if watch.records == records else 0.0), watch.records
        found = self._found()
        held = sum(len(book.held) for book in found.books.values())
        queued = sum(len(book.waiting) for book in found.books.values())
        paused = len(watch.active(StepStatus.PAUSED))
        self.counts = {"permits held at rest": held, "places queued at rest": queued, "attempts paused at rest": paused}
        self._say(f"nothing moves; {watch.left()}; {held} permits are held")
        return found.at_rest() + list(table_claim_violations(from_changelogs(self._servers, self._topology)))

    def _ease_and_mend(self, watch: StepWatch) -> list[str]:
        self._publish([*self._people.easing(), *(self._people.resuming() if self.plan.breakpoints else ())])
        keys = [key for _, key in self.work.instances]
        if problems := self._drain(watch):
            return problems
        for _ in range(MENDINGS_MAX):
            left = [key for key in keys if watch.ended.get(key) is not InstanceStatus.SUCCEEDED]
            if not left:
                return []
            wanted = list(self._people.mending(left))
            self._publish(wanted)
            if problems := self._drain(watch, {command.request_id for _, _, command in wanted}):
                return problems
        return [f"expected all instances to succeed, but {left} did not"]

    def _check(self) -> list[str]:
        found = self._found()
        self.counts |= found.counts()
        problems = found.in_the_end()
        problems += table_claim_violations(from_changelogs(self._servers, self._topology))
        problems += table_problems(self._servers, self._topology, self._directory, found.seen)
        return problems + self._verified()

    def _found(self) -> Found:
        events = [processor.events for processor in self._topology.processors.values()]
        return Found(seen(self._servers, self._topology, [*events, DEAD_LETTERS]), self.work)

    def _verified(self) -> list[str]:
        """What the product's own command says of the tables."""
        command = [sys.executable, "-m", "kapelle.cli.main", "verify", "workflows", "runs", "permits", *self._place]
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERIFY_S, check=False)
        return [f"kapelle verify: {done.stdout[-1000:]} {done.stderr[-1000:]}"] if done.returncode else []

    def _publish(self, what: Iterable[Published]) -> None:
        publish(self._servers, self._topology, what)

    def _in_time(self, starts: list[Published]) -> Iterator[Published]:
        """Starts, and what people do, one after the other."""
        chance, left = random.Random(self.plan.seed + 2), list(reversed(starts))
        starts_per_s = len(starts) / (self.plan.kills_s * STARTED_WITHIN)
        while not self._over.wait(chance.expovariate(starts_per_s + DEEDS_PER_S)):
            if chance.random() * (starts_per_s + DEEDS_PER_S) < starts_per_s:
                yield from [left.pop()] if left else ()
            else:
                yield from self._people.deed()
        yield from reversed(left)

    def _start(self, number: int) -> None:
        """Same-cycle delivery is mixed: it must make no difference."""
        delivery = self._chance.choice(("--same-cycle", "--same-cycle", "--no-same-cycle"))
        self.members.start(number, *(() if number in WORKERS else (delivery,)))

    def _await_work(self, watch: StepWatch) -> list[str]:
        until = time.monotonic() + BEGIN_S
        while not watch.instances and time.monotonic() < until:
            watch.look(0.1)
        return [] if watch.instances else [f"expected an instance within {BEGIN_S} s", *self.members.failed()]

    def _kill_for_a_while(self, watch: StepWatch) -> list[str]:
        until, kills_min = time.monotonic() + self.plan.kills_s, self.plan.kills_s * KILLS_MIN_PER_S
        while time.monotonic() < until or self.kills < kills_min:
            shortest_s, longest_s = KILL_PAUSE_S
            pause_s = min(max(self._chance.expovariate(1 / KILL_EVERY_S), shortest_s), longest_s)
            self._look_on(watch, pause_s)
            for number in self._chance.sample(PROCESSORS, 2 if self._chance.random() < BOTH else 1):
                self.members.kill(number)
                self.kills += 1
                self._start(number)
            if problems := self.members.failed():
                return problems
            self._say(f"{self.kills} kills; {watch.left()}")
        return []

    def _look_on(self, watch: StepWatch, pause_s: float) -> None:
        """Wait for the next kill. Kills faster than a failover would stop everything, and disturb nothing."""
        began, records = time.monotonic(), watch.records
        while (passed_s := time.monotonic() - began) < pause_s or watch.records < records + PROGRESS_MIN:
            watch.look(LOOK_S / 5)
            self._people.active, self._people.paused = watch.active(), watch.active(StepStatus.PAUSED)
            if passed_s > PROGRESS_S_MAX:
                return

    def _drain(self, watch: StepWatch, requests: Iterable[str] = ()) -> list[str]:
        """Wait until these requests are answered, everything has ended, and nothing is left to fold."""
        until, wanted = time.monotonic() + DRAIN_S, set(requests)
        while True:
            watch.look(LOOK_S)
            if problems := self.members.failed():
                return problems
            if time.monotonic() > until:
                return [f"expected an end within {DRAIN_S} s, but found {watch.left()}", *self._found().at_rest()]
            if watch.is_quiet and wanted <= watch.answered and not unfolded(self._servers, self._topology):
                watch.look(LOOK_S)
                if watch.is_quiet:
                    self._say(f"quiet; {watch.left()}")
                    return []

    def _say(self, text: str) -> None:
        if self.plan.verbose:
            print(text, file=sys.stderr, flush=True)


def prove_on(broker: Broker, plan: Plan) -> tuple[list[str], PermitProof]:
    """Prove on a broker that stays as it is."""
    with tempfile.TemporaryDirectory(prefix="kapelle-permits-") as directory:
        proof = PermitProof(broker, Path(directory), plan)
        return proof.run(), proof


def summary(proof: PermitProof, problems: list[str], took_s: float) -> str:
    """What happened, as a table in Markdown."""
    plan = proof.plan
    rows: dict[str, object] = {"seed": plan.seed, "took": f"{took_s:.0f} s"}
    rows |= {"breakpoints": "set and deleted" if plan.breakpoints else "none", "tags": len(proof.work.tags)}
    rows |= {"leaf steps": f"{proof.work.leaf_steps:,}", "instances": len(proof.work.instances)}
    rows |= {"time of kills": f"{plan.kills_s:.0f} s", "kills of a processor": proof.kills}
    rows |= {name: f"{count:,}" for name, count in sorted(proof.counts.items())} | {"violations": len(problems)}
    return "\n".join(["| what | count |", "|---|---:|", *(f"| {what} | {count} |" for what, count in rows.items())])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.permits.prove", description=__doc__)
    parser.add_argument("--steps", type=int, default=Plan().steps)
    parser.add_argument("--kills-s", type=float, default=Plan().kills_s)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--breakpoints", choices=("with", "without", "both"), default="both")
    args = parser.parse_args(argv)
    failed = False
    for has_points in {"both": (False, True), "with": (True,), "without": (False,)}[args.breakpoints]:
        began = time.monotonic()
        plan = Plan(steps=args.steps, kills_s=args.kills_s, seed=args.seed, breakpoints=has_points)
        with open_private_broker(BrokerSettings(overrides=SESSIONS)) as broker:
            problems, proof = prove_on(broker, plan)
        print(summary(proof, problems, time.monotonic() - began), flush=True)
        for problem in problems[:20]:
            print(problem)
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
