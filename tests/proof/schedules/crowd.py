"""What the proof on a broker asks for: workflows that tick once in each second of a window, and backfills beside them.

Each workflow has a time trigger for each second of the window, which ticks once in it: a trigger may tick at most once
in two minutes. So the ticks of all workflows come at the same moments, as they do in practice.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillAction
from tests.proof.schedules.naive import MINUTE_MS, Written, of_definition, ticks
from tests.proof.schedules.workload import AUTHOR, Json, cron, definition, schedule_of
from tests.proof.workload import Published

SECOND_MS: Final = 1_000
HOUR_MS: Final = 60 * MINUTE_MS
TRIGGERS_MAX: Final = 200  # of one workflow
SLEEP_S: Final = 1  # of an instance that is backfilled: some of a lane run beside each other
CONCURRENCY: Final = 8
AWAY_S: Final = 121  # the interval of triggers that miss ticks
AWAY_TRIGGERS: Final = 12
RULES: Final = ("SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "PARALLEL")


class Crowd(msgspec.Struct, frozen=True):
    """Workflows that tick at every second of a window."""

    workflows: int
    begin_ms: int
    seconds: int

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"ticking-{number}" for number in range(1, self.workflows + 1))

    @property
    def end_ms(self) -> int:
        """The last tick."""
        return self.begin_ms + (self.seconds - 1) * SECOND_MS

    @property
    def scheduled(self) -> list[int]:
        """The ticks of each workflow."""
        return [self.begin_ms + second * SECOND_MS for second in range(self.seconds)]

    def triggers(self) -> list[Json]:
        """One for each second."""
        return [{**cron(_at(tick)), "catch_up": "ALL"} for tick in self.scheduled]

    def pushes(self) -> Iterator[Published]:
        triggers = self.triggers()
        for key in self.keys:
            text = definition(key, triggers, rule="PARALLEL")
            yield WORKFLOW_COMMANDS.name, key, c.PushVersion(f"push-{key}", AUTHOR, text)


def _at(at_ms: int) -> str:
    """A cron text that names one second of each year."""
    at = datetime.fromtimestamp(at_ms // SECOND_MS, UTC)
    return f"{at.second} {at.minute} {at.hour} {at.day} {at.month} ?"


class Filled(msgspec.Struct, frozen=True):
    """A workflow that ticks by itself, under a run strategy, and the backfills of it."""

    key: str
    rule: str
    trigger: Json
    backfills: tuple[c.StartBackfill, ...]

    @property
    def written(self) -> Written:
        return of_definition(self.trigger)[0]

    def push(self) -> Published:
        text = definition(self.key, [self.trigger], rule=self.rule, sleep_s=SLEEP_S)
        return WORKFLOW_COMMANDS.name, self.key, c.PushVersion(f"push-{self.key}", AUTHOR, text)

    def starts(self) -> list[Published]:
        return [(WORKFLOW_COMMANDS.name, self.key, one) for one in self.backfills]

    def deeds(self) -> list[Published]:
        """The first backfill is paused, resumed and started again by its id."""
        first = self.backfills[0]
        actions = (BackfillAction.PAUSE, BackfillAction.RESUME)
        acts = [c.ActOnBackfill(f"{a}-{self.key}", AUTHOR, first.backfill_id, a) for a in actions]
        again = msgspec.structs.replace(first, request_id=f"again-{self.key}")
        return [(WORKFLOW_COMMANDS.name, self.key, one) for one in (*acts, again)]


def filled(begin_ms: int, slots: int) -> list[Filled]:
    """A workflow of each rule, with two backfills: of its own trigger, and with parameters of its own."""
    found: list[Filled] = []
    for number, rule in enumerate(RULES):
        trigger = {**cron(f"{number * 7} */2 * * * ?", "Europe/Berlin"), "catch_up": "LATEST"}
        written = of_definition(trigger)[0]
        times = ticks(written, begin_ms - slots * 2 * MINUTE_MS, begin_ms)
        schedule, key = schedule_of(written), f"filled-{number + 1}"
        own = c.StartBackfill(
            f"own-{key}",
            AUTHOR,
            backfill_id="own",
            schedule=schedule.json(),
            trigger_id=schedule.id,
            from_ms=times[0],
            to_ms=times[-1] + 4 * MINUTE_MS,  # also ticks that the schedule starts meanwhile
            is_newest_first=number % 2 == 1,
            concurrency=CONCURRENCY,
        )
        given = json.dumps({"day": {"type": "STRING", "value": "monday"}})
        other = msgspec.structs.replace(
            own,
            request_id=f"other-{key}",
            backfill_id="other",
            trigger_id=None,
            to_ms=times[-1],
            run_params=given,
            concurrency=2,
            from_ms=times[-max(slots // 4, 1)],
        )
        found.append(Filled(key, rule, trigger, (own, other)))
    return found


def absent() -> Iterator[Published]:
    """A workflow for each policy, whose triggers tick while nobody is there."""
    for policy in ("ALL", "LATEST", "NONE"):
        anchors = [number * AWAY_S * SECOND_MS // AWAY_TRIGGERS for number in range(AWAY_TRIGGERS)]
        triggers = [
            {"type": "INTERVAL", "interval": AWAY_S, "anchor": anchor, "catch_up": policy} for anchor in anchors
        ]
        key = f"away-{policy.lower()}"
        text = definition(key, triggers, rule="PARALLEL")
        yield WORKFLOW_COMMANDS.name, key, c.PushVersion(f"push-{key}", AUTHOR, text)


def crowd_violations(crowd: Crowd, histories: dict[str, list[object]]) -> list[str]:
    """Each scheduled time of each workflow in the window has one instance. That is read from instances alone."""
    problems: list[str] = []
    wanted = set(crowd.scheduled)
    for key in crowd.keys:
        created = [event for event in histories.get(key, []) if isinstance(event, c.InstanceCreated)]
        times = [json.loads(event.initiator)["trigger_time"] for event in created]
        missing, extra = wanted - set(times), len(times) - len(set(times))
        if missing or extra or len(times) != len(wanted):
            problems.append(
                f"{key}: expected {len(wanted)} ticks once, but {len(missing)} are missing, {extra} doubled"
            )
        if passed := sum(event.passed_over for event in histories[key] if isinstance(event, c.ScheduleTicked)):
            problems.append(f"{key}: expected no tick to be passed over, but {passed} were")
    return problems
