"""The processor `permits` alone, its commands folded one by one, and what comes of them.

world = World()
world.limit(1)
world.ask("a", "b")
assert (world.held(), world.waiting()) == (["a"], ["b"])
world.give_back("a")
assert world.granted == ["a", "b"]
"""

from collections import Counter
from typing import Any

from kapelle.processors.effects import Emit, Send
from kapelle.processors.fitness import checks_of
from kapelle.processors.messages import Message, TimerDue
from kapelle.processors.permits import PermitTables, permits
from kapelle.processors.permits.tables import Limit
from kapelle.processors.wiring import PERMIT_COMMANDS, PERMIT_EVENTS, PERMIT_INTERNAL, RUN_INTERNAL
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality, PermitHolder
from kapelle.topology.tables import MemoryStore, ShardState
from tests.unit.workflows.test_reads import CountedTable

KEY = "tag/gpu"
NOW_MS = 1_700_000_000_000
FIT = checks_of(PERMIT_COMMANDS) | checks_of(PERMIT_INTERNAL, permits.readers)
FIT_EVENTS = checks_of(PERMIT_EVENTS)
FIT_ANSWERS = checks_of(RUN_INTERNAL)


def holder(name: str, workflow: str = "etl") -> PermitHolder:
    """The first attempt of a step of this name."""
    return PermitHolder(key=f"{workflow}/1", run_id=1, step_id=name, attempt=1, iteration=1)


class World:
    """The tables of one partition, the history that made them, and what was sent to `runs`."""

    def __init__(self, key: str = KEY) -> None:
        self.key = key
        self.state: ShardState[PermitTables] = ShardState(permits, 0, MemoryStore())
        self.history: list[tuple[str, Any]] = []
        self.sent: list[tuple[str, Any]] = []
        self.granted: list[str] = []
        self.fired: set[tuple[str, str, int]] = set()
        self.workflows: dict[str, str] = {}  # of each attempt that has asked
        self.count = 0

    def decide(self, command: Contract | TimerDue, key: str = "") -> list[Any]:
        """Fold one command or timer, and give its events."""
        at = key or self.key
        if not isinstance(command, TimerDue):
            assert FIT[type(command)](at, command) is None
        events: list[Any] = []
        for effect in list(permits.deciders[type(command)](Message(at, command, "0"), self.state.reader, NOW_MS)):
            if isinstance(effect, Emit):
                self._applied(at, effect.value)
                events.append(effect.value)
            else:
                assert isinstance(effect, Send)
                assert effect.stream is RUN_INTERNAL
                assert FIT_ANSWERS[type(effect.value)](effect.key, effect.value) is None
                self.sent.append((effect.key, effect.value))
                if isinstance(effect.value, c.GrantPermit):
                    self.granted.append(effect.value.holder.step_id)
        return events

    def _applied(self, key: str, event: Any) -> None:
        assert FIT_EVENTS[type(event)](key, event) is None
        permits.appliers[type(event)](Message(key, event, ""), self.state.writer)
        self.history.append((key, event))

    def fire(self) -> bool:
        """Fold the first timer that is due, if any. A timer fires once for each moment that it was set to."""
        due = self.state.due(NOW_MS, 1)
        for key, name, due_at_ms in due:
            assert (key, name, due_at_ms) not in self.fired
            self.fired.add((key, name, due_at_ms))
            self.decide(TimerDue(name, due_at_ms), key)
        return bool(due)

    def go_on(self) -> int:
        """Fold all timers that are due. Returns how many."""
        count = 0
        while self.fire():
            count += 1
        return count

    def fresh(self) -> str:
        """A request id that was not used before."""
        self.count += 1
        return f"request-{self.count}"

    def limit(self, most: int, *, request_id: str = "", extra: str = "{}") -> list[Any]:
        return self.decide(c.SetLimit(request_id or self.fresh(), "ann", most, extra))

    def remove(self, *, request_id: str = "") -> list[Any]:
        return self.decide(c.RemoveLimit(request_id or self.fresh(), "ann"))

    def limit_workflow(self, most: int | None, snapshot: int) -> list[Any]:
        return self.decide(c.LimitWorkflow("ann", most, snapshot))

    def ask(
        self, *names: str, workflow: str = "etl", criticality: Criticality = Criticality.MEDIUM, **more: Any
    ) -> Any:
        """Attempts ask for a permit, one after the other. Gives the events of the last."""
        events: list[Any] = []
        for name in names:
            self.workflows[name] = workflow
            events = self.decide(c.RequestPermit(holder(name, workflow), workflow, criticality, **more))
        return events

    def give_back(self, *names: str) -> list[Any]:
        events: list[Any] = []
        for name in names:
            events = self.decide(c.ReturnPermit(holder(name, self.workflows.get(name, "etl"))))
        return events

    def row(self) -> Limit:
        return self.state.reader.limits.get((self.key,)) or Limit()

    def held(self) -> list[str]:
        """The attempts that hold a permit, by name."""
        return sorted(key[2] for key, row in self.state.reader.permits.prefix((self.key,)) if row.is_held)

    def waiting(self) -> list[str]:
        """The attempts in the queues: CRITICAL first, then by their places."""
        return [row.holder.step_id for _, row in self.state.reader.queue.prefix((self.key,))]

    def sent_of(self, contract: type[Contract]) -> list[tuple[str, Any]]:
        return [(key, value) for key, value in self.sent if isinstance(value, contract)]

    def reads(self, command: Contract | TimerDue) -> Counter[str]:
        """The rows that a decision reads, by table. Nothing is folded."""
        counter: Counter[str] = Counter()
        counted = PermitTables.bind(
            lambda spec: CountedTable(getattr(self.state.reader, spec.attribute), spec.name, counter),  # type: ignore[arg-type]
            self.state.reader.timers,
        )
        assert list(permits.deciders[type(command)](Message(self.key, command, "0"), counted, NOW_MS))
        return counter

    def replayed(self) -> str:
        """The fingerprint of the tables that history alone makes."""
        fresh = ShardState(permits, 0, MemoryStore())
        for key, event in self.history:
            permits.appliers[type(event)](Message(key, event, ""), fresh.writer)
        return fresh.fingerprint()


def types(events: list[Any]) -> list[str]:
    return [type(event).__name__ for event in events]
