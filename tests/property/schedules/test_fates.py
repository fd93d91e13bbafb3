"""Random lives of schedules: versions, pauses, restarts, absences. Each tick has the fate that a model knows.

The model is that of the proof (`tests.proof.schedules`): it finds times by a scan of minutes, and shares no code with
the processor. It looks at each event when it comes.
"""

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

from kapelle.processors.messages import Message
from kapelle.processors.workflows import workflows
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillAction, BackfillStatus, InstanceStatus
from kapelle.topology.tables import MemoryStore, ShardState
from tests.proof.schedules.fates import Fates, instance_violations
from tests.proof.schedules.lanes import Lanes
from tests.proof.schedules.naive import Written, of_definition, ticks
from tests.proof.schedules.workload import DENSE, HOUR_MS, PARALLEL_MAX, SPARSE, schedule_of
from tests.unit.workflows.world import KEY, World

SETTINGS: Final = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
RULES: Final = ("SEQUENTIAL", "STRICT_SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "PARALLEL", "SERIAL_LATEST_ONLY")
ENDS: Final = (InstanceStatus.SUCCEEDED, InstanceStatus.FAILED, InstanceStatus.STOPPED)
# Clocks are put forward or back soon, in Berlin and in New York, or not.
BEGINS_MS: Final = (1_774_738_800_000, 1_792_881_600_000, 1_793_507_400_000, 1_772_947_200_000, 1_782_900_000_000)
TERMS: Final = st.tuples(st.sampled_from(("ALL", "LATEST", "NONE")), st.sampled_from((0, 0, 0, 30, 100)))
PAST_MS: Final = (HOUR_MS, 5 * HOUR_MS, 30 * HOUR_MS)
SLOTS_MAX: Final = 30
SMALL_MS: Final = st.sampled_from((1_000, 59_999, 60_000, 60_001, 120_000, 600_000))
AWAY_MS: Final = st.sampled_from((61_000, 300_000, HOUR_MS, 5 * HOUR_MS, 40 * HOUR_MS))


class Lives(RuleBasedStateMachine):
    """One workflow."""

    @initialize(begin_ms=st.sampled_from(BEGINS_MS), after_ms=st.integers(0, 120_000))
    def begin(self, begin_ms: int, after_ms: int) -> None:
        self.world = World()
        self.world.now_ms = begin_ms + after_ms
        self.fates, self.lanes = Fates(KEY, {}), Lanes(KEY)
        self.folded = ShardState(workflows, 0, MemoryStore())
        self.seen = 0
        self.versions = 0
        self.triggers: list[Written] = []
        self.backfills: list[c.StartBackfill] = []
        self.world.push(run_strategy="PARALLEL")
        self.versions = 1

    # Versions and properties ------------------------------------------------------------------------------------------

    @rule(data=st.data(), rule_=st.sampled_from(RULES), is_active=st.sampled_from((True, True, True, False)))
    def push(self, data: st.DataObject, rule_: str, is_active: bool) -> None:
        chosen = data.draw(st.lists(st.sampled_from(DENSE + SPARSE), max_size=3, unique_by=json.dumps))
        triggers = []
        for trigger in chosen:
            catch_up, delay_s = data.draw(TERMS)
            triggers.append({**trigger, "catch_up": catch_up, **({"fuzzy_max_delay": delay_s} if delay_s else {})})
        strategy = {"rule": rule_, "workflow_concurrency": PARALLEL_MAX} if rule_ == "PARALLEL" else rule_
        if self.world.push({"time_triggers": triggers}, run_strategy=strategy, is_active=is_active)[-1].__class__ is (
            c.CommandSettled
        ):
            self.versions += 1
            self.triggers = [of_definition(trigger)[0] for trigger in triggers]

    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(1, self.versions))
        self.world.do(c.ActivateVersion(self.world.fresh(), "ann", str(version)))

    @rule()
    def deactivate(self) -> None:
        self.world.do(c.DeactivateWorkflow(self.world.fresh(), "ann"))

    @rule(is_disabled=st.booleans())
    def disable(self, is_disabled: bool) -> None:
        changes = json.dumps({"time_trigger_disabled": is_disabled})
        self.world.do(c.ChangeProperties(self.world.fresh(), "ann", changes))

    @rule(data=st.data(), is_pause=st.booleans())
    def pause_or_resume(self, data: st.DataObject, is_pause: bool) -> None:
        names = [None, *(schedule_of(written).id for written in self.triggers)]
        command = c.PauseSchedules if is_pause else c.ResumeSchedules
        self.world.do(command(self.world.fresh(), "ann", data.draw(st.sampled_from(names))))

    # Instances --------------------------------------------------------------------------------------------------------

    @rule()
    def start(self) -> None:
        self.world.start(self.world.fresh())

    @precondition(lambda self: self.lanes.running)
    @rule(data=st.data(), status=st.sampled_from(ENDS))
    def end(self, data: st.DataObject, status: InstanceStatus) -> None:
        self.end_one(data.draw(st.sampled_from(sorted(self.lanes.running))), status)

    def end_one(self, number: int, status: InstanceStatus) -> None:
        row = self.world.state.reader.running.get((KEY, number))
        assert row is not None
        self.world.end(number, status, row.run_id)

    @precondition(lambda self: self.ended())
    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        self.world.restart(data.draw(st.sampled_from(self.ended())))

    def ended(self) -> list[int]:
        rows = self.world.state.reader.instances.prefix((KEY,))
        return [number for (_, number), row in rows if row.status in ENDS]

    # Time -------------------------------------------------------------------------------------------------------------

    @rule(ms=SMALL_MS)
    def pass_time(self, ms: int) -> None:
        self.world.pass_time(self.world.now_ms + ms)

    @rule(ms=AWAY_MS)
    def be_away(self, ms: int) -> None:
        """Nobody runs for a while, or the clock jumps ahead."""
        self.world.jump(self.world.now_ms + ms)

    # Backfills --------------------------------------------------------------------------------------------------------

    @rule(data=st.data(), is_own=st.booleans(), concurrency=st.sampled_from((1, 2, 12)), is_rerun=st.booleans())
    def backfill(self, data: st.DataObject, is_own: bool, concurrency: int, is_rerun: bool) -> None:
        known = self.triggers if is_own and self.triggers else [of_definition(one)[0] for one in DENSE]
        written, to_ms = data.draw(st.sampled_from(known)), self.world.now_ms + data.draw(st.sampled_from((0, HOUR_MS)))
        times = ticks(written, to_ms - data.draw(st.sampled_from(PAST_MS)), to_ms)[-SLOTS_MAX:]
        command = c.StartBackfill(
            self.world.fresh(),
            "ann",
            backfill_id=f"b{len(self.backfills)}",
            schedule=schedule_of(written).json(),
            trigger_id=schedule_of(written).id if is_own and self.triggers else None,
            from_ms=times[0] if times else to_ms,
            to_ms=to_ms,
            is_newest_first=data.draw(st.booleans()),
            concurrency=concurrency,
            is_rerun=is_rerun and data.draw(st.booleans()),
        )
        self.backfills.append(command)
        self.world.do(command)

    @precondition(lambda self: self.backfills)
    @rule(data=st.data(), action=st.sampled_from(("PAUSE", "RESUME", "CANCEL", "AGAIN")))
    def act_on_backfill(self, data: st.DataObject, action: str) -> None:
        known = data.draw(st.sampled_from(self.backfills))
        if action == "AGAIN":
            values = {name: getattr(known, name) for name in known.__struct_fields__}
            self.world.do(c.StartBackfill(**{**values, "request_id": self.world.fresh()}))
            return
        stops = data.draw(st.booleans())
        asked = c.ActOnBackfill(self.world.fresh(), "ann", known.backfill_id, BackfillAction(action), is_stopping=stops)
        self.world.do(asked)

    # What must hold ---------------------------------------------------------------------------------------------------

    @invariant()
    def each_event_is_as_the_model_says(self) -> None:
        if not hasattr(self, "world"):
            return
        for key, event in self.world.history[self.seen :]:
            self.fates.see(event)
            self.lanes.see(event)
            workflows.appliers[type(event)](Message(key, event, ""), self.folded.writer)
        self.seen = len(self.world.history)
        assert self.fates.problems == []
        assert self.lanes.problems == []
        assert self.folded.fingerprint() == self.world.state.fingerprint()
        positions = {name: row.after_ms for (_, name), row in self.world.state.reader.schedules.prefix((KEY,))}
        assert positions == {name: armed.after_ms for name, armed in self.fates.armed.items()}
        running = {
            name: row.running
            for (_, name), row in self.world.state.reader.backfills.prefix((KEY,))
            if row.status is BackfillStatus.RUNNING
        }
        lanes = list(self.lanes.running.values())
        assert running == {name: lanes.count(name) for name in running}

    def teardown(self) -> None:
        """In the end nothing is due, and all that runs ends: then no backfill is left."""
        if not hasattr(self, "world"):
            return
        self.world.do(c.UnblockInstances(self.world.fresh(), "ann", "mended"))
        self.world.pass_time(self.world.now_ms)
        self.each_event_is_as_the_model_says()
        for _ in range(2_000):
            if not self.lanes.running:
                break
            for number in sorted(self.lanes.running):
                if number in self.lanes.running:
                    self.end_one(number, InstanceStatus.SUCCEEDED)
            self.world.pass_time(self.world.now_ms)
            self.each_event_is_as_the_model_says()
        self.fates.end(self.world.now_ms)
        self.lanes.end()
        events: list[Any] = [event for _, event in self.world.history]
        found = self.fates.problems + self.lanes.problems + instance_violations(KEY, events, self.fates.ticks)
        assert found == []


def test_each_tick_has_one_fate_and_each_slot_one_instance() -> None:
    run_state_machine_as_test(Lives, settings=SETTINGS)
