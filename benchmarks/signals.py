"""Signals: triggers, joins and deduplication, on Kafka and on the embedded log.

    python -m benchmarks.signals [--quick] [--only kafka,embedded,growth]

    started_per_s          signals that each start a workflow: from the first announcement to the last `InstanceCreated`
    joined_per_s           starts by joins of two names, every join value different, one side announced before the other
    signals_per_s          signals without a subscription, through deduplication and matching
    published_signals_…    the same, with a public verdict on each, as the engine's process does by default
    …_cpu_us               CPU of the engine for each of these; on the embedded log the client is part of it
    start_latency_p50_ms   from announcing a signal to reading the `InstanceCreated` that it caused, one at a time
    growth_join_values     cost of a joined signal among many join values, over the cost among 1,000
    growth_subscriptions   cost of a signal that matches three of many subscriptions, over three of 10
    dedup_lookup_us        checking that an id is new, with many known ids

Names begin with `kafka_` or `embedded_`. If a start is missing or duplicated, no figures are reported. Progress goes to
stderr; the last line on stdout is one JSON object.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final, NamedTuple, TypeVar

from benchmarks.command import run
from benchmarks.engine_work import Command
from benchmarks.figures import percentile, progress
from benchmarks.harness import Refused
from benchmarks.signals_growth import dedup, growth
from benchmarks.signals_subjects import Subject, embedded, on_kafka
from benchmarks.signals_work import (
    FULL,
    NAMES,
    QUICK,
    Sizes,
    for_pairs,
    for_singles,
    pairs,
    singles,
    strangers,
    used_of,
)
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from tests.support.broker import open_broker
from tests.support.settings import LASTING

E = TypeVar("E", bound=Contract)
TIMEOUT_S: Final = 120.0
READ_WAIT_S: Final = 0.2
SIZES: Final = (FULL, QUICK)


class Pace(NamedTuple):
    """How many a second, and the CPU of the engine for each, which says more than the first on a busy machine."""

    per_s: float
    cpu_us: float

    def __str__(self) -> str:
        return f"{self.per_s:,.0f}/s, {self.cpu_us:,.0f} µs of CPU each"


def _paces(name: str, rounds: Sequence[Pace]) -> dict[str, float]:
    return {
        f"{name}_per_s": round(statistics.median([one.per_s for one in rounds]), 1),
        f"{name}_cpu_us": round(statistics.median([one.cpu_us for one in rounds]), 1),
    }


class Measures:
    """The measurements on one subject."""

    def __init__(self, subject: Subject, sizes: Sizes) -> None:
        self.subject = subject
        self.sizes = sizes
        self._numbers = count(1)

    def all(self) -> dict[str, float]:
        """Every figure of the engine alone."""
        sizes = self.sizes
        self._starts("warm", singles, for_singles, sizes.warm_up)
        started = [self._starts("single", singles, for_singles, sizes.starts) for _ in range(sizes.rounds)]
        joined = [self._starts("pair", pairs, for_pairs, sizes.pairs) for _ in range(sizes.rounds)]
        plain = [self._plain(sizes.plain) for _ in range(sizes.rounds)]
        alone = self._alone(sizes.alone)
        return {
            **_paces("started", started),
            **_paces("joined", joined),
            **_paces("signals", plain),
            "start_latency_p50_ms": round(percentile(alone, 50), 2),
            "start_latency_p99_ms": round(percentile(alone, 99), 2),
        }

    def published(self) -> dict[str, float]:
        """What a signal takes if a verdict on it is published too."""
        self._plain(self.sizes.warm_up)
        series, signals = f"published-{next(self._numbers)}", self.sizes.plain
        self._armed(series, strangers, NAMES)
        announced = for_singles(series, signals)
        began = self._now()
        self.subject.announce(announced)
        judged = self._await(
            self.subject.judged, c.SignalVerdict, signals, lambda one: (one.signal_name or "").startswith(series)
        )
        pace = self._pace(began, signals)
        if len(judged) != signals or any(one.verdict is not c.Verdict.ACCEPTED for one in judged):
            raise Refused(f"Expected {signals} signals to be accepted, but found {len(judged)} verdicts")
        progress(f"{signals} signals that nobody wants, with verdicts: {pace}")
        return _paces("published_signals", [pace])

    def _armed(self, series: str, make: Callable[[str], list[Command]], subscriptions: int) -> None:
        self.subject.send(make(series))
        self._await(self.subject.told, c.TriggerSubscribed, subscriptions)

    def _starts(
        self,
        name: str,
        make: Callable[[str], list[Command]],
        announced: Callable[[str, int], list[c.AnnounceSignal]],
        starts: int,
    ) -> Pace:
        series = f"{name}-{next(self._numbers)}"
        signals = announced(series, starts)
        self._armed(series, make, len({signal.name for signal in signals}))
        began = self._now()
        self.subject.announce(signals)
        created = self._await(self.subject.events, c.InstanceCreated, starts)
        pace = self._pace(began, starts)
        if len(created) != starts or len(set(used_of(created))) != starts:
            raise Refused(f"Expected {starts} starts, each by other signals, but found {len(created)}")
        progress(f"{starts} starts ({name}): {pace}")
        return pace

    def _plain(self, signals: int) -> Pace:
        series = f"plain-{next(self._numbers)}"
        self._armed(series, strangers, NAMES)
        announced = for_singles(series, signals)
        began = self._now()
        self.subject.announce(announced)
        accepted = self._await(self.subject.told, c.SignalAccepted, signals, lambda one: one.name.startswith(series))
        pace = self._pace(began, signals)
        if len(accepted) != signals or any(one.offered for one in accepted):
            raise Refused(f"Expected {signals} signals that nobody wants, but found {len(accepted)}")
        progress(f"{signals} signals that nobody wants: {pace}")
        return pace

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), self.subject.engine_cpu_s()

    def _pace(self, began: tuple[float, float], count: int) -> Pace:
        (began_s, before_s), (ended_s, after_s) = began, self._now()
        return Pace(count / (ended_s - began_s), (after_s - before_s) / count * 1e6)

    def _alone(self, signals: int) -> list[float]:
        series = f"alone-{next(self._numbers)}"
        self._armed(series, singles, NAMES)
        found = []
        for signal in for_singles(series, signals):
            began = time.perf_counter()
            self.subject.announce([signal], at_once=True)
            self._await(self.subject.events, c.InstanceCreated, 1)
            found.append((time.perf_counter() - began) * 1_000)
        progress(f"latency alone: {percentile(found, 50):.1f} ms, 99 %: {percentile(found, 99):.1f} ms")
        return found

    def _await(
        self,
        read: Callable[[type[E], float], list[E]],
        contract: type[E],
        expected: int,
        is_wanted: Callable[[E], bool] = lambda _: True,
    ) -> list[E]:
        """Read until so many events of this type have come."""
        seen: list[E] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(seen) < expected:
            found = read(contract, READ_WAIT_S)
            seen += [one for one in found if is_wanted(one)]
            if found:
                deadline = time.monotonic() + TIMEOUT_S
            elif time.monotonic() > deadline:
                raise Refused(f"Expected {expected} of {contract.__name__}, but only {len(seen)} have come")
            else:
                self.subject.check()
        return seen


def measure_kafka(*, quick: bool) -> dict[str, float]:
    sizes = SIZES[quick]
    with open_broker(LASTING) as broker:
        with on_kafka(broker.bootstrap_servers) as subject:
            found = Measures(subject, sizes).all()
        with on_kafka(broker.bootstrap_servers, publishing=True) as subject:
            found |= Measures(subject, sizes).published()
    return {f"kafka_{name}": value for name, value in found.items()}


def measure_embedded(*, quick: bool) -> dict[str, float]:
    sizes = SIZES[quick]
    with embedded() as subject:
        found = Measures(subject, sizes).all()
    with embedded(publishing=True) as subject:
        found |= Measures(subject, sizes).published()
    return {f"embedded_{name}": value for name, value in found.items()}


def measure_growth(*, quick: bool) -> dict[str, float]:
    sizes = SIZES[quick]
    return growth(sizes) | dedup(sizes)


if __name__ == "__main__":
    parts = {"kafka": measure_kafka, "embedded": measure_embedded, "growth": measure_growth}
    sys.exit(run("signals", __doc__, parts))
