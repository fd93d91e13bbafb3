"""The same definitions, steps and commands on the embedded log and on a real broker with three processes."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.integration.ways_in import Shell, on_a_broker, on_the_embedded_log
from tests.support.broker import Broker

STEPS = '''
"""The steps of this test."""
from kapelle.worker import Context, NonRetryable, Retryable, Worker

worker = Worker()


@worker.step("fetch")
def fetch(rows: int, context: Context) -> dict[str, int]:
    if context.attempt == 1:
        raise Retryable("not ready yet")
    context.log(f"{rows} rows")
    return {"fetched": rows}


@worker.step("check")
async def check(limit: int) -> dict[str, bool]:
    if limit < 10:
        raise NonRetryable(f"Expected a limit of 10 or more, but found {limit}")
    return {"good": True}


@worker.step("endless")
def endless(context: Context) -> None:
    context.cancelled.wait(60)
    context.raise_if_cancelled()
'''
ETL = """
Workflow:
  id: etl
  owner: ann
  run_strategy: parallel
  rows: 100
  limit: 50
  jobs:
    - job:
        id: fetch
        type: fetch
        retry_policy: {error_retry_limit: 2, backoff: {type: FIXED_BACKOFF, error_retry_backoff_in_secs: 1}}
        "!rows<long>": rows
        fetched: 0
    - job: {id: check, type: check, "!limit<long>": limit, good: false}
    - job: {id: small, type: NoOp}
    - job: {id: done, type: NoOp}
  dag:
    fetch: [IF fetched > 10 THEN check, OTHERWISE small]
    check: [done]
"""
ENDLESS = {
    "properties": {"owner": "ann", "run_strategy": "PARALLEL"},
    "workflow": {"id": "endless", "steps": [{"step": {"id": "wait", "type": "endless"}}]},
}


@pytest.fixture(scope="module", params=["embedded", "kafka"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    folder: Path = tmp_path_factory.mktemp(f"ways-{request.param}")
    (folder / "steps.py").write_text(STEPS)
    (folder / "etl.yaml").write_text(ETL)
    (folder / "endless.json").write_text(json.dumps(ENDLESS))
    if request.param == "embedded":
        way = on_the_embedded_log(folder, "steps")
    else:
        broker: Broker = request.getfixturevalue("broker")
        way = on_a_broker(folder, "steps.py", broker)
    with way as found:
        found.kapelle("workflow", "push", "etl.yaml")
        found.kapelle("workflow", "push", "endless.json")
        yield found


def started(shell: Shell, *words: str) -> str:
    """The number of an instance that was started."""
    return str(json.loads(shell.kapelle("run", "start", *words, "-o", "json"))["workflow_instance_id"])


def test_a_run_with_a_retry_and_a_branch_succeeds_and_tells_its_story(shell: Shell) -> None:
    number = started(shell, "etl")

    watched = shell.kapelle("run", "watch", "etl", number, "--timeout", "60")
    described = json.loads(shell.kapelle("run", "describe", "etl", number, "-o", "json"))
    timeline = shell.kapelle("run", "timeline", "etl", number)

    assert "USER_FAILED  not ready yet" in watched
    statuses = {one["step_id"]: one["status"] for one in described["steps"]}
    assert statuses == {"fetch": "SUCCEEDED", "check": "SUCCEEDED", "done": "SUCCEEDED", "small": "UNSATISFIED"}
    assert described["status"] == "SUCCEEDED"
    assert timeline.startswith("run 1\n")
    assert re.search(r"fetch #2 +100 rows", timeline)


def test_a_failed_step_is_restarted_with_other_parameters(shell: Shell) -> None:
    number = started(shell, "etl", "--param", "limit=5")
    failed = shell.kapelle("run", "watch", "etl", number, "--timeout", "60", code=1)

    restarted = shell.kapelle("run", "restart", "etl", number, "--param", "limit=20", "--watch", "--timeout", "60")
    step = json.loads(shell.kapelle("step", "describe", "etl", number, "check", "-o", "json"))

    assert f"error: etl/{number} FAILED" in failed
    assert restarted.startswith(f"etl {number} run 2\n")
    assert (step["workflow_run_id"], step["status"]) == (2, "SUCCEEDED")


def test_a_step_that_runs_is_stopped_and_another_one_skipped(shell: Shell) -> None:
    stopped, skipped = started(shell, "endless"), started(shell, "endless")
    for number in (stopped, skipped):
        wait_until_running(shell, number)

    told = shell.kapelle("run", "stop", "endless", stopped, "--reason", "enough")
    shell.kapelle("step", "skip", "endless", skipped, "wait")
    shell.kapelle("run", "watch", "endless", skipped, "--timeout", "60")

    assert told == f"endless {stopped} is STOPPED\n"
    assert "enough" in shell.kapelle("run", "timeline", "endless", stopped)


def wait_until_running(shell: Shell, number: str) -> None:
    for _ in range(100):
        found = json.loads(shell.kapelle("run", "describe", "endless", number, "-o", "json"))
        if any(one["status"] == "RUNNING" for one in found["steps"]):
            return
    raise AssertionError(f"Expected endless/{number} to run, but found {found}")


def test_the_same_request_twice_starts_one_instance(shell: Shell) -> None:
    first = started(shell, "etl", "--request-id", "order-1")
    again = json.loads(shell.kapelle("run", "start", "etl", "--request-id", "order-1", "-o", "json"))

    assert str(again["workflow_instance_id"]) == first
    assert again["status"] == "DUPLICATED"


def test_lists_show_what_there_is(shell: Shell) -> None:
    number = started(shell, "etl")

    workflows = shell.kapelle("workflow", "list").splitlines()
    runs = json.loads(shell.kapelle("run", "list", "etl", "-o", "json"))

    assert workflows[0].split() == ["WORKFLOW", "ACTIVE", "LATEST", "OWNER", "CHANGED"]
    assert [line.split()[:4] for line in workflows[1:]] == [["endless", "1", "1", "ann"], ["etl", "1", "1", "ann"]]
    assert str(runs["elements"][0]["workflow_instance_id"]) == number
    assert shell.kapelle("run", "list", "--status", "failed").startswith("WORKFLOW")


def test_versions_are_pushed_switched_and_deleted(shell: Shell) -> None:
    (shell.folder / "other.yaml").write_text("Workflow: {id: other, owner: ann, jobs: [{job: {id: a, type: NoOp}}]}")
    assert shell.kapelle("workflow", "push", "other.yaml") == "other version 1\n"
    assert shell.kapelle("workflow", "push", "other.yaml") == "other version 2\n"

    assert shell.kapelle("workflow", "activate", "other", "1") == "other version 1 is active\n"
    assert "1        active" in shell.kapelle("workflow", "versions", "other")
    assert shell.kapelle("workflow", "deactivate", "other") == "other has no active version\n"
    assert "Expected" in shell.kapelle("run", "start", "other", code=3)
    assert "active version  none" in shell.kapelle("workflow", "describe", "other")
    assert shell.kapelle("workflow", "delete", "other", "--yes") == "other is deleted\n"
    assert "'other'" in shell.kapelle("workflow", "describe", "other", code=3)


# What is asked for and is not so, how that ends, and what is said.
WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("workflow", "describe", "nothing"), 3, "Expected workflow 'nothing' to exist, but it does not"),
    (("workflow", "versions", "nothing"), 3, "Expected workflow 'nothing' to exist"),
    (("workflow", "activate", "etl", "99"), 3, "99"),
    (("workflow", "activate", "etl", "first"), 1, "first"),
    (("workflow", "delete", "nothing", "--yes"), 3, "nothing"),
    (("workflow", "push", "bad.json"), 1, "workflow.steps[0].step.timout: Expected the key 'timeout'"),
    (("workflow", "validate", "bad.json", "--remote"), 1, "timout"),
    (("run", "start", "nothing"), 3, "nothing"),
    (("run", "start", "etl", "--version", "99"), 3, "99"),
    (("run", "start", "etl", "--param", "rows=many"), 1, "rows"),
    (("run", "describe", "etl", "9999"), 3, "Expected instance etl/9999 to exist, but it does not"),
    (("run", "watch", "etl", "9999"), 3, "Expected instance etl/9999 to exist"),
    (("run", "timeline", "etl", "9999"), 3, "Expected instance etl/9999 to exist"),
    (("run", "stop", "etl", "9999"), 3, "9999"),
    (("run", "restart", "etl", "9999"), 3, "9999"),
    (("run", "list", "--status", "HAPPY"), 1, "status"),
    (("run", "list", "--cursor", "nonsense"), 1, "cursor"),
    (("step", "describe", "etl", "1", "nothing"), 3, "nothing"),
    (("step", "skip", "etl", "9999", "nothing"), 3, "Expected an instance that has run, but there is none"),
]


@pytest.mark.parametrize(("words", "code", "message"), WRONG, ids=[" ".join(words) for words, _, _ in WRONG])
def test_what_the_server_refuses_ends_with_its_code_and_reason(
    shell: Shell, words: tuple[str, ...], code: int, message: str
) -> None:
    (shell.folder / "bad.json").write_text(
        json.dumps({"workflow": {"id": "bad", "steps": [{"step": {"id": "a", "type": "NoOp", "timout": "1h"}}]}})
    )

    assert message in shell.kapelle(*words, code=code)


def test_a_step_that_was_never_created_cannot_be_skipped(shell: Shell) -> None:
    started = json.loads(shell.kapelle("run", "start", "etl", "-o", "json"))
    number = str(started["workflow_instance_id"])
    shell.kapelle("run", "watch", "etl", number, "--timeout", "60")

    refused = shell.kapelle("step", "skip", "etl", number, "nothing", code=1)

    assert "Expected step 'nothing' to have been created" in refused


def test_an_api_without_its_topics_says_how_to_make_them(broker: Broker, tmp_path: Path) -> None:
    where = ("--bootstrap-servers", broker.bootstrap_servers, "--prefix", "nothing-there")

    refused = Shell(tmp_path, "http://unused").kapelle("api", "run", *where, "--port", "0", code=4)

    assert f"kapelle topics apply --bootstrap-servers {broker.bootstrap_servers} --prefix nothing-there" in refused


def test_workers_take_their_tasks_by_share_groups_if_told_so(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEPS)
    (tmp_path / "etl.yaml").write_text(ETL)
    prefix = f"shared-{uuid.uuid4().hex[:8]}"

    with on_a_broker(tmp_path, "steps.py", broker, prefix=prefix, dispatch="share") as shell:
        shell.kapelle("workflow", "push", "etl.yaml")
        watched = shell.kapelle("run", "watch", "etl", started(shell, "etl"), "--timeout", "90")

    assert "done  SUCCEEDED" in re.sub(" +", "  ", watched)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    groups = admin.list_consumer_groups().result(30)
    ours = {one.group_id.removeprefix(prefix) for one in groups.valid if one.group_id.startswith(prefix)}
    assert ".runs" in ours
    assert ".tasks.fetch" not in ours


def test_a_dispatch_that_there_is_not_is_refused(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEPS)
    words = ("worker", "run", "steps.py", "--bootstrap-servers", "127.0.0.1:1", "--dispatch", "luck")

    assert "'luck' is not one of 'consumer', 'share'" in Shell(tmp_path, "http://unused").kapelle(*words, code=2)
