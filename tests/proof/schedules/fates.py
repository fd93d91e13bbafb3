"""What became of each tick? A replay of the history of a workflow, with times of its own (`naive`).

From versions, properties and pauses it knows which time triggers must be armed. Of each one it follows the time up to
which ticks are decided on. Then each tick of that trigger is exactly one of these:

    started       an instance has the request id of the tick, and there is one such instance
    refused       with a reason
    passed over   counted, and the catch-up policy says so
    missed        counted when the trigger was disarmed: it was due, and not yet decided on
    not armed     it came while the trigger was not armed

A tick comes when the wall clock shows its time. Events have the time of their partition, which may be ahead of it. So
a tick of the last moments may be due or not, and where clocks are set, anything between: `ahead_ms_max` says how much.
If a clock is set back while a trigger is armed again, its ticks may come again. They find the instances that they have.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from kapelle.schemas import contracts as c
from tests.proof.schedules.naive import Terms, Written, next_after, of_definition, of_schedule, ticks
from tests.proof.schedules.workload import schedule_of

ALL: Final = ""  # all time triggers of a workflow
BATCH: Final = 10  # of one decision
CAUGHT_UP_MAX: Final = 1_000
ON_TIME_MS: Final = 60_000
AHEAD_MS_MAX: Final = 60_000  # of the time of a partition, if no clock is set: a second for each change of its owner
PROBLEMS_MAX: Final = 20  # of one workflow: the first ones tell what is wrong

Histories = Mapping[str, list[Any]]  # by workflow


def trigger_ids(histories: Histories) -> dict[Written, str]:
    """The ids of all time triggers that were ever armed: the times alone make the id."""
    armed = (
        one
        for events in histories.values()
        for event in events
        if isinstance(event, c.SchedulesArmed)
        for one in event.armed
    )
    return {of_schedule(one.schedule): one.trigger_id for one in armed}


class Armed(msgspec.Struct):
    """A trigger that is armed. All of its ticks up to `after_ms` are decided on."""

    written: Written
    terms: Terms
    after_ms: int


class Fates:
    """One workflow, event by event."""

    def __init__(self, key: str, ids: Mapping[Written, str], *, ahead_ms_max: int = 0) -> None:
        self.problems: list[str] = []
        self.counts = Counter[str]()
        self.ticks: dict[tuple[str, int], c.Tick] = {}
        self.armed: dict[str, Armed] = {}
        self._key = key
        self._ids = ids
        self._ahead_ms_max = ahead_ms_max
        self._versions: dict[int, dict[Written, Terms]] = {}
        self._active = 0
        self._is_disabled = False
        self._paused: set[str] = set()
        self._sees: dict[type[Any], Callable[[Any], None]] = {
            c.VersionPushed: self._pushed,
            c.VersionActivated: self._activated,
            c.WorkflowDeactivated: self._deactivated,
            c.WorkflowDeleted: self._deleted,
            c.PropertiesChanged: self._changed,
            c.SchedulesPaused: lambda event: self._paused.add(event.trigger_id or ALL),
            c.SchedulesResumed: self._resumed,
            c.SchedulesArmed: self._rearmed,
            c.ScheduleTicked: self._ticked,
            c.CommandSettled: lambda _: self._compare(),
            c.InstanceCreated: lambda _: self._compare(),
        }

    def see(self, event: Any) -> None:
        self._sees.get(type(event), lambda _: None)(event)

    def end(self, now_ms: int | None) -> None:
        """Nothing more comes. If the time of the partition is given, nothing may be left to decide on."""
        self._compare()
        for trigger_id, armed in self.armed.items():
            late_ms = armed.terms.fuzzy_max_delay_ms
            left = [] if now_ms is None else ticks(armed.written, armed.after_ms, now_ms - late_ms)
            self._expect(
                not left, f"{trigger_id} to be decided on up to {now_ms}, but found {len(left)} left: {left[:3]}"
            )

    def _expect(self, holds: object, text: str) -> bool:
        if not holds and len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"{self._key}: expected {text}")
        return bool(holds)

    # Which are armed --------------------------------------------------------------------------------------------------

    def _pushed(self, event: c.VersionPushed) -> None:
        written = json.loads(event.definition).get("time_triggers", [])
        self._versions[event.version] = dict(map(of_definition, written))

    def _activated(self, event: c.VersionActivated) -> None:
        self._active = event.version

    def _deactivated(self, _: c.WorkflowDeactivated) -> None:
        self._active = 0

    def _deleted(self, _: c.WorkflowDeleted) -> None:
        self._active, self._is_disabled = 0, False
        self._versions.clear()
        self._paused.clear()

    def _changed(self, event: c.PropertiesChanged) -> None:
        self._is_disabled = bool(json.loads(event.properties).get("time_trigger_disabled"))

    def _resumed(self, event: c.SchedulesResumed) -> None:
        if event.trigger_id is None:
            self._paused.clear()
        self._paused.discard(event.trigger_id or ALL)

    def _wanted(self) -> dict[str, tuple[Written, Terms]]:
        if not self._active or self._is_disabled or ALL in self._paused:
            return {}
        defined = self._versions[self._active].items()
        # A trigger that was paused before it could be armed is known by the id that clients give it.
        found = {self._ids.get(written) or schedule_of(written).id: (written, terms) for written, terms in defined}
        return {trigger_id: what for trigger_id, what in found.items() if trigger_id not in self._paused}

    def _compare(self) -> None:
        """At the end of a decision."""
        found = {trigger_id: (armed.written, armed.terms) for trigger_id, armed in self.armed.items()}
        wanted = self._wanted()
        if found != wanted:
            self._expect(False, f"armed {sorted(wanted)} on their terms, but found {sorted(found)}")

    def _rearmed(self, event: c.SchedulesArmed) -> None:
        self._expect(event.version == self._active, f"version {self._active} to be armed, but found {event.version}")
        for gone in event.disarmed:
            self._disarmed(gone, event.at_ms)
        for one in event.armed:
            written, terms = of_schedule(one.schedule), Terms(one.catch_up, one.fuzzy_max_delay_ms)
            before = self.armed.get(one.trigger_id)
            after_ms = event.at_ms if before is None else before.after_ms
            least_ms = after_ms - self._ahead_ms_max if before is None else after_ms
            holds = least_ms <= one.after_ms <= after_ms
            self._expect(holds, f"{one.trigger_id} armed from {after_ms} on, not {one.after_ms}")
            self._expect(
                self._ids.get(written, one.trigger_id) == one.trigger_id,
                f"{written} to keep its id, not {one.trigger_id}",
            )
            self.armed[one.trigger_id] = Armed(written, terms, one.after_ms)
            self._check_next(one.trigger_id, one)
            self.counts["armed"] += before is None

    def _disarmed(self, gone: c.DisarmedSchedule, at_ms: int) -> None:
        armed = self.armed.pop(gone.trigger_id, None)
        if not self._expect(armed is not None, f"{gone.trigger_id} to be armed when it is disarmed") or armed is None:
            return
        self._expect(
            gone.after_ms == armed.after_ms, f"{gone.trigger_id} to be at {armed.after_ms}, not {gone.after_ms}"
        )
        unsure_ms = armed.terms.fuzzy_max_delay_ms + self._ahead_ms_max
        least, most = (len(ticks(armed.written, armed.after_ms, upto)) for upto in (at_ms - unsure_ms, at_ms))
        holds = least <= gone.missed <= most
        self._expect(holds, f"{least} to {most} ticks of {gone.trigger_id} missed, but found {gone.missed}")
        self.counts["missed"] += gone.missed
        self.counts["disarmed"] += 1

    # Ticks ------------------------------------------------------------------------------------------------------------

    def _ticked(self, event: c.ScheduleTicked) -> None:
        self._compare()
        armed, name = self.armed.get(event.trigger_id), event.trigger_id
        if not self._expect(armed is not None, f"{name} to be armed when it ticks at {event.at_ms}") or armed is None:
            return
        decided = ticks(armed.written, armed.after_ms, max(event.after_ms, armed.after_ms))
        passed_upto_ms = event.passed_upto_ms or armed.after_ms
        passed = [tick for tick in decided if tick <= passed_upto_ms]
        rest = [tick for tick in decided if tick > passed_upto_ms]
        told = [tick.scheduled_at_ms for tick in event.ticks]
        may_be_early = bool(armed.terms.fuzzy_max_delay_ms or self._ahead_ms_max) and event.after_ms == armed.after_ms
        self._expect(
            decided or may_be_early,
            f"{name} to decide on a tick after {armed.after_ms}, but {event.after_ms} is not after one",
        )
        self._expect(event.after_ms <= event.at_ms, f"no tick of {name} before its time, but {event.after_ms} is")
        self._expect(told == rest, f"{name} to start {rest[:12]}, but found {told}")
        self._expect(
            event.passed_over == len(passed), f"{name} to pass over {len(passed)}, but found {event.passed_over}"
        )
        self._expect(bool(event.reason) == bool(passed), f"a reason exactly if {name} passes over ticks")
        if event.passed_over:
            self._expect(event.passed_after_ms == armed.after_ms, f"{name} to pass over those after {armed.after_ms}")
        self._check_policy(event, armed, (told, passed))
        armed.after_ms = event.after_ms
        self._check_next(name, event)
        self._note(event)

    def _check_policy(self, event: c.ScheduleTicked, armed: Armed, found: tuple[list[int], list[int]]) -> None:
        """Ticks come when the wall clock shows their times. Those of the last moments may be due, or be so later."""
        policy, name, (started, passed) = armed.terms.catch_up, event.trigger_id, found
        unsure_ms = armed.terms.fuzzy_max_delay_ms + self._ahead_ms_max
        perhaps = ticks(armed.written, armed.after_ms, event.at_ms)
        surely = [tick for tick in perhaps if tick + unsure_ms <= event.at_ms]
        if policy == "ALL":
            least, most = (max(len(one) - CAUGHT_UP_MAX, 0) for one in (surely, perhaps))
            self._expect(least <= len(passed) <= most, f"{least} to {most} ticks passed over, not {len(passed)}")
            least, most = (min(max(len(one) - len(passed), 0), BATCH) for one in (surely, perhaps))
            self._expect(least <= len(started) <= most, f"{name} to start {least} to {most}, not {len(started)}")
        else:
            decided = [tick for tick in perhaps if tick <= event.after_ms]
            self._expect(len(decided) >= len(surely), f"{name} to decide on {len(surely)} ticks, not {len(decided)}")
            may_be_late = not started and event.at_ms - max(decided, default=0) > ON_TIME_MS
            late_ms = event.ticks[-1].late_ms if event.ticks else ON_TIME_MS + may_be_late
            self._expect_fate(event, found, _fate(policy, decided, late_ms))
        for tick in event.ticks:
            least_ms, most_ms = event.at_ms - tick.scheduled_at_ms - unsure_ms, event.at_ms - tick.scheduled_at_ms
            holds = max(least_ms, 0) <= tick.late_ms <= most_ms
            self._expect(holds, f"{name} to be {least_ms} to {most_ms} ms late, not {tick.late_ms}")

    def _expect_fate(self, event: c.ScheduleTicked, found: tuple[list[int], list[int]], wanted: Any) -> None:
        (started, passed), (to_start, to_pass) = found, wanted
        self._expect(
            found == wanted,
            f"{event.trigger_id} at {event.at_ms} to start {to_start[:3]} and pass over {len(to_pass)}, "
            f"but found {started[:3]} and {len(passed)}",
        )

    def _check_next(self, name: str, event: c.ScheduleTicked | c.ArmedSchedule) -> None:
        armed = self.armed[name]
        wanted, delay_ms = next_after(armed.written, armed.after_ms), armed.terms.fuzzy_max_delay_ms
        self._expect(
            wanted in (event.next_at_ms, None), f"{name} to tick next at {wanted}, but found {event.next_at_ms}"
        )
        if event.next_at_ms is not None and isinstance(event, c.ScheduleTicked):
            due_ms, ahead_ms = max(event.at_ms, event.next_at_ms), self._ahead_ms_max
            known_ms = event.next_due_ms or 0
            most_ms = max(event.at_ms + ahead_ms + 1, event.next_at_ms + max(delay_ms, 1))
            holds = due_ms <= known_ms < most_ms
            self._expect(holds, f"{name} to be due at {due_ms}, and before {most_ms}, but found {known_ms}")

    def _note(self, event: c.ScheduleTicked) -> None:
        for tick in event.ticks:
            place = event.trigger_id, tick.scheduled_at_ms
            before = self.ticks.get(place)
            if before is not None and self._ahead_ms_max > AHEAD_MS_MAX and not tick.is_new:
                self.counts["came again when a clock was set back"] += 1
                self._expect(before.instance_id == tick.instance_id, f"tick {place} to have one instance")
                continue
            self._expect(before is None, f"tick {place} to be decided on once")
            is_refused = tick.instance_id is None
            self._expect(is_refused == bool(tick.reason), f"a reason exactly if tick {place} is refused")
            self.ticks[place] = tick
            self.counts["refused" if is_refused else "started" if tick.is_new else "started by a backfill"] += 1
        self.counts["passed over"] += event.passed_over


def _fate(policy: str, window: list[int], late_ms: int) -> tuple[list[int], list[int]]:
    """What the policy starts of the ticks that are due, and what it passes over."""
    if policy == "ALL":
        return window[-CAUGHT_UP_MAX:][:BATCH], window[:-CAUGHT_UP_MAX]
    if policy == "NONE" and late_ms > ON_TIME_MS:
        return [], window
    return window[-1:], window[:-1]


def fate_violations(
    histories: Histories, now_ms: Mapping[str, int] | None = None, *, ahead_ms_max: int = AHEAD_MS_MAX
) -> tuple[list[str], Counter[str]]:
    """What is wrong with the ticks of all workflows, and how many met which fate."""
    ids = trigger_ids(histories)
    problems: list[str] = []
    if len(set(ids.values())) < len(ids):
        problems.append(f"expected an id for each of {len(ids)} schedules, but found {len(set(ids.values()))}")
    counts = Counter[str]()
    for key, events in histories.items():
        fates = Fates(key, ids, ahead_ms_max=ahead_ms_max)
        for event in events:
            fates.see(event)
        fates.end(None if now_ms is None else now_ms.get(key))
        problems += fates.problems + instance_violations(key, events, fates.ticks)
        counts += fates.counts
    return problems, counts


def instance_violations(key: str, events: Iterable[Any], found: Mapping[tuple[str, int], c.Tick]) -> list[str]:
    """Each tick that started has one instance, which computes with its time; and no other instance is of a tick."""
    created = [event for event in events if isinstance(event, c.InstanceCreated) and event.run_id == 1]
    by_request = Counter(event.request_id for event in created)
    problems = [f"{key}: expected one instance of {name}, but found {n}" for name, n in by_request.items() if n > 1]
    known = {event.request_id: event for event in created}
    wanted = {tick.request_id: (place, tick) for place, tick in found.items() if tick.instance_id is not None}
    if len(wanted) < sum(tick.instance_id is not None for tick in found.values()):
        problems.append(f"{key}: expected each tick to have a request id of its own")
    for request_id, ((trigger_id, scheduled_ms), tick) in wanted.items():
        event = known.get(request_id)
        if event is None or event.instance_id != tick.instance_id:
            problems.append(f"{key}: expected instance {tick.instance_id} for the tick {scheduled_ms} of {trigger_id}")
        elif tick.is_new == (event.backfill_id is not None):
            problems.append(f"{key}: expected is_new of the tick {scheduled_ms} of {trigger_id} to be true of it")
    for event in created:
        initiator = json.loads(event.initiator)
        if initiator["type"] != "TIME":
            continue
        place = initiator["trigger_uuid"], initiator["trigger_time"]
        if place not in found or found[place].instance_id != event.instance_id or event.author != "schedule":
            problems.append(f"{key}: expected instance {event.instance_id} to be of a tick, but {place} is none")
        if json.loads(event.run_params)["RUN_TS"]["value"] != place[1]:
            problems.append(f"{key}: expected instance {event.instance_id} to compute with {place[1]}")
    return problems[:PROBLEMS_MAX]
