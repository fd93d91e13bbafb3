"""Records the histories again (`python -m tests.replay.record`), when a decision is meant to change.

Each is a story that touches much of the engine, told to it on a virtual clock.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kapelle.processors.calendar import Schedule, ScheduleType
from kapelle.processors.runs.composites.identity import inline_id
from kapelle.processors.wiring import (
    PERMIT_COMMANDS,
    RUN_COMMANDS,
    SIGNAL_INTERNAL,
    SIGNALS,
    WORKFLOW_COMMANDS,
    tag_key,
)
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import Action, BackfillAction, ChildKind, RestartPolicy
from kapelle.testing.engine import AUTHOR, RunHandle
from kapelle.testing.replay import Recording
from tests.support.trees import ROOT, foreach, rounds, subworkflow, task, tree

RECORDED = Path(__file__).parent / "recorded"
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def step(step_id: str, kind: str = "shell", *, to: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    body = {"id": step_id, "type": kind, "transition": {"successors": dict.fromkeys(to, "true")}, **more}
    return {"step": body}


def flow(workflow_id: str, *steps: dict[str, Any], strategy: str = "SEQUENTIAL", **more: Any) -> dict[str, Any]:
    return {
        "properties": {"owner": "ann", "run_strategy": strategy},
        "workflow": {"id": workflow_id, "steps": list(steps), **more},
    }


def say(engine: Recording, name: str, signal_id: str, **params: str | int) -> None:
    engine.send(SIGNAL_INTERNAL, name, c.AnnounceSignal(name, signal_id, json.dumps(params)))


def queueing(engine: Recording) -> None:
    """A queue of three; a retry, a failure, a restart, a stop, a new version in between."""
    retried = {"error_retry_limit": 1, "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 30}}
    nap = {"sleep_seconds": {"type": "LONG", "value": 20}}
    engine.push(
        flow(
            "etl",
            step("load", to=("check",), retry_policy=retried),
            step("check", retry_policy={"error_retry_limit": 0}),
            step("late", "Sleep", params=nap),
        )
    )
    first, second, third = (engine.start("etl") for _ in range(3))
    engine.task(first, "load").begin()
    engine.task(first, "load").fail()
    engine.advance(MINUTE_MS)
    engine.task(first, "load").succeed()
    engine.task(first, "check").fail("no good")
    engine.advance(MINUTE_MS)
    first.restart(RestartPolicy.RESTART_FROM_INCOMPLETE)
    engine.push(flow("etl", step("load"), strategy="STRICT_SEQUENTIAL"))
    second.stop(Action.STOP, "not wanted")
    engine.advance(MINUTE_MS)
    for run in (third, first):
        for last in engine.tasks(run)[-1:]:
            last.succeed()
    engine.send(WORKFLOW_COMMANDS, "etl", c.StartInstances(AUTHOR, (c.Start("request-3"),)))  # a repetition
    engine.advance(MINUTE_MS)


def joining(engine: Recording) -> None:
    """Joined signals, first in first out; a duplicate, one in another form, and one for a step that waits."""
    trigger = {"definitions": {"a": {"join_keys": ["day"]}, "b": {"join_keys": ["day"]}}}
    engine.push(flow("joined", step("only", "NoOp"), strategy="PARALLEL", signal_triggers=[trigger]))
    say(engine, "a", "a1", day="x")
    say(engine, "a", "a2", day="x")
    say(engine, "a", "a1", day="x")
    say(engine, "b", "b1", day="y")
    engine.advance(1_000)
    say(engine, "b", "b2", day="x")
    engine.send(SIGNALS, "", json.dumps({"name": "b", "params": {"day": "x"}, "signal_id": "b3"}).encode())
    engine.send(SIGNALS, "", b"nobody knows what this says")
    engine.push(flow("joined", step("only", "NoOp"), strategy="PARALLEL"))
    say(engine, "a", "a3", day="y")
    engine.advance(MINUTE_MS)


def waiting(engine: Recording) -> None:
    """Time-outs, leases that expire, a loop, a step that is skipped."""
    counted = {"n": {"type": "LONG", "expression": "params.getFromStep('step_instance_id')"}}
    again = {
        "id": "again",
        "type": "NoOp",
        "params": counted,
        "transition": {"successors": {"again": "n < 4", "work": "n >= 4"}},
    }
    engine.push(flow("looped", {"step": again}, step("work", timeout=300), timeout="2 hours"))
    run = engine.start("looped")
    engine.task(run, "work").begin()
    engine.task(run, "work").beat()
    engine.advance(10 * MINUTE_MS)
    other = engine.start("looped")
    engine.advance(MINUTE_MS)
    other.act("work", Action.SKIP)
    engine.advance(180 * MINUTE_MS)


def composites(engine: Recording) -> None:
    """All kinds of children; an iteration and a subworkflow fail; a restart of the tree, and one of a child; a stop."""
    engine.push(tree(task("below-work"), workflow_id="below"))
    engine.push(tree(foreach("loop", 3, task("work")), rounds("again", 2), subworkflow("call", "below")))
    root, below = engine.start(ROOT), RunHandle(engine, "below", 1)
    loop = inline_id(ChildKind.FOREACH, root.key, "loop")
    iterations = [RunHandle(engine, loop, number) for number in (1, 2, 3)]
    for number in (0, 2):
        engine.task(iterations[number], "work").succeed()
    engine.task(iterations[1], "work").fail("no good", c.Report.FATAL_ERROR)
    engine.task(below, "below-work").fail("no good", c.Report.FATAL_ERROR)
    engine.advance(MINUTE_MS)
    root.restart()
    engine.task(iterations[1], "work").succeed()
    engine.task(below, "below-work").fail("no good", c.Report.FATAL_ERROR)
    engine.advance(MINUTE_MS)
    below.restart()
    engine.task(below, "below-work").succeed()
    engine.advance(MINUTE_MS)
    engine.start(ROOT).stop(Action.STOP, "not wanted")
    engine.advance(MINUTE_MS)


def holding(engine: Recording) -> None:
    """Limits that are set, lowered and removed while attempts wait; breakpoints at a step and in a loop."""
    tags = ["db", "gpu"]
    many = [step(name, tags=tags) for name in ("a", "b", "c")]
    loop = foreach("loop", 2, task("work"))
    engine.push(flow("held", *many, loop, strategy="PARALLEL", instance_step_concurrency=4))
    engine.send(PERMIT_COMMANDS, tag_key("gpu"), c.SetLimit("limit-1", AUTHOR, 2))
    run = engine.start("held")
    engine.task(run, "a").fail("no good", c.Report.FATAL_ERROR)
    engine.send(PERMIT_COMMANDS, tag_key("gpu"), c.SetLimit("limit-2", AUTHOR, 1))
    engine.send(PERMIT_COMMANDS, tag_key("db"), c.SetLimit("limit-3", AUTHOR, 0))
    engine.send(WORKFLOW_COMMANDS, "held", c.SetBreakpoint("point-1", AUTHOR, "work"))
    engine.send(WORKFLOW_COMMANDS, "held", c.SetBreakpoint("point-2", AUTHOR, "a", instance_id=2))
    engine.advance(MINUTE_MS)
    other = engine.start("held")
    resume = c.ActOnStep("resume-1", AUTHOR, "a", Action.RESUME, "", run_id=1, attempt=1)
    engine.send(RUN_COMMANDS, other.key, resume)
    engine.advance(MINUTE_MS)
    other.act("b", Action.SKIP)
    engine.send(PERMIT_COMMANDS, tag_key("db"), c.RemoveLimit("limit-4", AUTHOR))
    engine.send(WORKFLOW_COMMANDS, "held", c.DeleteBreakpoint("point-3", AUTHOR, "work"))
    change = json.dumps({"step_concurrency": 1})
    engine.send(WORKFLOW_COMMANDS, "held", c.ChangeProperties("change-1", AUTHOR, change))
    engine.start("held")
    engine.advance(MINUTE_MS)
    run.stop(Action.STOP, "not wanted")
    engine.advance(MINUTE_MS)


def scheduling(engine: Recording) -> None:
    """Ticks; a pause, another version, a backfill that is cancelled and continued."""
    daily = {"type": "CRON", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "catch_up": "ALL"}
    hourly = {"type": "PREDEFINED", "expression": "@hourly", "fuzzy_max_delay": "5m"}
    engine.push(flow("daily", step("only", "NoOp"), strategy="FIRST_ONLY", time_triggers=[daily, hourly]))
    engine.advance(HOUR_MS * 30)
    engine.send(WORKFLOW_COMMANDS, "daily", c.PauseSchedules(engine.request_id(), AUTHOR, None, "maintenance"))
    engine.advance(HOUR_MS * 24)
    engine.send(WORKFLOW_COMMANDS, "daily", c.ResumeSchedules(engine.request_id(), AUTHOR))
    engine.push(flow("daily", step("only", "NoOp"), time_triggers=[{**daily, "catch_up": "NONE"}]))
    begin = engine.clock.now_ms - HOUR_MS * 24 * 30
    days = Schedule(type=ScheduleType.INTERVAL, interval_ms=HOUR_MS * 24, anchor_ms=begin).json()
    engine.push(flow("filled", step("only", "wait")))
    backfill = c.StartBackfill(
        engine.request_id(), AUTHOR, "b", days, from_ms=begin, to_ms=begin + HOUR_MS * 24 * 20, concurrency=3
    )
    engine.send(WORKFLOW_COMMANDS, "filled", backfill)
    for waiting_task in engine.tasks():
        waiting_task.succeed()
    cancel = c.ActOnBackfill(engine.request_id(), AUTHOR, "b", BackfillAction.CANCEL)
    engine.send(WORKFLOW_COMMANDS, "filled", cancel)
    engine.send(WORKFLOW_COMMANDS, "filled", replace(backfill, request_id=engine.request_id(), concurrency=5))
    engine.advance(HOUR_MS * 24 * 2)


STORIES: dict[str, Callable[[Recording], None]] = {
    "queueing": queueing,
    "joining": joining,
    "waiting": waiting,
    "composites": composites,
    "holding": holding,
    "scheduling": scheduling,
}


def main() -> None:
    RECORDED.mkdir(exist_ok=True)
    for name, story in STORIES.items():
        engine = Recording(partitions=2)
        story(engine)
        engine.save(RECORDED / f"{name}.avro")


if __name__ == "__main__":
    main()
