"""Workers against the engine on a real broker, over every way there is to reach it."""

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kapelle.schemas.contracts import DependencyMatched, InstanceStatus, LeaseRenewed, Report, StepLogged, StepStatus
from kapelle.worker import (
    Context,
    KafkaTransport,
    NonRetryable,
    Retryable,
    TransportRefused,
    Worker,
    WorkerSettings,
)
from tests.integration.runtime.members import until
from tests.integration.workers.world import Program, World, embedded_world, kafka_world, step
from tests.support.broker import Broker, BrokerSettings

pytestmark = pytest.mark.timeout(120)

LEASE_S = 3
SILENT_S = 8.0


# All tests run over these, and some over all that there are: the rest is the same code with another log or group.
WAYS = ["kafka", "http"]
EVERY_WAY = pytest.mark.parametrize("world", [*WAYS, "share", "embedded"], indirect=True)


@pytest.fixture(params=WAYS)
def world(request: pytest.FixtureRequest, broker: Broker, tmp_path: Path) -> Iterator[World]:
    """An engine on the broker or on the embedded log, and a way for workers to reach it."""
    with ExitStack() as opened:
        if request.param == "embedded":
            yield opened.enter_context(embedded_world(tmp_path))
        else:
            yield opened.enter_context(kafka_world(broker, tmp_path, request.param))


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Where worker processes leave marks."""
    found = tmp_path / "marks"
    found.mkdir()
    return found


def marked(marks: Path, name: str) -> float:
    """Wait until a worker process has left a mark. Returns how long it took."""
    return until((marks / name).exists, f"the mark {name}")


@EVERY_WAY
def test_steps_of_all_kinds_are_done_and_their_outputs_are_kept(world: World) -> None:
    worker = Worker()
    tries: list[int] = []

    @worker.step("plain")
    def plain(rows: int) -> dict[str, int]:
        return {"rows": rows * 2}

    @worker.step("async")
    async def coroutine(rows: int) -> dict[str, int]:
        await asyncio.sleep(0.01)
        tries.append(rows)
        if len(tries) == 1:
            raise Retryable("not the first time")
        return {"rows": rows * 3}

    world.push(step("plain", "a", rows=1), step("async", "b", rows=1))
    runner = worker.start(world.reach.transport())
    (instance,) = world.start()
    world.await_ended(instance)
    runner.stop()

    params = [one.params or "" for name in "ab" for one in world.changes(instance, name)[-1:]]
    assert ['"rows":2' in params[0], '"rows":3' in params[1]] == [True, True]
    assert world.refused(instance) == []


def test_what_a_step_announces_is_heard_by_a_step_that_waits_for_it(world: World) -> None:
    worker, waiting = Worker(), step("NoOp", "b")
    waiting["step"]["signal_dependencies"] = [{"name": "made"}]

    @worker.step("maker")
    def make(ctx: Context) -> None:
        ctx.announce("made", {"day": 20260701}, payload={"parts": [1, 2]})

    world.push(step("maker", "a"), waiting)
    runner = worker.start(world.reach.transport())
    (instance,) = world.start()
    world.await_ended(instance)
    runner.stop()

    (matched,) = world.events(instance, DependencyMatched)
    assert (matched.name, matched.params) == ("made", '{"day":20260701}')


@EVERY_WAY
def test_a_hundred_async_steps_run_at_once(world: World) -> None:
    worker, there, all_there = Worker(), list[int](), asyncio.Event()

    @worker.step("async")
    async def coroutine() -> None:
        there.append(1)
        if len(there) == 100:
            all_there.set()
        await all_there.wait()

    world.push(step("async"))
    runner = worker.start(world.reach.transport(), WorkerSettings(concurrency=100))
    instances = world.start(100)
    world.await_ended(*instances)
    runner.stop()

    assert len(there) == 100


# Not by share groups: the broker keeps a killed member's place in one for 45 s, and does not let us ask for less.
@pytest.mark.parametrize("world", [*WAYS, "embedded"], indirect=True)
def test_a_killed_worker_loses_its_lease_and_another_does_the_work(world: World, marks: Path) -> None:
    world.push(step("first-is-slow", seconds=60.0, lease_seconds=LEASE_S))
    (instance,) = world.start()
    with Program(world, marks, "first") as first:
        world.await_passed(instance, StepStatus.RUNNING)
        marked(marks, f"begun-{instance}-1-first")
        first.signal(signal.SIGKILL)
        with Program(world, marks, "second"):
            world.await_passed(instance, StepStatus.PLATFORM_FAILED, within_s=LEASE_S + 20)
            world.await_ended(instance)

    assert (marks / f"done-{instance}-2-second").exists()


def test_a_worker_that_comes_back_too_late_is_refused(world: World, marks: Path) -> None:
    world.push(step("first-is-slow", seconds=60.0, lease_seconds=LEASE_S))
    (instance,) = world.start()
    with Program(world, marks, "first") as first:
        marked(marks, f"begun-{instance}-1-first")
        world.await_passed(instance, StepStatus.RUNNING)  # else it may be stopped before its word has left it
        first.signal(signal.SIGSTOP)
        with Program(world, marks, "second"):
            world.await_passed(instance, StepStatus.RUNNING, attempt=2)
            world.await_ended(instance)
        (began,) = [one for one in world.changes(instance) if one.attempt == 1 and one.token]
        world.say(began, instance, Report.SUCCEEDED, "first")  # as if its answer had been on its way all the time
        first.signal(signal.SIGCONT)
        world.until(lambda: world.refused(instance), "the late answer to be refused")

    assert world.ended(instance) is InstanceStatus.SUCCEEDED
    assert [e.attempt for e in world.changes(instance) if StepStatus.SUCCEEDED in e.statuses] == [2]


def test_a_worker_that_is_told_to_stop_finishes_what_it_has(world: World, marks: Path) -> None:
    world.push(step("slow", seconds=3.0))
    (instance,) = world.start()
    with Program(world, marks, "first") as first:
        marked(marks, f"begun-{instance}-1-first")
        first.signal(signal.SIGTERM)
        code = first.wait()
        (later,) = world.start()
        world.await_ended(instance)

    assert code == 0, first.said()
    assert (marks / f"done-{instance}-1-first").exists()
    assert not world.passed(later, StepStatus.RUNNING)


@EVERY_WAY
def test_what_a_short_step_logs_is_in_the_history(world: World) -> None:
    worker = Worker()

    @worker.step("plain")
    def plain(ctx: Context) -> None:
        ctx.log("reading")
        ctx.log("writing")
        if ctx.attempt == 1:
            raise Retryable("not the first time")

    world.push(step("plain"))
    runner = worker.start(world.reach.transport())
    (instance,) = world.start()
    world.await_ended(instance)
    runner.stop()

    logged = [(one.attempt, one.text) for one in world.events(instance, StepLogged)]
    assert logged == [(1, "reading\nwriting"), (2, "reading\nwriting")]


@EVERY_WAY
def test_a_worker_that_cannot_finish_in_time_hands_its_work_back(world: World, marks: Path) -> None:
    once = step("first-is-slow", seconds=60.0)
    once["step"]["retry_policy"] = {"platform_retry_limit": 0}
    world.push(once)
    (instance,) = world.start()
    with Program(world, marks, "first", "--drain-timeout", "0.5") as first:
        marked(marks, f"begun-{instance}-1-first")
        first.signal(signal.SIGTERM)
        code = first.wait(20)
        world.await_passed(instance, StepStatus.PLATFORM_FAILED, within_s=10)
        with Program(world, marks, "second"):
            world.await_ended(instance)

    assert code == 0, first.said()
    assert (marks / f"done-{instance}-2-second").exists()


def test_a_step_that_ignores_its_cancellation_changes_nothing(world: World, marks: Path) -> None:
    world.push(step("deaf", seconds=3.0))
    (instance,) = world.start()
    with Program(world, marks, "first") as first:
        marked(marks, f"begun-{instance}-1-first")
        world.await_passed(instance, StepStatus.RUNNING)  # its word that it begins may come after it has begun
        world.stop(instance)
        world.await_ended(instance, status=InstanceStatus.STOPPED)
        marked(marks, f"done-{instance}-1-first")
        world.push(step("slow", seconds=0.01))
        (next_one,) = world.start()
        world.await_ended(next_one)

        assert "stopping a task" in first.said()
    assert world.ended(instance) is InstanceStatus.STOPPED
    assert world.refused(instance) == []


def test_a_step_hears_that_it_is_cancelled(world: World, marks: Path) -> None:
    world.push(step("slow", seconds=60.0))
    (instance,) = world.start()
    with Program(world, marks, "first"):
        marked(marks, f"begun-{instance}-1-first")
        world.stop(instance)

        assert marked(marks, f"cancelled-{instance}-1-first") < 10


def test_a_lease_is_kept_for_as_long_as_the_step_runs(world: World) -> None:
    worker, go_on = Worker(), threading.Event()
    worker.add("plain", lambda: go_on.wait(60) and None)
    world.push(step("plain", lease_seconds=2))
    runner = worker.start(world.reach.transport())
    (instance,) = world.start()
    world.await_passed(instance, StepStatus.RUNNING)

    # Four times a third of a lease is more than all of it.
    world.until(lambda: len(world.events(instance, LeaseRenewed)) >= 4, "the lease to be renewed")
    go_on.set()
    world.await_ended(instance)
    runner.stop()

    assert {one.attempt for one in world.changes(instance)} == {1}


def test_a_result_that_cannot_be_written_fails_the_step_for_good(world: World) -> None:
    worker = Worker()
    worker.add("plain", lambda: {"rows": [1, {2}]})
    world.push(step("plain", rows=1))
    runner = worker.start(world.reach.transport())
    (instance,) = world.start()
    world.await_ended(instance, status=InstanceStatus.FAILED)
    runner.stop()

    last = world.changes(instance)[-1]
    assert last.statuses[-1] is StepStatus.FATALLY_FAILED
    assert last.reason == "Expected output 'rows[1]' to be a string, number or boolean, but found set {2}"


def test_an_error_that_no_retry_mends_ends_the_step(world: World) -> None:
    worker = Worker()

    @worker.step("plain")
    def plain() -> None:
        raise NonRetryable("the table is gone")

    world.push(step("plain"))
    runner = worker.start(world.reach.transport())
    (instance,) = world.start()
    world.await_ended(instance, status=InstanceStatus.FAILED)
    runner.stop()

    assert world.changes(instance)[-1].reason == "the table is gone"


@EVERY_WAY
def test_a_type_that_nobody_serves_waits_and_is_taken_when_somebody_does(world: World) -> None:
    other, worker = Worker(), Worker()
    other.add("other", lambda: None)
    worker.add("plain", lambda: None)
    world.push(step("plain"), step("other", "beside"))
    first = other.start(world.reach.transport())
    (instance,) = world.start()
    world.until(lambda: world.passed(instance, StepStatus.SUCCEEDED, step_id="beside"), "the other type to be served")

    assert world.changes(instance)[-1].statuses[-1] is StepStatus.STARTING
    second = worker.start(world.reach.transport())
    world.await_ended(instance)
    first.stop()
    second.stop()


@EVERY_WAY
def test_a_task_that_was_cancelled_before_anybody_came_is_not_begun(world: World) -> None:
    worker, done = Worker(), list[int]()

    @worker.step("plain")
    def plain(ctx: Context) -> None:
        done.append(ctx.instance_id)

    world.push(step("plain"))
    stopped, wanted = world.start(2)
    world.await_passed(stopped, StepStatus.STARTING)
    world.stop(stopped)
    world.await_ended(stopped, status=InstanceStatus.STOPPED)
    runner = worker.start(world.reach.transport())
    world.await_ended(wanted)
    runner.stop()

    assert done == [wanted]


def test_topics_that_are_not_there_are_refused_with_what_to_do(broker: Broker) -> None:
    worker = Worker()
    worker.add("plain", lambda: None)

    with pytest.raises(TransportRefused, match="kapelle topics apply"):
        worker.start(KafkaTransport(broker.bootstrap_servers, "nowhere"))


def test_what_cannot_be_read_is_passed_over(broker: Broker, tmp_path: Path) -> None:
    worker = Worker()
    worker.add("plain", lambda: None)
    with kafka_world(broker, tmp_path, "kafka") as world:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for topic in ("tasks", "tasks.cancellations"):
            for partition in range(4):
                producer.produce(f"{world.reach.prefix}.{topic}", b"not one of ours", "key", partition)
        assert producer.flush(30) == 0
        world.push(step("plain"))
        instances = world.start(8)
        runner = worker.start(world.reach.transport())
        world.await_ended(*instances)
        runner.stop()


def test_a_worker_outlives_a_broker_that_is_silent_for_a_while(
    private_broker: Callable[[BrokerSettings], Broker], tmp_path: Path
) -> None:
    worker, go_on = Worker(), threading.Event()
    worker.add("plain", lambda: go_on.wait(60) and None)
    broker = private_broker(BrokerSettings())
    with kafka_world(broker, tmp_path, "kafka") as world:
        world.push(step("plain", lease_seconds=60))
        (first,) = world.start()
        runner = worker.start(world.reach.transport())
        world.await_passed(first, StepStatus.RUNNING)
        broker.pause()
        go_on.set()
        time.sleep(SILENT_S)
        broker.resume()
        world.await_ended(first)
        (second,) = world.start()
        world.await_ended(second)
        runner.stop()

    assert world.ended(second) is InstanceStatus.SUCCEEDED
