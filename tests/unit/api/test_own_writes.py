"""Reads after writes: with a view that is held back on purpose, nobody misses what they wrote themselves."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kapelle.api import BASE, ApiServer, ApiSettings, create_app
from kapelle.processors.streams import Stream
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal, Entry, Follower, JournalUnavailable, Point, Position
from kapelle.topology.page import topology
from kapelle.views import Views
from tests.integration.api.places import Place, definition, step

START = "/workflows/etl/versions/active/actions/start"


class HeldFollower:
    """A follower that gives nothing while it is held back, and fails when it is told to."""

    def __init__(self, inner: Follower, journal: "HeldJournal") -> None:
        self._inner = inner
        self._journal = journal
        self._closed = threading.Event()

    @property
    def positions(self) -> Mapping[Point, int]:
        return self._inner.positions

    def take(self, records_max: int, wait_s: float) -> Sequence[Entry]:
        entries = self._inner.take(records_max, wait_s)
        while not self._journal.open.wait(0.02) and not self._closed.is_set():
            pass
        if self._journal.broken:
            raise OSError("the disk is on fire")
        return entries

    def close(self) -> None:
        self._closed.set()
        self._inner.close()


class HeldJournal(EmbeddedJournal):
    """A journal whose followers can be held back, and that can be told to take nothing."""

    def __init__(self, runtime: EmbeddedRuntime) -> None:
        super().__init__(runtime)
        self.open = threading.Event()
        self.open.set()
        self.broken = self.is_away = False

    def publish(self, *what: Any) -> "Future[Position]":
        if self.is_away:
            raise JournalUnavailable("take a record", "the broker is away")
        return super().publish(*what)

    def follow(self, streams: Sequence[Stream], starts: Mapping[Point, int]) -> HeldFollower:  # type: ignore[override]
        return HeldFollower(super().follow(streams, starts), self)


@contextmanager
def held_place(directory: Path) -> Iterator[tuple[Place, HeldJournal, ApiServer]]:
    with ExitStack() as opened:
        runtime = opened.enter_context(EmbeddedRuntime(topology(partitions=2), directory / "log"))
        runtime.start()
        journal = HeldJournal(runtime)
        views = opened.enter_context(Views(journal))
        app = create_app(journal, views, ApiSettings(claim_ms=200))
        server = opened.enter_context(ApiServer(app, "127.0.0.1", 0))
        place = Place(server, journal, views)
        opened.enter_context(place.http)
        yield place, journal, server


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Place, HeldJournal]]:
    with held_place(tmp_path) as (place, journal, _):
        yield place, journal


def test_a_write_is_not_answered_before_the_view_has_seen_it(held: tuple[Place, HeldJournal]) -> None:
    place, journal = held
    place.push(workflow_id="etl")
    journal.open.clear()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(place.start, "etl")
        before = place.http.get("/workflows/etl/instances/1").status_code
        journal.open.set()
        instance_id = waiting.result(10)

    assert before == 404
    assert place.get(f"/workflows/etl/instances/{instance_id}")["workflow_instance_id"] == 1


def test_a_write_that_is_not_seen_in_time_is_accepted_and_can_be_waited_for(held: tuple[Place, HeldJournal]) -> None:
    place, journal = held
    place.push(workflow_id="etl")
    journal.open.clear()

    response = place.http.post(START, json={"request_id": "mine"}, params={"wait_ms": 20})
    early = place.http.get("/workflows/etl/instances/1", params={"wait_for": "mine", "wait_ms": 20})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(place.get, "/workflows/etl/instances/1", wait_for="mine")
        journal.open.set()
        seen = waiting.result(10)

    assert (response.status_code, response.json()) == (202, {"request_id": "mine", "status": "ACCEPTED"})
    assert (early.status_code, early.headers["Retry-After"]) == (412, "1")
    assert seen["workflow_uuid"] == "mine"


def test_every_read_after_a_write_sees_it_while_the_view_stumbles(held: tuple[Place, HeldJournal]) -> None:
    place, journal = held
    done = threading.Event()

    def stumble() -> None:
        while not done.wait(0.003):
            journal.open.clear()
            done.wait(0.01)
            journal.open.set()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(stumble)
        try:
            for number in range(10):
                name = place.push(step("work", "nobody"))
                assert place.get(f"/workflows/{name}/versions/active")["is_active"]
                instance_id = place.start(name)
                assert place.get(f"/workflows/{name}/instances/{instance_id}")["workflow_instance_id"] == 1
                stopped = place.call("PUT", f"/workflows/{name}/instances/1/actions/stop")
                assert place.get(f"/workflows/{name}/instances/1")["status"] == stopped["workflow_status"] == "STOPPED"
                place.call("PUT", f"/workflows/{name}/actions/deactivate")
                assert place.get(f"/workflows/{name}/overview")["active_version_id"] is None
                place.call("POST", f"/workflows/{name}/properties", json={"description": f"number {number}"})
                found = place.get(f"/workflows/{name}/properties-snapshot/latest")
                assert found["description"] == f"number {number}"
        finally:
            done.set()


def test_a_task_that_was_granted_late_is_handed_out_with_the_next_poll(held: tuple[Place, HeldJournal]) -> None:
    place, journal = held
    name = place.push(step("work", "slow"))
    place.start(name)
    poll = {"worker": "w", "types": ["slow"], "max": 1, "wait_ms": 0}
    place.views.catch_up()
    journal.open.clear()

    missed = place.call("POST", "/tasks/poll", json=poll)
    other = place.call("POST", "/tasks/poll", json={**poll, "worker": "other"})
    journal.open.set()
    found = place.call("POST", "/tasks/poll", json={**poll, "wait_ms": 5_000})

    assert (missed["tasks"], other["tasks"]) == ([], [])
    assert [task["step_id"] for task in found["tasks"]] == ["work"]


def test_a_log_that_is_away_is_told_as_such(held: tuple[Place, HeldJournal]) -> None:
    place, journal = held
    place.push(step("work", "slow"), workflow_id="etl")
    place.start("etl")
    place.views.catch_up()
    journal.is_away = True

    response = place.http.post(START, json={})
    poll = place.http.post("/tasks/poll", json={"worker": "w", "types": ["slow"]})
    journal.is_away = False

    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert "the broker is away" in response.json()["detail"]
    assert poll.status_code == 503
    assert place.take("slow")[0]["step_id"] == "work"


def test_a_view_that_has_failed_is_told_by_health_and_by_writes(held: tuple[Place, HeldJournal]) -> None:
    place, journal = held
    place.push(workflow_id="etl")
    journal.broken = True
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(place.http.post, START, json={})
        response = waiting.result(10)

    health = httpx.get(f"{place.url}/health")

    assert response.status_code == 503
    assert health.status_code == 503
    assert "on fire" in health.json()["detail"]


def test_an_engine_that_has_failed_is_told_by_health(tmp_path: Path) -> None:
    with held_place(tmp_path) as (place, journal, _):
        journal._runtime.failure = RuntimeError("a bug")

        health = httpx.get(f"{place.url}/health")
        journal._runtime.failure = None

    assert (health.status_code, health.json()["status"]) == (503, "failed")


def test_a_server_that_is_stopped_lets_waiting_workers_go(tmp_path: Path) -> None:
    with held_place(tmp_path) as (place, _, server):
        body = {"worker": "w", "types": ["nothing"], "wait_ms": 30_000}
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(place.http.post, "/tasks/poll", json=body)
            place.call("POST", "/workflows", json=definition("etl"))
            server.stop()
            response = waiting.result(10)

    assert response.json() == {"tasks": [], "cancelled": []}


def test_the_base_of_all_paths_is_that_of_the_documents() -> None:
    assert BASE == "/api/v3"
