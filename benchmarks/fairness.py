"""How long others wait while one workflow causes as much load as it can: a bystander's starts on `kapelle dev`.

    python -m benchmarks.fairness [--quick] [--only quiet,starts,…]

    bystander_p50_ms, bystander_p99_ms   by case: from the request to start a workflow of one NoOp step until its end is
                                         read, ten starts a second, over HTTP; `…_max_ms`
    bystander_failed                     by case: starts that were refused or did not end in time
    worst_p99_ms                         of all cases but the quiet one

The cases:

    quiet       there is no other load
    starts      starts that give twenty parameters of two million visits each, one start after the other
    budget      the same with parameters that together are just within the budget of a start
    pushes      the workflow with parameters of two million visits, pushed repeatedly
    loop        one run of a loop of NoOp steps with 25,000 iterations
    loops       twelve such runs
    validate    six callers that validate the heavy workflow repeatedly
    stream      four callers that start a workflow of a hundred NoOp steps, one start after the other

Each case has its own server. Progress goes to stderr; the last line on stdout is one JSON object.
"""

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.command import Figures, run
from benchmarks.figures import percentile, progress
from benchmarks.harness import Refused
from tests.integration.ways_in import running

BYSTANDER: Final = "bystander"
TENANT: Final = "tenant"
EVERY_S: Final = 0.1
POLL_S: Final = 0.004
PATIENCE_S: Final = 30.0
SECONDS: Final = {True: 6.0, False: 30.0}
WARM_UP: Final = 10  # starts that are not counted
HEAVY_PARAMS: Final = 20
ROUNDS: Final = 25_000
CHAIN: Final = range(100)
LOOP: Final = "for (int i = 0; i < {rounds}; i += 1) {{ s = s + i % 7 * 3 - i % 5 * 2; }} "
HEAVY: Final = "int s = 0; " + LOOP.format(rounds=24_000) * 3 + "return s;"  # two million visits
LIGHTER: Final = "int s = 0; " + LOOP.format(rounds=400) + "return s;"  # twenty of them take 200,000 visits

Json = dict[str, Any]


def workflow(workflow_id: str, steps: list[Json], params: Json | None = None) -> Json:
    """The request that pushes a workflow."""
    return {
        "properties": {"owner": "ann", "run_strategy": "PARALLEL"},
        "workflow": {"id": workflow_id, "steps": [{"step": one} for one in steps], "params": params or {}},
    }


def noop(step_id: str, successors: Mapping[str, str] | None = None, params: Json | None = None) -> Json:
    """A step that is done at once."""
    return {
        "id": step_id,
        "type": "NoOp",
        "transition": {"successors": dict(successors or {})},
        "params": params or {},
    }


def heavy_params(expression: str = HEAVY) -> Json:
    """Twenty parameters of this expression."""
    return {f"p{number}": {"type": "LONG", "expression": expression} for number in range(HEAVY_PARAMS)}


def heavy() -> Json:
    """A workflow that has them."""
    return workflow(TENANT, [noop("a")], heavy_params())


def looping() -> Json:
    """A workflow with a loop."""
    counted = {"n": {"type": "LONG", "expression": "params.getFromStep('step_instance_id')"}}
    return workflow(TENANT, [noop("a", {"a": f"n < {ROUNDS}", "out": "true"}, counted), noop("out")])


def long_chain() -> Json:
    """A workflow of a hundred steps."""
    return workflow(
        TENANT, [noop(f"s{number}", {f"s{number + 1}": "true"} if number < 99 else {}) for number in range(100)]
    )


class Server:
    """The API of one `kapelle dev`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=f"{url}/api/v3", timeout=PATIENCE_S, headers={"user": "ann"})

    def push(self, request: Json) -> httpx.Response:
        return self.http.post("/workflows", json=request)

    def validate(self, request: Json) -> httpx.Response:
        return self.http.put("/workflows/actions/validate", json=request)

    def start(self, workflow_id: str, run_params: Json | None = None) -> httpx.Response:
        body = {"run_params": run_params} if run_params else {}
        return self.http.post(f"/workflows/{workflow_id}/versions/active/actions/start", json=body)

    def start_and_wait(self) -> float | None:
        """Milliseconds until a start of the bystander is seen to have ended; None if it did not in time."""
        began = time.perf_counter()
        try:
            answer = self.start(BYSTANDER)
            if answer.status_code >= 300:
                return None
            number = answer.json()["workflow_instance_id"]
            while time.perf_counter() - began < PATIENCE_S:
                found = self.http.get(f"/workflows/{BYSTANDER}/instances/{number}")
                if found.status_code < 300 and found.json()["status"] == "SUCCEEDED":
                    return (time.perf_counter() - began) * 1000
                time.sleep(POLL_S)
        except httpx.HTTPError:
            return None
        return None


class Tenant:
    """Threads that repeat the same request until told to stop. They continue after any answer."""

    def __init__(self, url: str, count: int, act: Callable[[Server], Any]) -> None:
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._go, args=(url, act), daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def _go(self, url: str, act: Callable[[Server], Any]) -> None:
        server = Server(url)
        while not self._stop.is_set():
            with suppress(httpx.HTTPError):
                act(server)

    def stop(self) -> None:
        self._stop.set()


def _quiet(_: Server) -> None:
    return None


def _starts(server: Server, expression: str = HEAVY) -> Tenant:
    light = {name: {"type": "LONG", "value": 1} for name in heavy_params()}
    server.push(workflow(TENANT, [noop("a")], light)).raise_for_status()
    return Tenant(server.url, 1, lambda one: one.start(TENANT, heavy_params(expression)))


def _budget(server: Server) -> Tenant:
    server.push(workflow(TENANT, [noop("a")], heavy_params(LIGHTER))).raise_for_status()
    server.start(TENANT).raise_for_status()
    return _starts(server, LIGHTER)


def _pushes(server: Server) -> Tenant:
    return Tenant(server.url, 1, lambda one: one.push(heavy()))


def _loop(server: Server, count: int = 1) -> None:
    server.push(looping()).raise_for_status()
    for _ in range(count):
        server.start(TENANT).raise_for_status()


def _loops(server: Server) -> None:
    _loop(server, 12)


def _validate(server: Server) -> Tenant:
    return Tenant(server.url, 6, lambda one: one.validate(heavy()))


def _stream(server: Server) -> Tenant:
    server.push(long_chain()).raise_for_status()
    return Tenant(server.url, 4, lambda one: one.start(TENANT))


CASES: Final[Mapping[str, Callable[[Server], Tenant | None]]] = {
    "quiet": _quiet,
    "starts": _starts,
    "budget": _budget,
    "pushes": _pushes,
    "loop": _loop,
    "loops": _loops,
    "validate": _validate,
    "stream": _stream,
}


def measure(name: str, *, quick: bool) -> Figures:
    """The bystander's times in one case."""
    with tempfile.TemporaryDirectory(prefix="fairness-") as directory:
        folder = Path(directory)
        with running(["dev", "--port", "0", "--data", "data"], folder) as dev:
            server = Server(dev.url())
            server.push(workflow(BYSTANDER, [noop("only")])).raise_for_status()
            for _ in range(WARM_UP):
                server.start_and_wait()
            tenant = CASES[name](server)
            times, failed = _sampled(server, SECONDS[quick])
            if tenant is not None:
                tenant.stop()
            if dev.process.poll() is not None:
                raise Refused(f"Expected kapelle dev to be running, but it ended: {dev.said[-2_000:]}")
            dev.process.kill()  # what is left of the tenant's work is of no interest
    if not times:
        raise Refused(f"Expected starts of the bystander to end, but none of {failed} did")
    p50, p99 = (round(percentile(times, percent), 1) for percent in (50, 99))
    progress(f"{name}: p50 {p50} ms, p99 {p99} ms, max {max(times):.1f} ms of {len(times)} starts, {failed} failed")
    return {
        f"{name}_bystander_p50_ms": p50,
        f"{name}_bystander_p99_ms": p99,
        f"{name}_bystander_max_ms": round(max(times), 1),
        f"{name}_bystander_failed": failed,
    }


def _sampled(server: Server, seconds: float) -> tuple[list[float], int]:
    times: list[float] = []
    failed = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        took_ms = server.start_and_wait()
        if took_ms is None:
            failed += 1
        else:
            times.append(took_ms)
        time.sleep(max(0.0, EVERY_S - (time.monotonic() - began)))
    return times, failed


def worst(figures: Figures) -> Figures:
    """The figure of the goal."""
    found = [value for name, value in figures.items() if name.endswith("_p99_ms") and not name.startswith("quiet")]
    return {"worst_p99_ms": max(found)} if found else {}


if __name__ == "__main__":
    parts = {name: partial(measure, name) for name in CASES}
    sys.exit(run("fairness", __doc__, parts, in_the_end=worst))
