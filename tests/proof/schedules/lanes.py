"""Backfills, by a replay of the history of a workflow: each slot once and in order, and never more at a time.

Of a backfill at most `concurrency` instances run at a time. All other instances are under the run strategy, as if there
were no backfill. A slot is known by what makes it: the times of a trigger without parameters are its ticks.
"""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec

from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillStatus, InstanceStatus
from tests.proof.schedules.fates import PROBLEMS_MAX, Histories
from tests.proof.schedules.naive import of_schedule, ticks

Identity = tuple[str, ...]
MOST: Final = "most instances of a lane"
ENDED: Final = (BackfillStatus.CANCELLED, BackfillStatus.COMPLETED)


class Backfill(msgspec.Struct):
    """A backfill, and the slots that are left."""

    asked: c.BackfillStarted
    left: list[int]
    status: BackfillStatus = BackfillStatus.RUNNING


class Lanes:
    """One workflow, event by event."""

    def __init__(self, key: str) -> None:
        self.problems: list[str] = []
        self.counts = Counter[str]()
        self.backfills: dict[str, Backfill] = {}
        self.waiting: set[tuple[int, int]] = set()
        self.running: dict[int, str | None] = {}  # the backfill of each instance
        self.failed: set[int] = set()
        self._key = key
        self._rule, self._limit = "", 1
        self._lane_of: dict[int, str | None] = {}
        self._requests: dict[str, int] = {}
        self._identities: dict[str, Identity] = {}
        self._known: dict[Identity, str] = {}
        self._told: dict[str, tuple[str, c.Tick]] = {}  # by request id: the slots that start now
        self._sees: dict[type[Any], Callable[[Any], None]] = {
            c.PropertiesChanged: self._changed,
            c.InstanceCreated: self._created,
            c.InstanceLaunched: self._launched,
            c.InstanceEnded: self._ended,
            c.InstanceUnblocked: lambda event: self.failed.discard(event.instance_id),
            c.ScheduleTicked: self._ticked,
            c.BackfillStarted: self._started,
            c.BackfillProgressed: self._progressed,
            c.BackfillChanged: self._backfill_changed,
            c.WorkflowDeleted: self._deleted,
        }

    def see(self, event: Any) -> None:
        self._sees.get(type(event), lambda _: None)(event)

    def end(self) -> None:
        """At rest: whatever could go on has gone on."""
        self._expect(not self._told, f"instances of {sorted(self._told)}")
        self._expect(not self.running, f"nothing to run at rest, but found {sorted(self.running)}")
        held_up = self._rule == "STRICT_SEQUENTIAL" and self.failed
        self._expect(held_up or not self.waiting, f"nothing queued at rest, but found {sorted(self.waiting)}")
        alive = [name for name, backfill in self.backfills.items() if backfill.status is BackfillStatus.RUNNING]
        self._expect(not alive, f"each backfill to be complete at rest, but {alive} run")

    def _expect(self, holds: object, text: str) -> bool:
        if not holds and len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{self._key}: expected {text}")
        return bool(holds)

    # Instances --------------------------------------------------------------------------------------------------------

    def _changed(self, event: c.PropertiesChanged) -> None:
        found = json.loads(event.properties).get("run_strategy", {})
        self._rule = found.get("rule", "SEQUENTIAL")
        self._limit = found.get("workflow_concurrency", 1) if self._rule == "PARALLEL" else 1

    def _ordinary(self) -> list[int]:
        return [number for number, lane in self.running.items() if lane is None]

    def _created(self, event: c.InstanceCreated) -> None:
        number, lane = event.instance_id, event.backfill_id
        if event.run_id == 1:
            self._expect(
                event.request_id not in self._requests, f"one instance of {event.request_id!r}, not {number} too"
            )
            self._requests[event.request_id] = number
            told = self._told.pop(event.request_id, None)
            self._expect(
                (told and told[0]) == lane, f"instance {number} to be in the lane of {told}, but it is in {lane}"
            )
        else:
            self._expect(lane is None, f"the restart {number} to be in no lane, but it is in {lane}")
        self._lane_of[number] = lane
        self.failed.discard(number)
        if event.status is InstanceStatus.CREATED:
            self.waiting.add((number, event.run_id))
            self._check_arrival(number, lane)
        elif event.status is InstanceStatus.STOPPED:
            self._expect(lane is None, f"slot instance {number} not to be stopped by a run strategy")
            if self._rule == "FIRST_ONLY":
                busy = self._ordinary() or self._queued()
                self._expect(busy, f"instance {number} to be queued: nothing else but backfills runs")
        elif lane is None:
            self.failed.add(number)

    def _queued(self) -> list[int]:
        return [number for number, _ in self.waiting if self._lane_of.get(number) is None]

    def _check_arrival(self, number: int, lane: str | None) -> None:
        if lane is None and self._rule == "FIRST_ONLY":
            busy = [*self._ordinary(), *(one for one in self._queued() if one != number)]
            self._expect(not busy, f"instance {number} to be stopped: {busy} run or are queued")

    def _launched(self, event: c.InstanceLaunched) -> None:
        number, lane = event.instance_id, self._lane_of.get(event.instance_id)
        self._expect((number, event.run_id) in self.waiting, f"instance {number} to be queued when it is launched")
        self._expect(number not in self.running, f"instance {number} to be launched once")
        self.waiting.discard((number, event.run_id))
        self.running[number] = lane
        if lane is None:
            count = len(self._ordinary())
            self._expect(count <= self._limit, f"at most {self._limit} to run besides backfills, but found {count}")
            held_up = self._rule == "STRICT_SEQUENTIAL" and self.failed
            self._expect(not held_up, f"instance {number} to wait for the failed {sorted(self.failed)}")
            return
        most = self.backfills[lane].asked.concurrency
        count = sum(one == lane for one in self.running.values())
        self._expect(count <= most, f"at most {most} of backfill {lane} to run, but found {count}")
        self.counts[MOST] = max(self.counts[MOST], count)

    def _ended(self, event: c.InstanceEnded) -> None:
        number = event.instance_id
        if event.was_launched:
            lane = self.running.pop(number, None)
        else:
            lane = self._lane_of.get(number)
            self.waiting.discard((number, event.run_id))
        if event.status is InstanceStatus.FAILED and lane is None:
            self.failed.add(number)

    # Slots ------------------------------------------------------------------------------------------------------------

    def _identify(self, request_id: str, identity: Identity) -> None:
        """The same slot has the same request id, and no other one has it."""
        known = self._identities.setdefault(request_id, identity)
        self._expect(known == identity, f"{request_id!r} to be of {known}, but it is of {identity} too")
        known_id = self._known.setdefault(identity, request_id)
        self._expect(known_id == request_id, f"{identity} to have the id {known_id!r}, but found {request_id!r}")

    def _ticked(self, event: c.ScheduleTicked) -> None:
        for tick in event.ticks:
            self._identify(tick.request_id, ("tick", event.trigger_id, str(tick.scheduled_at_ms)))
            self._expect_known(tick)

    def _expect_known(self, tick: c.Tick) -> None:
        if tick.instance_id is None:
            return
        known = self._requests.get(tick.request_id)
        if tick.is_new:
            self._expect(known is None, f"{tick} to be new, but instance {known} exists")
        else:
            self._expect(known == tick.instance_id, f"{tick} to be of instance {known}")

    def _started(self, event: c.BackfillStarted) -> None:
        before = self.backfills.get(event.backfill_id)
        self._expect(before is None or before.status in ENDED, f"{event.backfill_id} to start once")
        slots = ticks(of_schedule(event.schedule), event.from_ms - 1, event.to_ms)
        self._expect(event.total == len(slots), f"{event.backfill_id} to have {len(slots)} slots, not {event.total}")
        self.backfills[event.backfill_id] = Backfill(event, slots[::-1] if event.is_newest_first else slots)
        self.counts["backfills"] += before is None
        self.counts["backfills started again"] += before is not None

    def _progressed(self, event: c.BackfillProgressed) -> None:
        backfill, name = self.backfills[event.backfill_id], event.backfill_id
        told = [slot.scheduled_at_ms for slot in event.slots]
        next_ones, backfill.left = backfill.left[: len(told)], backfill.left[len(told) :]
        self._expect(told == next_ones, f"{name} to go on with {next_ones[:3]}, but found {told[:3]}")
        self._expect(event.is_last == (not backfill.left), f"is_last of {name} to be true of {len(backfill.left)} left")
        if told:
            self._expect(event.position_ms == told[-1], f"{name} to be at {told[-1]}, but found {event.position_ms}")
        self._expect(backfill.status is BackfillStatus.RUNNING, f"{name} to run when it starts slots")
        for slot in event.slots:
            self._identify(slot.request_id, _identity(backfill.asked, slot.scheduled_at_ms))
            self._expect_known(slot)
            if slot.instance_id is not None and slot.is_new:
                self._told[slot.request_id] = name, slot
        existing = sum(slot.instance_id is not None and not slot.is_new for slot in event.slots)
        self._expect(existing == event.existing, f"{existing} slots of {name} to exist, but found {event.existing}")
        self.counts["slots"] += len(told)
        self.counts["slots that existed"] += existing

    def _backfill_changed(self, event: c.BackfillChanged) -> None:
        backfill, name = self.backfills[event.backfill_id], event.backfill_id
        self._expect(backfill.status not in ENDED, f"{name} to change while it runs, but it is {backfill.status}")
        if event.status is BackfillStatus.COMPLETED:
            left = len(backfill.left), sum(lane == name for lane in self.running.values())
            self._expect(left == (0, 0), f"{name} to complete with nothing left, but found {left}")
        backfill.status = event.status
        self.counts[f"backfills {event.status}"] += 1

    def _deleted(self, _: c.WorkflowDeleted) -> None:
        self._expect(not self.running, f"nothing to run in a deleted workflow, but found {sorted(self.running)}")
        self.backfills.clear()


def _identity(asked: c.BackfillStarted, slot: int) -> Identity:
    if asked.is_rerun:
        return ("rerun", asked.backfill_id, str(slot))
    if asked.trigger_id is not None and asked.run_params == "{}":
        return ("tick", asked.trigger_id, str(slot))
    return ("slot", asked.run_params, str(slot))


def lane_violations(histories: Histories, *, at_rest: bool = True) -> tuple[list[str], Counter[str]]:
    """What is wrong with the lanes of all workflows, and how much was done."""
    problems: list[str] = []
    counts = Counter[str]()
    for key, events in histories.items():
        lanes = Lanes(key)
        for event in events:
            lanes.see(event)
        if at_rest:
            lanes.end()
        problems += lanes.problems
        most = max(counts[MOST], lanes.counts[MOST])
        counts += lanes.counts
        counts[MOST] = most
    return problems, counts
