"""Reading history: how fast it is replayed and the view rebuilt, how far the view lags, how long a list takes.

    python -m benchmarks.history [--quick] [--only rates,lag,list]

    replay_vs_bare_consumer    events/s that `apply` folds into tables, over those that a bare consumer reads and
                               decodes: the same topics, in turn, the median of the ratios; the goal is a third
    rebuild_vs_bare_consumer   events/s that an empty view is rebuilt with, over the same; the goal is a third
    view_lag_p50_ms, …p99_ms   from the moment that the engine notes for the end of a run to its row in the view, at a
                               steady rate of starts
    list_p50_ms, …p99_ms       50 instances by status out of a million (quick: 50,000), by HTTP; the goal is 20 ms

Who reads another number of events than the bare consumer gives no figure.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

from benchmarks.engine_kafka import KafkaSubject, kafka_subject
from benchmarks.figures import progress, report
from benchmarks.harness import Refused
from benchmarks.history_rates import RatesSizes, measure_rates
from benchmarks.history_reads import measure_lag, measure_list
from benchmarks.programs import ProgramDied
from tests.support.broker import open_broker

PARTS: Final = ("rates", "lag", "list")
QUICK: Final = RatesSizes(instances=3_000, rounds=3)
FULL: Final = RatesSizes(instances=24_000, rounds=3)


def _rates(engine: Callable[[], KafkaSubject], *, quick: bool) -> dict[str, Any]:
    return measure_rates(engine(), QUICK if quick else FULL)


def _lag(engine: Callable[[], KafkaSubject], *, quick: bool) -> dict[str, Any]:
    return measure_lag(engine(), seconds=5.0 if quick else 20.0)


def _list(_: Callable[[], KafkaSubject], *, quick: bool) -> dict[str, Any]:
    return measure_list(50_000 if quick else 1_000_000, requests=300 if quick else 2_000)


MEASURES: Final = {"rates": _rates, "lag": _lag, "list": _list}


def measured(wanted: Sequence[str], *, quick: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The figures, and what gives none with the reason."""
    figures: dict[str, Any] = {}
    refused: dict[str, str] = {}
    with ExitStack() as opened:
        subjects: list[KafkaSubject] = []

        def engine() -> KafkaSubject:
            """One for all parts that need it, on a broker of our own or on one that is given."""
            if not subjects:
                broker = opened.enter_context(open_broker())
                subjects.append(opened.enter_context(kafka_subject(broker.bootstrap_servers, None)))
            return subjects[0]

        for name in wanted:
            progress(f"measuring {name}")
            try:
                figures |= MEASURES[name](engine, quick=quick)
            except (Refused, ProgramDied) as failure:
                refused[name] = str(failure)
                progress(f"{name} gives no figure: {failure}")
    return figures, refused


def among(text: str) -> list[str]:
    found = text.split(",")
    if unknown := [name for name in found if name not in PARTS]:
        raise argparse.ArgumentTypeError(f"expected some of {','.join(PARTS)}, found {','.join(unknown)}")
    return found


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.history", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--only", type=among, default=PARTS, help="rates, lag, list, or some with commas between")
    options = parser.parse_args(argv)
    figures, refused = measured(options.only, quick=options.quick)
    found = {"benchmark": "history", "quick": options.quick, **figures}
    found["load_average"] = round(os.getloadavg()[0], 1)  # far above the number of cores: do not trust the figures
    if refused:
        found["refused"] = refused
    report(found)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
