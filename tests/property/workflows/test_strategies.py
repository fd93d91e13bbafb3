"""Random histories: the processor does what the model says, at every event, and history rebuilds its tables."""

import json
from typing import Any, Final

import pytest
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

from kapelle.processors.messages import Message
from kapelle.processors.workflows import workflows
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, InstanceStatus, Start
from kapelle.topology.tables import MemoryStore, ShardState
from tests.property.workflows.model import Model
from tests.unit.workflows.world import KEY, LETTERS, World

RULES: Final = ("SEQUENTIAL", "STRICT_SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "PARALLEL", "SERIAL_LATEST_ONLY")
ENDS: Final = (InstanceStatus.SUCCEEDED, InstanceStatus.FAILED, InstanceStatus.STOPPED, InstanceStatus.TIMED_OUT)
BROKEN: Final = '{"n":{"type":"LONG","expression":"1 / 0"}}'
ACTIONS: Final = {Action.STOP: "S", Action.KILL: "F"}


def strategy(name: str, limit: int) -> Any:
    return {"rule": name, "workflow_concurrency": limit} if name == "PARALLEL" else name


class Watched(World):
    """A world that looks at every event, not only at what a command has come to."""

    model: Model

    def decide(self, command: Any, key: str = KEY) -> list[Any]:
        """The same, with every launch checked by the strategy that counts while it happens."""
        seen = len(self.history)
        before = self.tally()
        events = super().decide(command, key)
        rules = [json.loads(e.properties)["run_strategy"] for e in events if isinstance(e, c.PropertiesChanged)]
        self.check_launches(self.history[seen:], before, rules[0] if rules else None)
        return events

    def tally(self) -> tuple[set[int], set[tuple[int, int]], set[int]]:
        """Who runs, who is queued, who has failed, by the rows themselves."""
        tables = self.state.reader
        running = {number for (_, number), _row in tables.running.prefix((KEY,))}
        queued = {(number, run) for (_, number, run), _row in tables.queue.prefix((KEY,))}
        return running, queued, {number for (_, number), _row in tables.failed.prefix((KEY,))}

    def check_launches(
        self, events: list[tuple[str, Any]], before: tuple[set[int], set[tuple[int, int]], set[int]], changed: Any
    ) -> None:
        running, queued, failed = before
        name = changed["rule"] if changed else self.model.rule
        limit = changed["workflow_concurrency"] if changed else self.model.limit
        for _, event in events:
            if isinstance(event, c.InstanceCreated):
                failed.discard(event.instance_id)
                if event.status is InstanceStatus.CREATED:
                    queued.add((event.instance_id, event.run_id))
            if isinstance(event, c.InstanceUnblocked):
                failed.discard(event.instance_id)
            if isinstance(event, c.InstanceCreated | c.InstanceEnded) and event.status is InstanceStatus.FAILED:
                failed.add(event.instance_id)
            if isinstance(event, c.InstanceEnded):
                running.discard(event.instance_id)
                queued.discard((event.instance_id, event.run_id))
            if isinstance(event, c.InstanceLaunched):
                assert len(running) < (limit if name == "PARALLEL" else 1)
                assert (event.instance_id, event.run_id) == min(queued)
                assert not (name == "STRICT_SEQUENTIAL" and failed)
                queued.discard((event.instance_id, event.run_id))
                running.add(event.instance_id)
        assert (running, queued, failed) == self.tally()


class Histories(RuleBasedStateMachine):
    """Commands of all kinds on one workflow, with one strategy or with changing ones."""

    names: tuple[str, ...] = RULES
    switches = True

    @initialize(data=st.data(), limit=st.integers(1, 3))
    def push(self, data: st.DataObject, limit: int) -> None:
        name = data.draw(st.sampled_from(self.names))
        self.world = Watched()
        self.world.model = self.model = Model(name, limit)
        self.world.push(run_strategy=strategy(name, limit))
        self.rebuilt = ShardState(workflows, 0, MemoryStore())
        self.folded = 0

    @rule(
        data=st.data(),
        kinds=st.lists(st.sampled_from(["new", "new", "new", "broken", "known"]), min_size=1, max_size=4),
    )
    def start(self, data: st.DataObject, kinds: list[str]) -> None:
        """Most starts are new; some have broken parameters, some were asked for before, or in the same batch."""
        batch: list[tuple[str, bool]] = []
        for kind in kinds:
            known = sorted({*self.model.requests, *(request for request, _ in batch)})
            request = data.draw(st.sampled_from(known)) if kind == "known" and known else self.world.fresh()
            batch.append((request, kind == "broken"))
        starts = [
            Start(request, run_params=BROKEN if is_broken else "{}", persist_failed_run=True)
            for request, is_broken in batch
        ]
        self.world.do(c.StartInstances("ann", tuple(starts)))
        self.model.start(batch)

    @precondition(lambda self: self.model.ids("r"))
    @rule(data=st.data(), status=st.sampled_from(ENDS))
    def end(self, data: st.DataObject, status: InstanceStatus) -> None:
        number = data.draw(st.sampled_from(self.model.ids("r")))
        run_id = self.model.instances[number][0]
        self.world.end(number, status, run_id)
        self.model.end(number, LETTERS[status])

    @precondition(lambda self: len(self.model.instances) > 3)
    @rule(data=st.data(), status=st.sampled_from(ENDS), stale=st.integers(0, 3))
    def end_what_does_not_run(self, data: st.DataObject, status: InstanceStatus, stale: int) -> None:
        number = data.draw(st.sampled_from(sorted(self.model.instances)))
        run_id, letter = self.model.instances[number]
        if letter != "r" or run_id != stale:
            assert self.world.end(number, status, stale) == []

    @precondition(lambda self: self.model.ids("SFT✓"))
    @rule(data=st.data(), repeats=st.booleans())
    def restart(self, data: st.DataObject, repeats: bool) -> None:
        number = data.draw(st.sampled_from(self.model.ids("SFT✓")))
        request = self.world.fresh()
        self.world.restart(number, request_id=request)
        self.model.restart(number, request)
        if repeats:
            assert [type(event) for event in self.world.restart(number, request_id=request)] == [c.StartDuplicated]

    @precondition(lambda self: self.model.ids("qr"))
    @rule(data=st.data(), action=st.sampled_from(list(ACTIONS)))
    def terminate(self, data: st.DataObject, action: Action) -> None:
        number = data.draw(st.sampled_from(self.model.ids("qr")))
        self.world.terminate(number, action)
        self.model.terminate(number, ACTIONS[action])

    @precondition(lambda self: len(self.model.ids("qr")) > 3)
    @rule(action=st.sampled_from(list(ACTIONS)))
    def terminate_all(self, action: Action) -> None:
        self.world.terminate_all(action)
        self.model.terminate_all(ACTIONS[action])

    @precondition(lambda self: self.model.ids("F"))
    @rule(data=st.data())
    def unblock(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([None, *self.model.ids("F")]))
        self.world.unblock(number)
        self.model.unblock(number)

    @precondition(lambda self: self.switches and self.model.instances)
    @rule(name=st.sampled_from(RULES), limit=st.integers(1, 3))
    def switch(self, name: str, limit: int) -> None:
        events = self.world.switch(strategy(name, limit))
        refused = [event for event in events if isinstance(event, c.CommandRefused)]
        assert self.model.switch(name, limit) == (not refused)
        assert all(event.refusal == "PRECONDITION_FAILED" for event in refused)

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        running, _, failed = self.world.tally()
        told = {n for (_, n), row in self.world.state.reader.running.prefix((KEY,)) if row.action is not None}
        assert self.world.seen() == self.model.seen()
        assert failed == self.model.blocking
        assert told == self.model.told & running

    @invariant()
    def the_counts_are_those_of_the_rows(self) -> None:
        running, queued, failed = self.world.tally()
        counts = self.world.state.reader.counts.get((KEY,))
        found = (counts.running, counts.queued, counts.failed, counts.latest_instance_id) if counts else (0, 0, 0, 0)
        assert found == (len(running), len(queued), len(failed), len(self.model.instances))

    @invariant()
    def history_alone_makes_the_same_tables(self) -> None:
        for key, event in self.world.history[self.folded :]:
            workflows.appliers[type(event)](Message(key, event, ""), self.rebuilt.writer)
        self.folded = len(self.world.history)
        assert self.rebuilt.fingerprint() == self.world.state.fingerprint()

    @invariant()
    def runs_is_told_of_every_end_in_the_queue_that_it_cannot_know(self) -> None:
        expected = set()
        for _, event in self.world.history:
            ended = isinstance(event, c.InstanceEnded) and not event.was_launched
            stopped = isinstance(event, c.InstanceCreated) and event.status == "STOPPED"
            if (ended or stopped) and event.run_id > 1:
                expected.add((f"{KEY}/{event.instance_id}", event.run_id))
        assert {(key, told.run_id) for key, told in self.world.sent_of(c.EndQueuedRun)} == expected


QUICK: Final = settings(
    max_examples=40, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("name", RULES)
def test_a_strategy_holds_in_random_histories(name: str) -> None:
    machine = type(f"Histories_{name}", (Histories,), {"names": (name,), "switches": False})

    run_state_machine_as_test(machine, settings=QUICK)


def test_changing_strategies_hold_and_strand_nobody() -> None:
    run_state_machine_as_test(Histories, settings=settings(QUICK, max_examples=80))
