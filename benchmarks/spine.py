"""Compare the runtime of Kapelle with its peers.

    python -m benchmarks.spine [--quick] [--only throughput,hop,...] [--peers handwritten,...] [--protocol classic]

    failover      seconds until another member folds the partitions of a killed one
    throughput    records per second, compared with each peer and with the embedded log
    tables        rows restored per second; cost per record as the table grows
    four_hops     four processors in sequence, with and without same-cycle delivery
    hop           milliseconds from record to output, compared with a bare transaction; CPU of an idle member

All measurements use one real broker. Runs that are compared alternate, and the figures are medians of their ratios,
because the speed of a machine drifts. A run with a wrong output gives no figure. Progress and a table go to stderr; the
last line on stdout is one JSON object.
"""

import argparse
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any

from benchmarks import contestants, members
from benchmarks.embedded import measure_embedded
from benchmarks.figures import median_ratio, percentile, progress, report, spread, table
from benchmarks.harness import Bench, Refused
from benchmarks.hops import Stages, measure_stages
from benchmarks.latency import Hop, measure_hop
from benchmarks.programs import ProgramDied
from benchmarks.sizes import FULL, QUICK, Sizes
from benchmarks.throughput import Command, Speed, Standby
from tests.support.broker import open_broker
from tests.support.settings import LASTING

# Methods of `Spine`. What is counted in milliseconds comes last: a new broker is slow at first.
MEASUREMENTS = ("failover", "throughput", "tables", "four_hops", "hop")
PEERS = ("handwritten", "kafka_streams", "quix", "faust")
EMBEDDED = "ours_embedded"
SLOW = {"quix", "faust"}  # too far behind to need more than one round


class Spine:
    """The measurements. Each returns its figures."""

    def __init__(self, bootstrap_servers: str, sizes: Sizes, *, protocol: str, peers: Sequence[str]) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.sizes = sizes
        self.protocol = protocol
        self.peers = tuple(peers)
        self.speeds: dict[str, dict[int, Speed]] = defaultdict(dict)  # runtime, round
        self.figures: dict[str, Any] = {}
        self.refused: dict[str, str] = {}
        self._waiting: dict[str, list[Standby]] = defaultdict(list)
        self._filled: list[tuple[Bench, Bench]] = []
        self._stack = ExitStack()
        self._begin_later: Callable[[], None] = _nothing
        self.commands = contestants.commands(protocol)
        self.member: Command = self.commands["ours"]

    def prestart(self, wanted: Sequence[str]) -> None:
        """Start programs and fill changelogs now, while the failover waits for a session to end, for their turns."""
        turns = ["ours", *self.peers] if "throughput" in wanted else []
        turns += self.sizes.hops if "hop" in wanted else ()
        turns += contestants.STAGES.values() if "four_hops" in wanted else ()
        for name in turns:
            self._waiting[name].append(self._stack.enter_context(self._started(name)))
        if "tables" in wanted:
            self._filled.append(self._stack.enter_context(self._benches()))

    def _benches(self) -> AbstractContextManager[tuple[Bench, Bench]]:
        return members.filled(self.bootstrap_servers, self.sizes.growth_keys)

    @contextmanager
    def _standby(self, name: str) -> Iterator[Standby]:
        if self._waiting[name]:
            yield self._waiting[name].pop(0)
            return
        with self._started(name) as standby:
            yield standby

    @contextmanager
    def _started(self, name: str) -> Iterator[Standby]:
        with (
            Bench(self.bootstrap_servers, name, contestants.route(name)) as bench,
            Standby(bench, self.commands[name]) as standby,
        ):
            yield standby

    def measure(self, wanted: Sequence[str]) -> dict[str, Any]:
        """The figures of these measurements. One that fails has none, and does not stop the others."""
        if self.sizes.warm_up:
            self.warm_up()
        if self.sizes.prestarted:
            self._begin_later = partial(self.prestart, wanted)
        with self._stack:
            for name in wanted:
                progress(f"measuring {name}")
                self._attempt(name, partial(self._measure, name))
        return self.figures

    def _measure(self, name: str) -> None:
        self.figures |= getattr(self, name)()

    def _attempt(self, name: str, measure: Callable[[], None]) -> None:
        try:
            measure()
        except (Refused, ProgramDied) as failure:
            self.refused[name] = str(failure)
            progress(f"{name} gives no figure: {failure}")

    def warm_up(self) -> None:
        """A new broker is slow at first, and whoever came first would pay for it."""
        progress("warming the broker")
        with self._standby("bare") as standby:
            standby.wave(standby.bench.route.records(self.sizes.warm_up, "warm"))

    def throughput(self) -> dict[str, Any]:
        """Records per second, ours over each of the others, and the embedded log over ours on Kafka."""
        # Who warms up longest begins: that warms a new broker too.
        turns = sorted(("ours", *self.peers), key=lambda name: -self.sizes.loads[name].warm_up)
        for number in range(self.sizes.rounds):
            # To and fro: a broker gets faster for minutes, and whoever always came before another would pay for it.
            for name in (*(reversed(turns) if number % 2 else turns), EMBEDDED):
                if number == 0 or name not in SLOW:
                    self._attempt(name, partial(self._run, name, number))
        figures = {f"vs_{name}": median_ratio(self._rates("ours"), self._rates(name)) for name in self.peers}
        figures["embedded_vs_kafka"] = median_ratio(self._rates(EMBEDDED), self._rates("ours"))
        figures["embedded_published_vs_kafka"] = median_ratio(self._rates(f"{EMBEDDED}_published"), self._rates("ours"))
        return figures | {
            "records_per_s": {row["runtime"]: round(row["records/s"]) for row in self.rows()},
            "cpu_s_per_100k": {row["runtime"]: round(row["CPU-s per 100,000"], 2) for row in self.rows()},
        }

    def _rates(self, name: str) -> dict[int, float]:
        return {number: speed.records_per_s for number, speed in self.speeds[name].items()}

    def _run(self, name: str, number: int) -> None:
        if name == EMBEDDED:
            for speed in measure_embedded(self.sizes.loads["ours"]):
                self.speeds[speed.name][number] = speed
            return
        with self._standby(name) as standby:
            self.speeds[name][number] = standby.measure(self.sizes.loads[name])

    def hop(self) -> dict[str, Any]:
        """Milliseconds of one hop, ours and a bare transaction in turn, and what waiting for records costs."""
        hops: dict[str, list[Hop]] = {name: [] for name in self.sizes.hops}
        idle_percents: list[float] = []
        for _ in range(self.sizes.rounds):
            for name in self.sizes.hops:
                with self._standby(name) as standby:
                    if name == "ours":
                        idle_percents.append(members.measure_idle(standby, self.sizes.idle_s))
                    hops[name].append(measure_hop(standby, self.sizes.pace))
        steady = {name: _p50s([hop.steady_ms for hop in found]) for name, found in hops.items()}
        alone = {name: _p50s([hop.alone_ms for hop in found]) for name, found in hops.items()}
        return {
            "hop_p50_ms": round(statistics.median(steady["ours"].values()), 2),
            "hop_vs_bare_transaction": median_ratio(steady["ours"], steady["bare"]),
            "hop_alone_p50_ms": round(statistics.median(alone["ours"].values()), 2),
            "hop_alone_vs_bare_transaction": median_ratio(alone["ours"], alone["bare"]),
            "idle_cpu_percent": round(statistics.median(idle_percents), 2),
            "hops_ms": {
                name: {
                    "alone": spread([value for hop in found for value in hop.alone_ms]),
                    "steady": spread([value for hop in found for value in hop.steady_ms]),
                }
                for name, found in hops.items()
            },
        }

    def failover(self) -> dict[str, Any]:
        found = [
            members.measure_failover(self.bootstrap_servers, self.member, self._begin_later)
            for _ in range(self.sizes.kills)
        ]
        return {
            "failover_s": round(statistics.median(each.committed_s for each in found), 2),
            "failover_visible_s": round(statistics.median(each.visible_s for each in found), 2),
            "failover_visible_max_s": round(max(each.visible_s for each in found), 2),
        }

    def tables(self) -> dict[str, Any]:
        """Rows restored per second, and the cost per record with many keys over that with a thousand."""
        sizes = self.sizes
        if not self._filled:
            self._filled.append(self._stack.enter_context(self._benches()))
        found = members.measure_growth(
            self._filled.pop(),
            self.member,
            keys=sizes.growth_keys,
            records=sizes.growth_records,
            waves=sizes.growth_waves,
        )
        return {
            "restore_rows_per_s": round(found.restored_per_s),
            "growth_keys": found.ratio,
            "growth_keys_max": found.keys,
        }

    def four_hops(self) -> dict[str, Any]:
        """How many times better same-cycle delivery is than the topics between the stages."""
        found: dict[bool, list[Stages]] = {True: [], False: []}
        for _ in range(self.sizes.rounds):
            for same_cycle, runs in found.items():
                with self._standby(contestants.STAGES[same_cycle]) as standby:
                    runs.append(measure_stages(standby, load=self.sizes.stages, pace=self.sizes.stages_pace))
        on, off = found[True], found[False]
        rates = [{number: run.records_per_s for number, run in enumerate(runs)} for runs in (on, off)]
        steady = [_p50s([run.hop.steady_ms for run in runs]) for runs in (on, off)]
        alone = [_p50s([run.hop.alone_ms for run in runs]) for runs in (on, off)]
        return {
            "four_hops_same_cycle_vs_topic": {
                "throughput": median_ratio(rates[0], rates[1]),
                "latency": median_ratio(steady[1], steady[0]),
                "latency_alone": median_ratio(alone[1], alone[0]),
            },
            "four_hops_records_per_s": {
                "same_cycle": round(statistics.median(rates[0].values())),
                "by_topic": round(statistics.median(rates[1].values())),
            },
            "four_hops_ms": {"same_cycle": on[-1].hop.figures(), "by_topic": off[-1].hop.figures()},
        }

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "runtime": name,
                "records/s": statistics.median(speed.records_per_s for speed in speeds),
                "CPU-s per 100,000": statistics.median(speed.cpu_s_per_100k for speed in speeds),
                "runs": len(speeds),
            }
            for name, speeds in ((name, found.values()) for name, found in self.speeds.items() if found)
        ]


def _nothing() -> None:
    """There is nothing to do meanwhile."""


def _p50s(runs: Sequence[Sequence[float]]) -> dict[int, float]:
    return {number: percentile(values, 50) for number, values in enumerate(runs)}


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    def among(known: Sequence[str]) -> Callable[[str], list[str]]:
        def names(text: str) -> list[str]:
            found = text.split(",")
            if unknown := [name for name in found if name not in known]:
                raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, found {','.join(unknown)}")
            return found

        return names

    parser = argparse.ArgumentParser(prog="python -m benchmarks.spine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Measure less, in under a minute")
    parser.add_argument("--only", type=among(MEASUREMENTS), default=MEASUREMENTS, help="Measure only these")
    parser.add_argument("--peers", type=among(PEERS), default=PEERS, help="Compare throughput with these")
    parser.add_argument("--protocol", choices=["classic", "consumer"], default="classic")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    options = parsed(argv)
    figures: dict[str, Any] = {"benchmark": "spine", "quick": options.quick, "protocol": options.protocol}
    with open_broker(LASTING) as broker:
        for name in options.peers:
            contestants.prepare(name)
        sizes = QUICK if options.quick else FULL
        spine = Spine(broker.bootstrap_servers, sizes, protocol=options.protocol, peers=options.peers)
        figures |= spine.measure(options.only)
    figures["load_average"] = round(os.getloadavg()[0], 1)  # far above the number of cores: do not trust the figures
    if spine.speeds:
        print(table(spine.rows()), file=sys.stderr)
    if spine.refused:
        figures["refused"] = spine.refused
    report(figures)
    return 1 if spine.refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
