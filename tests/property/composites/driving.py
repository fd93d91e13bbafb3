"""The engine beside the model: the same definition, the same deeds, and what must always be true of the tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kapelle.processors.runs.composites.identity import inline_id, is_inline
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import RUN_COMMANDS, RUN_EVENTS, RUN_INTERNAL, WORKFLOW_COMMANDS, WORKFLOW_INTERNAL
from kapelle.schemas import Contract
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, ChildKind, InstanceStatus, Report, RestartPolicy
from kapelle.testing.engine import AUTHOR, Engine, RunHandle
from kapelle.testing.schedule import Crashed
from kapelle.topology.crash import CrashPoint
from kapelle.topology.embedded import EmbeddedRuntime, EmbeddedSettings
from kapelle.topology.settings import MemberSettings
from kapelle.topology.tables import MemoryStore
from tests.property.composites.model import RUNNING, How, Instance, Path, Spec, Step, below, leaves
from tests.property.runs.worlds import replay_violations
from tests.unit.composites.trees import call, foreach, loop_while, orphans, push
from tests.unit.runs.flows import ONCE, Json, noop, param, step
from tests.unit.views.histories import view_of

HASTY_S = 3_600
UNBOUNDED = 1_000  # instances of a workflow at the same time: no queue, of which the model knows nothing
POLICIES = {"all": RestartPolicy.RESTART_FROM_BEGINNING, "incomplete": RestartPolicy.RESTART_FROM_INCOMPLETE}
RUNNING_AS = {"CREATED", "STARTING", "RUNNING"}
KINDS = {"foreach": ChildKind.FOREACH, "while": ChildKind.WHILE}
# The parent chooses what these do, so they may come again. What a child does with a restart, its state decides.
REPEATABLE = (
    c.StartRun,
    c.RecordChildStart,
    c.RecordChildEnd,
    c.TerminateRun,
    c.RestartBelow,
    c.StartChild,
    c.EndChild,
)


def written(engine: Engine, spec: Spec, hasty: str) -> Json:
    """The definition of a step; the hasty one has a time-out. The workflow that it calls is pushed."""
    fields: dict[str, Any] = {"timeout": HASTY_S} if spec.name == hasty else {}
    if spec.kind == "leaf":
        return step(spec.name, retry_policy=ONCE, given="=given", **fields)
    inner = [written(engine, one, hasty) for one in spec.steps]
    if spec.kind == "foreach":
        window = {"concurrency": spec.window} if spec.window else {}
        loop_params = {"type": "MAP", "value": {f"i_{spec.name}": _numbers(spec.count)}}
        fields |= {**window, "strict_ordering": spec.strict, "failure_mode": spec.mode}
        return foreach(spec.name, *inner, loop_params=loop_params, **fields)
    if spec.kind == "while":
        value = f"n_{spec.name}"
        count = noop(f"count_{spec.name}", **{value: f"={value} + 1"})
        condition = f"{value} < {spec.count}"
        return loop_while(spec.name, condition, count, *inner, first={value: 0}, failure_mode=spec.mode, **fields)
    push(engine, f"flow_{spec.name}", *inner, strategy=UNBOUNDED, params={"given": 0})
    return call(spec.name, f"flow_{spec.name}", failure_mode=spec.mode, sync=spec.sync, **fields)


def _numbers(count: int) -> Json:
    return {"type": "LONG_ARRAY", "value": list(range(count))}


class MortalEngine(Engine):
    """An engine that may die at any moment of its cycles. The next one finds its log and tables, and goes on."""

    def __init__(self, *, same_cycle: bool) -> None:
        super().__init__(same_cycle=same_cycle)
        self.moments = 0  # until it dies; 0: it lives
        self._disk, self._settings = MemoryStore(), EmbeddedSettings(member=MemberSettings(same_cycle=same_cycle))
        self._live()

    def _live(self) -> None:
        reached = self._reached
        self.runtime = EmbeddedRuntime(self.topology, self._disk, self._settings, clock=self.clock, crash=reached)

    def send(self, stream: Stream, key: str, command: Contract | bytes) -> None:
        """As of any engine. What was not acknowledged by one that died is sent again."""
        told = self.runtime.publish(stream, key, command)
        try:
            self.runtime.step_until_idle()
        except Crashed:
            self._live_again()
            if not told.done():
                self.runtime.publish(stream, key, command)
            self.runtime.step_until_idle()
        self.moments = 0

    def advance_to(self, moment: int | str) -> None:
        """As of any engine. The clock goes on while nobody lives."""
        try:
            super().advance_to(moment)
        except Crashed:
            self._live_again()
            super().advance_to(moment)
        self.moments = 0

    def _live_again(self) -> None:
        self._disk = self._disk.copy()
        self._live()

    def _reached(self, _: CrashPoint) -> None:
        if self.moments:
            self.moments -= 1
            if not self.moments:
                raise Crashed


class Driver:
    """Does to the engine what is done to the model."""

    def __init__(self, specs: tuple[Spec, ...], *, same_cycle: bool, hasty: str = "") -> None:
        self.engine = MortalEngine(same_cycle=same_cycle)
        self._hasty = hasty
        push(self.engine, "root", *[written(self.engine, one, hasty) for one in specs], params={"given": 0})
        self.root = Instance(specs)
        self.root.start("all")
        self.engine.start("root")

    # Who is who -------------------------------------------------------------------------------------------------------

    def handle(self, instance: Instance) -> RunHandle:
        """The instance of the engine."""
        step = instance.above
        if step is None:
            return RunHandle(self.engine, "root", 1)
        above = self.handle(step.inside)
        if step.spec.kind == "sub":
            row = self.engine.state("runs", above.key).children.get((above.key, step.spec.name, 1))
            workflow_id, _, number = row.child.rpartition("/")
            return RunHandle(self.engine, workflow_id, int(number))
        return RunHandle(self.engine, inline_id(KINDS[step.spec.kind], above.key, step.spec.name), instance.number)

    def instances(self) -> list[Instance]:
        """All instances of the model."""
        return list(below(self.root))

    def steps(self) -> list[Step]:
        """All steps of the model that run."""
        found = [one for each in self.instances() if each.status == RUNNING for one in each.steps.values()]
        return [one for one in found if one.status == RUNNING]

    # Deeds ------------------------------------------------------------------------------------------------------------

    def report(self, leaf: Step, *, is_good: bool) -> None:
        """The worker of a leaf reports."""
        self.engine.task(self.handle(leaf.inside), leaf.spec.name).say(
            Report.SUCCEEDED if is_good else Report.FATAL_ERROR
        )

    def act(self, one: Step, action: str) -> None:
        """Somebody acts on a step."""
        self.handle(one.inside).act(one.spec.name, action)

    def stop(self, instance: Instance, action: str) -> None:
        """Somebody ends an instance."""
        run = self.handle(instance)
        request = c.TerminateInstance(self.engine.request_id(), AUTHOR, run.instance_id, Action(action), "")
        if is_inline(run.workflow_id):
            self.engine.send(RUN_COMMANDS, run.key, request)
        else:
            self.engine.send(WORKFLOW_COMMANDS, run.workflow_id, request)

    def late(self) -> None:
        """So much time passes that every hasty step that runs is timed out. Those that begin then have their time."""
        late = [one for one in self.steps() if one.spec.name == self._hasty]
        # A shard that was taken over may be ahead of the clock, and runs a hundredth slower until it is not.
        self.engine.advance(HASTY_S * 1_000 * 51 // 50)
        for one in late:
            one.act("TIME_OUT")

    def restart(self, instance: Instance, how: How, given: int | None = None) -> None:
        """Somebody restarts an instance or a step, perhaps with another parameter."""
        if isinstance(how, Path):
            self.handle(instance).restart(RestartPolicy.RESTART_FROM_SPECIFIC, step_id=how.name)
        else:
            more = {} if given is None else {"given": param(given)}
            self.handle(instance).restart(POLICIES[how], run_params=more)

    def repeat(self, number: int) -> None:
        """A message between processors comes a second time."""
        streams = (RUN_INTERNAL, WORKFLOW_INTERNAL)
        found = [(one, *record) for one in streams for record in self.engine.history(one, 0)]
        found = [record for record in found if isinstance(record[2], REPEATABLE)]
        if found:
            self.engine.send(*found[number % len(found)])

    # Laws -------------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """The engine is where the model is, and its tables agree with each other and with their history."""
        for instance in self.instances():
            run = self.handle(instance)
            row = run.row
            assert row is not None, run.key
            assert _plain(row.status) == instance.status, (run.key, row.status, instance)
            found = {name: status for name, status in run.steps.items() if not name.startswith("count")}
            expected = {name: one.status for name, one in instance.steps.items()}
            assert {name: _plain(status) for name, status in found.items()} == expected, run.key
            for name, one in instance.steps.items():
                if one.spec.kind == "leaf" and one.status == RUNNING:
                    assert self.engine.task(run, name).params["given"] == instance.given, (run.key, name)
        assert orphans(self.engine) == []
        assert list(wrong_counts(self.engine)) == []
        assert replay_violations(self.engine) == []

    def check_leaves(self) -> None:
        """The view counts the leaves that exist."""
        keys = {id(each): self.handle(each).key for each in self.instances()}
        expected = {(keys[at], name): +counts for (at, name), counts in leaves(self.root).items()}
        with view_of(self.engine).database.reading() as connection:
            rows = connection.execute("SELECT * FROM rollups WHERE count <> 0").fetchall()
        found: dict[tuple[str, str], Counter[str]] = {at: Counter() for at in expected}
        for row in rows:
            at = (f"{row['workflow_id']}/{row['instance_id']}", row["step_id"])
            found.setdefault(at, Counter())[_plain(row["status"])] += row["count"]
        wrong = {at: (dict(found[at]), dict(expected.get(at, {}))) for at in found if found[at] != expected.get(at)}
        assert wrong == {}, "the first are the counts of the view, the second those of the model"

    def check_runs(self) -> None:
        """Every run of every instance began once, and there are no others."""
        started = [one for one in self.engine.events(RUN_EVENTS) if isinstance(one, c.RunStarted)]
        counts = Counter((one.workflow_id, one.instance_id) for one in started)
        assert len({(one.workflow_id, one.instance_id, one.run_id) for one in started}) == len(started)
        both = [(self.handle(each), each.runs) for each in self.instances()]
        assert counts == {(run.workflow_id, run.instance_id): runs for run, runs in both}


def _plain(status: Any) -> str:
    """The words of the model: whatever is not over runs."""
    if status is InstanceStatus.IN_PROGRESS or str(status) in RUNNING_AS:
        return RUNNING
    return str(status)


def wrong_counts(engine: Engine) -> Iterator[object]:
    """Rows of `fans` that do not say what the rows of `children` do."""
    tables = engine.state("runs", "")
    for (key, step_id), fan in tables.fans.prefix(()):
        rows = [row for _, row in tables.children.prefix((key, step_id))]
        counted = Counter(row.status for row in rows if row.fan_run >= fan.counted_since)
        told = {
            InstanceStatus.IN_PROGRESS: fan.running,
            InstanceStatus.FAILED: fan.failed,
            InstanceStatus.STOPPED: fan.stopped,
            InstanceStatus.TIMED_OUT: fan.timed_out,
        }
        for status, count in told.items():
            if counted[status] != count:
                yield key, step_id, status, count, counted[status]
