"""Workers over HTTP: tasks are granted once, answers are taken once, and cancellations are told, on both logs."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tests.integration.api.places import Place, step, until


def own_type() -> str:
    return f"type-{uuid.uuid4().hex[:8]}"


def is_there(place: Place, path: str) -> bool:
    return place.http.get(path).is_success


def test_a_task_is_taken_done_and_leads_to_the_next_step(place: Place) -> None:
    kind = own_type()
    params = {"n": {"type": "LONG", "value": 1, "mode": "MUTABLE"}, "day": {"type": "STRING", "value": "monday"}}
    name = place.push(step("work", kind, "after", params=params, sub_type="fine"), step("after"))
    place.start(name)

    task = place.take(kind)[0]
    beat = place.report(task, "HEARTBEAT", message="half of it")
    done = place.report(task, "SUCCEEDED", outputs={"n": {"type": "LONG", "value": 3}})

    assert (task["step_id"], task["attempt"], task["type"], task["sub_type"]) == ("work", 1, kind, "fine")
    assert task["params"]["day"] == "monday"
    assert task["idempotency_key"] == f"{name}/1/1/work/1"
    assert beat["results"] == [{"token": task["token"], "accepted": None}]
    assert done["results"] == [{"token": task["token"], "accepted": True}]
    assert place.ended(name, 1) == "SUCCEEDED"
    shown = place.get(f"/workflows/{name}/instances/1/steps/work")
    assert (shown["params"]["n"], shown["worker"], shown["waiting_for"]) == (3, "worker-1", None)


def test_many_workers_at_once_get_each_task_once(place: Place) -> None:
    kind = own_type()
    name = place.push(step("work", kind), run_strategy={"rule": "PARALLEL", "workflow_concurrency": 20})
    for _ in range(12):
        place.start(name)

    tokens: list[str] = []

    def worked(number: int) -> bool:
        """Take what there is. Whether all are taken: a task may take its time to be there."""
        body = {"worker": f"{kind}-{number}", "types": [kind], "max": 2, "wait_ms": 500}
        tasks = place.call("POST", "/tasks/poll", json=body)["tasks"]
        tokens.extend(task["token"] for task in tasks)
        for task in tasks:
            place.report(task, "SUCCEEDED", worker=f"{kind}-{number}")
        return len(tokens) >= 12

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: until(partial(worked, number), "all tasks to be taken"), range(4)))

    assert len(tokens) == len(set(tokens)) == 12
    until(lambda: place.get(f"/workflows/{name}/instances", status="SUCCEEDED")["total_count"] == 12, "all to succeed")


def test_the_more_critical_task_comes_first(place: Place) -> None:
    kind = own_type()
    for criticality in ("LOW", "CRITICAL", "MEDIUM"):
        name = f"wf-{uuid.uuid4().hex[:8]}"
        workflow = {"id": name, "criticality": criticality, "steps": [step("work", kind)]}
        place.call("POST", "/workflows", json={"properties": {"owner": "ann"}, "workflow": workflow})
        place.start(name)
        until(partial(is_there, place, f"/workflows/{name}/instances/1/steps/work"), "a task")
    until(place.views.catch_up, "the view to be there")

    tasks = place.take(kind, most=10)

    assert [task["criticality"] for task in tasks] == ["CRITICAL", "MEDIUM", "LOW"]


def test_a_late_answer_of_another_worker_is_refused(place: Place) -> None:
    kind = own_type()
    name = place.push(step("work", kind))
    place.start(name)
    task = place.take(kind)[0]

    stolen = place.report(task, "SUCCEEDED", worker="worker-2")["results"][0]
    unknown = place.report({**task, "token": "no-such-token"}, "SUCCEEDED")["results"][0]
    failed = place.report(task, "FATAL_ERROR", message="broken for good")["results"][0]
    repeated = place.report(task, "FATAL_ERROR", message="broken for good")["results"][0]
    late = place.report(task, "SUCCEEDED")["results"][0]

    assert (stolen["accepted"], unknown["accepted"]) == (False, False)
    assert "worker-1" in stolen["reason"]
    assert (failed["accepted"], repeated["accepted"]) == (True, True)
    assert late["accepted"] is False
    assert "FATALLY_FAILED" in late["reason"]
    assert place.ended(name, 1) == "FAILED"
    assert place.get(f"/workflows/{name}/instances/1/steps/work")["reason"] == "broken for good"


def test_a_worker_is_told_which_of_its_tasks_are_no_longer_wanted(place: Place) -> None:
    kind, worker = own_type(), f"worker-{uuid.uuid4().hex[:8]}"
    name = place.push(step("work", kind))
    place.start(name)
    task = place.take(kind, worker=worker)[0]

    place.call("PUT", f"/workflows/{name}/instances/1/actions/stop")
    poll = {"worker": worker, "types": [kind], "wait_ms": 10_000}
    told = place.call("POST", "/tasks/poll", json=poll)
    beat = place.report(task, "HEARTBEAT", worker=worker)
    quiet = place.call("POST", "/tasks/poll", json={**poll, "wait_ms": 0})

    assert told == {"tasks": [], "cancelled": [task["token"]]}
    assert beat["results"][0]["accepted"] is False
    assert beat["cancelled"] == [task["token"]]
    assert quiet["cancelled"] == []


def test_a_poll_that_waits_is_answered_when_a_task_comes(place: Place) -> None:
    kind = own_type()
    name = place.push(step("work", kind))

    with ThreadPoolExecutor(1) as pool:
        body = {"worker": "worker-1", "types": [kind], "wait_ms": 20_000}
        waiting = pool.submit(place.call, "POST", "/tasks/poll", json=body)
        place.start(name)
        found = waiting.result(20)

    assert len(found["tasks"]) == 1
    place.report(found["tasks"][0], "SUCCEEDED")


def test_output_data_from_outside_ends_the_running_attempt(place: Place) -> None:
    kind = own_type()
    params = {"n": {"type": "LONG", "value": 1, "mode": "MUTABLE"}}
    name = place.push(step("work", kind, params=params))
    place.start(name)
    task = place.take(kind)[0]
    body = {"workflow_id": name, "workflow_instance_id": 1, "step_id": "work"}

    outputs = {"n": {"type": "LONG", "value": 9}}
    place.call("PUT", "/output-data", 404, json={**body, "token": "another", "params": outputs})
    answer = place.call("PUT", "/output-data", json={**body, "token": task["token"], "params": outputs})
    again = place.call("PUT", "/output-data", json={**body, "token": task["token"], "params": outputs})
    place.call("PUT", "/output-data", 400, json={**body, "params": outputs})
    other = place.call("PUT", "/output-data", 409, json={**body, "token": task["token"], "params": {}})

    assert answer["status"] == again["status"] == "DONE"
    assert "other outputs" in other["detail"]
    assert place.ended(name, 1) == "SUCCEEDED"
    assert place.get(f"/workflows/{name}/instances/1/steps/work")["params"]["n"] == 9


def test_the_same_answer_again_is_accepted_and_another_one_is_not(place: Place) -> None:
    kind = own_type()
    name = place.push(step("work", kind, params={"n": {"type": "LONG", "value": 1, "mode": "MUTABLE"}}))
    place.start(name)
    task = place.take(kind)[0]
    outputs = {"n": {"type": "LONG", "value": 9}}
    others: list[dict[str, Any]] = [
        {"outputs": {"n": {"type": "LONG", "value": 8}}},
        {},
        {"outputs": outputs, "signals": [{"name": "x"}]},
    ]

    first = place.report(task, "SUCCEEDED", outputs=outputs, message="the first")
    again = place.report(task, "SUCCEEDED", outputs={"n": {"value": 9, "type": "LONG"}}, message="again")
    refused = [place.report(task, "SUCCEEDED", **other) for other in others]
    failed = place.report(task, "USER_ERROR")

    assert [one["results"][0]["accepted"] for one in (first, again)] == [True, True]
    assert [one["results"][0]["accepted"] for one in (*refused, failed)] == [False] * 4
    assert all("other outputs or signals" in one["results"][0]["reason"] for one in refused)
    assert place.get(f"/workflows/{name}/instances/1/steps/work")["params"]["n"] == 9
