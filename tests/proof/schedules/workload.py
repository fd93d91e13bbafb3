"""What is asked of schedules: workflows with time triggers, and what people do to them meanwhile.

Times are read by `naive`, so it must know all that is written here.
"""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from kapelle.processors.calendar import Schedule, ScheduleType, normalised
from kapelle.processors.definitions import Rule
from kapelle.processors.wiring import RUN_COMMANDS, WORKFLOW_COMMANDS, run_key
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillAction, RestartPolicy
from tests.proof.schedules.naive import MINUTE_MS, Written, of_definition, ticks
from tests.proof.workload import Published

AUTHOR: Final = "proof"
HOUR_MS: Final = 60 * MINUTE_MS
REPEATED_SHARE: Final = 0.2  # of requests
PARALLEL_MAX: Final = 3
SLOTS_MAX: Final = 25  # of a backfill
FUTURE_MS_MAX: Final = 3 * HOUR_MS  # a backfill may come before the schedule

Json = dict[str, Any]


def cron(text: str, zone: str = "UTC") -> Json:
    return {"type": "CRON", "cron": text, "timezone": zone}


# Sparse ones come every quarter of an hour at most: they can be caught up after a week.
DENSE: Final[tuple[Json, ...]] = (
    cron("*/3 * * * *"),
    cron("0 0/4 * * * ?"),
    cron("17 1/2 * * * ?", "Europe/Berlin"),
    cron("*/5 * * * *", "Europe/Berlin"),
    {"type": "INTERVAL", "interval": 121, "anchor": 77_777},
    {"type": "INTERVAL", "interval": 420, "anchor": 1_000_000_123, "start": 1_700_000_000_000},
)
SPARSE: Final[tuple[Json, ...]] = (
    cron("7 * * * *", "America/New_York"),
    cron("*/30 * * * *", "Asia/Kolkata"),
    cron("20 15,45 * * * ?"),
    cron("30 2 * * *", "Europe/Berlin"),
    cron("15 1,2,3 * * *", "Europe/Berlin"),
    cron("0 1-5 * * MON,SUN", "Europe/Berlin"),
    {"type": "PREDEFINED", "expression": "@hourly", "timezone": "Europe/Berlin"},
    {"type": "PREDEFINED", "expression": "@daily", "timezone": "America/New_York"},
    {"type": "INTERVAL", "interval": 5_400, "anchor": 12_345_678},
)
CATCH_UPS: Final = ("ALL", "LATEST", "LATEST", "NONE")
FUZZY_S: Final = (0, 0, 0, 30, 100)


def definition(workflow_id: str, triggers: list[Json], *, rule: str, sleep_s: int = 0, active: bool = True) -> str:
    """A push, as JSON."""
    strategy: Json = {"rule": rule}
    if rule == Rule.PARALLEL:
        strategy["workflow_concurrency"] = PARALLEL_MAX
    kind = (
        {"type": "Sleep", "params": {"sleep_seconds": {"type": "LONG", "value": sleep_s}}}
        if sleep_s
        else {"type": "NoOp"}
    )
    workflow = {"id": workflow_id, "time_triggers": triggers, "steps": [{"step": {"id": "only", **kind}}]}
    properties = {"owner": AUTHOR, "run_strategy": strategy}
    return json.dumps({"properties": properties, "is_active": active, "workflow": workflow})


def schedule_of(written: Written) -> Schedule:
    """The same times, as a client writes them in a request."""
    return Schedule(
        ScheduleType.INTERVAL if written.interval_ms else ScheduleType.CRON,
        normalised(written.cron),
        written.zone,
        interval_ms=written.interval_ms,
        anchor_ms=written.anchor_ms,
        start_ms=written.start_ms,
    )


class People:
    """All that people do. `now_ms` is what their clock says, and `ended` are instances that somebody has seen end."""

    def __init__(self, workflow_ids: tuple[str, ...], chance: random.Random, *, has_dense_all: bool = True) -> None:
        self.now_ms = 0
        self.ended: list[tuple[str, int]] = []
        self._workflow_ids = workflow_ids
        self._chance = chance
        self._has_dense_all = has_dense_all
        self._number = 0
        self._backfills: dict[tuple[str, str], c.StartBackfill] = {}
        self._triggers: dict[str, list[Written]] = {one: [] for one in workflow_ids}  # of the latest version
        self._versions = dict.fromkeys(workflow_ids, 0)
        self._deeds: tuple[tuple[Callable[[str], Published | None], float], ...] = (
            (self._push, 0.18),
            (self._activate, 0.08),
            (self._deactivate, 0.03),
            (self._disable, 0.06),
            (self._pause, 0.08),
            (self._resume, 0.12),
            (self._start, 0.08),
            (self._backfill, 0.15),
            (self._act_on_backfill, 0.08),
            (self._restart, 0.05),
        )

    def first(self) -> list[Published]:
        """A version of each workflow."""
        return [self._push(workflow_id, active=True) for workflow_id in self._workflow_ids]

    def deed(self) -> list[Published]:
        """One thing, published once or twice; sometimes there is nothing to do it to."""
        deed = self._chance.choices([deed for deed, _ in self._deeds], [weight for _, weight in self._deeds])[0]
        done = deed(self._chance.choice(self._workflow_ids))
        return [] if done is None else [done] * (2 if self._chance.random() < REPEATED_SHARE else 1)

    def ending(self) -> Iterator[Published]:
        """Nothing is held up any more: failed instances are unblocked, paused backfills resumed."""
        for workflow_id in self._workflow_ids:
            yield self._wanted(workflow_id, c.UnblockInstances(self._request_id(), AUTHOR, "mended"))
        for workflow_id, backfill_id in self._backfills:
            command = c.ActOnBackfill(self._request_id(), AUTHOR, backfill_id, BackfillAction.RESUME)
            yield self._wanted(workflow_id, command)

    def _request_id(self) -> str:
        self._number += 1
        return f"request-{self._number}"

    @staticmethod
    def _wanted(workflow_id: str, command: Any) -> Published:
        return WORKFLOW_COMMANDS.name, workflow_id, command

    # Versions and properties ------------------------------------------------------------------------------------------

    def _push(self, workflow_id: str, *, active: bool | None = None) -> Published:
        chance = self._chance
        triggers = [self._on_terms(one) for one in chance.sample(DENSE + SPARSE, chance.choice((0, 1, 2, 3, 4)))]
        is_active = chance.random() < 0.8 if active is None else active
        text = definition(
            workflow_id,
            triggers,
            rule=chance.choice((Rule.PARALLEL, Rule.PARALLEL, *Rule)),
            sleep_s=chance.choice((0, 1, 2)),
            active=is_active,
        )
        self._triggers[workflow_id] = [of_definition(one)[0] for one in triggers]
        self._versions[workflow_id] += 1
        return self._wanted(workflow_id, c.PushVersion(self._request_id(), AUTHOR, text))

    def _on_terms(self, trigger: Json) -> Json:
        """ALL of dense ones only where nobody is away for weeks."""
        may_be_all = self._has_dense_all or trigger in SPARSE
        made = {**trigger, "catch_up": self._chance.choice(CATCH_UPS if may_be_all else CATCH_UPS[1:])}
        delay_s = self._chance.choice(FUZZY_S)
        return {**made, "fuzzy_max_delay": delay_s} if delay_s else made

    def _activate(self, workflow_id: str) -> Published:
        version = self._chance.randint(1, max(self._versions[workflow_id], 1))
        return self._wanted(workflow_id, c.ActivateVersion(self._request_id(), AUTHOR, str(version)))

    def _deactivate(self, workflow_id: str) -> Published:
        return self._wanted(workflow_id, c.DeactivateWorkflow(self._request_id(), AUTHOR))

    def _disable(self, workflow_id: str) -> Published:
        changes = json.dumps({"time_trigger_disabled": self._chance.random() < 0.5})
        return self._wanted(workflow_id, c.ChangeProperties(self._request_id(), AUTHOR, changes))

    # Schedules --------------------------------------------------------------------------------------------------------

    def _trigger(self, workflow_id: str) -> Written | None:
        known = self._triggers[workflow_id]
        return self._chance.choice(known) if known else None

    def _pause(self, workflow_id: str) -> Published:
        return self._wanted(workflow_id, c.PauseSchedules(self._request_id(), AUTHOR, self._one_or_all(workflow_id)))

    def _resume(self, workflow_id: str) -> Published:
        return self._wanted(workflow_id, c.ResumeSchedules(self._request_id(), AUTHOR, self._one_or_all(workflow_id)))

    def _one_or_all(self, workflow_id: str) -> str | None:
        written = self._trigger(workflow_id) if self._chance.random() < 0.6 else None
        return None if written is None else schedule_of(written).id

    # Instances --------------------------------------------------------------------------------------------------------

    def _start(self, workflow_id: str) -> Published:
        return self._wanted(workflow_id, c.StartInstances(AUTHOR, (c.Start(self._request_id()),)))

    def _restart(self, workflow_id: str) -> Published | None:
        """Of a tick, a slot or any other."""
        known = [one for one in self.ended if one[0] == workflow_id]
        if not known:
            return None
        key = run_key(*self._chance.choice(known))
        command = c.RestartRun(self._request_id(), AUTHOR, RestartPolicy.RESTART_FROM_BEGINNING, None, "{}", "{}")
        return RUN_COMMANDS.name, key, command

    # Backfills --------------------------------------------------------------------------------------------------------

    def _backfill(self, workflow_id: str) -> Published:
        """One of before again, or a new one: of a trigger, which fills gaps, or with times or parameters of its own."""
        known = [made for (key, _), made in self._backfills.items() if key == workflow_id]
        if known and self._chance.random() < 0.3:
            command = msgspec.structs.replace(self._chance.choice(known), request_id=self._request_id())
        else:
            command = self._new_backfill(workflow_id)
            self._backfills[workflow_id, command.backfill_id] = command
        return self._wanted(workflow_id, command)

    def _new_backfill(self, workflow_id: str) -> c.StartBackfill:
        chance, trigger = self._chance, self._trigger(workflow_id)
        is_own = trigger is not None and chance.random() < 0.7
        written = trigger if trigger is not None and is_own else of_definition(chance.choice(DENSE + SPARSE))[0]
        to_ms = self.now_ms + chance.choice((0, 0, FUTURE_MS_MAX))
        found = ticks(written, to_ms - chance.choice((HOUR_MS, 6 * HOUR_MS, 60 * HOUR_MS)), to_ms)[-SLOTS_MAX:]
        given = {"p": {"type": "LONG", "value": chance.randint(1, 2)}}
        return c.StartBackfill(
            self._request_id(),
            AUTHOR,
            backfill_id=f"backfill-{self._number}",
            schedule=schedule_of(written).json(),
            trigger_id=schedule_of(written).id if is_own else None,
            from_ms=found[0] if found else to_ms - HOUR_MS,
            to_ms=to_ms,
            is_newest_first=chance.random() < 0.3,
            concurrency=chance.choice((1, 2, 8)),
            is_rerun=chance.random() < 0.15,
            run_params=json.dumps(given) if chance.random() < 0.3 else "{}",
        )

    def _act_on_backfill(self, workflow_id: str) -> Published | None:
        known = [backfill_id for key, backfill_id in self._backfills if key == workflow_id]
        if not known:
            return None
        action = self._chance.choice((BackfillAction.PAUSE, BackfillAction.RESUME, BackfillAction.CANCEL))
        command = c.ActOnBackfill(
            self._request_id(),
            AUTHOR,
            self._chance.choice(known),
            action,
            is_stopping=self._chance.random() < 0.5,
        )
        return self._wanted(workflow_id, command)
