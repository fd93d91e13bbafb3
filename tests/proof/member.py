"""One process of the proof: a member on Kafka that can be told where to die.

python -m tests.proof.member --bootstrap-servers 127.0.0.1:9092 --prefix p --state-dir d --topology counting
"""

import argparse
import faulthandler
import logging
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from kapelle.cli.shutdown import Stopping, stopping
from kapelle.topology.build import Topology
from kapelle.topology.crash import CrashPoint
from kapelle.topology.kafka.config import KafkaSettings, Protocol
from kapelle.topology.kafka.run import KafkaMember
from kapelle.topology.kafka.topics import Topics
from kapelle.topology.member import Member
from kapelle.topology.settings import Limits, MemberSettings
from tests.proof.mutants import MUTANTS
from tests.proof.processors import PROCESSORS, topology


def parsed(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.proof.member", description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("--topology", choices=PROCESSORS, default="all")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--hosted", default="", help="processors to host, with commas between; all by default")
    parser.add_argument("--protocol", choices=[p.value for p in Protocol], default=Protocol.CLASSIC.value)
    parser.add_argument("--session-timeout-ms", type=int, default=6_000)
    parser.add_argument("--transaction-timeout-ms", type=int, default=10_000)
    parser.add_argument("--commit-timeout-s", type=float, default=20.0)
    parser.add_argument("--records-max", type=int, default=Limits().records_max)
    parser.add_argument("--same-cycle", choices=["on", "off", "switching"], default="on")
    parser.add_argument("--create-topics", action="store_true")
    parser.add_argument("--crash-at", choices=[p.value for p in CrashPoint], help="die there...")
    parser.add_argument("--crash-after", type=int, default=1, help="...the n-th time")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="run a broken protocol")
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(argv)


class Doom:
    """Kills the process, for real, when it passes a named point for the n-th time."""

    def __init__(self, point: str | None, after: int) -> None:
        self._point = point
        self._left = after

    def __call__(self, point: CrashPoint) -> None:
        if point.value == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class Switch:
    """Turns same-cycle delivery on and off every few cycles. Asked whether the run is done, it says no."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._chance = random.Random(os.getpid())

    def __call__(self) -> bool:
        if self._chance.random() < 0.1:
            self._member.delivery.enabled = not self._member.delivery.enabled
        return False


def state_of(member: Member) -> str:
    """Where the member stands in its work: what it has counted, and how far each of its shards is."""
    shards = [
        f"{shard} {'active' if shard.active else 'not active'} "
        + ", ".join(f"{i.place}: {i.next} {i.reached} {i.barrier} {i.sent}" for i in shard.inputs.values())
        for shard in member.shards.values()
    ]
    return "\n".join([str(member.counters.snapshot()), *map(str, member.progress()), *shards])


def main(argv: list[str], make: Callable[..., Topology] = topology) -> int:
    args = parsed(argv)
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    logging.basicConfig(
        level=logging.INFO if args.verbose else logging.WARNING, format="%(asctime)s %(name)s %(message)s"
    )
    made = make(args.topology, prefix=args.prefix, partitions=args.partitions)
    kafka = KafkaSettings(
        bootstrap_servers=args.bootstrap_servers,
        protocol=Protocol(args.protocol),
        session_timeout_ms=args.session_timeout_ms,
        transaction_timeout_ms=args.transaction_timeout_ms,
        commit_timeout_s=args.commit_timeout_s,
    )
    if args.create_topics:
        Topics(made, kafka).apply()
    # As the product's own command stops: at once, and in bounded time whatever holds it up.
    with stopping() as heard:
        return run(args, made, kafka, heard)


def run(args: argparse.Namespace, made: Topology, kafka: KafkaSettings, heard: Stopping) -> int:
    running = KafkaMember(
        made,
        kafka,
        args.state_dir,
        settings=MemberSettings(same_cycle=args.same_cycle != "off", limits=Limits(records_max=args.records_max)),
        hosted=[name for name in args.hosted.split(",") if name],
        member=MUTANTS[args.mutant] if args.mutant else Member,
        crash=Doom(args.crash_at, args.crash_after),
    )
    signal.signal(signal.SIGUSR2, lambda *_: print(state_of(running.member), file=sys.stderr, flush=True))
    switch: Callable[[], bool] = Switch(running.member) if args.same_cycle == "switching" else lambda: False
    heard.working()
    running.run(lambda: heard.asked or switch())
    if args.verbose:
        print(running.member.counters.snapshot(), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
