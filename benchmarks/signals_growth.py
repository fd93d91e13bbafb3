"""The cost of a signal in the processors alone with many existing rows, with their tables in RocksDB.

Little and much are measured in turn, a part at a time, and each part is the same work on both sides: so many signals,
and the write of what they changed. Both have read all of their rows once before. What counts is the CPU of the thread.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any, Final

from benchmarks.figures import progress
from benchmarks.signals_work import Sizes
from kapelle.processors.effects import Effect, Emit
from kapelle.processors.messages import Message
from kapelle.processors.processor import Processor
from kapelle.processors.signals import signals
from kapelle.processors.signals.matching import Condition, Operator, conditions_json
from kapelle.processors.signals.tables import SeenRow
from kapelle.processors.signals.windows import kept
from kapelle.processors.triggers import triggers
from kapelle.processors.triggers.definition import SignalMatch, Trigger
from kapelle.processors.wiring import trigger_key
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.topology.tables import Batch, Memory, RocksStore, ShardMeta, ShardState

NAME: Final = "orders"
NOW_MS: Final = 1_800_000_000_000
COMMIT_EVERY: Final = 5_000
FEW_JOIN_VALUES: Final = 1_000
FEW_SUBSCRIPTIONS: Final = 10
WANTED_BY: Final = 3
PARTS: Final = 12
PARTS_TO_WARM_UP: Final = 2
STEP: Final = 7_919  # from one to the next that is asked for: a prime, so that all come up, and neighbours do not
KEY: Final = trigger_key("report", "t")
Costs = Generator[float, None, None]


class Shard:
    """One partition of a processor, its tables in a directory."""

    def __init__(self, processor: Processor[Any], directory: Path) -> None:
        self.processor = processor
        self.directory = directory
        self.open()

    def open(self) -> None:
        self.memory = Memory()
        self.store = RocksStore(self.directory, self.memory)
        self.state: ShardState[Any] = ShardState(self.processor, 0, self.store)
        self._pending = 0

    def fold(self, key: str, command: Contract) -> list[Effect]:
        """Decide on a command, and apply its events."""
        effects = list(self.processor.deciders[type(command)](Message(key, command, "0"), self.state.reader, NOW_MS))
        for effect in effects:
            if isinstance(effect, Emit):
                self.processor.appliers[type(effect.value)](Message(key, effect.value, ""), self.state.writer)
        self.count()
        return effects

    def count(self) -> None:
        """Write the changed rows to the disk from time to time."""
        self._pending += 1
        if self._pending == COMMIT_EVERY:
            self.commit()

    def commit(self) -> None:
        batch = Batch()
        self.state.stage(batch, ShardMeta(0, NOW_MS, "", {}))
        self.store.write(batch)
        self.state.clear()
        self._pending = 0

    def warm_up(self) -> None:
        """Read every row once."""
        self.commit()
        for _ in self.state.rows():
            pass

    def cost_us(self, work: Callable[[int], None], numbers: Iterable[int]) -> float:
        """The CPU of this thread per signal, without the threads of RocksDB and others."""
        chosen = list(numbers)
        began = time.thread_time()
        for number in chosen:
            work(number)
        self.commit()
        return (time.thread_time() - began) / len(chosen) * 1e6


@contextmanager
def shard(processor: Processor[Any]) -> Iterator[Shard]:
    with tempfile.TemporaryDirectory(prefix="growth-") as directory:
        made = Shard(processor, Path(directory) / "tables")
        try:
            yield made
        finally:
            made.store.close()


def _joins(values: int, part: int) -> Costs:
    """Part by part: the cost of a signal whose partner waits among this number of join values."""
    names = {name: SignalMatch(join_keys=("value",)) for name in ("left", "right")}
    numbers, asked = count(1), count()
    with shard(triggers) as made:

        def offer(name: str, value: int) -> None:
            number = next(numbers)
            made.fold(KEY, c.OfferSignal(name, f"{name}{number}", number, f'{{"value":{value}}}', NOW_MS, 1))

        made.fold(KEY, c.SetTrigger("report", "t", 1, Trigger(names).json(), NOW_MS))
        for value in range(values):
            offer("left", value)
        made.warm_up()
        while True:
            chosen = [number * STEP % values for number in islice(asked, part)]
            yield made.cost_us(lambda value: offer("right", value), chosen)
            for value in chosen:  # as many wait as before
                offer("left", value)
            made.commit()


def _matches(subscriptions: int, part: int) -> Costs:
    """Part by part: the cost of a signal that matches three of this number of subscriptions."""
    asked, groups = count(), subscriptions // WANTED_BY
    with shard(signals) as made:
        for number in range(subscriptions):
            match = conditions_json((Condition("customer", Operator.EQUAL, number // WANTED_BY),))
            made.fold(NAME, c.SubscribeTrigger(f"w{number}", "t", match, None, 1))
        made.warm_up()

        def announce(number: int) -> None:
            customer = number * STEP % groups
            made.fold(NAME, c.AnnounceSignal(NAME, f"o{number}", f'{{"customer":{customer}}}'))

        while True:
            yield made.cost_us(announce, islice(asked, part))


def in_turn(few: Costs, many: Costs) -> tuple[float, float, float]:
    """The medians of both, and of the ratios of many over few."""
    with closing(few), closing(many):
        pairs = list(islice(zip(few, many, strict=True), PARTS))[PARTS_TO_WARM_UP:]
    costs = [statistics.median(side) for side in zip(*pairs, strict=True)]
    return costs[0], costs[1], statistics.median([much / little for little, much in pairs])


def growth(sizes: Sizes) -> dict[str, float]:
    """The cost of a signal in the large case, over that in the small case."""
    part = sizes.samples // PARTS
    few, many, joins = in_turn(_joins(FEW_JOIN_VALUES, part), _joins(sizes.join_values, part))
    progress(f"a joined signal: {few:.1f} µs among {FEW_JOIN_VALUES:,} values, {many:.1f} among {sizes.join_values:,}")
    little, much, matches = in_turn(_matches(FEW_SUBSCRIPTIONS, part), _matches(sizes.subscriptions, part))
    progress(
        f"a signal: {little:.1f} µs with {FEW_SUBSCRIPTIONS} subscriptions, {much:.1f} with {sizes.subscriptions:,}"
    )
    return {
        "growth_join_values": round(joins, 2),
        "growth_join_values_max": sizes.join_values,
        "growth_join_values_us": round(many, 1),
        "growth_subscriptions": round(matches, 2),
        "growth_subscriptions_max": sizes.subscriptions,
        "growth_subscriptions_us": round(much, 1),
    }


def dedup(sizes: Sizes) -> dict[str, float]:
    """The cost of recognising ids: looking up an unknown one over the whole window, memory and disk."""
    window = kept(1)
    with shard(signals) as made:
        put = made.state.writer.seen.put
        for number in range(sizes.ids):
            put((window[number % len(window)], NAME, f"order-{number:012d}"), SeenRow(number))
            made.count()
        made.commit()
        made.store.close()
        disk = sum(path.stat().st_size for path in made.directory.rglob("*") if path.is_file())
        made.open()
        seen = made.state.reader.seen

        def look_up(number: int) -> None:
            for bucket in window:
                seen.get((bucket, NAME, f"order-{number * STEP % sizes.ids:012d}?"))

        part = sizes.samples // PARTS
        costs = [made.cost_us(look_up, range(n * part, (n + 1) * part)) for n in range(PARTS)]
        cost_us, memory_bytes = statistics.median(costs[PARTS_TO_WARM_UP:]), made.memory.used_bytes
    progress(f"{sizes.ids:,} ids: {cost_us:.1f} µs for one that is new, {disk / 1e6:.0f} MB on disk")
    return {
        "dedup_ids": sizes.ids,
        "dedup_lookup_us": round(cost_us, 2),
        "dedup_disk_mb": round(disk / 1e6, 1),
        "dedup_memory_mb": round(memory_bytes / 1e6, 1),
    }
