"""Random requests, returns and limits: the processor does what the model says, and history rebuilds its tables."""

from collections.abc import Iterator
from typing import Final

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
from kapelle.processors.permits import admission, permits
from kapelle.processors.permits.tables import Limit, holder_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Criticality
from kapelle.topology.tables import MemoryStore, ShardState
from tests.property.permits.model import CLASSES, PATIENCE, Model
from tests.unit.permits.world import World

BATCH: Final = 2
SETTINGS: Final = settings(
    max_examples=25,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
LIMITS: Final = st.integers(0, 6) | st.just(1)
MANY: Final = st.integers(1, 3)
WORKFLOWS: Final = st.sampled_from(["a", "b", "c", "d"])
NAMED: Final = st.sampled_from(CLASSES) | st.just("LOW")


@pytest.fixture(autouse=True, scope="module")
def _small_batches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(admission, "ADMITTED_MAX", BATCH)
        yield


class Requests(RuleBasedStateMachine):
    """Attempts of four workflows ask for permits of one key and give them back."""

    key = "tag/gpu"

    @initialize()
    def begin(self) -> None:
        self.world, self.model = World(self.key), Model(BATCH)
        self.folded = ShardState(permits, 0, MemoryStore())
        self.seen = 0
        self.names: list[str] = []

    @rule(data=st.data(), workflow=WORKFLOWS, named=NAMED, many=st.integers(1, 6))
    def ask(self, data: st.DataObject, workflow: str, named: str, many: int) -> None:
        brought = self.brought(data)
        for _ in range(many):
            name = f"s{len(self.names)}"
            self.names.append(name)
            self.asks(name, workflow, named, brought)

    def asks(self, name: str, workflow: str, named: str, brought: tuple[int, int] | None) -> None:
        most, snapshot = brought or (None, 0)
        if brought is not None and name not in self.model.held + self.model.waiting():
            self.model.bring(*brought)
        self.model.ask(name, workflow, named)
        self.world.ask(name, workflow=workflow, criticality=Criticality(named), max=most, snapshot=snapshot)
        self.look()

    def brought(self, data: st.DataObject) -> tuple[int, int] | None:  # noqa: ARG002
        """The limit that comes with a request."""
        return None

    @precondition(lambda self: self.names)
    @rule(data=st.data(), named=NAMED)
    def ask_again(self, data: st.DataObject, named: str) -> None:
        """A request comes a second time: nothing changes if the attempt holds a permit or waits."""
        name = data.draw(st.sampled_from(self.names))
        if name in self.model.held + self.model.waiting():
            self.world.ask(name, workflow=self.world.workflows[name], criticality=Criticality(named))
            self.look()

    @precondition(lambda self: self.names)
    @rule(data=st.data(), many=MANY, is_twice=st.booleans())
    def give_back(self, data: st.DataObject, many: int, is_twice: bool) -> None:
        """Of any attempt: it may hold a permit, or wait, or neither."""
        for _ in range(many):
            name = data.draw(st.sampled_from(self.names))
            for _ in range(2 if is_twice else 1):
                self.world.give_back(name)
                self.model.give_back(name)
                self.look()

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), many=MANY)
    def finish(self, data: st.DataObject, many: int) -> None:
        """Attempts that hold a permit are over."""
        for _ in range(min(many, len(self.model.held))):
            name = data.draw(st.sampled_from(self.model.held))
            self.world.give_back(name)
            self.model.give_back(name)
            self.look()

    @precondition(lambda self: self.model.rest)
    @rule()
    def go_on(self) -> None:
        assert self.world.fire()
        self.model.admit()
        self.look()

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        if not hasattr(self, "world"):
            return
        assert self.world.row().max == self.model.most
        assert self.world.held() == sorted(self.model.held)
        assert self.world.waiting() == self.model.waiting()
        assert self.world.granted == self.model.admitted
        assert self.world.row().is_admitting == self.model.rest

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.go_on()
        self.look()
        row = self.world.row()
        assert not self.world.waiting() or (row.max is not None and row.held >= row.max)

    def look(self) -> None:
        """After each decision: the rows agree, and history gives them at every event."""
        row, held = self.world.row(), self.world.held()
        assert row.held == len(held)
        assert sum(row.waiting) == len(self.world.waiting())
        assert len(list(self.world.state.reader.permits.prefix((self.key,)))) == row.held + sum(row.waiting)
        has_room = row.max is None or row.held < row.max
        assert row.is_admitting == (has_room and any(row.waiting))
        assert row.is_admitting == bool(self.world.state.due(2**52, 1))
        for key, event in self.world.history[self.seen :]:
            self.checked(event)
            permits.appliers[type(event)](Message(key, event, ""), self.folded.writer)
        self.seen = len(self.world.history)
        assert self.folded.fingerprint() == self.world.state.fingerprint()

    def checked(self, event: object) -> None:
        """Nobody is admitted beyond the limit, nor while others have waited for too long."""
        if isinstance(event, c.PermitGranted):
            row = self.folded.reader.limits.get((self.key,))
            assert row is None or row.max is None or row.held < row.max
            known = self.folded.reader.permits.get(holder_key(self.key, event.holder))
            assert (known is not None and not known.is_held) == event.has_waited
            assert all(count <= PATIENCE + 2 for count in event.passed_over)


class Tags(Requests):
    """Limits that people set."""

    @initialize()
    def begin(self) -> None:
        super().begin()
        self.requested: dict[str, int | None] = {}

    @rule(most=LIMITS)
    def limit(self, most: int) -> None:
        self.requests(self.world.fresh(), most)

    @rule()
    def remove(self) -> None:
        self.requests(self.world.fresh(), None)

    @precondition(lambda self: self.requested)
    @rule(data=st.data())
    def request_again(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(sorted(self.requested)))
        self.requests(request, self.requested[request])

    def requests(self, request: str, most: int | None) -> None:
        self.requested[request] = most
        self.model.limit(most, request)
        if most is None:
            self.world.remove(request_id=request)
        else:
            self.world.limit(most, request_id=request)
        self.look()


class Workflows(Requests):
    """Limits that come with the properties of a workflow, and with requests of runs that know older or newer ones."""

    key = "workflow/etl"

    @initialize()
    def begin(self) -> None:
        super().begin()
        self.properties: list[int | None] = [2]

    def brought(self, data: st.DataObject) -> tuple[int, int] | None:
        number = data.draw(st.integers(1, len(self.properties)))
        most = self.properties[number - 1]
        return None if most is None else (most, number)

    @rule(most=st.none() | LIMITS, is_told=st.booleans())
    def change(self, most: int | None, is_told: bool) -> None:
        self.properties.append(most)
        if is_told:
            self.tell(len(self.properties))

    @rule(data=st.data())
    def tell_again(self, data: st.DataObject) -> None:
        self.tell(data.draw(st.integers(1, len(self.properties))))

    def tell(self, number: int) -> None:
        self.world.limit_workflow(self.properties[number - 1], number)
        self.model.limit_by(self.properties[number - 1], number)
        self.look()


class Trees(Requests):
    """Limits that come with each request. As soon as nobody holds a permit or waits, at most the last batch is left."""

    key = "tree/etl/1"

    def brought(self, data: st.DataObject) -> tuple[int, int] | None:
        return data.draw(LIMITS.filter(bool)), 0

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        if not hasattr(self, "world"):
            return
        if not self.model.held and not self.model.waiting():
            self.model = Model(BATCH, admitted=self.model.admitted)
            left = [row for _, _, row in self.world.state.rows()]
            assert left == ([Limit(batch=self.world.row().batch)] if self.world.row().batch else [])
        super().it_is_as_the_model_says()


def test_a_tag_admits_whom_the_model_admits() -> None:
    run_state_machine_as_test(Tags, settings=SETTINGS)


def test_a_workflow_admits_whom_the_model_admits() -> None:
    run_state_machine_as_test(Workflows, settings=SETTINGS)


def test_a_tree_admits_whom_the_model_admits() -> None:
    run_state_machine_as_test(Trees, settings=SETTINGS)
