"""Workflows over HTTP: pushed, looked at, changed, activated and deleted, on both kinds of log."""

import uuid
from typing import Any

from tests.integration.api.places import Place, definition, step, until

YAML = """
Workflow:
  id: {name}
  owner: ann
  jobs:
    - job:
        id: load
        type: NoOp
"""


def test_a_push_answers_with_the_version_and_is_visible_at_once(place: Place) -> None:
    name = f"wf-{uuid.uuid4().hex[:8]}"

    answer = place.call("POST", "/workflows", json=definition(name, step("load")), headers={"user": "bob"})

    assert (answer["workflow_id"], answer["workflow_version_id"], answer["status"]) == (name, 1, "CREATED")
    found = place.get(f"/workflows/{name}/versions/active")
    assert found["workflow"]["steps"] == [step("load")]
    assert found["metadata"]["version_author"] == "bob"
    assert (found["is_active"], found["is_latest"], found["is_default"]) == (True, True, True)
    assert found["properties_snapshot"]["owner"] == "ann"


def test_the_same_push_twice_makes_one_version(place: Place) -> None:
    name, headers = f"wf-{uuid.uuid4().hex[:8]}", {"Idempotency-Key": uuid.uuid4().hex}

    first = place.call("POST", "/workflows", json=definition(name), headers=headers)
    second = place.call("POST", "/workflows", json=definition(name), headers=headers)

    assert (first["status"], second["status"]) == ("CREATED", "DUPLICATED")
    assert first["request_id"] == second["request_id"] == headers["Idempotency-Key"]
    assert second["workflow_version_id"] == 1
    assert place.get(f"/workflows/{name}/versions/pagination")["total_count"] == 1


def test_a_push_that_is_not_active_leaves_the_active_version(place: Place) -> None:
    name = place.push()

    answer = place.call("POST", "/workflows", json={**definition(name), "is_active": False})
    quiet = place.call("POST", "/workflows", json={"workflow": definition(name)["workflow"], "is_active": False})

    assert (answer["workflow_version_id"], quiet["workflow_version_id"]) == (2, 3)
    assert place.get(f"/workflows/{name}/versions/active")["metadata"]["workflow_version_id"] == 1
    assert place.get(f"/workflows/{name}/versions/latest")["metadata"]["workflow_version_id"] == 3
    assert place.get(f"/workflows/{name}/overview")["default_version_id"] == 1


def test_a_push_keeps_what_it_says_of_itself_and_every_digit(place: Place) -> None:
    name = f"wf-{uuid.uuid4().hex[:8]}"
    text = (
        f'{{"properties":{{"owner":"ann"}},"git_info":{{"commit":"abc"}},"workflow":{{"id":"{name}","steps":'
        '[{"step":{"id":"a","type":"NoOp","params":{"x":{"type":"DOUBLE","value":1.10000000000000000001}}}}]}}'
    )

    place.call("POST", "/workflows", content=text, headers={"Content-Type": "application/json"})

    found = place.http.get(f"/workflows/{name}/versions/1").text
    assert '"git_info":{"commit":"abc"}' in found
    assert "1.10000000000000000001" in found


def test_yaml_is_pushed_and_checked_like_json(place: Place) -> None:
    name = f"wf-{uuid.uuid4().hex[:8]}"
    text = YAML.format(name=name)

    checked = place.call("PUT", "/workflows/actions/validate/yaml", content=text)
    answer = place.call("POST", "/workflows/yaml", content=text)

    assert checked == {"valid": True}
    assert answer["workflow_id"] == name
    assert [one["step"]["id"] for one in place.get(f"/workflows/{name}/versions/1")["workflow"]["steps"]] == ["load"]


def test_a_check_pushes_nothing_and_tells_all_problems(place: Place) -> None:
    name = f"wf-{uuid.uuid4().hex[:8]}"
    wrong: dict[str, Any] = definition(name, step("a", "NoOp", "nowhere"), step("a"))

    assert place.call("PUT", "/workflows/actions/validate", json=definition(name)) == {"valid": True}
    problem = place.call("PUT", "/workflows/actions/validate", 400, json=wrong)

    assert len(problem["errors"]) >= 2
    place.get(f"/workflows/{name}/overview", 404)


def test_workflows_are_listed_page_by_page(place: Place) -> None:
    prefix = f"list-{uuid.uuid4().hex[:8]}"
    names = [place.push(workflow_id=f"{prefix}-{number}") for number in range(5)]

    first = place.get("/workflows", prefix=prefix, limit=2)
    second = place.get("/workflows", prefix=prefix, limit=2, cursor=first["page_info"]["end_cursor"])
    third = place.get("/workflows", prefix=prefix, limit=2, cursor=second["page_info"]["end_cursor"])
    back = place.get("/workflows", prefix=prefix, last=2, cursor=third["page_info"]["start_cursor"])

    pages = [[one["workflow_id"] for one in page["elements"]] for page in (first, second, third, back)]
    assert pages == [names[:2], names[2:4], names[4:], names[2:4]]
    assert [page["page_info"]["has_next_page"] for page in (first, second, third)] == [True, True, False]
    assert [page["page_info"]["has_previous_page"] for page in (first, second, third)] == [False, True, True]
    assert [page["page_info"]["start_index"] for page in (first, second, third)] == [1, 3, 5]
    assert first["total_count"] == 5
    assert first["elements"][0]["owner"] == "ann"


def test_versions_are_listed_the_latest_first(place: Place) -> None:
    name = place.push()
    for _ in range(2):
        place.push(workflow_id=name)

    page = place.get(f"/workflows/{name}/versions/pagination", first=2)
    rest = place.get(f"/workflows/{name}/versions/pagination", first=2, cursor=page["page_info"]["end_cursor"])

    numbers = [[one["metadata"]["workflow_version_id"] for one in found["elements"]] for found in (page, rest)]
    assert numbers == [[3, 2], [1]]
    assert (page["total_count"], rest["page_info"]["start_index"]) == (3, 3)


def test_activation_and_deactivation_are_seen_by_the_next_read(place: Place) -> None:
    name = place.push()
    place.push(workflow_id=name)

    activated = place.call("PUT", f"/workflows/{name}/versions/1/actions/activate")
    again = place.call("PUT", f"/workflows/{name}/versions/1/actions/activate")
    shown = place.get(f"/workflows/{name}/overview")
    place.call("PUT", f"/workflows/{name}/actions/deactivate")

    assert (activated["status"], activated["workflow_version_id"]) == ("DONE", 1)
    assert (again["status"], again["message"]) == ("UNCHANGED", "Version 1 is active already")
    assert (shown["active_version_id"], shown["latest_version_id"]) == (1, 2)
    place.get(f"/workflows/{name}/versions/active", 404)
    assert place.get(f"/workflows/{name}/versions/default")["metadata"]["workflow_version_id"] == 2
    place.call("PUT", f"/workflows/{name}/versions/9/actions/activate", 404)
    place.call("PUT", f"/workflows/{name}/versions/newest/actions/activate", 400)


def test_properties_are_changed_tagged_and_read_back(place: Place) -> None:
    name = place.push()

    answer = place.call("POST", f"/workflows/{name}/properties", json={"run_strategy": {"rule": "PARALLEL"}})
    place.call("POST", f"/workflows/{name}/properties/tag", json={"name": "gold"})
    tagged = place.get(f"/workflows/{name}/properties-snapshot/latest")
    place.call("DELETE", f"/workflows/{name}/properties/tag/gold")
    bare = place.get(f"/workflows/{name}/properties-snapshot/latest")

    assert answer["properties_snapshot"]["run_strategy"]["rule"] == "PARALLEL"
    assert [tag["name"] for tag in tagged["tags"]] == ["gold"]
    assert not bare.get("tags")
    place.call("DELETE", f"/workflows/{name}/properties/tag/gold", 404)
    place.call("POST", f"/workflows/{name}/properties", 400, json={"run_strategy": "SOMETIMES", "colour": 1})
    place.call("POST", f"/workflows/{name}/properties", 400, content="[]")


def test_the_change_log_tells_who_changed_what(place: Place) -> None:
    name = place.push()
    place.call("PUT", f"/workflows/{name}/actions/deactivate", headers={"user": "carol"})

    events = place.get(f"/workflows/{name}/timeline")["timeline_events"]

    assert (events[0]["author"], events[0]["log"]) == ("carol", "Deactivated version 1")
    assert events[-1]["log"] == "Pushed version 1"


def deleted(place: Place, name: str) -> None:
    """Delete a workflow whose instances have ended: it hears of that itself a moment after their runs have told it."""
    until(lambda: place.http.delete(f"/workflows/{name}").is_success, f"{name} to be deleted")


def test_a_deleted_workflow_is_gone_and_can_be_made_anew(place: Place) -> None:
    name = place.push()
    instance_id = place.start(name)
    place.ended(name, instance_id)

    deleted(place, name)

    for path in ("overview", "timeline", "versions/latest", "instances", f"instances/{instance_id}"):
        place.get(f"/workflows/{name}/{path}", 404)
    assert place.get("/workflows/instances", workflow_id=name)["total_count"] == 0
    place.call("DELETE", f"/workflows/{name}", 404)
    place.push(workflow_id=name)
    assert place.get(f"/workflows/{name}/versions/latest")["metadata"]["workflow_version_id"] == 1
    assert place.get(f"/workflows/{name}/instances")["total_count"] == 0
    assert place.start(name) == instance_id + 1


def test_a_workflow_with_something_running_is_not_deleted(place: Place) -> None:
    kind = f"type-{uuid.uuid4().hex[:8]}"
    name = place.push(step("work", kind))
    instance_id = place.start(name)

    problem = place.call("DELETE", f"/workflows/{name}", 409)
    place.call("PUT", f"/workflows/{name}/instances/{instance_id}/actions/kill")

    assert "1 running" in problem["detail"]
    deleted(place, name)


def test_a_guarded_switch_of_the_run_strategy_is_a_failed_precondition(place: Place) -> None:
    kind = f"type-{uuid.uuid4().hex[:8]}"
    name = place.push(step("work", kind), run_strategy="PARALLEL")
    place.start(name)
    place.start(name)

    problem = place.call("POST", f"/workflows/{name}/properties", 412, json={"run_strategy": "FIRST_ONLY"})

    assert problem["status"] == 412
    place.call("PUT", f"/workflows/{name}/actions/kill")


def test_health_tells_what_runs_and_how_far_the_view_is(place: Place) -> None:
    found = place.http.get(f"{place.url}/health").json()

    assert found["status"] == "ok"
    assert found["mode"] == place.journal.mode.value
    assert isinstance(found["views"]["lag"], int)
