"""Every operation describes its answers, and answers as it is described. Each scene calls the operations of a subject.

All other tests on the embedded API compare what they are answered, too (`embedded_place`).
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from kapelle.api import BASE, ApiSettings
from kapelle.processors.wiring import SIGNALS
from kapelle.sources import read_sources
from kapelle.sources.hooks import Hooks, signature
from kapelle.topology.journal import EmbeddedJournal
from tests.integration.api.places import Json, Place, definition, embedded_place, step, until
from tests.support import texts
from tests.support.answers import check, operation_of, operations
from tests.unit.views.trees import foreach, rounds, subworkflow

SECRET: Final = "a secret of the shop"  # noqa: S105 - of these tests
HOOKS: Final = f'hooks: {{shop: {{secrets: ["{SECRET}"], name: order-placed, params: {{order: /id}}}}}}'
# Answered in the tests of SNS, which have a server of Amazon. Their answers are compared, too.
ELSEWHERE: Final = frozenset({("post", f"{BASE}/sns/{{name}}")})
LATER: Final = 202


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory: Path = tmp_path_factory.mktemp("answers")
    settings = ApiSettings(hooks=Hooks.of(read_sources(HOOKS), {}))
    with embedded_place(directory, settings) as opened:
        yield opened


# Scenes ---------------------------------------------------------------------------------------------------------------


def pushes(place: Place) -> None:
    body = definition(f"wf-{uuid.uuid4().hex[:12]}", step("only"))
    yaml = f"Workflow:\n  id: {body['workflow']['id']}\n  owner: ann\n  jobs: [{{job: {{id: only, type: NoOp}}}}]\n"
    for path, written in (("", json.dumps(body)), ("/yaml", yaml)):
        place.call("POST", f"/workflows{path}", content=written)
        place.call("PUT", f"/workflows/actions/validate{path}", content=written)


def workflows(place: Place) -> None:
    name = place.push(step("only"))
    path = f"/workflows/{name}"
    for read in ("", "/versions/pagination", "/versions/1", "/overview", "/timeline", "/properties-snapshot/latest"):
        place.get(f"{path}{read}" if read else "/workflows")
    place.get(f"{path}/versions/active", enriched=True)
    place.call("POST", f"{path}/properties", json={"run_strategy": {"rule": "PARALLEL"}})
    place.call("POST", f"{path}/properties/tag", json={"name": "gold"})
    place.call("DELETE", f"{path}/properties/tag/gold")
    place.call("PUT", f"{path}/actions/deactivate")
    place.call("PUT", f"{path}/versions/1/actions/activate")
    place.call("PUT", f"{path}/actions/stop")
    place.call("DELETE", path)


def instances(place: Place) -> None:
    name = place.push(step("extract", "NoOp", "load"), step("load"))
    number = place.start(name, runtime_tags=["gold"], run_params={"day": {"type": "LONG", "value": 1}})
    place.ended(name, number)
    path = f"/workflows/{name}/instances"
    one = f"{path}/{number}"
    for read in ("/workflows/instances", "/workflows/instances/counts", path, one, f"{one}/runs", f"{one}/runs/1"):
        place.get(read, **({"aggregated": True, "enriched": True} if read.startswith(path) else {}))
    for read in ("instances", "steps/instances"):
        place.get(f"/workflows/{read}/action-map")
    for read in ("timeline", "events", "steps", "runs/1/steps", "steps/load", "runs/1/steps/load/attempts/1"):
        place.get(f"{one}/{read}")
    place.get(f"/workflows/{name}/matrix")
    place.call("POST", f"{one}/actions/restart", json={"restart_policy": "RESTART_FROM_BEGINNING"})
    place.ended(name, number, 2)
    place.call("POST", f"{one}/steps/load/actions/restart")


def endings(place: Place) -> None:
    kind = uuid.uuid4().hex
    name = place.push(step("work", kind), run_strategy="PARALLEL")
    first, second, third = (place.start(name) for _ in range(3))
    place.take(kind, most=3)
    path = f"/workflows/{name}/instances"
    place.call("PUT", f"{path}/{first}/steps/work/actions/skip")
    place.call("PUT", f"{path}/{second}/actions/stop")
    place.call("PUT", f"{path}/{third}/runs/1/actions/kill")
    place.call("PUT", f"{path}/{third}/actions/unblock")


def children(place: Place) -> None:
    below = place.push(step("only"))
    name = place.push(foreach("each", [1, 2], step("leaf")), rounds("again", 2), subworkflow("below", below))
    number = place.start(name)
    place.ended(name, number)
    path = f"/workflows/{name}/instances/{number}"
    steps = place.get(f"{path}/steps")
    for each in ("each", "again", "below"):
        place.get(f"{path}/steps/{each}")
        child = place.get(f"{path}/steps/{each}/children")["elements"][0]
        place.get(f"/workflows/{child['workflow_id']}/instances/1", aggregated=True, enriched=True)
    assert sorted(kind for each in steps for kind in each["artifacts"]) == [
        "maestro_foreach",
        "maestro_subworkflow",
        "maestro_while",
    ]


def tasks(place: Place) -> None:
    kind = uuid.uuid4().hex
    name = place.push(step("work", kind), run_strategy="PARALLEL")
    for _ in range(2):
        place.start(name)
    first, second = place.take(kind), place.take(kind)
    place.report(first[0], "SUCCEEDED")
    place.report(first[0], "USER_ERROR")
    said = {"workflow_id": name, "workflow_instance_id": second[0]["instance_id"], "step_id": "work"}
    place.call("PUT", "/output-data", json={**said, "token": second[0]["token"], "params": {}})


def breakpoints(place: Place) -> None:
    name, root = place.push(step("only")), "/workflows/steps/breakpoints"
    by_name = {"workflowId": name, "stepId": "only"}
    for _ in range(2):
        place.call("POST", root, json={"workflow_id": name, "step_id": "only"})
    place.start(name)
    place.start(name)
    place.get(root, workflowId=name)
    paused = until(lambda: place.get(f"{root}/paused-step-attempts", workflowId=name)["elements"], "the pause")
    path = f"/workflows/{name}/instances/{paused[0]['workflow_instance_id']}"
    assert place.get(f"{path}/steps/only")["breakpoints"]
    of_attempt = f"{root}/{name}/instances/{paused[0]['workflow_instance_id']}/runs/1/steps/only/attempts/1"
    place.call("PUT", f"{of_attempt}/actions/resume")
    again = until(lambda: place.get(f"{root}/paused-step-attempts", workflowId=name)["elements"], "the other pause")
    place.call("PUT", f"/workflows/{name}/instances/{again[0]['workflow_instance_id']}/steps/only/actions/resume")
    place.call("DELETE", root, params=by_name)


def permits(place: Place) -> None:
    tag = f"gpu-{uuid.uuid4().hex}"
    place.call("POST", "/tag-permits", json={"tag": tag, "max_allowed": 1, "team": "ml"})
    name = place.push(step("train", tag, tags=[tag]), run_strategy="PARALLEL")
    numbers = [place.start(name) for _ in range(2)]
    until(lambda: place.get(f"/tag-permits/{tag}")["waiting"] == 1, "one to wait")
    for read in ("/tag-permits", "/permits", f"/permits/tag/{tag}"):
        place.get(read)
    for read in ("holders", "waiting"):
        assert place.get(f"/permits/tag/{tag}/{read}")["elements"]
    steps = [place.get(f"/workflows/{name}/instances/{number}/steps/train") for number in numbers]
    assert any("permits" in one for one in steps)
    place.call("DELETE", f"/tag-permits/{tag}")


def signals(place: Place) -> None:
    signal, other, name = (f"{kind}-{uuid.uuid4().hex}" for kind in ("orders", "never", "wf"))
    body = definition(name, step("tell"))
    body["workflow"]["signal_triggers"] = [{"definitions": {signal: {}}}, {"definitions": {signal: {}, other: {}}}]
    place.call("POST", "/workflows", json=body)
    for _ in range(2):
        place.call("POST", "/signals", json={"name": signal, "params": {"day": 1}, "id": "mine"})
    one = f"/signals/{signal}/instances"
    until(
        lambda: {"FIRED", "KEPT"} <= {each["verdict"] for each in place.get(f"{one}/1/explain")["verdicts"]},
        "both verdicts",
    )
    for read in ("/signals", one, f"{one}/latest", f"{one}/1/lineage", f"/signals/{signal}/refused"):
        place.get(read)
    for read in ("instances/1/lineage", "triggers", "triggers/explain"):
        place.get(f"/workflows/{name}/{read}")


def schedules(place: Place) -> None:
    name = f"wf-{uuid.uuid4().hex}"
    body = definition(name, step("only"))
    body["workflow"]["time_triggers"] = [{"type": "CRON", "cron": "0 0 * * *"}, {"type": "INTERVAL", "interval": "90m"}]
    place.call("POST", "/workflows", json=body)
    path = f"/workflows/{name}/schedules"
    place.call("PUT", f"{path}/actions/pause", json={"reason": "holiday"})
    for one in place.get(path)["schedules"]:
        place.get(f"{path}/{one['trigger_id']}")
    place.call("PUT", f"{path}/actions/resume")
    place.get(path)
    asked = {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "from": "2026-03-28"}
    place.call("GET", "/schedules/preview", params=asked)


def backfills(place: Place) -> None:
    kind = uuid.uuid4().hex
    name = place.push(step("only", kind))
    root, period = f"/workflows/{name}/backfills", {"from": "2026-01-01", "to": "2026-01-04", "every": "1d"}
    place.call("POST", root, json={**period, "dry_run": True})
    started = place.call("POST", root, 201, json=period)
    assert place.call("POST", root, json=period)["outcome"] == "UNCHANGED"
    place.get(root)
    one = f"{root}/{started['backfill_id']}"
    place.get(one)
    for action in ("pause", "pause", "resume", "cancel"):
        place.call("PUT", f"{one}/actions/{action}")


def letters(place: Place) -> None:
    assert isinstance(place.journal, EmbeddedJournal)
    place.journal._runtime.publish(SIGNALS, "a key", b"no signal").result()
    (letter,) = until(lambda: place.get("/dead-letters")["elements"], "the letter")
    place.get(f"/dead-letters/{letter['offset']}")
    place.call("POST", f"/dead-letters/{letter['offset']}/actions/redrive")


def health(place: Place) -> None:
    for path in ("/health", "/ready"):
        place.http.get(f"{place.url}{path}").raise_for_status()
    place.http.get("/metrics").raise_for_status()
    with place.http.stream("GET", "/events", params={"wait_ms": 1}) as response:
        assert response.status_code == 200


def hooks(place: Place) -> None:
    body = b'{"id": 7}'
    headers = {"Kapelle-Signature": signature(SECRET, body, int(time.time()))}
    place.call("POST", "/hooks/shop", LATER, content=body, headers=headers)


SCENES: Final[tuple[Callable[[Place], None], ...]] = (
    *(pushes, workflows, instances, endings, children, tasks, breakpoints, permits),
    *(signals, schedules, backfills, letters, health, hooks),
)


# Laws -----------------------------------------------------------------------------------------------------------------


def test_every_operation_describes_each_of_its_answers() -> None:
    responses = [
        (*operation, status, response)
        for operation, about in operations().items()
        for status, response in about["responses"].items()
    ]

    bare = [
        (method, path, status)
        for method, path, status, response in responses
        if not response.get("content") or not all(content.get("schema") for content in response["content"].values())
    ]

    assert bare == []
    assert {one["type"] for one in schemas_of(responses) if "type" in one} <= {"string", "array", "object"}


def schemas_of(responses: list[tuple[str, str, str, Any]]) -> Iterator[Json]:
    for *_, response in responses:
        for content in response["content"].values():
            yield content["schema"]


def test_every_schema_is_one() -> None:
    for schema in texts.document()["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)


def test_every_operation_answers_as_it_is_described(place: Place) -> None:
    for scene in SCENES:
        scene(place)

    expected = {
        (operation, int(status))
        for operation, about in operations().items()
        for status in about["responses"]
        if status.startswith("2") and operation not in ELSEWHERE
    }
    waits = {(operation, status) for operation, status in expected if status == LATER and "/hooks/" not in operation[1]}
    assert sorted(expected - waits - place.answers.seen) == []


def test_a_write_that_is_not_visible_yet_is_answered_as_it_is_described(place: Place) -> None:
    name = place.push(step("only"))

    def later() -> bool:
        start = f"/workflows/{name}/versions/active/actions/start"
        return place.http.post(start, params={"wait_ms": 0}).status_code == LATER

    until(later, "an answer before the effect is visible")


def test_a_member_that_is_not_described_is_refused() -> None:
    operation = operation_of("POST", f"{BASE}/tasks/poll")
    assert operation is not None

    check(operation, 200, "application/json", {"tasks": [], "cancelled": []})
    wrongs: list[Json] = [{"tasks": []}, {"tasks": [], "cancelled": [], "more": 1}, {"tasks": [], "cancelled": [1]}]
    for wrong in wrongs:
        with pytest.raises(AssertionError, match="to have its shape"):
            check(operation, 200, "application/json", wrong)
