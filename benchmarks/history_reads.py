"""The lag of the view behind a busy engine, and the time of a list out of many instances."""

import itertools
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.engine_kafka import KafkaSubject
from benchmarks.engine_measures import QUICK, Measures
from benchmarks.engine_work import NOOP, PARTITIONS, chain, start
from benchmarks.figures import percentile, progress
from benchmarks.harness import DEADLINE_S, Refused
from kapelle.api import BASE, ApiServer, ApiSettings, create_app
from kapelle.schemas.contracts import InstanceStatus
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal, KafkaJournal
from kapelle.topology.kafka.config import KafkaSettings
from kapelle.topology.page import topology
from kapelle.views import Views

RATE_PER_S: Final = 100
LOOK_S: Final = 0.001
SKIPPED: Final = 0.1  # the first ones meet cold connections
WORKFLOWS: Final = 64
PAGE: Final = 50
BEGAN_AT_MS: Final = 1_780_000_000_000
# Of a hundred instances so many: most lists are of those that are few.
STATUSES: Final = {
    InstanceStatus.SUCCEEDED: 90,
    InstanceStatus.FAILED: 5,
    InstanceStatus.STOPPED: 3,
    InstanceStatus.TIMED_OUT: 1,
    InstanceStatus.IN_PROGRESS: 1,
}


# The lag of the view --------------------------------------------------------------------------------------------------


def measure_lag(engine: KafkaSubject, *, seconds: float) -> dict[str, Any]:
    """Start workflows at a steady rate, and measure when the end of each is in the view."""
    measures = Measures(engine, QUICK)
    (workflow_id,) = measures.pushed("lag", chain(1, NOOP), 1)
    shape = topology(engine.bench.prefix, PARTITIONS)
    settings = KafkaSettings(bootstrap_servers=engine.bench.bootstrap_servers)
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(KafkaJournal(shape, settings)) as journal,
        Views(journal, Path(directory)) as views,
    ):
        if not views.catch_up(DEADLINE_S):
            raise Refused(f"Expected the view to catch up in {DEADLINE_S} s, but it did not")
        lags = _lags(engine, views, workflow_id, round(seconds * RATE_PER_S))
    lags = lags[round(len(lags) * SKIPPED) :]
    found = {f"view_lag_p{percent}_ms": round(percentile(lags, percent), 1) for percent in (50, 99)}
    progress(f"lag of the view at {RATE_PER_S} starts a second: {found}")
    return found


def _lags(engine: KafkaSubject, views: Views, workflow_id: str, count: int) -> list[float]:
    """For each instance the milliseconds from its end in the engine to its row in the view."""
    lags: list[float] = []
    open_: list[int] = []
    began, sent = time.monotonic(), 0
    while len(lags) < count:
        elapsed_s = time.monotonic() - began
        while sent < count and sent < elapsed_s * RATE_PER_S:
            sent += 1
            engine.send([start(workflow_id, sent)], at_once=True)
            open_.append(sent)
        ended = views.read(_ended, workflow_id, open_)
        now_ms = time.time() * 1000
        lags += [now_ms - at_ms for at_ms in ended.values()]
        open_ = [one for one in open_ if one not in ended]
        if elapsed_s > DEADLINE_S:
            raise Refused(f"Expected {count} instances to end in the view, but only {len(lags)} did")
        engine.check()
        time.sleep(LOOK_S)
    return lags


def _ended(connection: sqlite3.Connection, workflow_id: str, instances: list[int]) -> dict[int, int]:
    found = {}
    for one in instances:
        row = connection.execute(
            "SELECT ended_at_ms FROM runs WHERE workflow_id = ? AND instance_id = ? AND run_id = 1", (workflow_id, one)
        ).fetchone()
        if row is not None and row["ended_at_ms"] is not None:
            found[one] = row["ended_at_ms"]
    return found


# A list ---------------------------------------------------------------------------------------------------------------


def measure_list(instances: int, *, requests: int) -> dict[str, Any]:
    """Ask an API node for pages by status: the first of each status, and the ones that follow it."""
    with _node() as (views, http):
        began = time.perf_counter()
        _fill(views, instances)
        progress(f"{instances:,} instances written in {time.perf_counter() - began:.1f} s")
        times = list(itertools.islice(_asked(http), requests))
    found = {f"list_p{percent}_ms": round(percentile(times, percent), 2) for percent in (50, 99)}
    progress(f"a list of {PAGE} out of {instances:,}: {found}")
    return {**found, "list_instances": instances}


@contextmanager
def _node() -> Iterator[tuple[Views, httpx.Client]]:
    with ExitStack() as opened:
        directory = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        runtime = opened.enter_context(EmbeddedRuntime(topology(partitions=1), directory / "log"))
        runtime.start()
        views = opened.enter_context(Views(EmbeddedJournal(runtime), directory / "views"))
        app = create_app(views.journal, views, ApiSettings())
        server = opened.enter_context(ApiServer(app, "127.0.0.1", 0))
        yield views, opened.enter_context(httpx.Client(base_url=f"{server.url}{BASE}", timeout=60))


def _fill(views: Views, instances: int) -> None:
    """Rows as the fold writes them, without the events that would be folded: those would take half an hour."""
    with views.database.writing() as connection:
        connection.executemany(
            """INSERT INTO runs (workflow_id, instance_id, run_id, status, rank, version, request_id, author, initiator,
            params, run_params, correlation_id, created_at_ms, started_at_ms, ended_at_ms)
            VALUES (?1, ?2, 1, ?3, ?4, 1, ?1 || ?2, 'ann', '{"type":"MANUAL"}', '{}', '{}', ?1 || ?2, ?5, ?5, ?5)""",
            ((*key, status, _rank(status), at_ms) for key, status, at_ms in _instances(instances)),
        )
        connection.executemany(
            """INSERT INTO instances (workflow_id, instance_id, run_id, status, grade, created_at_ms)
            VALUES (?, ?, 1, ?, ?, ?)""",
            ((*key, status, 10 + _rank(status), at_ms) for key, status, at_ms in _instances(instances)),
        )


def _instances(count: int) -> Iterator[tuple[tuple[str, int], str, int]]:
    """Key, status and time of each: workflows in turn, statuses mixed."""
    statuses = [status.value for status, share in STATUSES.items() for _ in range(share)]
    for number in range(count):
        key = (f"etl-{number % WORKFLOWS}", number // WORKFLOWS + 1)
        yield key, statuses[number * 37 % len(statuses)], BEGAN_AT_MS + number


def _rank(status: str) -> int:
    """How far a status is, as the view counts it."""
    return 2 if status == InstanceStatus.IN_PROGRESS else 3


def _asked(http: httpx.Client) -> Iterator[float]:
    """For each request the milliseconds until its answer."""
    for number in itertools.count():
        status, cursor = list(STATUSES)[number % len(STATUSES)], None
        for _ in range(3):
            params = {"status": status.value, "first": PAGE} | ({"cursor": cursor} if cursor else {})
            began = time.perf_counter()
            answer = http.get("/workflows/instances", params=params)
            yield (time.perf_counter() - began) * 1000
            body = answer.raise_for_status().json()
            if {one["status"] for one in body["elements"]} != {status.value} or len(body["elements"]) != PAGE:
                raise Refused(f"Expected {PAGE} instances that are {status.value}, but found {body['elements']!r:.200}")
            cursor = body["page_info"]["end_cursor"]
