"""Instances and steps over HTTP: started, watched, ended and restarted, on both kinds of log."""

import uuid

from tests.integration.api.places import Json, Place, step, until


def own_type() -> str:
    return f"type-{uuid.uuid4().hex[:8]}"


def counted(place: Place, name: str) -> dict[str, int]:
    found: dict[str, int] = place.get(f"/workflows/{name}/overview")["instances"]
    return found


def test_a_started_instance_is_visible_and_runs_to_its_end(place: Place) -> None:
    name = place.push(step("a", "NoOp", "b"), step("b"))

    answer = place.call("POST", f"/workflows/{name}/versions/active/actions/start", json={})

    assert (answer["workflow_instance_id"], answer["workflow_run_id"], answer["status"]) == (1, 1, "CREATED")
    assert place.ended(name, 1) == "SUCCEEDED"
    found = place.get(f"/workflows/{name}/instances/1")
    assert found["workflow_uuid"] == answer["request_id"]
    assert found["create_time"] <= found["start_time"] <= found["end_time"]
    assert [(one["step_id"], one["status"]) for one in place.get(f"/workflows/{name}/instances/1/steps")] == [
        ("a", "SUCCEEDED"),
        ("b", "SUCCEEDED"),
    ]


def test_one_request_id_gives_one_instance_however_it_is_given(place: Place) -> None:
    name, request_id = place.push(), uuid.uuid4().hex
    path = f"/workflows/{name}/versions/active/actions/start"

    first = place.call("POST", path, json={"request_id": request_id})
    second = place.call("POST", path, json={}, headers={"Idempotency-Key": request_id})
    problem = place.call("POST", path, 400, json={"request_id": "other"}, headers={"Idempotency-Key": request_id})

    assert (first["status"], second["status"]) == ("CREATED", "DUPLICATED")
    assert first["workflow_instance_id"] == second["workflow_instance_id"] == 1
    assert "two" in problem["detail"]
    assert place.get(f"/workflows/{name}/instances")["total_count"] == 1


def test_params_given_at_the_start_keep_every_digit(place: Place) -> None:
    name = place.push()
    text = '{"run_params":{"x":{"type":"DOUBLE","value":0.1000000000000000055}},"artifacts":{"n":12345678901234567890}}'

    place.call(
        "POST",
        f"/workflows/{name}/versions/active/actions/start",
        content=text,
        headers={"Content-Type": "application/json"},
    )

    found = place.http.get(f"/workflows/{name}/instances/1").text
    assert "0.1000000000000000055" in found
    assert "12345678901234567890" in found


def test_a_start_that_cannot_be_is_refused_with_its_reason(place: Place) -> None:
    name = place.push()
    path = f"/workflows/{name}/versions/active/actions/start"

    place.call("POST", "/workflows/no-such/versions/active/actions/start", 404, json={})
    place.call("POST", f"/workflows/{name}/versions/7/actions/start", 404, json={})
    problem = place.call("POST", path, 400, json={"initiator": {"type": "WHIM"}})
    place.call("POST", path, 400, json={"run_params": {"x": {"type": "NONSENSE", "value": 1}}})

    assert "initiator.type" in problem["detail"]
    assert place.get(f"/workflows/{name}/instances")["total_count"] == 0


def test_instances_are_listed_page_by_page_and_by_status(place: Place) -> None:
    kind = own_type()
    name = place.push(step("work", kind), run_strategy="PARALLEL")
    for _ in range(4):
        place.start(name)
    place.call("PUT", f"/workflows/{name}/instances/2/actions/stop")

    page = place.get(f"/workflows/{name}/instances", first=3)
    rest = place.get(f"/workflows/{name}/instances", first=3, cursor=page["page_info"]["end_cursor"])
    stopped = place.get(f"/workflows/{name}/instances", status="STOPPED")
    everywhere = place.get("/workflows/instances", workflow_id=name, limit=3)
    older = place.get("/workflows/instances", workflow_id=name, limit=3, cursor=everywhere["page_info"]["end_cursor"])

    def ids(found: dict[str, list[dict[str, int]]]) -> list[int]:
        return [one["workflow_instance_id"] for one in found["elements"]]

    assert (ids(page), ids(rest), ids(stopped)) == ([4, 3, 2], [1], [2])
    assert (ids(everywhere), ids(older)) == ([4, 3, 2], [1])
    assert (page["total_count"], stopped["total_count"]) == (4, 1)
    # They are in progress when they have begun, which is after they are there.
    until(lambda: counted(place, name).get("IN_PROGRESS") == 3, "the others to be in progress")
    assert counted(place, name) == {"STOPPED": 1, "IN_PROGRESS": 3}
    place.call("PUT", f"/workflows/{name}/actions/kill")


def test_stop_answers_when_the_instance_has_ended(place: Place) -> None:
    name = place.push(step("work", own_type()))
    running, queued = place.start(name), place.start(name)

    second = place.call("PUT", f"/workflows/{name}/instances/{queued}/actions/stop", json={"reason": "not today"})
    first = place.call("PUT", f"/workflows/{name}/instances/{running}/actions/kill")
    again = place.call("PUT", f"/workflows/{name}/instances/{running}/actions/kill")

    assert (first["workflow_status"], second["workflow_status"]) == ("FAILED", "STOPPED")
    assert (first["status"], again["status"]) == ("DONE", "UNCHANGED")
    assert place.get(f"/workflows/{name}/instances/{queued}")["reason"] == "not today"
    place.call("PUT", f"/workflows/{name}/instances/{running}/actions/stop", 400)
    place.call("PUT", f"/workflows/{name}/instances/99/actions/stop", 404)


def test_all_instances_of_a_workflow_are_stopped_at_once(place: Place) -> None:
    name = place.push(step("work", own_type()), run_strategy={"rule": "PARALLEL", "workflow_concurrency": 2})
    for _ in range(3):
        place.start(name)

    answer = place.call("PUT", f"/workflows/{name}/actions/stop")

    assert answer["count"] == 3
    assert {place.ended(name, number) for number in (1, 2, 3)} == {"STOPPED"}


def test_a_run_that_is_no_longer_the_latest_is_not_acted_on(place: Place) -> None:
    name = place.push(step("work", own_type()))
    place.start(name)

    place.call("PUT", f"/workflows/{name}/instances/1/runs/2/actions/stop", 400)
    answer = place.call("PUT", f"/workflows/{name}/instances/1/runs/1/actions/stop")

    assert answer["workflow_status"] == "STOPPED"


def test_unblocking_lets_a_strictly_sequential_workflow_go_on(place: Place) -> None:
    kind = own_type()
    name = place.push(step("work", kind), run_strategy="STRICT_SEQUENTIAL")
    place.start(name)
    place.call("PUT", f"/workflows/{name}/instances/1/actions/kill")
    place.start(name)

    answer = place.call("PUT", f"/workflows/{name}/instances/1/actions/unblock")
    nothing = place.call("PUT", f"/workflows/{name}/actions/unblock")

    assert (answer["status"], nothing["status"]) == ("DONE", "UNCHANGED")
    path = f"/workflows/{name}/instances/2"
    until(lambda: place.get(path)["status"] == "IN_PROGRESS", "the second instance to run")
    place.call("PUT", f"{path}/actions/kill")


def test_a_restart_is_a_new_run_of_the_same_instance(place: Place) -> None:
    name = place.push(step("a", "NoOp", "b"), step("b"))
    place.start(name)
    place.ended(name, 1)
    path = f"/workflows/{name}/instances/1"

    refused = place.call("POST", f"{path}/actions/restart", 400, json={"restart_policy": "RESTART_FROM_INCOMPLETE"})
    answer = place.call("POST", f"{path}/actions/restart", json={"restart_policy": "restart_from_beginning"})
    stepwise = place.call("POST", f"{path}/actions/restart", 400, json={"restart_policy": "RESTART_FROM_SPECIFIC"})

    assert "all are" in refused["detail"]
    assert (answer["workflow_run_id"], answer["status"]) == (2, "CREATED")
    assert "step" in stepwise["detail"]
    assert place.ended(name, 1, 2) == "SUCCEEDED"
    page = place.get(f"{path}/runs")
    assert [one["workflow_run_id"] for one in page["elements"]] == [2, 1]
    assert place.get(f"{path}/runs/latest")["run_config"]["policy"] == "RESTART_FROM_BEGINNING"
    assert place.get(f"{path}/runs/1")["run_config"]["policy"] == "START_FRESH_NEW_RUN"
    assert [one["workflow_run_id"] for one in place.get(f"{path}/runs/1/steps")] == [1, 1]


def test_a_step_is_skipped_and_restarted_and_seen_so_at_once(place: Place) -> None:
    kind = own_type()
    name = place.push(step("work", kind, "after"), step("after"))
    place.start(name)
    path = f"/workflows/{name}/instances/1"
    until(lambda: place.get(f"{path}/steps"), "the step to be there")

    skipped = place.call("PUT", f"{path}/steps/work/actions/skip", json={"reason": "known to be done"})
    shown = place.get(f"{path}/steps/work")
    place.ended(name, 1)
    as_maestro = {"restart_policy": "RESTART_FROM_SPECIFIC", "upstream_restart_mode": "RESTART_FROM_STEP"}
    again = place.call("POST", f"{path}/steps/work/actions/restart", json=as_maestro)

    assert skipped["status"] == "DONE"
    assert (shown["status"], shown["reason"]) == ("SKIPPED", "known to be done")
    assert again["workflow_run_id"] == 2
    place.call("PUT", f"{path}/steps/nothing/actions/skip", 400)
    place.call("PUT", f"{path}/actions/kill")


def test_a_failed_step_of_a_running_instance_gets_another_attempt(place: Place) -> None:
    kind, other = own_type(), own_type()
    name = place.push(step("work", kind), step("beside", other))
    place.start(name)
    path = f"/workflows/{name}/instances/1"
    until(lambda: len(place.get(f"{path}/steps")) == 2, "both steps to be there")
    place.call("PUT", f"{path}/steps/work/actions/kill")

    answer = place.call("POST", f"{path}/steps/work/actions/restart", json={})

    assert (answer["status"], answer["workflow_run_id"]) == ("DONE", 1)
    found = place.get(f"{path}/runs/1/steps/work/attempts/latest")
    assert (found["step_attempt_id"], found["status"], found["step_retry"]["manual_retries"]) == (2, "STARTING", 1)
    assert place.get(f"{path}/runs/1/steps/work/attempts/1")["status"] == "FATALLY_FAILED"
    place.get(f"{path}/runs/1/steps/work/attempts/3", 404)
    place.call("PUT", f"{path}/actions/kill")


def test_the_timeline_tells_in_order_what_happened(place: Place) -> None:
    name = place.push(step("work", own_type()))
    place.start(name)
    path = f"/workflows/{name}/instances/1"
    until(lambda: place.get(f"{path}/steps"), "the step to be there")
    place.call("PUT", f"{path}/actions/stop", json={"reason": "enough"}, headers={"user": "carol"})

    def words(entries: list[Json]) -> list[str]:
        return [entry.get("status") or entry.get("action") or entry["message"] for entry in entries]

    # The answer to the request waits for its outcome. The end of the run is on another partition.
    def to_the_end() -> list[Json] | None:
        found: list[Json] = place.get(f"{path}/timeline")["elements"]
        return found if words(found)[-1] == "STOPPED" else None

    entries = until(to_the_end, "the timeline to tell the end")
    told = words(entries)
    assert told[0] == "CREATED"
    assert told.index("IN_PROGRESS") < told.index("STARTING") < told.index("STOP")
    assert next(entry for entry in entries if entry.get("action") == "STOP")["author"] == "carol"
    assert [entry["timestamp"] for entry in entries] == sorted(entry["timestamp"] for entry in entries)


def test_a_type_that_nobody_serves_says_what_it_waits_for(place: Place) -> None:
    kind = own_type()
    name = place.push(step("work", kind))
    place.start(name)
    path = f"/workflows/{name}/instances/1/steps/work"

    found = until(lambda: place.http.get(path).status_code == 200 and place.get(path)["waiting_for"], "the wait")

    assert found == f"a worker of type '{kind}'"
    place.call("PUT", f"/workflows/{name}/actions/kill")


def test_action_maps_name_what_each_status_allows(place: Place) -> None:
    instances = place.get("/workflows/instances/action-map")
    steps = place.get("/workflows/steps/instances/action-map")

    assert instances["FAILED"] == ["RESTART", "UNBLOCK"]
    assert "SKIP" in steps["RUNNING"]


def test_reads_tell_their_watermark_and_wait_for_a_request(place: Place) -> None:
    name = place.push()
    request_id = uuid.uuid4().hex
    path = f"/workflows/{name}/versions/active/actions/start"
    place.http.post(path, json={"request_id": request_id}, params={"wait_ms": 0})

    response = place.http.get(f"/workflows/{name}/instances/1", params={"wait_for": request_id})

    assert response.status_code == 200
    assert response.headers["Kapelle-Watermark"].startswith("{")
    late = place.http.get(f"/workflows/{name}/instances/1", params={"wait_for": "never", "wait_ms": 10})
    assert late.status_code == 412


def test_a_step_that_waits_for_signals_says_so_and_can_go_on_without_them(place: Place) -> None:
    signals = [f"signal-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    name = place.push(step("work", "NoOp", signal_dependencies=[{"name": one} for one in signals]))
    place.start(name)
    path = f"/workflows/{name}/instances/1/steps/work"

    found = until(lambda: place.http.get(path).is_success and place.get(path)["waiting_for"], "the wait")
    answer = place.call("PUT", f"{path}/actions/bypass")

    assert found == f"signals: {', '.join(signals)}"
    assert answer["status"] == "DONE"
    assert place.ended(name, 1) == "SUCCEEDED"
    assert place.get(path)["waiting_for"] is None
