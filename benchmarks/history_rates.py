"""Events/s of a bare consumer that decodes, of a replay into tables, and of a view that is rebuilt: the same topics."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from benchmarks.engine_kafka import KafkaSubject
from benchmarks.engine_measures import QUICK, Measures
from benchmarks.engine_work import NOOP, PARTITIONS, chain
from benchmarks.figures import median_ratio, progress
from benchmarks.harness import DEADLINE_S, Refused
from kapelle.processors.streams import Stream
from kapelle.schemas import Codec
from kapelle.topology.build import Topology
from kapelle.topology.journal import KafkaJournal
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.page import topology
from kapelle.topology.replay.fold import Folding, decoder
from kapelle.topology.replay.kafka import KafkaHistory
from kapelle.topology.tables import Memory, RocksStore
from kapelle.views import Views
from kapelle.views.projection import FOLLOWED

STEPS: Final = 3
READ_MAX: Final = 5_000
END_WAIT_MS: Final = 10
REPLAYED: Final = ("workflows", "runs", "signals", "triggers")

Ends = Mapping[Stream, Mapping[int, int]]


class RatesSizes(NamedTuple):
    """How much history, and how often it is read."""

    instances: int
    rounds: int


class Reading:
    """The three ways to read one history. Each gives the number of events that it has read."""

    def __init__(self, prefix: str, bootstrap_servers: str) -> None:
        self.topology: Topology = topology(prefix, PARTITIONS)
        self.settings = KafkaSettings(bootstrap_servers=bootstrap_servers)
        with closing(KafkaJournal(self.topology, self.settings)) as journal:
            self.ends: Ends = {stream: journal.ends(stream) for stream in FOLLOWED}

    def bare(self) -> int:
        """A consumer and the codec, and nothing else."""
        codec, count = Codec(self.topology.catalog()), 0
        # The broker tells of an end only after so long without records.
        config = self.settings.reader(f"{self.topology.prefix}.bare") | {"fetch.wait.max.ms": END_WAIT_MS}
        left = {(self.topology.topic(s), n) for s, ends in self.ends.items() for n, end in ends.items() if end}
        deadline = time.monotonic() + DEADLINE_S
        with closing(Consumer(config)) as consumer:
            consumer.assign([TopicPartition(topic, number, 0) for topic, number in left])
            while left:
                for message in consumer.consume(READ_MAX, 0.1):
                    error = message.error()
                    if error is None:
                        codec.decode(message.value() or b"")
                        count += 1
                    elif error.code() == KafkaError._PARTITION_EOF:
                        left.discard((message.topic() or "", message.partition() or 0))
                    else:
                        raise KafkaException(error)
                if time.monotonic() > deadline:
                    raise Refused(f"Expected to read to the end in {DEADLINE_S} s, but {left} are left")
        return count

    def replay(self) -> int:
        """All shards of the engine, one after the other, as `kapelle replay` and `kapelle verify` fold them."""
        count = 0
        with tempfile.TemporaryDirectory() as directory, closing(KafkaHistory(self.topology, self.settings)) as history:
            decode = decoder(history)
            with closing(RocksStore(Path(directory), Memory())) as store:
                for name in REPLAYED:
                    for number in range(self.topology.processor_partitions(name)):
                        fold = Folding(self.topology, (name, number), decode=decode, store=store)
                        end = history.ends([fold.place])[fold.place]
                        for records in history.read(fold.place, 0, end):
                            fold.take(records)
                        fold.settle()
                        count += fold.events
        return count

    def rebuild(self) -> int:
        """An empty view, as in an API node that was just started. It is rebuilt when it has reached the ends."""
        with (
            tempfile.TemporaryDirectory() as directory,
            closing(KafkaJournal(self.topology, self.settings)) as journal,
            Views(journal, Path(directory)) as views,
        ):
            if not views.catch_up(DEADLINE_S):
                raise Refused(f"Expected the view to be rebuilt in {DEADLINE_S} s, but {views.lag()} events are left")
        return 0


def measure_rates(engine: KafkaSubject, sizes: RatesSizes) -> dict[str, Any]:
    """Make a history, then read it in turn."""
    measures = Measures(engine, QUICK)
    measures._flat_out("history", chain(STEPS, NOOP), sizes.instances)
    reading = Reading(engine.bench.prefix, engine.bench.bootstrap_servers)
    ways: dict[str, Callable[[], int]] = {"bare": reading.bare, "replay": reading.replay, "rebuild": reading.rebuild}
    rates: dict[str, dict[int, float]] = {name: {} for name in ways}
    cpu_us: dict[str, list[float]] = {name: [] for name in ways}
    events = reading.bare()  # also warms the broker's caches
    for number, (name, way) in _turns(ways, sizes.rounds):
        began, cpu_s = time.perf_counter(), time.process_time()
        found = way()
        rates[name][number] = events / (time.perf_counter() - began)
        cpu_us[name].append((time.process_time() - cpu_s) / events * 1e6)
        progress(f"{name}: {events:,} events, {rates[name][number]:,.0f}/s, {cpu_us[name][-1]:.1f} us of CPU each")
        if found not in (events, 0):
            raise Refused(f"Expected {name} to read {events} events, but it has read {found}")
    return {
        "replay_vs_bare_consumer": median_ratio(rates["replay"], rates["bare"]),
        "rebuild_vs_bare_consumer": median_ratio(rates["rebuild"], rates["bare"]),
        **{f"{name}_events_per_s": round(statistics.median(found.values())) for name, found in rates.items()},
        **{f"{name}_cpu_us": round(statistics.median(found), 1) for name, found in cpu_us.items()},
        "history_events": events,
    }


def _turns(ways: Mapping[str, Callable[[], int]], rounds: int) -> Iterator[tuple[int, tuple[str, Callable[[], int]]]]:
    for number in range(rounds):
        for way in ways.items():
            yield number, way
