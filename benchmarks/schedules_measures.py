"""What schedules cost and how late they are, on any log: idle, steady, and in a herd with others beside it.

The engine is in another thread or process; here is its client. A tick is late by the time from its scheduled time until
its instance is read. Every tick must have started one instance, or no figure is reported.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from benchmarks.engine_work import AUTHOR
from benchmarks.figures import percentile, progress
from benchmarks.harness import Refused
from benchmarks.schedules_growth import push
from kapelle.processors.streams import Stream
from kapelle.processors.wiring import SIGNAL_EVENTS, SIGNALS, WORKFLOW_COMMANDS, WORKFLOW_EVENTS
from kapelle.schemas import Codec, Contract
from kapelle.schemas import contracts as c

TRIGGERS: Final = 200  # of one workflow, at most
DAY_S: Final = 86_400
LEAD_S: Final = 3.0  # before the first tick
PUSH_S_MAX: Final = 600.0
LATE_S_MAX: Final = 120.0
ZONES: Final = ("Europe/Berlin", "America/New_York", "UTC")
PARALLEL: Final = {"rule": "PARALLEL", "workflow_concurrency": 1_000}
PROBES_PER_S: Final = 20.0
PROBE: Final = "bystander"
READ_WAIT_S: Final = 0.2
SETTLE_S: Final = 3.0

Message = tuple[Stream, str, Contract]
Read = Callable[[float], Iterable[bytes]]  # what is new; waits only while there is nothing
# Makes the message of a name, and tells which name an event answers.
Probe = tuple[Callable[[str], Message], Callable[[object], str | None]]


class Log(Protocol):
    """The engine on some log, as a client sees it."""

    codec: Codec

    def publish(self, messages: Sequence[Message], *, is_patient: bool = True) -> None:
        """Publish in order, at once. With `is_patient`, wait until all are durable."""
        ...

    def reader(self, stream: Stream) -> Read:
        """A reader of a stream, from its end on."""
        ...

    def engine_cpu_s(self) -> float:
        """CPU seconds so far of the engine's loop."""
        ...

    def process_cpu_s(self) -> float:
        """CPU seconds so far of the engine's process."""
        ...


@dataclass(frozen=True)
class Sizes:
    """The sizes of the measurements."""

    idle_schedules: int
    idle_s: float
    steady_per_s: int
    steady_s: float
    herd: int
    quiet_s: float
    growth: int
    growth_samples: int


FULL: Final = Sizes(
    idle_schedules=100_000,
    idle_s=60.0,
    steady_per_s=20,
    steady_s=60.0,
    herd=10_000,
    quiet_s=10.0,
    growth=100_000,
    growth_samples=12_000,
)
QUICK: Final = Sizes(
    idle_schedules=4_000,
    idle_s=5.0,
    steady_per_s=20,
    steady_s=5.0,
    herd=1_000,
    quiet_s=3.0,
    growth=10_000,
    growth_samples=2_400,
)


class Measures:
    """The measurements on one log."""

    def __init__(self, log: Log, sizes: Sizes) -> None:
        self.log = log
        self.sizes = sizes
        self._events = log.reader(WORKFLOW_EVENTS)

    def all(self) -> dict[str, float]:
        """Every figure."""
        self._push({PROBE: []})
        self._starts(1.0)  # warm up
        base = self._cpu("without schedules")
        figures = {"base_cpu_percent": base["loop"], **self.herd(), **self.steady(), **self.idle()}
        return {name: round(value, 2) for name, value in figures.items()}

    # Idle -------------------------------------------------------------------------------------------------------------

    def idle(self) -> dict[str, float]:
        """Many schedules that tick once a day, at all times of the day."""
        count = self.sizes.idle_schedules
        began = time.monotonic()
        triggers = [_daily(number * DAY_S // count, ZONES[number % len(ZONES)]) for number in range(count)]
        self._push(_spread("idle", triggers))
        push_s = time.monotonic() - began
        progress(f"{count:,} schedules were armed in {push_s:.1f} s")
        time.sleep(SETTLE_S)
        self._read(0.0)
        spent = self._cpu(f"with {count:,} schedules")
        ticks = len(self._ticked())
        return {
            "idle_schedules": count,
            "idle_cpu_percent": spent["loop"],
            "idle_process_cpu_percent": spent["process"],
            "idle_ticks": ticks,
            "armed_per_s": count / push_s,
        }

    def _cpu(self, what: str) -> dict[str, float]:
        """The CPU of a core that the engine takes, in percent."""
        began, loop_s, process_s = time.monotonic(), self.log.engine_cpu_s(), self.log.process_cpu_s()
        time.sleep(self.sizes.idle_s)
        passed_s = time.monotonic() - began
        loop = 100 * (self.log.engine_cpu_s() - loop_s) / passed_s
        process = 100 * (self.log.process_cpu_s() - process_s) / passed_s
        progress(f"{what}: {loop:.2f} % of a core in the loop, {process:.2f} % in the process")
        return {"loop": loop, "process": process}

    # Steady -----------------------------------------------------------------------------------------------------------

    def steady(self) -> dict[str, float]:
        """Ticks one after the other."""
        count = int(self.sizes.steady_per_s * self.sizes.steady_s)
        first_ms = _soon_ms(LEAD_S + count / 500)
        space_ms = 1_000 / self.sizes.steady_per_s
        triggers = [_once(first_ms + int(number * space_ms), number) for number in range(count)]
        self._push(_spread("steady", triggers))
        late = self._late(count, self.sizes.steady_s + LATE_S_MAX)
        decided = [ms for _, ms in late]
        read = [ms for ms, _ in late]
        figures = {"late_p50_ms": percentile(read, 50), "late_p99_ms": percentile(read, 99)}
        figures |= {"decided_late_p50_ms": percentile(decided, 50), "decided_late_p99_ms": percentile(decided, 99)}
        progress(f"{count} ticks: {', '.join(f'{name} {value:.1f}' for name, value in figures.items())}")
        return figures

    # A herd -----------------------------------------------------------------------------------------------------------

    def herd(self) -> dict[str, float]:
        """All at one instant, with starts and signals beside them."""
        count = self.sizes.herd
        quiet = self._beside(self.sizes.quiet_s)
        at_ms = _soon_ms(LEAD_S + count / 500)
        self._push(_spread("herd", [_once(at_ms, number) for number in range(count)]))
        time.sleep(max(at_ms / 1_000 - time.time() - 0.2, 0.0))
        result: list[dict[str, float]] = []
        over = threading.Event()
        beside = threading.Thread(target=lambda: result.append(self._beside(LATE_S_MAX, over)))
        beside.start()
        try:
            late = self._late(count, LATE_S_MAX)
        finally:
            over.set()
            beside.join()
        drain_s = max(ms for ms, _ in late) / 1_000
        figures: dict[str, float] = {"herd_ticks": count, "herd_drain_s": drain_s, "herd_ticks_per_s": count / drain_s}
        figures |= {f"herd_{name}": value for name, value in result[0].items()}
        figures |= {f"quiet_{name}": value for name, value in quiet.items()}
        progress(f"{count:,} ticks at one instant: {', '.join(f'{n} {v:.1f}' for n, v in figures.items())}")
        return figures

    def _beside(self, seconds: float, over: threading.Event | None = None) -> dict[str, float]:
        """Starts and signals at the same time, each twenty a second."""
        over = over or threading.Event()
        found: dict[str, list[float]] = {}
        probes = {"start": self._starts, "signal": self._signals}
        threads = [
            threading.Thread(target=lambda name=name, probe=probe: found.update({name: probe(seconds, over)}))
            for name, probe in probes.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if missing := probes.keys() - found.keys():
            raise Refused(f"Expected an answer to each probe, but some {' and '.join(missing)} had none")
        return {f"{name}_p99_ms": percentile(values, 99) for name, values in found.items()}

    def _starts(self, seconds: float, over: threading.Event | None = None) -> list[float]:
        """From the moment at which a start is to be published to reading the end of its instance."""
        created: dict[int, str] = {}

        def ask(name: str) -> Message:
            return WORKFLOW_COMMANDS, PROBE, c.StartInstances(AUTHOR, (c.Start(name),))

        def answered(event: object) -> str | None:
            if isinstance(event, c.InstanceCreated) and event.workflow_id == PROBE:
                created[event.instance_id] = event.request_id
            if isinstance(event, c.InstanceEnded) and event.workflow_id == PROBE:
                return created.get(event.instance_id)
            return None

        return self._probe(WORKFLOW_EVENTS, (ask, answered), seconds, over or threading.Event())

    def _signals(self, seconds: float, over: threading.Event | None = None) -> list[float]:
        """From the moment at which a signal is to be announced to reading that it was accepted."""

        def ask(name: str) -> Message:
            return SIGNALS, PROBE, c.AnnounceSignal(PROBE, name, json.dumps({"n": 1}))

        def answered(event: object) -> str | None:
            return event.signal_id if isinstance(event, c.SignalAccepted) else None

        return self._probe(SIGNAL_EVENTS, (ask, answered), seconds, over or threading.Event())

    def _probe(self, stream: Stream, probe: Probe, seconds: float, over: threading.Event) -> list[float]:
        """Ask at a steady pace, whether the answers come or not. Returns how long each answer took."""
        (ask, answered), read, found = probe, self.log.reader(stream), list[float]()
        began, name, number = time.monotonic(), f"{stream.name}-{time.time_ns()}", 0
        left: dict[str | None, float] = {}
        while True:
            planned = began + number / PROBES_PER_S
            is_over = planned > began + seconds or over.is_set()
            if is_over and not left:
                return found
            if not is_over and time.monotonic() >= planned:
                number += 1
                left[f"{name}-{number}"] = planned
                self.log.publish([ask(f"{name}-{number}")], is_patient=False)
            for data in read(READ_WAIT_S if is_over else max(min(planned - time.monotonic(), READ_WAIT_S), 0.0)):
                asked = left.pop(answered(self.log.codec.decode(data)), None)
                found += [] if asked is None else [(time.monotonic() - asked) * 1_000]
            if time.monotonic() > planned + LATE_S_MAX:
                raise Refused(f"Expected answers within {LATE_S_MAX} s, but {len(left)} are left")

    # The client -------------------------------------------------------------------------------------------------------

    def _push(self, workflows: dict[str, list[dict[str, Any]]]) -> None:
        """Push workflows, and wait until all are active."""
        pushes = [(WORKFLOW_COMMANDS, name, push(name, triggers, PARALLEL)) for name, triggers in workflows.items()]
        self.log.publish(pushes)
        left, deadline = set(workflows), time.monotonic() + PUSH_S_MAX
        while left:
            for event in self._read(READ_WAIT_S):
                if isinstance(event, c.CommandRefused):
                    raise Refused(f"Expected to push, but {event.message}: {event.errors[:3]}")
                if isinstance(event, c.CommandSettled) and event.request_id.endswith("-push"):
                    left.discard(event.request_id.removesuffix("-push"))
            if time.monotonic() > deadline:
                raise Refused(f"Expected {len(workflows)} workflows within {PUSH_S_MAX} s, but {len(left)} are left")

    def _read(self, wait_s: float) -> list[Contract]:
        return [self.log.codec.decode(data) for data in self._events(wait_s)]

    def _ticked(self) -> list[tuple[float, int]]:
        """How late the new ticks are: until they are read, and until they were decided on, in milliseconds."""
        events = self._read(READ_WAIT_S)
        now_ms = time.time() * 1_000
        ticked = [event for event in events if isinstance(event, c.ScheduleTicked)]
        if wrong := [event for event in ticked if event.passed_over or not all(tick.is_new for tick in event.ticks)]:
            raise Refused(f"Expected each tick to start one instance, but found {wrong[0]}")
        return [(now_ms - tick.scheduled_at_ms, tick.late_ms) for event in ticked for tick in event.ticks]

    def _late(self, count: int, within_s: float) -> list[tuple[float, int]]:
        """How late a number of ticks are."""
        found, deadline = list[tuple[float, int]](), time.monotonic() + within_s + LEAD_S + count / 500
        while len(found) < count:
            found += self._ticked()
            if time.monotonic() > deadline:
                raise Refused(f"Expected {count} ticks within {within_s} s, but found {len(found)}")
        return found


def _soon_ms(seconds: float) -> int:
    return int(time.time() + seconds) * 1_000


def _daily(second: int, zone: str) -> dict[str, Any]:
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return {"type": "CRON", "cron": f"{second} {minute} {hour} * * ?", "timezone": zone}


def _once(at_ms: int, number: int) -> dict[str, Any]:
    """A trigger that ticks then, and not again for a day. The interval makes it another one than the others."""
    return {"type": "INTERVAL", "interval": DAY_S + number % TRIGGERS, "anchor": at_ms, "start": at_ms}


def _spread(name: str, triggers: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Triggers on as few workflows as may have them."""
    pieces = [list(triggers[at : at + TRIGGERS]) for at in range(0, len(triggers), TRIGGERS)]
    return {f"{name}-{number}": piece for number, piece in enumerate(pieces)}
