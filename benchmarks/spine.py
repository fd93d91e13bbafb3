"""The spine of Kapelle beside its peers: throughput, latency, restore, failover, idling, growth, hops.

    python -m benchmarks.spine [--quick] [--only throughput,hop,...] [--peers handwritten,...] [--protocol classic]

All on one real broker. Runs that are compared are made side by side, in turn, and the figures are medians of their
ratios, because the speed of a machine drifts. A run whose outputs are not exactly right gives no figure. Progress and
a table go to stderr; the last line on stdout is one JSON object.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks import contestants, members
from benchmarks.embedded import measure_embedded
from benchmarks.figures import median_ratio, percentile, progress, report, spread, table
from benchmarks.harness import Bench, Refused
from benchmarks.hops import measure_stages
from benchmarks.latency import Hop, Pace, measure_hop
from benchmarks.programs import ProgramDied
from benchmarks.throughput import Command, Load, Speed, Standby
from tests.support.broker import open_broker

PEERS = ("handwritten", "kafka_streams", "quix", "faust")
SLOW = {"quix", "faust"}  # too far behind to need more than one round


@dataclass(frozen=True)
class Sizes:
    """How much of everything: the full measurement, and one of under a minute that still touches all of it."""

    warm_up: int
    loads: dict[str, Load]
    rounds: int
    pace: Pace
    restore_rows: int
    growth_keys: int
    growth_records: int
    growth_waves: int
    idle_s: float
    kills: int
    stages: Load
    stages_pace: Pace


FULL = Sizes(
    warm_up=100_000,
    loads=contestants.FULL,
    rounds=3,
    pace=Pace(alone=300, records_per_s=500, seconds=15.0),
    restore_rows=1_000_000,
    growth_keys=10_000_000,
    growth_records=100_000,
    growth_waves=5,
    idle_s=20.0,
    kills=3,
    stages=Load(50_000, warm_up=5_000),
    stages_pace=Pace(alone=100, records_per_s=200, seconds=10.0),
)
QUICK = Sizes(
    warm_up=20_000,
    loads=contestants.QUICK,
    rounds=1,
    pace=Pace(alone=50, records_per_s=500, seconds=2.0),
    restore_rows=200_000,
    growth_keys=100_000,
    growth_records=10_000,
    growth_waves=1,
    idle_s=3.0,
    kills=1,
    stages=Load(5_000, warm_up=500),
    stages_pace=Pace(alone=20, records_per_s=200, seconds=1.0),
)


class Spine:
    """The measurements. Each returns its figures."""

    def __init__(self, bootstrap_servers: str, sizes: Sizes, *, protocol: str, peers: Sequence[str]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.sizes = sizes
        self.protocol = protocol
        self.peers = tuple(peers)
        self.speeds: dict[str, list[Speed]] = {}
        self.commands = contestants.commands(protocol)
        self.member: Command = self.commands["ours"]

    @contextmanager
    def _standby(self, name: str) -> Iterator[Standby]:
        with (
            Bench(self.bootstrap_servers, name, contestants.route(name)) as bench,
            Standby(bench, self.commands[name]) as standby,
        ):
            yield standby

    def warm_up(self) -> None:
        """A new broker is slow at first, and whoever came first would pay for it."""
        progress("warming the broker")
        with self._standby("bare") as standby:
            standby.wave(standby.bench.route.records(self.sizes.warm_up, "warm"))

    def throughput(self) -> dict[str, Any]:
        """Records per second, ours over each of the others, and the embedded log over ours on Kafka."""
        for number in range(self.sizes.rounds):
            for name in ("ours", *self.peers):
                if number == 0 or name not in SLOW:
                    self._run(name)
            self.speeds.setdefault("ours_embedded", []).append(measure_embedded(self.sizes.loads["ours"]))
        rates = {name: [speed.records_per_s for speed in speeds] for name, speeds in self.speeds.items()}
        figures: dict[str, Any] = {}
        for name in self.peers:
            figures[f"vs_{name}"] = median_ratio(rates["ours"][: len(rates[name])], rates[name])
        figures["embedded_vs_kafka"] = median_ratio(rates["ours_embedded"], rates["ours"])
        figures["records_per_s"] = {name: round(statistics.median(found)) for name, found in rates.items()}
        figures["cpu_s_per_100k"] = {
            name: round(statistics.median(speed.cpu_s_per_100k for speed in speeds), 2)
            for name, speeds in self.speeds.items()
        }
        return figures

    def _run(self, name: str) -> None:
        with self._standby(name) as standby:
            self.speeds.setdefault(name, []).append(standby.measure(self.sizes.loads[name]))

    def hop(self) -> dict[str, Any]:
        """Milliseconds of one hop: ours, the hand-written loop, and a bare transaction, in turn."""
        hops: dict[str, list[Hop]] = {}
        for _ in range(self.sizes.rounds):
            for name in ("ours", "handwritten", "bare"):
                with self._standby(name) as standby:
                    hops.setdefault(name, []).append(measure_hop(standby, self.sizes.pace))
        steady = {name: [percentile(hop.steady_ms, 50) for hop in found] for name, found in hops.items()}
        alone = {name: [percentile(hop.alone_ms, 50) for hop in found] for name, found in hops.items()}
        return {
            "hop_p50_ms": round(statistics.median(steady["ours"]), 2),
            "hop_vs_bare_transaction": median_ratio(steady["ours"], steady["bare"]),
            "hop_alone_p50_ms": round(statistics.median(alone["ours"]), 2),
            "hop_alone_vs_bare_transaction": median_ratio(alone["ours"], alone["bare"]),
            "hops_ms": {
                name: {
                    "alone": spread([value for hop in found for value in hop.alone_ms]),
                    "steady": spread([value for hop in found for value in hop.steady_ms]),
                }
                for name, found in hops.items()
            },
        }

    def restore(self) -> dict[str, Any]:
        rate = members.measure_restore(self.bootstrap_servers, self.member, self.sizes.restore_rows)
        return {"restore_rows_per_s": round(rate)}

    def failover(self) -> dict[str, Any]:
        found = [members.measure_failover(self.bootstrap_servers, self.member) for _ in range(self.sizes.kills)]
        return {
            "failover_s": round(statistics.median(each.committed_s for each in found), 2),
            "failover_visible_s": round(statistics.median(each.visible_s for each in found), 2),
            "failover_visible_max_s": round(max(each.visible_s for each in found), 2),
        }

    def idle(self) -> dict[str, Any]:
        percent = members.measure_idle(self.bootstrap_servers, self.member, self.sizes.idle_s)
        return {"idle_cpu_percent": round(percent, 2)}

    def growth(self) -> dict[str, Any]:
        """The cost per record with many keys, over that with a thousand."""
        sizes = self.sizes
        found = members.measure_growth(
            self.bootstrap_servers,
            self.member,
            keys=sizes.growth_keys,
            records=sizes.growth_records,
            waves=sizes.growth_waves,
        )
        return {"growth_keys": found.ratio, "growth_keys_max": found.keys}

    def four_hops(self) -> dict[str, Any]:
        """How many times better same-cycle delivery is than the topics between the stages."""
        on, off = (
            measure_stages(
                self.bootstrap_servers,
                protocol=self.protocol,
                same_cycle=same_cycle,
                load=self.sizes.stages,
                pace=self.sizes.stages_pace,
            )
            for same_cycle in (True, False)
        )
        return {
            "four_hops_same_cycle_vs_topic": {
                "throughput": median_ratio([on.records_per_s], [off.records_per_s]),
                "latency": median_ratio([percentile(off.hop.steady_ms, 50)], [percentile(on.hop.steady_ms, 50)]),
                "latency_alone": median_ratio([percentile(off.hop.alone_ms, 50)], [percentile(on.hop.alone_ms, 50)]),
            },
            "four_hops_ms": {"same_cycle": on.hop.figures(), "by_topic": off.hop.figures()},
        }

    def measurements(self) -> dict[str, Callable[[], dict[str, Any]]]:
        found = (self.throughput, self.hop, self.restore, self.failover, self.idle, self.growth, self.four_hops)
        return {each.__name__: each for each in found}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "runtime": name,
                "records/s": statistics.median(speed.records_per_s for speed in speeds),
                "CPU-s per 100,000": statistics.median(speed.cpu_s_per_100k for speed in speeds),
                "runs": len(speeds),
            }
            for name, speeds in self.speeds.items()
        ]


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    parser = argparse.ArgumentParser(prog="python -m benchmarks.spine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--only", type=names, default=[], help="measurements, with commas between; all by default")
    parser.add_argument("--peers", type=names, default=list(PEERS), help="whom to compare throughput with")
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="classic")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    options = parsed(argv)
    figures: dict[str, Any] = {"benchmark": "spine", "quick": options.quick, "protocol": options.protocol}
    refused: dict[str, str] = {}
    with open_broker() as broker:
        sizes = QUICK if options.quick else FULL
        spine = Spine(broker.bootstrap_servers, sizes, protocol=options.protocol, peers=options.peers)
        known = spine.measurements()
        if unknown := set(options.only) - set(known):
            raise SystemExit(f"Expected measurements among {', '.join(known)}, but found {', '.join(sorted(unknown))}")
        spine.warm_up()
        for name in options.only or known:
            progress(f"measuring {name}")
            try:
                figures |= known[name]()
            except (Refused, ProgramDied) as failure:
                refused[name] = str(failure)
                progress(f"{name} gives no figure: {failure}")
        if spine.speeds:
            print(table(spine.rows()), file=sys.stderr)
    figures["load_average"] = os.getloadavg()[0]
    if refused:
        figures["refused"] = refused
    report(figures)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
