"""Attempts that need several permits ask for them one after the other, in one order: all get them, none waits for ever.

What `runs` does is written down here in short. Commands from one key to another arrive in order; other than that they
arrive in any order. Attempts are killed at any time, and give back all that they have asked for.
"""

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality, PermitHolder
from tests.unit.permits.world import World

TAGS: Final = ("tag/cpu", "tag/disk", "tag/gpu")
KEYS: Final = ("tree/etl/1", "workflow/etl", *TAGS)  # in the order in which attempts ask
CRITICALITIES: Final = (Criticality.CRITICAL, Criticality.HIGH, Criticality.MEDIUM, Criticality.LOW)
INSTANCES: Final = 4
ATTEMPTS_MAX: Final = 3


@dataclass
class Attempt:
    """An attempt of a step on its way to its permits."""

    holder: PermitHolder
    needs: list[str]
    criticality: Criticality
    asked: list[str] = field(default_factory=list)
    received: list[str] = field(default_factory=list)
    is_over: bool = False

    @property
    def is_running(self) -> bool:
        return not self.is_over and self.received == self.needs


class Net:
    """Instances, limits, and the commands that are on their way between them."""

    def __init__(self, random: Random, count: int) -> None:
        self.random = random
        self.world = World()
        self.channels: dict[tuple[str, str], deque[Any]] = {}
        self.most: dict[str, int] = {key: random.randint(1, 4) for key in KEYS}
        self.attempts: dict[PermitHolder, Attempt] = {}
        self.done: set[str] = set()
        for key in TAGS:
            self.world.decide(c.SetLimit(f"set-{key}", "ann", self.most[key]), key)
        for number in range(count):
            needs = sorted(random.sample(KEYS, random.randint(1, len(KEYS))), key=KEYS.index)
            self.begin(PermitHolder(f"etl/{number % INSTANCES + 1}", 1, f"s{number}", 1, 1), needs)

    def begin(self, holder: PermitHolder, needs: list[str]) -> None:
        attempt = Attempt(holder, needs, self.random.choice(CRITICALITIES))
        self.attempts[holder] = attempt
        self.ask(attempt)

    def ask(self, attempt: Attempt) -> None:
        limited = attempt.needs[len(attempt.asked)]
        attempt.asked.append(limited)
        most = None if limited.startswith("tag/") else self.most[limited]
        request = c.RequestPermit(attempt.holder, "etl", attempt.criticality, most)
        self.send(attempt.holder.key, limited, request)

    def send(self, source: str, target: str, command: Any) -> None:
        self.channels.setdefault((source, target), deque()).append(command)

    def end(self, attempt: Attempt) -> None:
        """An attempt that was killed, or is done."""
        attempt.is_over = True
        for limited in attempt.asked:
            self.send(attempt.holder.key, limited, c.ReturnPermit(attempt.holder))

    def kill(self, attempt: Attempt) -> None:
        """It is tried again, unless it was tried often enough."""
        self.end(attempt)
        number, holder = attempt.holder.attempt, attempt.holder
        if number < ATTEMPTS_MAX:
            again = PermitHolder(holder.key, holder.run_id, holder.step_id, number + 1, holder.iteration)
            self.begin(again, attempt.needs)
        else:
            self.done.add(holder.step_id)

    def deliver(self) -> bool:
        """One command that is on its way, from any channel, arrives; or a timer fires."""
        channels = sorted(at for at, commands in self.channels.items() if commands)
        if not channels:
            return self.world.fire()
        source, target = self.random.choice(channels)
        command = self.channels[source, target].popleft()
        if isinstance(command, c.GrantPermit):
            self.granted(command)
            return True
        before = len(self.world.sent)
        self.world.decide(command, target)
        for key, answer in self.world.sent[before:]:
            self.send(target, key, answer)
        self.check(target)
        return True

    def granted(self, grant: c.GrantPermit) -> None:
        attempt = self.attempts[grant.holder]
        if attempt.is_over:  # it comes too late: the return is on its way, and may come twice
            if self.random.random() < 0.5:
                self.send(grant.holder.key, grant.limited, c.ReturnPermit(grant.holder))
            return
        assert grant.limited == attempt.asked[-1]
        attempt.received.append(grant.limited)
        if not attempt.is_running:
            self.ask(attempt)

    def check(self, key: str) -> None:
        """No limit is exceeded, neither by rows nor by attempts that run."""
        row = self.world.state.reader.limits.get((key,))
        held = [at for at, permit in self.world.state.reader.permits.prefix((key,)) if permit.is_held]
        running = [attempt for attempt in self.attempts.values() if attempt.is_running and key in attempt.needs]
        assert len(running) <= len(held) == (row.held if row else 0) <= self.most[key]

    def step(self) -> bool:
        """Something happens. False if nothing can."""
        running = [attempt for attempt in self.attempts.values() if attempt.is_running]
        alive = [attempt for attempt in self.attempts.values() if not attempt.is_over]
        chance = self.random.random()
        if chance < 0.03 and alive:
            self.kill(self.random.choice(alive))
        elif chance < 0.25 and running:
            self.finish(self.random.choice(running))
        elif not self.deliver():
            if not running:
                return False
            self.finish(self.random.choice(running))
        return True

    def finish(self, attempt: Attempt) -> None:
        self.end(attempt)
        self.done.add(attempt.holder.step_id)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 25))
def test_attempts_with_several_permits_neither_deadlock_nor_exceed_a_limit(seed: int, count: int) -> None:
    net = Net(Random(seed), count)

    while net.step():
        pass

    assert net.done == {f"s{number}" for number in range(count)}
    rows = list(net.world.state.reader.permits.prefix())
    assert rows == []
    assert all(not row.held and not any(row.waiting) for _, row in net.world.state.reader.limits.prefix())
    assert net.world.replayed() == net.world.state.fingerprint()
