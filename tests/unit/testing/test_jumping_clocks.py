"""The engine on a clock that is set ahead and back while workflows run: durations stay what they are."""

from pathlib import Path

import pytest

from kapelle.processors.wiring import SIGNAL_EVENTS
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus, StepStatus
from kapelle.testing.clock import VirtualClock
from kapelle.testing.engine import Engine
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.tables import MemoryStore
from tests.unit.runs.flows import WORKFLOW, pause, pushed, started, step, task
from tests.unit.signals.announcing import armed, joins, say, told, trigger

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SECOND_MS = 1_000
# Back, ahead and back, a little, and by more than any window.
JUMPS_MS = [(-HOUR_MS,), (10 * DAY_MS, -10 * DAY_MS), (-10 * DAY_MS, 10 * DAY_MS), (400 * DAY_MS, -401 * DAY_MS)]


def jump(engine: Engine, *jumps_ms: int) -> None:
    """Set the clock, and let the engine look at it each time."""
    for by_ms in jumps_ms:
        engine.clock.jump(by_ms)
        engine.runtime.step_until_idle()
        engine.announce("tick", {"at": engine.clock.now_ms})  # something happens while it is wrong


@pytest.mark.parametrize("jumps_ms", JUMPS_MS)
def test_a_sleep_that_began_before_a_jump_ends(jumps_ms: tuple[int, ...]) -> None:
    run = started(pause("nap", seconds=6))

    jump(run.engine, *jumps_ms)
    run.engine.advance(6_100)

    assert run.status is InstanceStatus.SUCCEEDED


@pytest.mark.parametrize("jumps_ms", JUMPS_MS)
def test_a_sleep_that_begins_after_a_jump_ends_in_time_and_not_sooner(jumps_ms: tuple[int, ...]) -> None:
    engine = pushed(pause("nap", seconds=6))
    jump(engine, *jumps_ms)

    run = engine.start(WORKFLOW)
    run.engine.advance(5_900)
    before = run.status
    run.engine.advance(200)

    assert before is InstanceStatus.IN_PROGRESS
    assert run.status is InstanceStatus.SUCCEEDED


def test_a_lease_and_a_retry_take_as_long_as_ever_after_the_clock_went_back() -> None:
    run = started(step("a", lease_seconds=90))
    first = task(run, "a")
    first.begin()

    jump(run.engine, -DAY_MS)
    run.engine.advance(92 * SECOND_MS)

    assert task(run, "a").task.token != first.task.token


def test_a_timeout_comes_in_time_after_the_clock_went_back() -> None:
    run = started(step("a", timeout=60))

    jump(run.engine, -DAY_MS)
    run.engine.advance(61 * SECOND_MS)

    assert run.steps == {"a": StepStatus.TIMED_OUT}


def test_a_failed_step_is_tried_again_in_time_after_the_clock_went_back() -> None:
    policy = {"error_retry_limit": 1, "backoff": {"type": "FIXED_BACKOFF", "error_retry_backoff_in_secs": 30}}
    run = started(step("a", retry_policy=policy))
    task(run, "a").fail()

    jump(run.engine, -DAY_MS)
    run.engine.advance(31 * SECOND_MS)

    assert task(run, "a").task.attempt == 2


def test_what_waits_for_partners_expires_in_time_after_the_clock_went_back() -> None:
    engine = armed(trigger(a=joins("day"), b=joins("day"), options={"expiry": "1 min"}))
    say(engine, "a", "a1", day=1)

    jump(engine, -DAY_MS)
    engine.advance(61 * SECOND_MS)

    assert len(told(engine, c.SignalExpired)) == 1


@pytest.mark.parametrize("days", [10, 20, 4_000])
def test_new_signals_are_accepted_after_the_clock_was_ahead_and_came_back(days: int) -> None:
    engine = Engine()
    now_ms = engine.clock.now_ms
    engine.announce("orders", {"n": 1}, happened_at_ms=now_ms)

    engine.clock.jump(days * DAY_MS)
    ahead = engine.announce("orders", {"n": 2}, happened_at_ms=engine.clock.now_ms)
    engine.clock.jump(-days * DAY_MS)

    assert ahead == "ACCEPTED"
    assert engine.announce("orders", {"n": 3}) == "ACCEPTED"
    assert engine.announce("orders", {"n": 4}, happened_at_ms=now_ms + 1) == "ACCEPTED"
    assert engine.announce("orders", {"n": 1}, happened_at_ms=now_ms) == "DUPLICATED"
    assert engine.announce("orders", {"n": 2}, happened_at_ms=now_ms + days * DAY_MS) == "DUPLICATED"


@pytest.mark.parametrize("by_ms", [-HOUR_MS, 10 * DAY_MS])
def test_a_restart_on_a_clock_that_was_set_goes_on_from_where_it_was(by_ms: int) -> None:
    run = started(pause("nap", seconds=6))
    engine = run.engine
    store = engine.runtime._store
    assert isinstance(store, MemoryStore)

    engine.clock = VirtualClock(engine.clock.now_ms + by_ms)
    engine.runtime = EmbeddedRuntime(engine.topology, store, clock=engine.clock)
    engine.advance(6_100)

    assert run.status is InstanceStatus.SUCCEEDED


def test_a_directory_keeps_the_time_of_its_partitions(tmp_path: Path) -> None:
    engine = Engine()
    clock = VirtualClock(engine.clock.now_ms)
    with EmbeddedRuntime(engine.topology, tmp_path / "log", clock=clock) as runtime:
        engine.runtime, engine.clock = runtime, clock
        engine.clock.jump(DAY_MS)
        engine.announce("orders", {"n": 1})

    clock = VirtualClock(clock.now_ms - DAY_MS)
    with EmbeddedRuntime(engine.topology, tmp_path / "log", clock=clock) as runtime:
        engine.runtime, engine.clock = runtime, clock
        engine.announce("orders", {"n": 2})
        first, second = (
            event.at_ms for event in engine.events(SIGNAL_EVENTS, "orders") if isinstance(event, c.SignalAccepted)
        )

    assert first <= second <= first + SECOND_MS
