"""The cost of an admission in the processor alone with many waiting attempts, with its tables in RocksDB.

Little and much are measured in turn, a part at a time, as in `signals_growth`. The attempts are of a hundred workflows
and of all four criticalities.

- `admission`: the end of an attempt admits the next, and a new attempt is queued. As many wait as before.
- `batch`: a raised limit admits a hundred at once, in one decision.
"""

from collections import deque
from itertools import count
from typing import Final

from benchmarks.figures import progress
from benchmarks.signals_growth import PARTS, Costs, Shard, in_turn, shard
from kapelle.processors.effects import Send
from kapelle.processors.permits import permits
from kapelle.processors.permits.admission import ADMITTED_MAX
from kapelle.processors.permits.tables import CLASSES
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c

KEY: Final = "tag/gpu"
FEW: Final = 1_000
WORKFLOWS: Final = 100
BATCHES: Final = 5  # of one part


class Crowd:
    """Attempts that wait for one limit."""

    def __init__(self, made: Shard, waiting: int) -> None:
        self._shard = made
        self._asked = count(1)
        self._requested = count(1)
        self._held: deque[c.PermitHolder] = deque()
        self._most = 0
        self.limit(1)
        for _ in range(waiting + 1):
            self.ask()
        made.warm_up()

    def _fold(self, command: Contract) -> None:
        for effect in self._shard.fold(KEY, command):
            if isinstance(effect, Send) and isinstance(effect.value, c.GrantPermit):
                self._held.append(effect.value.holder)

    def limit(self, by: int) -> None:
        """Raise the limit."""
        self._most += by
        self._fold(c.SetLimit(f"limit-{next(self._requested)}", "benchmark", self._most))

    def ask(self) -> None:
        """One more attempt asks."""
        number = next(self._asked)
        criticality = CLASSES[number // WORKFLOWS % len(CLASSES)]
        self._fold(c.RequestPermit(holder(number), f"w{number % WORKFLOWS}", criticality))

    def next_one(self) -> None:
        """An attempt is over, and the next gets its permit."""
        self._fold(c.ReturnPermit(self._held.popleft()))

    def lower(self) -> None:
        """End as many attempts as a raised limit has admitted, without admitting others."""
        over, self._most = self._most - 1, 1
        self._fold(c.SetLimit(f"limit-{next(self._requested)}", "benchmark", 1))
        for _ in range(over):
            self.next_one()


def holder(number: int) -> c.PermitHolder:
    """The n-th attempt."""
    return c.PermitHolder(f"w{number % WORKFLOWS}/{number}", 1, "load", 1, 1)


def _admissions(waiting: int, part: int) -> Costs:
    """Part by part: the end of an attempt and the request of another one, with the admission between them."""
    with shard(permits) as made:
        crowd = Crowd(made, waiting)

        def end_and_ask(_: int) -> None:
            crowd.next_one()
            crowd.ask()

        while True:
            yield made.cost_us(end_and_ask, range(part))


def _batches(waiting: int, _: int) -> Costs:
    """Part by part: what each admission costs of those that a raised limit admits in one decision."""
    with shard(permits) as made:
        crowd = Crowd(made, waiting)
        while True:
            yield made.cost_us(lambda _: crowd.limit(ADMITTED_MAX), range(BATCHES)) / ADMITTED_MAX
            crowd.lower()
            for _ in range(BATCHES * ADMITTED_MAX):
                crowd.ask()
            made.commit()


def growth(waiting: int, samples: int) -> dict[str, float]:
    """The costs with many that wait, over those with few."""
    figures: dict[str, float] = {"growth_waiting_max": waiting}
    for name, costs in (("admission", _admissions), ("batch", _batches)):
        little, much, ratio = in_turn(costs(FEW, samples // PARTS), costs(waiting, samples // PARTS))
        progress(f"{name}: {little:.1f} us with {FEW:,} waiting, {much:.1f} with {waiting:,}")
        figures |= {f"growth_{name}": round(ratio, 2), f"growth_{name}_us": round(much, 1)}
    return figures
