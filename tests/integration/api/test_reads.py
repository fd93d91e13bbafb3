"""Reads on both kinds of log: filters, what all runs make of an instance, histories, tails, and reads that wait."""

from typing import Any

import httpx

from kapelle.client import Client
from tests.integration.api.places import Place, step

WATERMARK = "Kapelle-Watermark"


def numbers(page: Any) -> list[int]:
    return [one["workflow_instance_id"] for one in page["elements"]]


def test_instances_are_found_by_status_tag_parameter_initiator_and_time(place: Place) -> None:
    name = place.push(step("work", "nobody"), run_strategy="PARALLEL", tags=["of-the-workflow"])
    for day in (1, 2, 1):
        params = {"day": {"type": "LONG", "value": day}}
        place.start(name, run_params=params, runtime_tags=["nightly"] if day == 2 else [])
    place.call("PUT", f"/workflows/{name}/instances/1/actions/stop")
    created = place.get(f"/workflows/{name}/instances/2")["create_time"]
    path = f"/workflows/{name}/instances"

    assert numbers(place.get(path, status=["STOPPED", "FAILED"])) == [1]
    assert numbers(place.get(path, status=["STOPPED", "IN_PROGRESS", "CREATED"])) == [3, 2, 1]
    assert numbers(place.get(path, tag="nightly")) == [2]
    assert numbers(place.get("/workflows/instances", workflow_id=name, tag="of-the-workflow")) == [3, 2, 1]
    assert numbers(place.get(path, param="day=1")) == [3, 1]
    assert numbers(place.get(path, param=["day=1"], status="STOPPED", initiator="manual")) == [1]
    assert numbers(place.get(path, initiator="signal")) == []
    assert set(numbers(place.get(path, since=created))) | {1} == {1, 2, 3}
    assert 2 not in numbers(place.get(path, until=created))
    counted = place.get("/workflows/instances/counts", workflow_id=name)
    assert (counted["total_count"], counted["counts"]["STOPPED"]) == (3, 1)


def test_filters_that_make_no_sense_are_refused(place: Place) -> None:
    for wrong in ({"status": "DONE"}, {"param": "day"}, {"since": "yesterday"}, {"tag": "x" * 500}):
        assert place.get("/workflows/instances", 400, **wrong)["status"] == 400


def test_an_instance_tells_of_all_its_runs_and_a_workflow_of_its_instances(place: Place) -> None:
    name = place.push(step("a", "NoOp", "b"), step("b", "picky"))
    place.start(name)
    place.report(place.take("picky")[0], "FATAL_ERROR")
    assert place.ended(name, 1) == "FAILED"
    place.call("POST", f"/workflows/{name}/instances/1/actions/restart", json={})
    place.report(place.take("picky")[0], "SUCCEEDED")
    assert place.ended(name, 1, 2) == "SUCCEEDED"

    run = place.get(f"/workflows/{name}/instances/1/runs/2", aggregated=True, enriched=True)
    matrix = place.get(f"/workflows/{name}/matrix")
    listed = place.get(f"/workflows/{name}/instances", aggregated=True)["elements"][0]

    views = run["aggregated_info"]["step_aggregated_views"]
    assert {step_id: one["workflow_run_id"] for step_id, one in views.items()} == {"a": 1, "b": 2}
    assert run["runtime_overview"]["rollup_overview"]["total_leaf_count"] == 2
    assert listed["aggregated_info"] == run["aggregated_info"]
    assert (matrix["steps"], matrix["instances"][0]["steps"]) == (["a", "b"], views)


def test_a_history_and_a_tail_have_the_same_events(place: Place) -> None:
    name = place.push(step("a", "NoOp", "b"), step("b"))
    place.start(name)
    place.ended(name, 1)
    assert place.views.catch_up()

    with Client(place.url) as client:
        history = client.instances.history(name, 1)
        whole = list(client.events.tail(workflow_ids=[name], from_start=True, quiet_ms=0))

    of_log = {(one.stream, one.partition, one.offset): one.event for one in whole if one.workflow_instance_id == 1}
    of_history = {(one.stream, one.partition, one.offset): one.event for one in history.elements}
    assert all(of_log[at] == event for at, event in of_history.items())
    assert {one.type for one in history.elements} >= {"InstanceCreated", "RunStarted", "StepChanged", "RunEnded"}
    assert [one.time for one in history.elements] == sorted(one.time for one in history.elements)


def test_a_tail_that_is_cut_goes_on_without_a_gap(place: Place) -> None:
    name = place.push(step("a"))
    with Client(place.url) as client:
        for _ in range(4):
            place.start(name)
        for number in range(1, 5):
            place.ended(name, number)
        place.views.catch_up()
        whole = list(client.events.tail(workflow_ids=[name], from_start=True, quiet_ms=0))
        pieces = []
        after = "0"
        while True:
            for event in client.events.tail(workflow_ids=[name], after=after, quiet_ms=0):
                pieces.append(event)
                after = event.id or ""
                break
            else:
                break

    assert sorted((one.stream, one.partition, one.offset) for one in pieces) == sorted(
        (one.stream, one.partition, one.offset) for one in whole
    )


def test_a_read_waits_for_the_watermark_of_a_write(place: Place) -> None:
    name = place.push(step("work", "nobody"))
    written = place.http.post(f"/workflows/{name}/versions/active/actions/start", json={})

    headers = {WATERMARK: written.headers[WATERMARK]}
    seen = place.http.get(f"/workflows/{name}/instances/1", headers=headers)
    too_far = httpx.get(
        f"{place.url}/api/v3/workflows", params={"min_offset": "runs.events-0:999999999", "wait_ms": 50}, timeout=60
    )

    assert seen.status_code == 200
    assert (too_far.status_code, too_far.json()["errors"][0][:38]) == (400, "runs.events-0: wanted 999999999, but t")
