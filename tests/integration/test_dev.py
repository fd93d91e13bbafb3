"""`kapelle dev` as a process: ready soon, ended cleanly, alone in its directory, and what it kept is there again."""

import asyncio
import signal
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from kapelle.client import AsyncClient, Client, Forbidden, Param, Unauthorized, Workflow
from tests.integration.ways_in import KAPELLE, Shell, environment, running

WORKFLOW = "Workflow: {id: flow, owner: ann, jobs: [{job: {id: a, type: NoOp}}, {job: {id: b, type: nobody}}]}"
STOP_S_MAX = 6.0
READY_S_MAX = 20.0  # three on a machine that has nothing else to do; `Kapelle … is ready after` tells


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.yaml").write_text(WORKFLOW)
    return tmp_path


def test_it_is_ready_soon_says_what_to_do_next_and_ends_cleanly_on_ctrl_c(folder: Path) -> None:
    began_s = time.monotonic()
    with running(["dev", "--port", "0"], folder) as dev:
        url = dev.url()
        ready_s = time.monotonic() - began_s
        health = httpx.get(f"{url}/health").json()
        began_s = time.monotonic()
        code = dev.stop(signal.SIGINT)
        stopped_s = time.monotonic() - began_s

    assert health["status"] == "ok"
    assert health["mode"] == "embedded"
    assert code == 0
    assert ready_s < READY_S_MAX
    assert stopped_s < STOP_S_MAX
    for line in (
        "is ready after",
        f"kapelle workflow push FILE --url {url}",
        "not kept: use --data DIR to keep it",
        "stopped",
    ):
        assert line in dev.said
    assert "Traceback" not in dev.said


def test_a_second_one_on_the_same_directory_is_refused(folder: Path) -> None:
    with running(["dev", "--port", "0", "--data", "data"], folder) as first:
        first.url()
        second = subprocess.run(
            [*KAPELLE, "dev", "--port", "0", "--data", "data"],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

        assert second.returncode == 4
        assert f"in use by process {first.process.pid}" in second.stderr
        assert "stop that process, or use another --data" in second.stderr
        assert second.stdout == ""


def test_what_was_acknowledged_is_there_after_a_kill(folder: Path) -> None:
    with running(["dev", "--port", "0", "--data", "data"], folder) as first:
        shell = Shell(folder, first.url())
        shell.kapelle("workflow", "push", "flow.yaml")
        shell.kapelle("run", "start", "flow", "--request-id", "once")
        first.process.kill()

    with running(["dev", "--port", "0", "--data", "data"], folder) as second:
        shell = Shell(folder, second.url())

        assert shell.kapelle("run", "start", "flow", "--request-id", "once") == "flow 1\n"
        assert "waits for a worker of type 'nobody'" in shell.kapelle("run", "describe", "flow", "1")
        assert shell.kapelle("run", "stop", "flow", "1") == "flow 1 is STOPPED\n"


def test_tokens_let_in_whom_they_should(folder: Path) -> None:
    (folder / "tokens.txt").write_text("# ours\nviewer viewer-token\nadmin admin-token\n")
    with running(["dev", "--port", "0", "--tokens", "tokens.txt"], folder) as dev:
        url = dev.url()
        with Client(url) as nobody, pytest.raises(Unauthorized):
            nobody.workflows.list()
        with Client(url, token="viewer-token") as viewer:  # noqa: S106 - of this test
            assert viewer.workflows.list().total_count == 0
            with pytest.raises(Forbidden):
                viewer.workflows.push(WORKFLOW, is_yaml=True)
        with Client(url, token="admin-token") as admin:  # noqa: S106 - of this test
            assert admin.workflows.push(WORKFLOW, is_yaml=True).workflow_version_id == 1


def test_a_worker_of_its_own_ends_in_good_order_and_hands_nothing_back_half_done(folder: Path) -> None:
    (folder / "steps.py").write_text(
        "from kapelle.worker import Worker\nworker = Worker()\n"
        "@worker.step('nobody')\ndef nobody() -> None:\n    pass\n"
    )
    with running(["dev", "--port", "0"], folder) as dev:
        shell = Shell(folder, dev.url())
        shell.kapelle("workflow", "push", "flow.yaml")
        with running(["worker", "run", "steps", "--url", shell.url], folder) as worker:
            worker.until("message=serving")
            shell.kapelle("run", "start", "flow", "--watch", "--timeout", "60")

            assert worker.stop(signal.SIGTERM) == 0
            assert "message=stopped" in worker.said


def test_the_async_client_starts_watches_and_waits(folder: Path) -> None:
    async def used(url: str) -> tuple[list[str | None], str]:
        async with AsyncClient(url, user="ann") as kapelle:
            flow = Workflow("quick", owner="ann")
            flow.step("a", "NoOp") >> flow.step("b", "Sleep", params={"sleep_seconds": 1})
            await kapelle.workflows.push(flow)
            started = await kapelle.instances.start("quick")
            watched = [one.status async for one in kapelle.instances.watch("quick", started.workflow_instance_id)]
            ended = await kapelle.instances.wait("quick", started.workflow_instance_id, timeout_s=30)
        return watched, ended.status

    with running(["dev", "--port", "0"], folder) as dev:
        watched, ended = asyncio.run(used(dev.url()))

    assert ended == "SUCCEEDED"
    assert watched[0] == "CREATED"
    assert watched[-1] == "SUCCEEDED"


class Pages(BaseHTTPRequestHandler):
    """Answers 404 with a text that says that all is well."""

    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()
        self.wfile.write(b"all is well")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that is overridden
        """Nothing: the test reads what is on the other side."""


def test_http_steps_reach_allowed_hosts_only_and_their_expression_says_what_an_answer_means(folder: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as pages:
        threading.Thread(target=pages.serve_forever, daemon=True).start()
        there = f"127.0.0.1:{pages.server_address[1]}"
        fine = {"state_expr": "return response_body.contains('well') ? 'DONE' : 'FATAL_ERROR';"}
        with (
            running(["dev", "--port", "0", "--http-allow", "127.0.0.1"], folder) as dev,
            Client(dev.url()) as kapelle,
        ):
            for name, host, more in (("told", there, fine), ("plain", there, {}), ("far", "a.test", {})):
                flow = Workflow(name, owner="ann")
                request = Param("MAP", value={"url": f"http://{host}/page"})
                flow.step("get", "Http", params={"http": request, **more})
                kapelle.workflows.push(flow)
                kapelle.instances.start(name)
            ended = {name: kapelle.instances.wait(name, 1, timeout_s=60).status for name in ("told", "plain", "far")}
            steps = {name: kapelle.steps.get(name, 1, "get") for name in ended}
        pages.shutdown()

    assert ended == {"told": "SUCCEEDED", "plain": "FAILED", "far": "FAILED"}
    assert "answered 404" in (steps["plain"].reason or "")
    assert "Expected a host that this worker may reach, but found 'a.test'" in (steps["far"].reason or "")


def test_a_worker_that_is_not_let_in_ends_and_one_that_finds_nobody_waits(folder: Path) -> None:
    (folder / "tokens.txt").write_text("viewer viewer-token\n")
    (folder / "steps.py").write_text(
        "from kapelle.worker import Worker\nworker = Worker()\n"
        "@worker.step('nobody')\ndef nobody() -> None:\n    pass\n"
    )
    with (
        running(["dev", "--port", "0", "--tokens", "tokens.txt"], folder) as dev,
        running(["worker", "run", "steps", "--url", dev.url()], folder) as stranger,
        running(["worker", "run", "steps", "--url", "http://127.0.0.1:1"], folder) as patient,
    ):
        assert stranger.process.wait(60) == 4
        assert "401" in stranger.said
        patient.until("Connection refused")

        assert patient.stop(signal.SIGTERM) == 0
