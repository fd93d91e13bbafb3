"""The proof of signals: each combination starts one instance, on a real broker, whatever is done to all of it.

    python -m tests.proof.signals.prove                 the full proof: 20,000 signals, 1,000 join values, 100 faults
    python -m tests.proof.signals.prove --signals 2000 --short --faults 8 --seed 7

Three processes host the product's processors. Signals with ids of their own are announced one to four times each while
processes are killed (anywhere and at each named moment of a cycle), frozen past their session and thawed, stopped and
started in storms, while the broker is killed and restarted, and while commits lose their answers. Then the faults end,
and a `read_committed` reader compares the starts with a model of a few lines: none lost, none doubled.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from kapelle.processors.wiring import RUN_EVENTS, SIGNAL_EVENTS, WORKFLOW_EVENTS
from kapelle.schemas import contracts as c
from kapelle.topology.build import Topology
from kapelle.topology.kafka.config import Protocol
from kapelle.topology.log import Place
from kapelle.topology.page import topology
from tests.proof.checks import Seen
from tests.proof.fleet import Fleet
from tests.proof.kafka import ends, publish, seen
from tests.proof.prove import Plan, Proof, prove_by
from tests.proof.signals.checks import counts_of, signal_violations, told, unfinished
from tests.proof.signals.workload import Work, work
from tests.proof.workload import Published
from tests.support.broker import Broker
from tests.support.proxy import Proxy

PARTITIONS: Final = 4
VALUES: Final = 1_000
BEGIN_S: Final = 120.0
DRAIN_S: Final = 240.0
MOVES_S: Final = 20.0


class Company(Fleet):
    """Members that host the product's processors."""

    def _program(self, number: int) -> list[str]:
        state = str(self._state_of(number))
        return ["tests.proof.signals.member", "--state-dir", state, "--partitions", str(PARTITIONS)]


class SignalsProof(Proof):
    """One run."""

    fleet_type = Company
    values = VALUES

    def __init__(self, broker: Broker, proxy: Proxy | None, directory: Path, plan: Plan) -> None:
        self.work: Work = work(plan.seed, plan.records, self.values)
        self.counts: dict[str, int] = {}
        super().__init__(broker, proxy, directory, plan)

    def _made(self, prefix: str) -> Topology:
        return topology(prefix=prefix, partitions=PARTITIONS)

    def _records(self) -> list[Published]:
        return self.work.announced

    def _begin(self) -> None:
        """The triggers hear of signals from when they are armed."""
        servers = self._broker.bootstrap_servers
        publish(servers, self._topology, self.work.pushes)
        until = time.monotonic() + BEGIN_S
        while time.monotonic() < until:
            found = seen(servers, self._topology, [SIGNAL_EVENTS])
            if len(told(found, SIGNAL_EVENTS, c.TriggerSubscribed)) == self.work.subscriptions:
                return
            time.sleep(0.5)
        raise TimeoutError(f"expected {self.work.subscriptions} subscriptions within {BEGIN_S} s")

    def _fault(self) -> None:
        """One fault, and then some work: faults that find nothing under way prove little."""
        super()._fault()
        before, until = self._written(), time.monotonic() + MOVES_S
        while self._written() == before and time.monotonic() < until:
            time.sleep(0.2)

    def _written(self) -> int:
        """How much stands on the history of signals, markers included."""
        topic = self._topology.topic(SIGNAL_EVENTS)
        places = [Place(topic, number) for number in range(PARTITIONS)]
        return sum(ends(self._broker.bootstrap_servers, places).values())

    def _drain(self) -> None:
        """Wait until every announcement has its verdict and every start has ended; what is lost is told by the checks.

        That nothing moves for a while says little: on a busy machine it takes a process long to come up.
        """
        streams = [SIGNAL_EVENTS, WORKFLOW_EVENTS, RUN_EVENTS]
        until = time.monotonic() + DRAIN_S
        while time.monotonic() < until:
            time.sleep(1.0)
            found = seen(self._broker.bootstrap_servers, self._topology, streams)
            left = unfinished(self.work, found)
            self._say(f"left: {left}")
            if not any(left.values()):
                break

    def _problems(self, found: Seen) -> list[str]:
        self.counts = counts_of(self.work, found)
        return signal_violations(self.work, found)


class ShortProof(SignalsProof):
    """The same over few join values, so that few signals make many combinations."""

    values = 50


def show(proof: SignalsProof, problems: list[str], took_s: float) -> None:
    """What happened, as a table."""
    table = Table("what", "count", box=None, padding=(0, 3, 0, 0))
    fleet = proof.fleet
    processes = {"processes started": fleet.starts, "killed": fleet.kills, "frozen": fleet.stalls}
    for what, count in {**proof.done, **processes, **proof.counts, "violations": len(problems)}.items():
        table.add_row(what, f"{count:,}")
    console = Console(highlight=False)
    console.print(table)
    console.print(f"seed {proof.plan.seed}, {took_s:.0f} s")
    for problem in problems[:20]:
        console.print(problem, markup=False)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.signals.prove", description=__doc__)
    parser.add_argument("--signals", type=int, default=20_000)
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--protocol", choices=[p.value for p in Protocol], default=Protocol.CLASSIC.value)
    parser.add_argument("--short", action="store_true", help="over few join values")
    args = parser.parse_args(argv)
    began = time.monotonic()
    plan = Plan(records=args.signals, faults=args.faults, seed=args.seed, protocol=Protocol(args.protocol))
    problems, proof = prove_by(ShortProof if args.short else SignalsProof, plan)
    show(proof, problems, time.monotonic() - began)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
