"""Histories of time triggers and backfills: an engine that was used at random, and events made by hand."""

import random
from typing import Any

from kapelle.processors.calendar import Schedule, ScheduleType
from kapelle.processors.wiring import WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import BackfillAction, Report
from kapelle.testing.engine import Engine
from tests.unit.views.histories import definition, deleted, step

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
HOURLY = Schedule(ScheduleType.CRON, "0 * * * *", "Europe/Berlin")
DAILY = Schedule(ScheduleType.CRON, "0 5 * * *", "Europe/Berlin")


def push(engine: Engine, *crons: str, workflow_id: str = "etl", kind: str = "NoOp", **more: Any) -> None:
    """A version with time triggers."""
    catch_up = more.pop("catch_up", "LATEST")
    fuzzy = more.pop("fuzzy_max_delay", None)
    request = definition(workflow_id, step("a", kind), run_strategy="PARALLEL", **more)
    request["workflow"]["time_triggers"] = [
        {
            "type": "CRON",
            "cron": cron,
            "timezone": "Europe/Berlin",
            "catch_up": catch_up,
            **({"fuzzy_max_delay": fuzzy} if fuzzy else {}),
        }
        for cron in crons
    ]
    engine.push(request)


def be_away(engine: Engine, ms: int) -> None:
    """Let time pass in which nobody runs."""
    engine.clock.now_ms += ms
    engine.advance(1)


def pause(engine: Engine, trigger_id: str | None = None, *, workflow_id: str = "etl", reason: str = "") -> None:
    command = c.PauseSchedules(engine.request_id(), "ann", trigger_id, reason)
    engine.send(WORKFLOW_COMMANDS, workflow_id, command)


def resume(engine: Engine, trigger_id: str | None = None, *, workflow_id: str = "etl") -> None:
    engine.send(WORKFLOW_COMMANDS, workflow_id, c.ResumeSchedules(engine.request_id(), "bob", trigger_id))


def backfill(engine: Engine, backfill_id: str = "b", *, workflow_id: str = "etl", days: int = 4, **more: Any) -> None:
    """Start a backfill of the days before today."""
    until_ms = engine.clock.now_ms
    about = {"from_ms": until_ms - days * DAY_MS, "to_ms": until_ms, "concurrency": 2, **more}
    schedule = about.pop("schedule", DAILY.json())
    command = c.StartBackfill(engine.request_id(), "ann", backfill_id, schedule=schedule, **about)
    engine.send(WORKFLOW_COMMANDS, workflow_id, command)


def act(engine: Engine, action: BackfillAction, backfill_id: str = "b", *, workflow_id: str = "etl") -> None:
    command = c.ActOnBackfill(engine.request_id(), "bob", backfill_id, action, reason="as it is")
    engine.send(WORKFLOW_COMMANDS, workflow_id, command)


def report_some(engine: Engine, chance: random.Random) -> None:
    """Some of the tasks that there are begin or end."""
    tasks = engine.tasks()
    for task in chance.sample(tasks, min(4, len(tasks))):
        task.say(chance.choice([Report.STARTED, Report.SUCCEEDED, Report.FATAL_ERROR]))


def busy_schedules(seed: int, operations: int = 60) -> Engine:
    """Workflows with time triggers that are paused, disabled, changed and deleted, and with backfills."""
    chance, engine = random.Random(seed), Engine(partitions=2)
    names = ("wf-0", "wf-1", "wf-2")
    crons = (HOURLY.cron, "30 */2 * * *", DAILY.cron)
    for name in names:
        push(engine, *chance.sample(crons, 2), workflow_id=name, kind="python")
    for _ in range(operations):
        name = chance.choice(names)
        match chance.randrange(10):
            case 0:
                catch_up = chance.choice(["ALL", "LATEST", "NONE"])
                push(engine, *chance.sample(crons, 2), workflow_id=name, kind="python", catch_up=catch_up)
            case 1 | 2:
                chance.choice([pause, resume])(engine, chance.choice([None, HOURLY.id]), workflow_id=name)
            case 3:
                backfill(engine, chance.choice("ab"), workflow_id=name, days=chance.randrange(1, 5))
            case 4:
                act(engine, chance.choice(list(BackfillAction)[:3]), chance.choice("ab"), workflow_id=name)
            case 5 if chance.random() < 0.3:
                deleted(engine, name)
                push(engine, *chance.sample(crons, 2), workflow_id=name, kind="python")
            case 6:
                be_away(engine, chance.randrange(6 * HOUR_MS))
            case _:
                report_some(engine, chance)
        engine.advance(chance.randrange(3 * HOUR_MS))
    return engine
