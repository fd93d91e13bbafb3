"""Reads that must not be too old: on a node that is held back on purpose, nobody misses what they wrote on another."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from kapelle.api import ApiServer, create_app
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.journal import EmbeddedJournal
from kapelle.topology.page import topology
from kapelle.views import Views
from tests.integration.api.places import PATIENT, Place, step
from tests.unit.api.test_own_writes import HeldJournal

WATERMARK = "Kapelle-Watermark"


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Place, Place, HeldJournal]]:
    """Two nodes on one log. The second can be held back."""
    with ExitStack() as opened:
        runtime = opened.enter_context(EmbeddedRuntime(topology(partitions=2), tmp_path / "log"))
        runtime.start()
        held = HeldJournal(runtime)
        places = []
        for journal in (EmbeddedJournal(runtime), held):
            views = opened.enter_context(Views(journal))
            server = opened.enter_context(ApiServer(create_app(journal, views, PATIENT), "127.0.0.1", 0))
            place = Place(server, journal, views)
            opened.enter_context(place.http)
            places.append(place)
        yield places[0], places[1], held


def started(place: Place) -> httpx.Response:
    name = place.push(step("work", "nobody"), workflow_id="etl")
    response = place.http.post(f"/workflows/{name}/versions/active/actions/start", json={})
    assert response.status_code == 200
    return response


def test_a_read_on_a_node_that_lags_waits_for_what_was_written_on_another(
    nodes: tuple[Place, Place, HeldJournal],
) -> None:
    here, there, held = nodes
    there.views.catch_up()
    held.open.clear()
    written = started(here)

    without = there.http.get("/workflows/etl/instances/1")
    with ThreadPoolExecutor(1) as pool:
        headers = {WATERMARK: written.headers[WATERMARK]}
        waiting = pool.submit(there.http.get, "/workflows/etl/instances/1", headers=headers)
        held.open.set()
        seen = waiting.result(60)

    assert without.status_code == 404
    assert (seen.status_code, seen.json()["workflow_instance_id"]) == (200, 1)


def test_a_read_that_waits_in_vain_tells_how_far_the_view_is(nodes: tuple[Place, Place, HeldJournal]) -> None:
    here, there, held = nodes
    there.views.catch_up()
    held.open.clear()
    mark = started(here).headers[WATERMARK]

    response = there.http.get("/workflows/etl/instances", headers={WATERMARK: mark}, params={"wait_ms": 20})
    by_hand = there.http.get("/workflows", params={"wait_ms": 20, "min_offset": "runs.events-0:1000000"})
    held.open.set()

    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert response.headers["Content-Type"] == "application/problem+json"
    assert any("workflows.events-" in line and "the view is at 0" in line for line in response.json()["errors"])
    assert by_hand.status_code == 400  # the log is not that long, so nobody can have been told of that place
    assert by_hand.json()["errors"][0].startswith("runs.events-0: wanted 1000000, but the log ends at ")


def test_every_write_on_one_node_is_seen_by_the_next_read_on_another(nodes: tuple[Place, Place, HeldJournal]) -> None:
    here, there, held = nodes
    name = here.push(step("work", "nobody"))

    for number in range(1, 16):
        held.open.clear()
        written = here.http.post(f"/workflows/{name}/versions/active/actions/start", json={})
        held.open.set()
        mark = {WATERMARK: written.headers[WATERMARK]}
        found = there.http.get(f"/workflows/{name}/instances/{number}", headers=mark)
        assert found.status_code == 200, (number, found.text)
        stopped = here.http.put(f"/workflows/{name}/instances/{number}/actions/stop")
        after = there.http.get(f"/workflows/{name}/instances/{number}", headers={WATERMARK: stopped.headers[WATERMARK]})
        assert after.json()["status"] == stopped.json()["workflow_status"] == "STOPPED"


def test_every_answer_tells_how_far_the_view_is(nodes: tuple[Place, Place, HeldJournal]) -> None:
    here, *_ = nodes
    name = here.push(step("work", "nobody"))
    paths = [
        "/workflows",
        "/workflows/instances",
        f"/workflows/{name}/overview",
        "/signals",
        "/workflows/none/overview",
    ]

    found = [here.http.get(path) for path in paths]

    assert all(response.headers[WATERMARK].startswith('{"') for response in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workflows.events-0", "stream-partition:offset"),
        ("workflows.events-0:x", "stream-partition:offset"),
        ("nonsense-0:1", "a partition that the view follows"),
        ('{"workflows.events-99":1}', "a partition that the view follows"),
        ('{"workflows.events-0":-1}', "Kapelle-Watermark"),
        ("{", "Kapelle-Watermark"),
    ],
)
def test_an_offset_that_makes_no_sense_is_refused(api: Place, text: str, said: str) -> None:
    response = api.http.get("/workflows", params={"min_offset": text})

    assert response.status_code == 400
    assert said in response.json()["detail"]


def test_an_offset_that_is_there_already_costs_no_wait(api: Place) -> None:
    name = api.push(step("work", "nobody"))
    mark = api.http.get(f"/workflows/{name}/overview").headers[WATERMARK]
    pairs = mark.strip("{}").replace('"', "")

    found = api.get("/workflows", min_offset=pairs, wait_ms=0)

    assert found["total_count"] > 0
