"""What is published for a proof, and what must come of it: models of a few lines that know nothing of the runtime."""

import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import count, zip_longest
from typing import Any

from tests.proof.contracts import Hop, Offer, Pair, Reminder, Side, Tick

REMINDER_MS_MAX = 50

Published = tuple[str, str, Any]  # stream, key, value


def ticks(records: int, words: int) -> Iterator[Published]:
    for n in range(records):
        word = f"word-{n * 7919 % words}"
        yield "ticks", word, Tick(f"tick-{n}", word, 1_700_000_000_000 + n, n)


def offers(records: int, values: int, chance: random.Random) -> Iterator[Published]:
    for n in range(records):
        side = Side.LEFT if chance.random() < 0.5 else Side.RIGHT
        yield "offers", f"value-{chance.randrange(values)}", Offer(f"offer-{n}", side)


def hops(records: int, sources: int) -> Iterator[Published]:
    numbers = defaultdict[str, Iterator[int]](lambda: count(1))
    for n in range(records):
        source = f"source-{n % sources}"
        yield "stage-1", source, Hop(source, next(numbers[source]))


def reminders(records: int, chance: random.Random) -> Iterator[Published]:
    for n in range(records):
        yield "reminders", f"key-{n % 7}", Reminder(f"reminder-{n}", chance.randrange(REMINDER_MS_MAX))


def mixed(seed: int, records: int) -> list[Published]:
    """Some of everything, interleaved by chance; within each stream the order stays."""
    chance = random.Random(seed)
    kinds = [
        list(ticks(records, 5)),
        list(offers(records, 3, chance)),
        list(hops(records, 3)),
        list(reminders(records // 2, chance)),
    ]
    return [row for group in zip_longest(*kinds) for row in group if row is not None]


def expected_counts(published: list[Published]) -> dict[str, int]:
    counts = defaultdict[str, int](int)
    for stream, key, _ in published:
        if stream == "ticks":
            counts[key] += 1
    return dict(counts)


def expected_pairs(published: list[Published]) -> set[tuple[str, Pair]]:
    """First in, first out within a join value: the n-th left goes with the n-th right."""
    sides = defaultdict[str, tuple[list[str], list[str]]](lambda: ([], []))
    for stream, key, value in published:
        if stream == "offers":
            sides[key][value.side is Side.RIGHT].append(value.id)
    return {
        (key, Pair(left, right))
        for key, (lefts, rights) in sides.items()
        for left, right in zip(lefts, rights, strict=False)
    }
