"""Limits by HTTP: set, changed and removed; who holds a permit, who waits for one, and in what place."""

import re
import uuid
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.integration.api.places import Place, step, until


def new(name: str = "gpu") -> str:
    """A tag that nobody else has."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


def type_of(tag: str) -> str:
    """The type of the steps that have a tag."""
    return re.sub(r"[^a-z0-9-]", "_", f"permitted-{tag}")


def limit(api: Place, tag: str, most: int, **more: Any) -> Any:
    return api.call("POST", "/tag-permits", json={"tag": tag, "max_allowed": most, **more})


def of_tag(api: Place, tag: str, what: str = "", **params: Any) -> Any:
    return api.get(f"/permits/tag/{quote(tag, safe='/')}{what}", **params)


def busy(api: Place, tag: str, count: int = 3, **more: Any) -> tuple[str, list[int]]:
    """Instances of a workflow whose only step has a tag."""
    name = api.push(step("train", type_of(tag), tags=[tag], **more), run_strategy="PARALLEL")
    return name, [api.start(name) for _ in range(count)]


def waits(api: Place, tag: str, count: int) -> Any:
    """The limit of a tag once so many wait."""

    def look() -> Any:
        found = api.get(f"/tag-permits/{quote(tag)}")
        return found if found["waiting"] == count else None

    return until(look, f"{count} to wait for {tag}")


def test_a_limit_is_set_changed_shown_and_removed(api: Place) -> None:
    tag = new("team/gpu")

    first = api.call("POST", "/tag-permits", json={"tag": tag, "max_allowed": 4}, headers={"user": "ann"})
    again = limit(api, tag, 4)
    changed = limit(api, tag, 0, team="ml", big=123456789012345678901)
    found = api.get(f"/tag-permits/{tag}")
    removed = api.call("DELETE", f"/tag-permits/{tag}")
    none = api.call("DELETE", f"/tag-permits/{tag}")

    assert (first["tag"], first["max_allowed"], first["status"]) == (tag, 4, "DONE")
    assert (again["status"], again["message"]) == ("UNCHANGED", f"The limit of tag/{tag} is 4 already")
    assert "workflow_id" not in first
    assert changed["status"] == "DONE"
    assert (found["tag"], found["max_allowed"], found["team"]) == (tag, 0, "ml")
    assert found["big"] == 123456789012345678901
    assert [(one["author"], one["log"]) for one in found["timeline"]] == [
        ("anonymous", "Set the limit to 0"),
        ("ann", "Set the limit to 4"),
    ]
    assert (removed["status"], none["status"]) == ("DONE", "UNCHANGED")
    assert api.get(f"/tag-permits/{tag}", 404)["detail"] == f"Expected a limit of tag/{tag}, but there is none"


def test_a_change_of_a_limit_counts_once(api: Place) -> None:
    tag = new()

    for _ in range(2):
        by_header = {"Idempotency-Key": f"{tag}-once"}
        api.call("POST", "/tag-permits", json={"tag": tag, "max_allowed": 1}, headers=by_header)
    limit(api, tag, 2)
    repeated = api.call("POST", "/tag-permits", json={"tag": tag, "max_allowed": 1, "request_id": f"{tag}-once"})

    assert repeated["request_id"] == f"{tag}-once"
    assert api.get(f"/tag-permits/{tag}")["max_allowed"] == 2


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"tag": "a", "max_allowed": -1}, "body.max_allowed"),
        ({"tag": "a", "max_allowed": 2**63}, "body.max_allowed"),
        ({"tag": "a", "max_allowed": "4"}, "body.max_allowed"),
        ({"tag": "a"}, "body.max_allowed"),
        ({"tag": "", "max_allowed": 1}, "body.tag"),
        ({"tag": "a" * 257, "max_allowed": 1}, "body.tag"),
        ({"max_allowed": 1}, "body.tag"),
        ([1], "body"),
    ],
)
def test_what_is_no_limit_is_refused_with_the_reason(api: Place, body: Any, reason: str) -> None:
    refused = api.call("POST", "/tag-permits", 400, json=body)

    assert any(reason in error for error in refused["errors"]), refused


def test_too_many_other_keys_are_refused_by_the_engine(api: Place) -> None:
    refused = api.call("POST", "/tag-permits", 400, json={"tag": new(), "max_allowed": 1, "note": "x" * 5_000})

    assert "Expected other keys of at most 4,000 characters" in refused["detail"]


def test_tags_with_limits_are_listed_page_by_page(api: Place) -> None:
    prefix = new("list")
    for number in range(3):
        limit(api, f"{prefix}/{number}", number)

    page = api.get("/tag-permits", prefix=prefix, limit=2)
    rest = api.get("/tag-permits", prefix=prefix, limit=2, cursor=page["page_info"]["end_cursor"])
    back = api.get("/tag-permits", prefix=prefix, last=2, cursor=rest["page_info"]["start_cursor"])
    of_kind = api.get("/permits", kind="tag", prefix=prefix)

    assert [one["tag"] for one in (*page["elements"], *rest["elements"])] == [f"{prefix}/{n}" for n in range(3)]
    assert back["elements"] == page["elements"]
    assert (page["total_count"], rest["page_info"]["start_index"]) == (3, 3)
    assert [one["max_allowed"] for one in of_kind["elements"]] == [0, 1, 2]
    assert api.get("/permits", 400, prefix="a")["detail"].startswith("Expected `kind` beside `prefix`")
    api.get("/tag-permits", 400, cursor="nonsense")


def test_what_nobody_limits_is_not_found(api: Place) -> None:
    for path in ("/tag-permits/nobody", "/permits/tag/nobody", "/permits/tag/nobody/holders"):
        api.get(path, 404)
    for path in ("/permits/workflow/nobody/waiting", "/permits/tree/nobody/1"):
        api.get(path, 404)
    api.get("/permits/other/nobody", 400)


def test_holders_and_those_that_wait_are_listed_with_their_places(api: Place) -> None:
    tag = new("a b/(c)")
    limit(api, tag, 1)
    name, started = busy(api, tag)

    found = waits(api, tag, 2)
    holders = of_tag(api, tag, "/holders")
    page = of_tag(api, tag, "/waiting", limit=1)
    rest = of_tag(api, tag, "/waiting", limit=1, cursor=page["page_info"]["end_cursor"])

    queue = [*page["elements"], *rest["elements"]]
    assert (found["held"], found["max_allowed"]) == (1, 1)
    assert found["oldest_wait_time"] == queue[0]["queued_time"]
    assert [(one["workflow_id"], one["step_id"], one["step_attempt_id"]) for one in holders["elements"]] == [
        (name, "train", 1)
    ]
    assert [one["place"] for one in queue] == [1, 2]
    assert {one["workflow_instance_id"] for one in (*holders["elements"], *queue)} == set(started)
    assert all(one["waiting_ms"] >= 0 and one["criticality"] == "MEDIUM" for one in queue)
    assert (page["total_count"], rest["page_info"]["start_index"]) == (2, 2)


def test_a_step_tells_for_which_permit_it_waits_and_continues_when_there_is_room(api: Place) -> None:
    tag = new()
    limit(api, tag, 0)
    name, (instance_id,) = busy(api, tag, 1)
    waits(api, tag, 1)

    path = f"/workflows/{name}/instances/{instance_id}/steps/train"
    found = api.get(path)
    limit(api, tag, 1)
    (task,) = api.take(type_of(tag))
    api.report(task, "SUCCEEDED")

    assert found["status"] == "WAITING_FOR_PERMITS"
    assert found["waiting_for"].startswith(f"a permit of tag/{tag}: limit 0, 0 held, place 1 of 1, since 20")
    assert found["permits"][0]["limited"] == f"tag/{tag}"
    assert found["wait_permit_time"] is not None
    assert api.ended(name, instance_id) == "SUCCEEDED"
    assert until(lambda: of_tag(api, tag)["held"] == 0, "the permit to be given back")


def test_removing_a_limit_admits_all_that_wait(api: Place) -> None:
    tag = new()
    limit(api, tag, 0)
    busy(api, tag, 2)
    waits(api, tag, 2)

    api.call("DELETE", f"/tag-permits/{tag}")

    assert len([api.take(type_of(tag)) for _ in range(2)]) == 2


def test_the_limits_of_workflows_and_trees_are_shown_like_those_of_tags(api: Place) -> None:
    kind = type_of(new())
    name = api.push(step("a", kind), step("b", kind), step_concurrency=1)
    api.start(name)

    def look() -> Any:
        found = api.get("/permits", kind="workflow", prefix=name)["elements"]
        return found if found and found[0]["waiting"] == 1 else None

    (found,) = until(look, "a step to wait")

    assert (found["limited"], found["workflow_id"], found["max_allowed"]) == (f"workflow/{name}", name, 1)
    assert len(api.get(f"/permits/workflow/{name}/holders")["elements"]) == 1
    assert len(api.get(f"/permits/workflow/{name}/waiting")["elements"]) == 1
    assert api.get(f"/permits/workflow/{name}")["held"] == 1


def test_metrics_tell_what_each_tag_holds_and_how_long_the_first_has_waited(api: Place) -> None:
    tag = new("000")
    limit(api, tag, 1)
    busy(api, tag, 2)
    waits(api, tag, 1)

    text = httpx.get(f"{api.url}/api/v3/metrics").text

    assert f'kapelle_permits_max{{tag="{tag}"}} 1\n' in text
    assert f'kapelle_permits_held{{tag="{tag}"}} 1\n' in text
    assert f'kapelle_permits_waiting{{tag="{tag}"}} 1\n' in text
    assert f'kapelle_permits_oldest_wait_seconds{{tag="{tag}"}} ' in text
    assert 'kapelle_limits_held{kind="workflow"}' in text
    assert "kapelle_steps_paused " in text
