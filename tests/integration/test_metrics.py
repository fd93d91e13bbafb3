"""Every metric of the reference exists, and moves when something happens to it: each is provoked here, for real."""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer

from kapelle.api.metrics import ALL as API
from kapelle.cli.commands.worker import worker_text
from kapelle.cli.member_reports import Reporter
from kapelle.cli.metrics import WORKER
from kapelle.processors.effects import Effect
from kapelle.processors.messages import Message
from kapelle.processors.signals.windows import WINDOW_MS
from kapelle.processors.wiring import RUN_EVENTS
from kapelle.relay.metrics import OPENLINEAGE, OUTBOX, SINKS, SOURCES, TRACES
from kapelle.schemas.contracts import Report, ReportRefused, Task
from kapelle.testing.engine import Engine
from kapelle.testing.faults_inputs import delete_below
from kapelle.topology.errors import CycleAborted, ProducerLost
from kapelle.topology.exposition import (
    BROKER,
    BROKER_UP,
    CLIENT,
    COUNTERS,
    EVENTS,
    HELD,
    LAG,
    SIGNALS,
    SIZES,
    STARTS,
    TABLE_BYTES,
    TABLE_ROWS,
    TICKS,
    TIMERS,
    TIMES,
    TRANSACTION,
    member_exposition,
)
from kapelle.topology.settings import Limits, MemberSettings
from kapelle.topology.tables import MemoryStore
from kapelle.worker import Answer, Context, Runner, TaskReport, TransportUnavailable, Worker, WorkerSettings
from tests.integration import metrics_relays
from tests.integration.api.places import Place, embedded_place, step
from tests.integration.runtime.members import Deployment, until
from tests.proof.contracts import Hop, Reminder, Tick
from tests.proof.processors import Counting, counting, reminding, stages, topology
from tests.proof.workload import ticks
from tests.support.broker import Broker
from tests.support.proxy import ADD_OFFSETS_TO_TXN, PRODUCE, Proxy
from tests.tidy.files import REPOSITORY
from tests.unit.signals.announcing import armed, say
from tests.unit.topology.test_inputs import INPUT, SKIPPING
from tests.unit.topology.world import World, processor_of, tick
from tests.unit.worker.samples import task

pytestmark = pytest.mark.timeout(290)

ENOUGH_S = 120.0
STATISTICS_MS = 100
HELD_S = 5 * STATISTICS_MS / 1000
LOOK_S = 0.02
HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS
SAMPLE = re.compile(r"(kapelle_[a-z0-9_]+)(\{.*\})? (\S+)")
PARTS = ("_bucket", "_sum", "_count")


class Watch:
    """Every value that each metric was seen with, by its name and labels. What is not told is taken for zero."""

    def __init__(self) -> None:
        self.values: dict[str, dict[str, set[float]]] = defaultdict(dict)
        self._looks = 0

    def look(self, text: str) -> None:
        told = {}
        for line in text.splitlines():
            if not line.startswith("#"):
                found = SAMPLE.fullmatch(line)
                assert found is not None, line
                told[found[1], found[2] or ""] = float(found[3])
        for name, labels in told:
            self.values[name].setdefault(labels, {0.0} if self._looks else set())
        for name, series in self.values.items():
            for labels, values in series.items():
                values.add(told.get((name, labels), 0.0))
        self._looks += 1

    def moved(self, metric: str) -> bool:
        """Whether it was seen with two values."""
        names = [metric] if metric in self.values else [f"{metric}{part}" for part in PARTS]
        return all(any(len(values) > 1 for values in self.values.get(name, {}).values()) for name in names)


def names(*tables: dict[str, Any]) -> list[str]:
    return [metric.name for table in tables for metric in table.values()]


def limited(**limits: Any) -> MemberSettings:
    return MemberSettings(limits=Limits(**{"cycle_ms_max": 60_000, **limits}))


# Members ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def member() -> Watch:
    """A member on a simulated cluster: all that can happen to one."""
    seen = Watch()
    for happens in (work, failures, losses, restores, limits_met, settling, forgetting, ticking):
        happens(seen)
    return seen


def told(seen: Watch, world: World) -> None:
    seen.look(member_exposition(world.member.counters))


def work(seen: Watch) -> None:
    world = World(counting, reminding, *stages)
    told(seen, world)
    world.run()
    world.publish("ticks", "a", tick("1"))
    world.publish("ticks", "a", b"?")
    world.publish("reminders", "r", Reminder("1", 10))
    world.publish("stage-1", "a", Hop("a", 1))
    world.run()
    told(seen, world)
    world.now_ms += 20
    world.log.faults.repeat_records = 2
    world.run()
    told(seen, world)


def failures(seen: Watch) -> None:
    world = World(counting)
    world.run()
    for number, error in enumerate((CycleAborted, ProducerLost)):
        world.publish("ticks", "a", tick(str(number)))
        world.log.errors["commit"] = [error("as told")]
        world.run()
        told(seen, world)


def losses(seen: Watch) -> None:
    """A decision that runs out of memory, and input that is deleted before it is read."""
    world = World(processor_of(out_of_memory), settings=SKIPPING)
    world.publish("ticks", "a", tick("1"))
    world.run()
    told(seen, world)
    for number in range(3):
        world.publish("ticks", "a", tick(str(number)))
    delete_below(world.cluster, INPUT, 3)
    world.restart()
    world.step(5)
    world.now_ms += Limits().doubt_ms  # the answer is believed when it was given twice
    world.run()
    told(seen, world)


def out_of_memory(message: Message[Tick], state: Counting, now_ms: int) -> Iterable[Effect]:
    raise MemoryError


def restores(seen: Watch) -> None:
    """A process that has lost its tables, and one that was away for longer than deletions are told."""
    world = World(counting, settings=limited(restore_rows_max=1, restore_slice_ms=0))
    for number in range(5):
        world.publish("ticks", str(number), tick(str(number)))
    world.run()
    kept, world.store = world.store, MemoryStore()
    world.restart()
    for _ in range(8):
        world.step()
        told(seen, world)
    world.store, world.now_ms = kept, world.now_ms + WEEK_MS
    world.restart()
    world.run()
    told(seen, world)


def limits_met(seen: Watch) -> None:
    world = World(counting, settings=limited(overlay_bytes_max=1))
    for number in range(200):
        world.publish("ticks", "a", tick(str(number)))
    world.run()
    told(seen, world)


def settling(seen: Watch) -> None:
    world = World(*stages)
    world.run()
    world.member.delivery.enabled = False
    world.publish("stage-1", "a", Hop("a", 1))
    world.step(2)
    world.member.delivery.enabled = True
    for number in range(2, 6):
        world.publish("stage-1", "a", Hop("a", number))
        world.step()
    world.run()
    told(seen, world)


def forgetting(seen: Watch) -> None:
    """The engine itself: what comes twice, what lies so far back that it is swept away, and a clock that goes back."""
    engine = armed()
    seen.look(member_exposition(engine.runtime.counters))
    for signal_id in ("o1", "o1", "o2"):
        say(engine, "orders", signal_id)
    for _ in range(2):
        engine.start("flow", request_id="r1")
    seen.look(member_exposition(engine.runtime.counters))
    for day in range(3):
        engine.advance(2 * WINDOW_MS)
        say(engine, "orders", f"later-{day}")
    seen.look(member_exposition(engine.runtime.counters))
    engine.clock.jump(-WINDOW_MS)
    say(engine, "orders", "after a jump")
    seen.look(member_exposition(engine.runtime.counters))


def ticking(seen: Watch) -> None:
    """Ticks of a time trigger: one in time, and the latest of those that came while nobody ran."""
    engine = Engine()
    workflow = {"id": "ticking", "steps": [step("only")], "time_triggers": [{"type": "INTERVAL", "interval": "2h"}]}
    engine.push({"properties": {"owner": "ann"}, "workflow": workflow})
    for jump_ms in (0, HOUR_MS * 24):
        engine.clock.jump(jump_ms)
        engine.advance(3 * HOUR_MS)
        seen.look(member_exposition(engine.runtime.counters))


# Members on Kafka ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_kafka(own_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Watch:
    """A member at work: with a broker that takes its time, behind a transaction that is open, with no broker at all."""
    seen, folder = Watch(), tmp_path_factory.mktemp("member")
    shape = topology("counting", prefix=folder.name, partitions=1)
    with Proxy(own_broker) as proxy:
        servers = own_broker.proxied_servers
        place = Deployment(own_broker, folder, shape, statistics_ms=STATISTICS_MS, bootstrap_servers=servers)
        with place.member() as one, weighed(Reporter(one.kafka)) as reporter:

            def moved(*wanted: str) -> bool:
                seen.look(reporter.text())
                return all(seen.moved(name) for name in wanted)

            at_work(place, moved)
            slowed_down(place, moved, proxy)
            held_back(place, moved)
            proxy.refuse()
            until(lambda: moved("kapelle_kafka_broker_up"), "the client to notice that the broker is away", ENOUGH_S)
            proxy.accept()
            until(
                lambda: moved("kapelle_kafka_broker_connects_total", "kapelle_kafka_broker_disconnects_total"),
                "the client to connect again",
                ENOUGH_S,
            )
    return seen


Moved = Callable[..., bool]


@contextmanager
def weighed(reporter: Reporter) -> Iterator[Reporter]:
    """A reporter that weighs tables more often than anybody needs to know."""
    reporter.weighing.round_s = 0.1
    with reporter.weighing:
        yield reporter


# Empty a moment later, unless somebody is slow: the consumer's backlog, and what waits for the broker.
QUEUES = (
    LAG.name,
    "kapelle_kafka_queued_messages",
    "kapelle_kafka_queued_bytes",
    "kapelle_kafka_broker_open_requests",
)
REPLIES = "kapelle_kafka_queued_replies"


def at_work(place: Deployment, moved: Moved) -> None:
    """Work until everything that stays for a while has been seen to move."""
    wanted = {*names(CLIENT, SIZES), "kapelle_kafka_transaction_state", TABLE_ROWS.name, TABLE_BYTES.name}
    wanted |= {metric.name for name, metric in BROKER.items() if "connects" not in name}
    working(place, lambda: moved(*wanted.difference(QUEUES, {REPLIES})))


def slowed_down(place: Deployment, moved: Moved, proxy: Proxy) -> None:
    """Queues stay full while the broker answers late: for longer than it takes to tell of them."""
    proxy.delay(PRODUCE, HELD_S)
    working(place, lambda: moved(*QUEUES))
    proxy.delay(PRODUCE, 0)
    proxy.delay(ADD_OFFSETS_TO_TXN, HELD_S)  # meanwhile nobody asks the producer for its replies
    working(place, lambda: moved(REPLIES))
    proxy.delay(ADD_OFFSETS_TO_TXN, 0)


def working(place: Deployment, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ENOUGH_S
    while not done():
        assert time.monotonic() < deadline
        place.publish(ticks(100, 50))
        time.sleep(LOOK_S)


def held_back(place: Deployment, moved: Moved) -> None:
    config = {"bootstrap.servers": place.broker.bootstrap_servers, "transactional.id": "metrics-left-open"}
    producer = Producer(config)
    producer.init_transactions(ENOUGH_S)
    producer.begin_transaction()
    producer.produce(place.topology.topic(place.topology.streams["ticks"]), b"?", b"key", 0)
    producer.flush(ENOUGH_S)
    until(lambda: moved("kapelle_stable_offset_lag_records"), "the open transaction to hold a record back", ENOUGH_S)
    producer.abort_transaction(ENOUGH_S)


# The API ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Watch:
    """An API over an embedded log: at work, with a request that waits, and with a view that has fallen behind."""
    seen = Watch()
    with embedded_place(tmp_path_factory.mktemp("metrics-api")) as place:

        def look() -> None:
            answer = place.http.get("/metrics")
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            seen.look(answer.text)

        def moved(name: str) -> bool:
            look()
            return seen.moved(name)

        look()
        unreadable = ReportRefused("load", "t", "w", Report.SUCCEEDED, "", 1)
        place.journal.publish(RUN_EVENTS, "v", unreadable).result(ENOUGH_S)
        until(lambda: moved("kapelle_view_unreadable_records"), "the view to list the event", ENOUGH_S)
        name = place.push(step("work", "nobody"))
        for _ in range(2):
            place.start(name)
            look()
        limit_and_pause(place)
        until(lambda: moved("kapelle_permits_oldest_wait_seconds"), "a step to wait for a permit", ENOUGH_S)
        until(lambda: moved("kapelle_steps_paused"), "a step to pause", ENOUGH_S)
        poll = {"worker": "w", "types": ["other"], "max": 1, "wait_ms": 30_000}
        waiting = threading.Thread(target=lambda: httpx.post(f"{place.url}/api/v3/tasks/poll", json=poll, timeout=60))
        waiting.start()
        until(lambda: moved("kapelle_api_requests_open"), "the poll to be told of", ENOUGH_S)
        place.start(place.push(step("work", "other")))  # the poll has its task, and ends
        waiting.join(ENOUGH_S)
        place.views.folding.stop()
        place.http.post(f"/workflows/{name}/versions/active/actions/start", json={}, params={"wait_ms": 0})
        until(lambda: moved("kapelle_view_lag_records"), "the view to be behind", ENOUGH_S)
    return seen


def limit_and_pause(place: Place) -> None:
    """A step that holds a permit, one that waits for it, and one that is paused."""
    place.call("POST", "/tag-permits", json={"tag": "gpu", "max_allowed": 1})
    limited_name = place.push(step("work", "nobody", tags=["gpu"]), run_strategy="PARALLEL")
    paused_name = place.push(step("work"))
    place.call("POST", "/workflows/steps/breakpoints", json={"workflow_id": paused_name, "step_id": "work"})
    for name in (limited_name, limited_name, paused_name):
        place.start(name)


# Workers ------------------------------------------------------------------------------------------------------------


class Scripted:
    """A way to an engine that is away at first, refuses the word for one task, and cannot be told of another."""

    def __init__(self) -> None:
        self.tasks = [task(1), task(2)]
        self.is_away = True

    def open(self, worker: str, types: Sequence[str]) -> None:
        """Nothing is needed."""

    def take(self, room: int, wait_s: float) -> list[Task]:  # noqa: ARG002 - never waits
        if self.is_away:
            self.is_away = False
            raise TransportUnavailable("the engine is away")
        taken, self.tasks = self.tasks[:room], self.tasks[room:]
        return taken

    def report(self, words: Sequence[TaskReport]) -> list[Answer]:
        if any(word.task.token == "token-3" for word in words):  # noqa: S105 - the name of a task
            raise TransportUnavailable("the engine is away")
        return [Answer(word.task.token, word.task.token != "token-2", "as told") for word in words]  # noqa: S105

    def cancellations(self) -> list[tuple[str, str]]:
        return []

    def drain(self) -> None:
        """Nothing is needed."""

    def close(self) -> None:
        """Nothing is needed."""


@pytest.fixture(scope="module")
def worker() -> Watch:
    seen, steps, transport = Watch(), Worker(), Scripted()
    gone_on = threading.Event()

    @steps.step("load")
    def load(context: Context) -> None:
        if context.token == "token-3":  # noqa: S105 - the name of a task
            context.cancelled.wait(ENOUGH_S)
            gone_on.set()

    runner = Runner(steps.steps, transport, WorkerSettings(drain_timeout_s=0))

    def moved(*wanted: str) -> bool:
        seen.look(worker_text(runner))
        return all(seen.moved(f"kapelle_worker_{name}") for name in wanted)

    seen.look(worker_text(runner))
    runner.start()
    until(lambda: moved("waits_total", "tasks_taken_total", "results_total", "reports_refused_total"), "work", ENOUGH_S)
    transport.tasks.append(task(3, lease_ms=300))
    until(lambda: moved("tasks_in_hand", "leases_lost_total"), "the lease to be lost", ENOUGH_S)
    assert gone_on.wait(ENOUGH_S)
    runner.stop(0)
    return seen


# Relays -------------------------------------------------------------------------------------------------------------


def relayed(tables: dict[str, Any], relay: Callable[[Callable[[str], bool]], None]) -> Watch:
    """A relay at work until all of its metrics have moved."""
    seen = Watch()

    def moved(text: str) -> bool:
        seen.look(text)
        return all(seen.moved(name) for name in names(tables))

    relay(moved)
    return seen


@pytest.fixture(scope="module")
def sources(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Watch:
    folder = tmp_path_factory.mktemp("sources")
    return relayed(SOURCES, lambda moved: metrics_relays.sources(broker, folder, moved))


@pytest.fixture(scope="module")
def outbox() -> Watch:
    return relayed(OUTBOX, metrics_relays.outbox)


@pytest.fixture(scope="module")
def sinks(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Watch:
    folder = tmp_path_factory.mktemp("sinks")
    return relayed(SINKS, lambda moved: metrics_relays.sinks(broker, folder, moved))


@pytest.fixture(scope="module")
def openlineage(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Watch:
    folder = tmp_path_factory.mktemp("openlineage")
    return relayed(OPENLINEAGE, lambda moved: metrics_relays.openlineage(broker, folder, moved))


@pytest.fixture(scope="module")
def traces(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Watch:
    folder = tmp_path_factory.mktemp("traces")
    return relayed(TRACES, lambda moved: metrics_relays.traces(broker, folder, moved))


# The table ----------------------------------------------------------------------------------------------------------

# Where each metric is provoked: the fixture above.
PROVOKED: dict[str, str] = {
    **dict.fromkeys(names(COUNTERS, TIMES), "member"),
    **dict.fromkeys([metric.name for metric in (EVENTS, SIGNALS, STARTS, TICKS, TIMERS)], "member"),
    **dict.fromkeys(names(CLIENT, BROKER, SIZES), "on_kafka"),
    **dict.fromkeys([metric.name for metric in (LAG, HELD, BROKER_UP, TRANSACTION)], "on_kafka"),
    **dict.fromkeys([metric.name for metric in (TABLE_ROWS, TABLE_BYTES)], "on_kafka"),
    **dict.fromkeys([metric.name for metric in API], "api"),
    **dict.fromkeys(names(WORKER), "worker"),
    **dict.fromkeys(names(SOURCES), "sources"),
    **dict.fromkeys(names(OUTBOX), "outbox"),
    **dict.fromkeys(names(SINKS), "sinks"),
    **dict.fromkeys(names(OPENLINEAGE), "openlineage"),
    **dict.fromkeys(names(TRACES), "traces"),
}


def documented() -> list[str]:
    """The metrics of the reference."""
    page = (REPOSITORY / "docs" / "cli.md").read_text()
    return re.findall(r"^\| `(kapelle_\w+)` \| (?:counter|gauge|histogram) \|", page, re.MULTILINE)


def test_every_metric_of_the_reference_is_provoked_and_no_other() -> None:
    assert sorted(documented()) == sorted(PROVOKED)


@pytest.mark.parametrize("name", PROVOKED)
def test_a_metric_moves_when_something_happens_to_it(request: pytest.FixtureRequest, name: str) -> None:
    seen: Watch = request.getfixturevalue(PROVOKED[name])

    assert seen.moved(name), seen.values.get(name)
