"""The exactly-once proof: real processes on a real broker, with everything done to them that the world might do.

    python -m tests.proof.prove                 the full proof: 100,000 records, at least 100 faults
    python -m tests.proof.prove --records 8000 --faults 12 --seed 7

Records with unique ids are published while members are killed (anywhere and at each named moment of a cycle), frozen
past their session and thawed, stopped and started in storms, while the broker is killed and restarted, and while
commits lose their answers. Then the faults end, everything must drain, and a `read_committed` reader compares what
came out with models of a few lines: nothing missing, nothing doubled, order kept, tables equal to the fold of history.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from confluent_kafka import KafkaException

from kapelle.topology.build import Topology
from kapelle.topology.crash import CrashPoint
from kapelle.topology.errors import CycleAborted
from kapelle.topology.kafka.config import KafkaSettings, Protocol
from kapelle.topology.kafka.topics import Topics
from tests.proof.checks import Seen, violations
from tests.proof.fleet import Fleet
from tests.proof.kafka import committed_lag, publish, seen, unfolded
from tests.proof.mutants import MUTANTS
from tests.proof.processors import topology
from tests.proof.tables import table_problems
from tests.proof.workload import Published, mixed
from tests.support.broker import Broker, BrokerSettings, open_private_broker
from tests.support.proxy import END_TXN, Proxy, Then
from tests.support.settings import KILLED_MS

MEMBERS = 3
SESSION_MS = 2_500
TRANSACTION_MS = 5_000
COMMIT_S = 2.0
CRASH_S = 10.0  # how long to wait for a member to come to the moment where it must die...
COMMIT_CRASH_S = 80.0  # ...and to a commit, which it will come to while records do
TRICKLE_S = 0.2
SLICE_S = 4.0  # the records between two faults are published within this time
DRAIN_S = 180.0
QUIET_CHECKS = 3


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to prove, and how hard to try to break it."""

    records: int = 100_000
    faults: int = 120
    seed: int = 1
    pause_s: float = 1.0
    protocol: Protocol = Protocol.CLASSIC
    mutant: str | None = None
    broker_faults: bool = True
    network_faults: bool = True
    crashes_only: bool = False  # at the moments between commit and what follows it
    verbose: bool = True


class Proof:
    """One run. `run` returns the violations; an empty list is the proof."""

    fleet_type: type[Fleet] = Fleet

    def __init__(self, broker: Broker, proxy: Proxy | None, directory: Path, plan: Plan) -> None:
        self.plan = plan
        self.done = Counter[str]()
        self.faults = 0
        self._over = threading.Event()
        self._broker = broker
        self._proxy = proxy
        self._chance = random.Random(plan.seed)
        self._topology = self._made(f"proof-{plan.seed}-{random.SystemRandom().randrange(10**9)}")
        self._directory = directory
        self.fleet = self.fleet_type(directory, self._arguments(broker.bootstrap_servers))
        self._through_proxy = ["--bootstrap-servers", broker.proxied_servers] if proxy is not None else []
        self.published = self._records()

    # What another proof does its own way ------------------------------------------------------------------------------

    def _made(self, prefix: str) -> Topology:
        return topology(prefix=prefix)

    def _records(self) -> list[Published]:
        """The streams share the records: ticks, offers and hops alike, and half as many reminders."""
        return mixed(self.plan.seed, max(self.plan.records * 2 // 7, 2))

    def _begin(self) -> None:
        """All that must have happened before the first record is published."""

    def _problems(self, found: Seen) -> list[str]:
        return violations(self.published, found)

    # How it is done ---------------------------------------------------------------------------------------------------

    def _arguments(self, servers: str) -> list[str]:
        plan = self.plan
        mutant = ["--mutant", plan.mutant] if plan.mutant else []
        return [
            *("--bootstrap-servers", servers, "--prefix", self._topology.prefix, "--protocol", plan.protocol.value),
            *("--session-timeout-ms", str(SESSION_MS), "--transaction-timeout-ms", str(TRANSACTION_MS)),
            *("--commit-timeout-s", str(COMMIT_S), "--records-max", "500", *mutant),
        ]

    def run(self) -> list[str]:
        Topics(self._topology, KafkaSettings(bootstrap_servers=self._broker.bootstrap_servers)).apply()
        publisher = threading.Thread(
            target=publish,
            args=(self._broker.bootstrap_servers, self._topology, self._as_faults_allow()),
            kwargs={"per_s": int(len(self.published) / self.plan.faults / SLICE_S) + 1},
            daemon=True,  # it never ends if a broker that was killed does not come back
        )
        try:
            for number in range(MEMBERS):
                self._start(number)
            self._begin()
            publisher.start()
            while self.faults < self.plan.faults:
                time.sleep(self._chance.random() * self.plan.pause_s)
                self._fault()
                if problems := self.fleet.failed():
                    return problems
            self._say(f"faults end: {dict(self.done)}")
            self._over.set()
            publisher.join()
            self._drain()
            if problems := self.fleet.failed():
                return problems
        finally:
            self._over.set()
            self.fleet.stop_all()
        found = seen(self._broker.bootstrap_servers, self._topology)
        problems = self._problems(found)
        return problems + table_problems(self._broker.bootstrap_servers, self._topology, self._directory, found)

    def _as_faults_allow(self) -> Iterator[Published]:
        """The records, slice by slice: every fault finds some under way."""
        slice_records = len(self.published) / self.plan.faults
        for n, row in enumerate(self.published):
            while n >= slice_records * (self.faults + 1) and not self._over.is_set():
                time.sleep(0.01)
            if self.plan.crashes_only and n >= slice_records * (self.faults + 0.5):
                # A member that must die at a commit must find something to commit, however long it takes to start.
                self._over.wait(TRICKLE_S)
            yield row

    def _fault(self) -> None:
        faults: list[tuple[str, int, Callable[[], None]]] = [
            ("kill -9", 6, self._kill),
            ("crash point", 8, self._crash_point),
            ("freeze past the session", 2, self._freeze),
            ("rebalance storm", 2, self._storm),
        ]
        if self.plan.crashes_only:
            faults = [("crash after commit", 1, lambda: self._crash_point([CrashPoint.AFTER_COMMIT]))]
        if self.plan.broker_faults and not self.plan.crashes_only:
            faults.append(("broker killed", 2, self._kill_broker))
        if self.plan.network_faults and self._proxy is not None and not self.plan.crashes_only:
            faults.append(("commit unanswered", 3, self._lose_commit))
        name, _, fault = self._chance.choices(faults, [weight for _, weight, _ in faults])[0]
        self._say(f"{self.faults + 1}: {name}")
        fault()
        self.faults += 1
        self.done[name] += 1
        self.fleet.reap()
        for number in range(MEMBERS):
            if not self.fleet.running(number):
                self._start(number)

    def _start(self, number: int, *extra: str) -> None:
        """Start a member, with same-cycle delivery on, off or switching: the order must hold however they are mixed."""
        self.fleet.start(number, "--same-cycle", self._chance.choice(["on", "on", "off", "switching"]), *extra)

    def _kill(self) -> None:
        number = self.fleet.pick(self._chance)
        if number is not None:
            self.fleet.kill(number)

    def _crash_point(self, points: Sequence[CrashPoint] = tuple(CrashPoint)) -> None:
        """Restart a member so that it dies at a named moment, and wait until it has."""
        number = self._chance.randrange(MEMBERS)
        point = self._chance.choice(points)
        self.fleet.kill(number)
        self._start(number, "--crash-at", point.value, "--crash-after", str(self._chance.randrange(1, 4)))
        if point is CrashPoint.DURING_REVOKE:
            # Partitions must come and go again: another member joins when this one has had time to get some.
            time.sleep(CRASH_S / 2)
            self._start(MEMBERS)
        until = time.monotonic() + (COMMIT_CRASH_S if self.plan.crashes_only else CRASH_S)
        while self.fleet.running(number) and time.monotonic() < until:
            time.sleep(0.05)
        if not self.fleet.running(number):
            self.done[f"died {point.value}"] += 1
        self.fleet.kill(number)
        self.fleet.stop(MEMBERS)

    def _freeze(self) -> None:
        number = self.fleet.pick(self._chance)
        if number is not None:
            self.fleet.freeze(number, SESSION_MS / 1000 + 1.5 + self._chance.random())

    def _storm(self) -> None:
        """One member, then three, then one, without a pause."""
        for number in (1, 2):
            self.fleet.stop(number)
        for number in (1, 2):
            self._start(number)
            time.sleep(self._chance.random())
        for number in (0, 1):
            self.fleet.stop(number)
            time.sleep(self._chance.random())

    def _kill_broker(self) -> None:
        self._broker.kill()
        time.sleep(self._chance.random())
        self._broker.start()

    def _lose_commit(self) -> None:
        """A member behind the proxy commits, the broker does it, and the answer never comes."""
        assert self._proxy is not None
        number = self._chance.randrange(MEMBERS)
        self.fleet.stop(number)
        self._start(number, *self._through_proxy)
        time.sleep(2.0)
        loss = self._proxy.lose_next(END_TXN, then=Then.REFUSE)
        if loss.happened.wait(8.0):
            self.done["answers lost"] += 1
        time.sleep(COMMIT_S + 0.5)
        self._proxy.accept()
        time.sleep(1.0)
        self.fleet.stop(number)

    def _drain(self) -> None:
        """Wait until nothing is left to fold for a while, and the last timers have fired; or a member has failed."""
        until = time.monotonic() + DRAIN_S
        quiet, last = 0, -1
        while quiet < QUIET_CHECKS and not self.fleet.failed():
            if time.monotonic() > until:
                standing = self.fleet.standing_all()
                raise TimeoutError(f"not drained after {DRAIN_S} s: {last} offsets left\n{standing}")
            time.sleep(1.0)
            try:
                lag = committed_lag(self._broker.bootstrap_servers, self._topology)
            except (KafkaException, CycleAborted):
                continue  # the last fault may have been the broker's, and it has yet to find its coordinators
            # What remains when nothing moves is the markers of the last transactions. But members that have no time to
            # run do not move either: so no record may be left.
            quiet = quiet + 1 if lag == last else 0
            last = lag
            if quiet == QUIET_CHECKS and unfolded(self._broker.bootstrap_servers, self._topology):
                quiet = 0
        self._say("drained")

    def _say(self, text: str) -> None:
        if self.plan.verbose:
            print(text, file=sys.stderr, flush=True)


P = TypeVar("P", bound=Proof)


def prove(plan: Plan) -> tuple[list[str], Proof]:
    """Prove on a broker of our own."""
    return prove_by(Proof, plan)


def prove_by(kind: type[P], plan: Plan) -> tuple[list[str], P]:
    """One kind of proof, on a broker of its own."""
    settings = BrokerSettings(
        node_session_ms=KILLED_MS if plan.broker_faults else BrokerSettings().node_session_ms,
        overrides={
            "group.consumer.session.timeout.ms": str(SESSION_MS),
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.heartbeat.interval.ms": "500",
            "group.consumer.min.heartbeat.interval.ms": "200",
        },
    )
    with (
        open_private_broker(settings) as broker,
        Proxy(broker) as proxy,
        tempfile.TemporaryDirectory(prefix="kapelle-proof-") as directory,
    ):
        proof = kind(broker, proxy, Path(directory), plan)
        return proof.run(), proof


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.prove", description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--faults", type=int, default=120)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between faults, at most")
    parser.add_argument("--protocol", choices=[p.value for p in Protocol], default=Protocol.CLASSIC.value)
    parser.add_argument("--mutant", choices=sorted(MUTANTS))
    parser.add_argument("--no-broker-faults", action="store_true")
    args = parser.parse_args(argv)
    began = time.monotonic()
    plan = Plan(
        records=args.records,
        faults=args.faults,
        seed=args.seed,
        pause_s=args.pause,
        protocol=Protocol(args.protocol),
        mutant=args.mutant,
        broker_faults=not args.no_broker_faults,
    )
    problems, proof = prove(plan)
    report = {
        "seed": plan.seed,
        "protocol": plan.protocol.value,
        "records": len(proof.published),
        "faults": dict(proof.done),
        "starts": proof.fleet.starts,
        "kills": proof.fleet.kills,
        "stalls": proof.fleet.stalls,
        "forced": proof.fleet.forced,
        "seconds": round(time.monotonic() - began),
        "violations": problems[:20],
    }
    print(msgspec.json.encode(report).decode())
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
