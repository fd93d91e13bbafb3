"""Random changes of breakpoints among launches, ends and restarts, with the batches of several changes interleaved.

The model keeps every breakpoint as it was asked for, and asks each for each run. What an instance knows is what it was
last sent: with its launch, or with a change.
"""

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

from kapelle.processors.workflows.breakpoints import BREAKPOINTS_MAX, TOLD_MAX
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Breakpoint, InstanceStatus, Start
from tests.unit.workflows.world import KEY, World, definition

PARALLEL: Final = {"rule": "PARALLEL", "workflow_concurrency": TOLD_MAX + 40}
AUTHORS: Final = ("ann", "bob", "eve")
# All that a breakpoint is set with: step, version, instance id, run id, attempt. Few of each, so that they meet.
Fields = tuple[str, int | None, int | None, int | None, int | None]
Run = tuple[int, int, int]  # version, instance id, run id

FIELDS: Final[st.SearchStrategy[Fields]] = st.tuples(
    st.just("load"),
    st.sampled_from([None, None, 1, 2]),
    st.sampled_from([None, None, None, 1, 2, TOLD_MAX + 1]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, None, 1]),
).map(lambda fields: fields if fields[2] is not None else (*fields[:3], None, fields[4]))


def has(fields: Fields, run: Run) -> bool:
    """Whether a breakpoint is for a run."""
    return all(wanted is None or wanted == number for wanted, number in zip(fields[1:4], run, strict=True))


def point_of(fields: Fields, author: str, at_ms: int) -> Breakpoint:
    step_id, version, instance_id, run_id, attempt = fields
    return Breakpoint(
        step_id=step_id,
        version=version,
        instance_id=instance_id,
        run_id=run_id,
        attempt=attempt,
        author=author,
        at_ms=at_ms,
    )


def fields_of(point: Breakpoint) -> Fields:
    return (point.step_id, point.version, point.instance_id, point.run_id, point.attempt)


class Model:
    """What was set and not deleted, which runs there are, and what they were told."""

    def __init__(self) -> None:
        self.points: dict[Fields, tuple[str, int]] = {}
        self.changes = 0
        self.versions = 1
        self.running: dict[int, Run] = {}
        self.known: dict[int, set[Breakpoint]] = {}
        self.resumed: set[Breakpoint] = set()  # those that were deleted so that their attempts continue
        self.owed: set[tuple[Run, Breakpoint]] = set()  # removals that runs have not been told of yet

    def of(self, run: Run) -> set[Breakpoint]:
        """The breakpoints that are for a run now."""
        return {point_of(fields, *made) for fields, made in self.points.items() if has(fields, run)}

    def launched(self, start: c.StartRun) -> None:
        run = (start.version, start.instance_id, start.run_id)
        self.running[start.instance_id] = run
        self.known[start.instance_id] = set(start.breakpoints)
        assert self.known[start.instance_id] == self.of(run)
        assert len(start.breakpoints) == len(self.known[start.instance_id])
        assert start.breakpoints_generation == self.changes

    def told(self, instance_id: int, change: c.ChangeBreakpoints) -> None:
        run = self.running[instance_id]
        self.known[instance_id] = set(change.breakpoints)
        assert self.known[instance_id] == self.of(run)
        assert change.generation == self.changes
        if change.removed is not None:
            assert change.removed in self.resumed
            assert has(fields_of(change.removed), run)
            self.owed.discard((run, change.removed))

    def deleted(self, point: Breakpoint) -> None:
        """Whatever runs now and may be held by it has to be told."""
        self.resumed.add(point)
        self.owed |= {(run, point) for run in self.running.values() if has(fields_of(point), run)}

    def is_told(self) -> bool:
        alive = set(self.running.values())
        return not {run for run, _ in self.owed} & alive


class Changes(RuleBasedStateMachine):
    """Commands among the decisions by which changes are told."""

    @initialize(many=st.sampled_from([1, 3, TOLD_MAX, TOLD_MAX + 50, 2 * TOLD_MAX]))
    def crowd(self, many: int) -> None:
        self.world, self.model = World(), Model()
        self.heard = 0
        self.requests: list[Any] = []
        self.world.push(run_strategy=PARALLEL)
        for start in range(0, many, 10):
            self.start(min(10, many - start))
        self.drain()

    def decide(self, command: Any) -> list[Any]:
        self.world.now_ms += 1
        events = self.world.decide(command)
        for event in events:
            if isinstance(event, c.InstanceEnded):
                del self.model.running[event.instance_id]
        return events

    def hear(self) -> None:
        """Take up what was sent since, in its order."""
        for key, value in self.world.sent[self.heard :]:
            if isinstance(value, c.StartRun):
                self.model.launched(value)
            if isinstance(value, c.ChangeBreakpoints):
                self.model.told(int(key.removeprefix(f"{KEY}/")), value)
        self.heard = len(self.world.sent)

    def drain(self) -> None:
        while self.world.continued:
            self.go_on(1)

    @precondition(lambda self: self.world.continued)
    @rule(count=st.integers(1, 3))
    def go_on(self, count: int) -> None:
        for _ in range(count):
            if self.world.continued:
                _, value = self.world.continued.popleft()
                seen = len(self.world.sent)
                self.decide(value)
                assert len(self.world.sent) - seen <= TOLD_MAX
                self.hear()

    @rule(fields=FIELDS, author=st.sampled_from(AUTHORS))
    def set_breakpoint(self, fields: Fields, author: str) -> None:
        command = c.SetBreakpoint(self.world.fresh(), author, *fields)
        [event, *_] = self.decide(command)
        has_room = fields in self.model.points or len(self.model.points) < BREAKPOINTS_MAX
        is_right = (fields[1] or 1) <= self.model.versions and has_room
        assert isinstance(event, c.BreakpointSet if is_right else c.CommandRefused)
        if not is_right:
            return
        self.requests.append(command)
        self.model.points[fields] = (author, self.world.now_ms)
        self.model.changes += 1
        self.hear()

    @precondition(lambda self: self.model.points)
    @rule(data=st.data(), resume=st.booleans())
    def delete_breakpoint(self, data: st.DataObject, resume: bool) -> None:
        fields = data.draw(st.sampled_from(sorted(self.model.points, key=repr)))
        point = point_of(fields, *self.model.points.pop(fields))
        command = c.DeleteBreakpoint(self.world.fresh(), "ann", *fields, resume=resume)
        self.requests.append(command)
        if resume:
            self.model.deleted(point)
        self.model.changes += 1
        assert isinstance(self.decide(command)[0], c.BreakpointDeleted)
        self.hear()

    @precondition(lambda self: self.requests)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """A request that comes a second time changes nothing and tells nobody."""
        sent, waiting = len(self.world.sent), len(self.world.continued)
        [event] = self.decide(data.draw(st.sampled_from(self.requests)))
        assert event.status == "UNCHANGED"
        assert (len(self.world.sent), len(self.world.continued)) == (sent, waiting)

    @rule(fields=FIELDS)
    def delete_what_is_not_there(self, fields: Fields) -> None:
        if fields not in self.model.points:
            [event] = self.decide(c.DeleteBreakpoint(self.world.fresh(), "ann", *fields))
            assert event.refusal == "NOT_FOUND"

    @rule(count=st.integers(1, 10))
    def start(self, count: int) -> None:
        self.decide(c.StartInstances("ann", tuple(Start(self.world.fresh()) for _ in range(count))))
        self.hear()

    @rule()
    def push(self) -> None:
        strategy = {"owner": "ann", "run_strategy": PARALLEL}
        self.decide(c.PushVersion(self.world.fresh(), "ann", definition(properties=strategy)))
        self.model.versions += 1
        self.hear()

    @precondition(lambda self: self.model.running)
    @rule(data=st.data(), restarts=st.booleans())
    def end(self, data: st.DataObject, restarts: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.model.running)))
        _, _, run_id = self.model.running[number]
        self.decide(c.RecordRunEnd(number, run_id, InstanceStatus.FAILED, ""))
        self.hear()
        if restarts:
            self.decide(c.QueueRun(self.world.fresh(), "ann", number, '{"policy":"RESTART_FROM_BEGINNING"}', "{}"))
            self.hear()

    @precondition(lambda self: len(self.model.running) <= 3 and not self.world.continued)
    @rule()
    def delete_workflow(self) -> None:
        """All that runs ends, and the workflow is pushed again."""
        for number, (_, _, run_id) in sorted(self.model.running.items()):
            self.decide(c.RecordRunEnd(number, run_id, InstanceStatus.SUCCEEDED, ""))
            self.hear()
        if not self.model.running:
            self.decide(c.DeleteWorkflow(self.world.fresh(), "ann"))
            self.model.points.clear()
            self.model.versions = 0
            self.push()

    @invariant()
    def the_rows_are_those_of_the_model_and_are_counted(self) -> None:
        rows = {(*place[1:],): row for place, row in self.world.state.reader.breakpoints.prefix((KEY,))}
        expected = {(fields[0], *(number or 0 for number in fields[1:])) for fields in self.model.points}
        assert set(rows) == expected
        counts = self.world.state.reader.counts.get((KEY,))
        assert counts is not None
        assert (counts.breakpoints, counts.breakpoints_generation) == (len(expected), self.model.changes)

    @invariant()
    def all_know_the_breakpoints_when_all_batches_are_done(self) -> None:
        if not self.world.continued:
            assert all(self.model.known[number] == self.model.of(run) for number, run in self.model.running.items())
            assert self.model.is_told()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.drain()
            self.all_know_the_breakpoints_when_all_batches_are_done()
            assert self.world.replayed() == self.world.state.fingerprint()


def test_all_instances_know_the_breakpoints_in_random_histories() -> None:
    quick = settings(
        max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    run_state_machine_as_test(Changes, settings=quick)
