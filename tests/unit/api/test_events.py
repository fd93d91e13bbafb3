"""Events by HTTP: the history of an instance, and tails that begin, go on, are filtered and end as they should."""

import json
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kapelle.api.events import id_of, positions_of
from kapelle.api.problems import BadRequest
from kapelle.client import Client
from tests.integration.api.places import Place, step, until
from tests.unit.api.test_own_writes import held_place

Event = dict[str, Any]
ENOUGH_S = 60.0


@contextmanager
def tail(place: Place, last_event_id: str | None = None, **params: Any) -> Iterator[Iterator[Event]]:
    """A tail that has begun: what happens from now on comes out of it, each event with its id."""
    headers = {"Last-Event-ID": last_event_id} if last_event_id else {}
    with place.http.stream("GET", "/events", params=params, headers=headers, timeout=ENOUGH_S) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["Content-Type"].startswith("text/event-stream")
        lines = response.iter_lines()
        for line in lines:
            if not line:  # the first block says where it begins
                break
        yield events(lines)


def events(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "data" in fields:
            yield {**json.loads(fields["data"]), "id": fields["id"]}
            fields = {}


def until_ended(found: Iterator[Event], workflow_id: str) -> list[Event]:
    """Events up to the end of an instance, as both streams tell it: nobody knows which is read first."""
    seen: list[Event] = []
    for event in found:
        seen.append(event)
        kinds = {one["type"] for one in seen if one["key"].split("/")[0] == workflow_id}
        if {"InstanceEnded", "RunEnded"} <= kinds:
            return seen
    return seen


def of_workflows(seen: list[Event]) -> list[str]:
    return [one["type"] for one in seen if one["stream"] == "workflows.events"]


def place_of(event: Event) -> tuple[str, int, int]:
    return event["stream"], event["partition"], event["offset"]


def test_a_history_is_what_the_log_has_with_partition_and_offset(api: Place) -> None:
    name = api.push(step("a", "NoOp", "b"), step("b"))
    api.start(name, run_params={})
    api.ended(name, 1)

    found = api.get(f"/workflows/{name}/instances/1/events")

    kinds = [one["type"] for one in found["elements"]]
    assert kinds[0] == "InstanceCreated"
    assert {"InstanceLaunched", "RunStarted", "StepChanged", "RunEnded"} <= set(kinds)
    assert not found["is_cut"]
    places = [(one["stream"], one["partition"], one["offset"]) for one in found["elements"]]
    assert len(set(places)) == len(places)
    started = next(one for one in found["elements"] if one["type"] == "RunStarted")
    assert started["key"] == f"{name}/1"
    assert started["event"]["workflow_id"] == name
    assert json.loads(started["event"]["definition"] or "{}") or started["event"]["definition"] is None


def test_a_history_tells_of_commands_that_were_refused(api: Place) -> None:
    name = api.push(step("work", "nobody"))
    api.start(name)
    api.call("POST", f"/workflows/{name}/instances/1/actions/restart", 400, json={})

    found = api.get(f"/workflows/{name}/instances/1/events")

    assert "CommandRefused" in [one["type"] for one in found["elements"]]


def test_the_history_of_nobody_is_not_found(api: Place) -> None:
    api.get("/workflows/nobody/instances/1/events", 404)


def test_a_tail_shows_what_happens_after_it_has_begun(api: Place) -> None:
    name = api.push(step("a"))
    api.start(name)
    api.ended(name, 1)

    with tail(api, workflow_id=name) as found:
        api.start(name)
        seen = until_ended(found, name)

    assert of_workflows(seen)[0] == "InstanceCreated"
    assert {one["workflow_instance_id"] for one in seen} == {2}
    assert {one["stream"] for one in seen} == {"workflows.events", "runs.events"}


def test_a_tail_shows_only_the_types_that_were_asked_for(api: Place) -> None:
    name = api.push(step("a"))

    with tail(api, workflow_id=name, type=["RunEnded", "InstanceEnded"]) as found:
        api.start(name)
        seen = until_ended(found, name)

    assert {one["type"] for one in seen} <= {"RunEnded", "InstanceEnded"}


def test_a_tail_goes_on_after_the_event_that_it_is_told(api: Place) -> None:
    name = api.push(step("a", "NoOp", "b"), step("b"))
    api.start(name)
    api.ended(name, 1)
    with tail(api, workflow_id=name, wait_ms=0, **{"from": "earliest"}) as found:
        whole = list(found)

    for number, event in enumerate(whole):
        with tail(api, event["id"], workflow_id=name, wait_ms=0) as found:
            rest = [place_of(one) for one in found]
        assert sorted(rest) == sorted(place_of(one) for one in whole[number + 1 :])

    assert len(whole) > 5


def test_a_tail_from_the_start_has_the_whole_history(api: Place) -> None:
    name = api.push(step("a"))
    api.start(name)
    api.ended(name, 1)

    with tail(api, workflow_id=name, **{"from": "earliest"}) as found:
        seen = until_ended(found, name)

    assert of_workflows(seen)[0] == "VersionPushed"


def test_a_tail_that_has_nothing_to_tell_says_that_it_is_there(api: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.api.events.HEARTBEAT_S", 0.0)
    beats = 0

    with api.http.stream("GET", "/events", params={"type": "WorkflowDeleted"}, timeout=ENOUGH_S) as response:
        for line in response.iter_lines():
            beats += line.startswith("id:")
            if beats == 4:
                break

    assert beats == 4


def test_a_server_that_is_stopped_ends_its_tails(tmp_path: Path) -> None:
    with held_place(tmp_path) as (place, _, server), tail(place) as found:
        stopping = threading.Thread(target=server.stop)
        stopping.start()
        seen = list(found)
        stopping.join(ENOUGH_S)

    assert seen == []
    assert not stopping.is_alive()


@pytest.mark.parametrize("event_id", ["nonsense", "x0.1", "w0.1-", "w99.1", "w0.99999999"])
def test_an_id_of_another_log_is_refused(api: Place, event_id: str) -> None:
    response = api.http.get("/events", headers={"Last-Event-ID": event_id})

    assert response.status_code == 400
    assert "Last-Event-ID" in response.json()["detail"]


def test_a_type_that_no_event_has_is_refused(api: Place) -> None:
    response = api.http.get("/events", params={"type": "Nonsense"})

    assert response.status_code == 400
    assert "StepChanged" in response.json()["detail"]


def test_more_tails_than_a_node_can_have_are_refused(api: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kapelle.api.events.TAILS_MAX", 0)

    response = api.http.get("/events")

    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")


def test_tails_that_come_at_the_same_time_are_counted_and_free_their_places(
    api: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kapelle.api.events.TAILS_MAX", 4)
    begin, end = threading.Barrier(24), threading.Event()
    found: list[int] = []

    def ask() -> None:
        begin.wait(ENOUGH_S)
        with httpx.stream("GET", f"{api.url}/api/v3/events", timeout=ENOUGH_S) as response:
            found.append(response.status_code)
            if response.status_code == 200:
                end.wait(ENOUGH_S)

    asking = [threading.Thread(target=ask) for _ in range(24)]
    for one in asking:
        one.start()
    until(lambda: len(found) == 24, "all to be answered")
    end.set()
    for one in asking:
        one.join(ENOUGH_S)

    assert sorted(found) == [200] * 4 + [503] * 20
    until(lambda: api.http.get("/events?wait_ms=0").status_code == 200, "a place to be free")


def test_ids_of_events_are_read_back_as_they_were_written() -> None:
    positions = {("workflows.events", 0): 12, ("runs.events", 3): 4, ("signals.events", 1): 0}
    ends = dict.fromkeys(positions, 20)

    assert positions_of(id_of(positions), ends) == positions
    assert positions_of("0", ends) == dict.fromkeys(positions, 0)
    with pytest.raises(BadRequest):
        positions_of("w0.21", ends)


def test_the_client_tails_and_reads_histories(api: Place) -> None:
    name = api.push(step("a"))
    api.start(name)
    api.ended(name, 1)

    with Client(api.url) as client:
        found = list(client.events.tail(workflow_ids=[name], from_start=True, quiet_ms=0))
        history = client.instances.history(name, 1)
        again = list(client.events.tail(workflow_ids=[name], after=found[2].id or "", quiet_ms=0))

    assert "VersionPushed" in [one.type for one in found]
    assert {(one.stream, one.offset) for one in history.elements} <= {(one.stream, one.offset) for one in found}
    assert len(again) == len(found) - 3


def test_events_of_permits_are_those_of_the_instance_that_asks(api: Place) -> None:
    tag = f"gpu-{uuid.uuid4().hex[:8]}"
    api.call("POST", "/tag-permits", json={"tag": tag, "max_allowed": 1})
    name = api.push(step("work", tags=[tag]))
    instance_id = api.start(name)
    api.ended(name, instance_id)

    with Client(api.url) as client:
        types = ["LimitSet", "PermitGranted", "PermitReturned"]
        of_workflow = client.events.tail(types=types, workflow_ids=[name], from_start=True, quiet_ms=200)
        asked = [(event.type, event.key, event.workflow_instance_id) for event in of_workflow]
        changes = client.events.tail(types=["LimitSet"], from_start=True, quiet_ms=200)
        (change,) = [event for event in changes if event.key == f"tag/{tag}"]

    assert asked == [(kind, f"tag/{tag}", instance_id) for kind in types[1:]]
    assert (change.workflow_id, change.event["max"]) == (None, 1)


def test_a_tail_without_a_token_is_refused_like_any_read(api: Place) -> None:
    response = httpx.get(f"{api.url}/api/v3/events", headers={"Host": "kapelle.example.com"})

    assert response.status_code == 403
