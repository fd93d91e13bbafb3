"""Random commands while an arrival displaces a long queue: none of the displaced runs or is left, the others go on."""

import json
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kapelle.processors.workflows.arrivals import DISPLACED_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Start
from tests.unit.workflows.world import KEY, World

FREE: Final = ("SEQUENTIAL", "PARALLEL", "STRICT_SEQUENTIAL", "SERIAL_LATEST_ONLY")
Run = tuple[int, int]


class Interleaved(RuleBasedStateMachine):
    """Commands among the decisions that a displacement is made of."""

    @initialize(many=st.integers(1, 2 * DISPLACED_MAX + 50))
    def crowd(self, many: int) -> None:
        self.world = World()
        self.world.push(run_strategy="SEQUENTIAL")
        for _ in range(many // 10 + 1):
            self.world.start(*(self.world.fresh() for _ in range(10)))
        self.rule = "SEQUENTIAL"
        self.displaced: set[Run] = set()
        self.switch("SERIAL_LATEST_ONLY")

    def queued(self) -> set[Run]:
        return {(number, run) for (_, number, run), _row in self.world.state.reader.queue.prefix((KEY,))}

    def running(self) -> list[Run]:
        return [(number, row.run_id) for (_, number), row in self.world.state.reader.running.prefix((KEY,))]

    def decide(self, command: Any) -> list[Any]:
        events = self.world.decide(command)
        launched = {(e.instance_id, e.run_id) for e in events if isinstance(e, c.InstanceLaunched)}
        assert not launched & self.displaced
        return events

    def arrives(self, command: Any) -> None:
        before = self.queued()
        events = self.decide(command)
        if self.rule == "SERIAL_LATEST_ONLY" and any(isinstance(event, c.InstanceCreated) for event in events):
            self.displaced |= before

    @precondition(lambda self: self.world.continued)
    @rule(count=st.integers(1, 3))
    def go_on(self, count: int) -> None:
        for _ in range(count):
            if self.world.continued:
                key, value = self.world.continued.popleft()
                assert key == KEY
                events = self.decide(value)
                assert sum(isinstance(e, c.InstanceEnded) for e in events) <= DISPLACED_MAX

    @rule(count=st.integers(1, 3))
    def start(self, count: int) -> None:
        self.arrives(c.StartInstances("ann", tuple(Start(self.world.fresh()) for _ in range(count))))

    @precondition(lambda self: self.running())
    @rule(data=st.data(), status=st.sampled_from([InstanceStatus.SUCCEEDED, InstanceStatus.FAILED]))
    def end(self, data: st.DataObject, status: InstanceStatus) -> None:
        number, run = data.draw(st.sampled_from(self.running()))
        self.decide(c.RecordRunEnd(number, run, status, ""))

    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        latest = self.world.state.reader.counts.get((KEY,))
        number = data.draw(st.integers(1, latest.latest_instance_id if latest else 1))
        self.arrives(c.QueueRun(self.world.fresh(), "ann", number, '{"policy":"RESTART_FROM_BEGINNING"}', "{}"))

    @precondition(lambda self: self.queued())
    @rule(data=st.data(), action=st.sampled_from([Action.STOP, Action.KILL]))
    def terminate(self, data: st.DataObject, action: Action) -> None:
        number, _ = data.draw(st.sampled_from(sorted(self.queued())))
        self.decide(c.TerminateInstance(self.world.fresh(), "ann", number, action, ""))

    @rule(name=st.sampled_from(FREE))
    def switch(self, name: str) -> None:
        strategy = {"rule": name, "workflow_concurrency": 2} if name == "PARALLEL" else name
        events = self.decide(c.ChangeProperties(self.world.fresh(), "ann", json.dumps({"run_strategy": strategy})))
        if any(isinstance(event, c.PropertiesChanged) for event in events):
            self.rule = name

    @invariant()
    def the_counts_are_those_of_the_rows(self) -> None:
        counts = self.world.state.reader.counts.get((KEY,))
        queued = self.queued()
        assert counts is not None
        assert (counts.queued, counts.displaced) == (len(queued), len(queued & self.displaced))

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        while self.world.continued:
            _, value = self.world.continued.popleft()
            self.decide(value)
        self.unblock()
        assert not self.queued() & self.displaced
        assert not self.queued() or self.running()
        assert self.world.replayed() == self.world.state.fingerprint()

    def unblock(self) -> None:
        """What a failure holds up is not what is looked at here."""
        self.world.unblock()


def test_whatever_comes_between_nobody_displaced_runs_and_nobody_else_is_left_behind() -> None:
    run_state_machine_as_test(
        Interleaved,
        settings=settings(
            max_examples=20,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
