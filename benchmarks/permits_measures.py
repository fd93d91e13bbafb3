"""The steps per second of the engine with permits and without, on any log. The cases take turns."""

import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from benchmarks.engine_measures import FULL, PARALLEL, Measures, Subject
from benchmarks.engine_work import AUTHOR, CHAIN_STEPS, NOOP, WORKFLOW_IDS, Truth, chain, start
from benchmarks.figures import progress
from kapelle.schemas import contracts as c

TAGS: Final = ("a", "b", "c")  # that are limited
FREE_TAGS: Final = ("x", "y", "z")  # that nobody limits
LIMIT: Final = 100  # attempts of a tag at the same time
CASES: Final[Mapping[str, tuple[str, ...]]] = {
    "plain": (),
    "free_tags": FREE_TAGS,
    "one_tag": TAGS[:1],
    "three_tags": TAGS,
}

Limit = Callable[[str, int], None]  # sets the limit of a tag, and returns when it is set


@dataclass(frozen=True)
class Sizes:
    """The sizes of the measurements."""

    instances: int  # of ten steps each, in a round
    rounds: int
    waiting: int
    samples: int


FULL_SIZES: Final = Sizes(instances=400, rounds=5, waiting=100_000, samples=24_000)
QUICK_SIZES: Final = Sizes(instances=80, rounds=2, waiting=10_000, samples=3_600)


class PermitMeasures:
    """The measurements on one subject."""

    def __init__(self, subject: Subject, limit: Limit, sizes: Sizes) -> None:
        self.subject = subject
        self.sizes = sizes
        self.truths: list[Truth] = []
        self._limit = limit
        self._measures = Measures(subject, FULL)
        self._numbers = count(1)

    def all(self) -> dict[str, float]:
        """Every figure."""
        for tag in TAGS:
            self._limit(tag, LIMIT)
        for name in CASES:
            self._steps_per_s(name)  # the first round of each case warms it up, and tells the partitions of its tags
        rounds = [{name: self._steps_per_s(name) for name in CASES} for _ in range(self.sizes.rounds)]
        self.subject.verify(self.truths)
        figures = {f"{name}_steps_per_s": round(statistics.median(one[name] for one in rounds), 1) for name in CASES}
        ratios = {
            f"{name}_vs_plain": round(statistics.median(one[name] / one["plain"] for one in rounds), 3)
            for name in CASES
            if name != "plain"
        }
        return figures | ratios

    def _steps_per_s(self, name: str) -> float:
        """Chains of ten steps with the tags of a case, at full speed."""
        ids = self._pushed(name)
        each = self.sizes.instances // len(ids)
        starts = [start(one, number) for number in range(1, each + 1) for one in ids]
        began = time.perf_counter()
        self.subject.send(starts)
        self._measures.await_ended(len(starts))
        steps_per_s = len(starts) * CHAIN_STEPS / (time.perf_counter() - began)
        self.truths += [Truth(one, each, CHAIN_STEPS) for one in ids]
        progress(f"{name}: {steps_per_s:,.0f} steps/s")
        return steps_per_s

    def _pushed(self, name: str) -> list[str]:
        number = next(self._numbers)
        ids = [f"{name}-{number}-{index}" for index in range(WORKFLOW_IDS)]
        self.subject.send([(one, _push(one, CASES[name])) for one in ids])
        self._measures.await_events(c.VersionActivated, len(ids))
        return ids


def _push(workflow_id: str, tags: tuple[str, ...]) -> c.PushVersion:
    steps = [{"step": {**wrapped["step"], "tags": list(tags)}} for wrapped in chain(CHAIN_STEPS, NOOP)]
    text: dict[str, Any] = {
        "properties": {"owner": AUTHOR, "run_strategy": PARALLEL},
        "workflow": {"id": workflow_id, "steps": steps},
    }
    return c.PushVersion(f"{workflow_id}-push", AUTHOR, json.dumps(text))
