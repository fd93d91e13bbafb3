"""Reading history: the speed of replay and of rebuilding the view, the lag of the view, and the time of a list.

    python -m benchmarks.history [--quick] [--only rates,lag,list]

    replay_vs_bare_consumer    events/s that `apply` folds into tables, over those that a bare consumer reads and
                               decodes: the same topics, in turn, the median of the ratios; the goal is a third
    rebuild_vs_bare_consumer   events/s of rebuilding an empty view, over the same; the goal is a third
    view_lag_p50_ms, …p99_ms   from the time of the end of a run in the engine to its row in the view, at a
                               steady rate of starts
    list_p50_ms, …p99_ms       50 instances by status out of a million (quick: 50,000), by HTTP; the goal is 20 ms

A reader that reads a different number of events than the bare consumer gives no figure.
"""

import sys
from contextlib import ExitStack
from functools import cache
from typing import Final

from benchmarks.command import Figures, run
from benchmarks.engine_kafka import KafkaSubject, kafka_subject
from benchmarks.history_rates import RatesSizes, measure_rates
from benchmarks.history_reads import measure_lag, measure_list
from tests.support.broker import open_broker
from tests.support.settings import LASTING

QUICK: Final = RatesSizes(instances=3_000, rounds=3)
FULL: Final = RatesSizes(instances=24_000, rounds=3)


def main() -> int:
    with ExitStack() as opened:

        @cache
        def engine() -> KafkaSubject:
            """One broker for all parts that need it: our own, or a given one."""
            broker = opened.enter_context(open_broker(LASTING))
            return opened.enter_context(kafka_subject(broker.bootstrap_servers, None))

        def rates(*, quick: bool) -> Figures:
            return measure_rates(engine(), QUICK if quick else FULL)

        def lag(*, quick: bool) -> Figures:
            return measure_lag(engine(), seconds=5.0 if quick else 20.0)

        return run("history", __doc__, {"rates": rates, "lag": lag, "list": _list})


def _list(*, quick: bool) -> Figures:
    return measure_list(50_000 if quick else 1_000_000, requests=300 if quick else 2_000)


if __name__ == "__main__":
    sys.exit(main())
