"""Which starts there must be: a model in a few lines that knows nothing of the engine.

Signals come in an order. The first of an id counts. A trigger that is armed sees those that fulfil its conditions; they
wait in a line for each join value and name, and as soon as every name has one, the heads of the lines start an
instance, if the condition of the trigger holds. The same signals start one instance, however often they meet.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

Params = dict[str, str | int]
Conditions = tuple[tuple[str, str, Any], ...]


class Signal(NamedTuple):
    """What is announced."""

    name: str
    id: str
    params: Params


class Wants(NamedTuple):
    """What a trigger wants of one name."""

    conditions: Conditions = ()
    join_keys: tuple[str, ...] = ()
    is_latest: bool = False


class Rule(NamedTuple):
    """A trigger: what it wants of each name, and what else it says."""

    wants: dict[str, Wants]
    condition: str | None = None
    holds: Callable[[dict[str, Params]], bool] = lambda _: True
    expiry_ms: int | None = None
    is_from_earliest: bool = False


class Waiting(NamedTuple):
    """A signal in a line, until when it waits."""

    signal: Signal
    until_ms: int | None


def fulfils(params: Params, conditions: Conditions) -> bool:
    for param, operator, value in conditions:
        if param not in params:
            return False
        found = params[param]
        if operator == "in":
            if not any(type(one) is type(found) and one == found for one in value):
                return False
            continue
        if type(found) is not type(value):
            return False
        if operator == "prefix":
            if not str(found).startswith(str(value)):
                return False
        elif not {
            "=": found == value,
            "!=": found != value,
            "<": found < value,  # type: ignore[operator]
            "<=": found <= value,  # type: ignore[operator]
            ">": found > value,  # type: ignore[operator]
            ">=": found >= value,  # type: ignore[operator]
        }[operator]:
            return False
    return True


class Model:
    """The starts of some triggers, each by the ids of its signals."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.accepted: dict[tuple[str, str], Signal] = {}
        self.armed: dict[str, Rule] = {}
        self.lines: dict[str, dict[tuple[Any, ...], dict[str, list[Waiting]]]] = {}
        self.starts: list[tuple[str, tuple[tuple[str, str], ...]]] = []

    def arm(self, trigger: str, rule: Rule) -> None:
        if trigger not in self.armed:
            self.armed[trigger] = rule
            self.lines[trigger] = defaultdict(lambda: defaultdict(list))
            for signal in self.accepted.values() if rule.is_from_earliest else ():
                self._offer(trigger, signal)

    def disarm(self, trigger: str) -> None:
        self.armed.pop(trigger, None)
        self.lines.pop(trigger, None)

    def announce(self, signal: Signal) -> None:
        if (signal.name, signal.id) not in self.accepted:
            self.accepted[signal.name, signal.id] = signal
            for trigger in self.armed:
                self._offer(trigger, signal)

    def _offer(self, trigger: str, signal: Signal) -> None:
        rule = self.armed[trigger]
        want = rule.wants.get(signal.name)
        if want is None or not fulfils(signal.params, want.conditions):
            return
        if any(key not in signal.params for key in want.join_keys):
            return
        value = tuple((type(signal.params[key]).__name__, signal.params[key]) for key in want.join_keys)
        lines = self.lines[trigger][value]
        for line in lines.values():
            line[:] = [one for one in line if one.until_ms is None or one.until_ms > self.now_ms]
        if want.is_latest:
            lines[signal.name].clear()
        until_ms = None if rule.expiry_ms is None else self.now_ms + rule.expiry_ms
        lines[signal.name].append(Waiting(signal, until_ms))
        if all(lines[name] for name in rule.wants):
            self._fire(trigger, [lines[name].pop(0).signal for name in rule.wants])

    def _fire(self, trigger: str, used: list[Signal]) -> None:
        start = (trigger, tuple(sorted((one.name, one.id) for one in used)))
        if self.armed[trigger].holds({one.name: one.params for one in used}) and start not in self.starts:
            self.starts.append(start)
