"""The processor `signals` alone, its commands folded one by one: for what a whole engine would be too slow or too kind.

world = World()
world.subscribe("t1", n=(">", 0))
world.announce("a1", n=1)
assert world.offered() == ["t1"]
"""

import json
from collections import Counter, deque
from typing import Any, TypeVar

from kapelle.processors.effects import Emit, Send
from kapelle.processors.fitness import checks_of
from kapelle.processors.messages import Message
from kapelle.processors.signals import signals
from kapelle.processors.signals.matching import Condition, Operator, conditions_json
from kapelle.processors.signals.tables import Signals
from kapelle.processors.wiring import SIGNAL_INTERNAL
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.topology.tables import MemoryStore, ShardState
from tests.unit.workflows.test_reads import CountedTable

NAME = "orders"
NOW_MS = 1_700_000_000_000
CHECKS = checks_of(SIGNAL_INTERNAL, signals.readers)
E = TypeVar("E")


def conditions(**values: Any) -> str:
    """Conditions as JSON: `n=(">", 1)`, or `n=1` for an equal value."""
    pairs = {name: value if isinstance(value, tuple) else ("=", value) for name, value in values.items()}
    return conditions_json(tuple(Condition(name, Operator(how), value) for name, (how, value) in pairs.items()))


class World:
    """The tables of one partition, the history that made them, and what was sent."""

    def __init__(self) -> None:
        self.state: ShardState[Signals] = ShardState(signals, 0, MemoryStore())
        self.history: list[tuple[str, Any]] = []
        self.sent: list[tuple[str, Any]] = []
        self.continued: deque[tuple[str, Any]] = deque()
        self.now_ms = NOW_MS

    def decide(self, value: Contract, name: str = NAME) -> list[Any]:
        """Fold one command, and give its events. What the processor asks itself waits in `continued`."""
        events: list[Any] = []
        for effect in list(signals.deciders[type(value)](Message(name, value, "0"), self.state.reader, self.now_ms)):
            if isinstance(effect, Emit):
                signals.appliers[type(effect.value)](Message(name, effect.value, ""), self.state.writer)
                events.append(effect.value)
                self.history.append((name, effect.value))
            elif isinstance(effect, Send) and effect.stream is SIGNAL_INTERNAL:
                self.continued.append((effect.key, effect.value))
            elif isinstance(effect, Send):
                self.sent.append((effect.key, effect.value))
        return events

    def go_on(self) -> int:
        """Fold all that the processor asks itself. Returns how many commands that took.

        Each could come by its topic, where the fold puts unfit records aside.
        """
        count = 0
        while self.continued:
            name, value = self.continued.popleft()
            assert CHECKS[type(value)](name, value) is None
            self.decide(value, name)
            count += 1
        return count

    def announce(self, signal_id: str, name: str = NAME, /, *, at_ms: int | None = None, **params: Any) -> list[Any]:
        """Announce a signal, as far as one decision goes."""
        return self.decide(c.AnnounceSignal(name, signal_id, json.dumps(params), happened_at_ms=at_ms), name)

    def subscribe(self, trigger: str, *, since_at_ms: int | None = None, generation: int = 1, **values: Any) -> None:
        self.decide(c.SubscribeTrigger(trigger, "t", conditions(**values), since_at_ms, generation))

    def unsubscribe(self, trigger: str) -> None:
        self.decide(c.UnsubscribeTrigger(trigger, "t"))

    def wait(self, step: str, *, is_latest: bool = False, **values: Any) -> list[Any]:
        """A step of the workflow of the same name waits."""
        return self.decide(c.AwaitSignal(step, 1, 1, "s", 1, 1, 0, conditions(**values), is_latest))

    def offered(self) -> list[tuple[str, int]]:
        """Which triggers were offered which signals, in order."""
        return [(key.partition("/")[0], one.sequence) for key, one in self.sent if isinstance(one, c.OfferSignal)]

    def woken(self) -> list[tuple[str, int]]:
        """Which steps were told of which signals, in order."""
        return [(key.partition("/")[0], one.sequence) for key, one in self.sent if isinstance(one, c.MatchDependency)]

    def reads(self, value: Contract) -> Counter[str]:
        """The rows that a decision reads, by table."""
        counter: Counter[str] = Counter()
        counted = Signals.bind(
            lambda spec: CountedTable(getattr(self.state.reader, spec.attribute), spec.name, counter),  # type: ignore[arg-type]
            self.state.reader.timers,
        )
        assert list(signals.deciders[type(value)](Message(NAME, value, "0"), counted, self.now_ms))
        return counter

    def replayed(self) -> str:
        """The fingerprint of the tables that history alone makes."""
        fresh = ShardState(signals, 0, MemoryStore())
        for key, event in self.history:
            signals.appliers[type(event)](Message(key, event, ""), fresh.writer)
        return fresh.fingerprint()
