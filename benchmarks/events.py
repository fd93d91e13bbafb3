"""Events out: the cost of publishing, and the delay until others see an event.

    python -m benchmarks.events [--quick] [--only copy,lag,engine,sinks]

    publisher_vs_copy_loop     events/s of `publisher.instances` over records/s of a bare transactional copy loop over
                               the same bytes; in turn, the median of the ratios
    external_lag_p50_ms, …     from the time of a status of an instance in the engine to its record in a
    external_lag_p99_ms        `read_committed` consumer; one process hosts everything, starts come at a steady rate
    engine_with_publishers     workflows of one step a second in a process that hosts publishers too, over those in
                               one that does not; in turn, the median of the ratios
    engine_beside_publishers   the same with the publishers in a separate process
    engine_with_sink_that_…    workflows a second while a sink hangs, fails or is slow, over those without a sink, all
                               with publishers; in turn, the median of the ratios. Every event is delivered in the end

A publisher writes each change and the last state of each instance; the copy loop writes one record for each that it
reads. If a record is missing, duplicated or has a wrong number, no figures are reported.
"""

import functools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any, Final

from benchmarks.command import Figures, Part, run
from benchmarks.contestants import python_peer
from benchmarks.engine_kafka import ENGINE, KafkaSubject, member
from benchmarks.events_sinks import WAYS, await_all, await_asked, sink
from benchmarks.figures import median_ratio, percentile, progress
from benchmarks.harness import DEADLINE_S, Bench, Refused, watcher
from benchmarks.programs import Program
from benchmarks.routes import Route, create_counting
from benchmarks.throughput import Load, Standby
from benchmarks.workload import BEGAN_AT_MS, PARTITIONS, Given
from kapelle.processors.publisher import PUBLISHERS
from kapelle.processors.publisher.streams import INSTANCE_CHANGES
from kapelle.processors.wiring import WORKFLOW_EVENTS
from kapelle.schemas import Codec
from kapelle.schemas import contracts as c
from kapelle.schemas.contracts import InstanceStatus
from kapelle.topology.page import PROCESSORS, topology
from tests.support.broker import open_broker
from tests.support.settings import LASTING

WORKFLOWS: Final = 64
EVENTS_EACH: Final = 3  # created, launched, ended
PUBLISHER: Final = "publisher.instances"
PUBLISHER_NAMES: Final = tuple(one.name for one in PUBLISHERS)
ENGINE_NAMES: Final = tuple(one.name for one in PROCESSORS if one.name not in PUBLISHER_NAMES)
READ_MAX: Final = 10_000
CODEC: Final = Codec(topology().catalog())


# The publisher and the copy loop --------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=8)
def history(count: int, series: str) -> list[Given]:
    """Events of workflows, as the engine writes them: each instance is created, launched and ended."""
    found: list[Given] = []
    for number in range(-(-count // EVENTS_EACH)):
        workflow_id, instance_id = f"{series}-{number % WORKFLOWS}", number // WORKFLOWS + 1
        for event in _life(workflow_id, instance_id, BEGAN_AT_MS + number):
            found.append(Given(f"{series}-{len(found)}", workflow_id, CODEC.encode(event), type(event).__name__))
    return found[:count]


def _life(workflow_id: str, instance_id: int, at_ms: int) -> Iterable[c.InstanceCreated | Any]:
    yield c.InstanceCreated(
        request_id=f"request-{workflow_id}-{instance_id}",
        author="somebody",
        workflow_id=workflow_id,
        instance_id=instance_id,
        run_id=1,
        version=1,
        status=InstanceStatus.CREATED,
        initiator='{"type":"MANUAL"}',
        params="{}",
        correlation_id=f"{workflow_id}:{instance_id}:1",
        at_ms=at_ms,
    )
    yield c.InstanceLaunched(workflow_id, instance_id, 1, at_ms)
    yield c.InstanceEnded(workflow_id, instance_id, 1, InstanceStatus.SUCCEEDED, True, "", at_ms)


def numbering_faults(given: Iterable[Given], messages: Iterable[Any]) -> list[str]:
    """Each workflow's changes numbered without a gap, as many as there were events."""
    expected, found = Counter(one.key for one in given), Counter[str]()
    wrong = 0
    for message in messages:
        change: Any = CODEC.decode(message.value())
        found[change.workflow_id] += 1
        wrong += change.sequence != found[change.workflow_id]
    missing = sum((expected - found).values()) + sum((found - expected).values())
    return [f"{missing} missing or doubled"] * bool(missing) + [f"{wrong} wrongly numbered"] * bool(wrong)


def copying_faults(given: Iterable[Given], messages: Iterable[Any]) -> list[str]:
    """Everything copied once."""
    expected, found = Counter(one.value for one in given), Counter(message.value() for message in messages)
    return [] if expected == found else ["copies missing or doubled"]


PUBLISHING: Final = Route(
    source=WORKFLOW_EVENTS.name,
    sink=INSTANCE_CHANGES.name,
    group=PUBLISHER,
    create=ENGINE.create,
    records=history,
    identify=str,
    faults=numbering_faults,
)
COPYING: Final = Route(
    source="ticks",
    sink="counting.events",
    group="counting",
    create=create_counting,
    records=history,
    identify=str,
    faults=copying_faults,
)


def measure_copy(servers: str, *, quick: bool) -> dict[str, Any]:
    load = Load(records=30_000, warm_up=10_000) if quick else Load(records=200_000, warm_up=50_000)
    ours: dict[int, float] = {}
    theirs: dict[int, float] = {}
    for number in range(1 if quick else 3):
        with (
            Bench(servers, "publisher", PUBLISHING) as bench,
            Standby(bench, lambda place: member(place, (PUBLISHER,))) as standby,
        ):
            ours[number] = standby.measure(load).records_per_s
        with (
            Bench(servers, "copy", COPYING) as bench,
            Standby(bench, lambda place: python_peer("bare", place, "--protocol", "classic")) as standby,
        ):
            theirs[number] = standby.measure(load).records_per_s
    return {
        "publisher_vs_copy_loop": median_ratio(ours, theirs),
        "publisher_events_per_s": round(max(ours.values())),
        "copy_loop_records_per_s": round(max(theirs.values())),
    }


# The whole engine -----------------------------------------------------------------------------------------------------


def push(subject: KafkaSubject) -> None:
    """Workflows of one step that need no worker."""
    properties = {"owner": "me", "run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 1000}}
    for number in range(8):
        workflow = {"id": f"w-{number}", "steps": [{"step": {"id": "only", "type": "NoOp"}}]}
        text = json.dumps({"properties": properties, "workflow": workflow})
        subject.send([(f"w-{number}", c.PushVersion(f"push-{number}", "me", text))])


def start(number: int, series: str) -> tuple[str, c.StartInstances]:
    return f"w-{number % 8}", c.StartInstances("me", (c.Start(f"{series}-{number}"),))


def await_ends(subject: KafkaSubject, count: int) -> float:
    """Wait for this number of ends; returns the moment of the last."""
    deadline = time.monotonic() + DEADLINE_S
    while count > 0:
        count -= len(subject.events(c.InstanceEnded, 0.05))
        if time.monotonic() > deadline:
            raise Refused(f"Expected all instances to end in {DEADLINE_S} s, but {count} have not")
    return time.perf_counter()


def measure_lag(servers: str, *, quick: bool) -> dict[str, Any]:
    """Starts at a steady rate; each status is timed from the engine's own clock to the consumer's."""
    per_s, seconds = 50, 5 if quick else 20
    with Bench(servers, "lag", ENGINE) as bench, ExitStack() as opened:
        subject = KafkaSubject(bench, None)
        opened.callback(subject.close)
        push(subject)
        subject.send([start(number, "warm") for number in range(500)])
        await_ends(subject, 500)
        reader = watcher(servers, f"{bench.prefix}.{INSTANCE_CHANGES.name}")
        opened.callback(reader.close)
        _read(reader, 500 * EVENTS_EACH)
        lags: list[float] = []
        for number in range(per_s * seconds):
            until = time.perf_counter() + 1 / per_s
            subject.send([start(number, "steady")], at_once=True)
            while (left_s := until - time.perf_counter()) > 0:
                lags += _lags(reader, left_s)
        deadline = time.monotonic() + DEADLINE_S
        while len(lags) < per_s * seconds * EVENTS_EACH and time.monotonic() < deadline:
            lags += _lags(reader, 0.1)
    if len(lags) != per_s * seconds * EVENTS_EACH:
        raise Refused(f"Expected {per_s * seconds * EVENTS_EACH} changes, but found {len(lags)}")
    return {f"external_lag_p{percent}_ms": round(percentile(lags, percent), 1) for percent in (50, 99)}


def _read(reader: Any, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while count > 0 and time.monotonic() < deadline:
        count -= len(reader.consume(min(READ_MAX, count), 0.1))


def _lags(reader: Any, wait_s: float) -> list[float]:
    first = reader.poll(wait_s)
    messages = [] if first is None else [first, *reader.consume(READ_MAX, 0)]
    now_ms = time.time() * 1000
    changes: list[Any] = [CODEC.decode(one.value()) for one in messages if one.error() is None]
    return [now_ms - change.at_ms for change in changes]


def _flat_out(servers: str, hosted: Sequence[str], beside: Sequence[str], count: int, way: str | None = None) -> float:
    """Workflows a second in a process that hosts these, with those in another process, and with a bad sink."""
    with Bench(servers, "engine", ENGINE) as bench, ExitStack() as opened:
        subject = KafkaSubject(bench, None, hosted=hosted)
        opened.callback(subject.close)
        if beside:
            opened.enter_context(Program("publishers", member(bench.place("beside"), beside)))
        push(subject)
        receiver = None if way is None else opened.enter_context(sink(bench.place(), bench.state, way))
        subject.send([start(number, "warm") for number in range(count // 3)])
        await_ends(subject, count // 3)
        if receiver is not None:
            await_asked(receiver)
        began = time.perf_counter()
        subject.send([start(number, "load") for number in range(count)])
        speed = count / (await_ends(subject, count) - began)
        if receiver is not None:
            progress(f"a sink that {way} got all events {await_all(receiver, count + count // 3):.1f} s later")
        return speed


def measure_engine(servers: str, *, quick: bool) -> dict[str, Any]:
    count = 1_500 if quick else 6_000
    ways: dict[str, tuple[Sequence[str], Sequence[str]]] = {
        "without": (ENGINE_NAMES, ()),
        "with": ((), ()),
        "beside": (ENGINE_NAMES, PUBLISHER_NAMES),
    }
    found: dict[str, dict[int, float]] = {name: {} for name in ways}
    for number in range(1 if quick else 3):
        for name, (hosted, beside) in ways.items():
            found[name][number] = _flat_out(servers, hosted, beside, count)
            progress(f"engine {name} publishers: {found[name][number]:,.0f} workflows/s")
    return {
        "engine_with_publishers": median_ratio(found["with"], found["without"]),
        "engine_beside_publishers": median_ratio(found["beside"], found["without"]),
        "workflows_per_s": {name: round(max(speeds.values())) for name, speeds in found.items()},
    }


def measure_sinks(servers: str, *, quick: bool) -> dict[str, Any]:
    count = 1_500 if quick else 6_000
    found: dict[str | None, dict[int, float]] = {way: {} for way in (None, *(WAYS[:1] if quick else WAYS))}
    for number in range(1 if quick else 3):
        for way, speeds in found.items():
            speeds[number] = _flat_out(servers, (), (), count, way)
            progress(f"engine with {f'a sink that {way}' if way else 'no sink'}: {speeds[number]:,.0f} workflows/s")
    return {
        f"engine_with_sink_that_{way.replace(' ', '_')}": median_ratio(speeds, found[None])
        for way, speeds in found.items()
        if way is not None
    }


MEASURES: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "copy": measure_copy,
    "lag": measure_lag,
    "engine": measure_engine,
    "sinks": measure_sinks,
}


def main() -> int:
    with ExitStack() as opened:
        servers = functools.cache(lambda: opened.enter_context(open_broker(LASTING)).bootstrap_servers)
        parts = {name: _on(servers, measure) for name, measure in MEASURES.items()}
        return run("events", __doc__, parts, in_the_end=lambda _: {"partitions": PARTITIONS})


def _on(servers: Callable[[], str], measure: Callable[..., Figures]) -> Part:
    """A part on the broker that all share, which is started when the first one begins."""

    def part(*, quick: bool) -> Figures:
        return measure(servers(), quick=quick)

    return part


if __name__ == "__main__":
    sys.exit(main())
