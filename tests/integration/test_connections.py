"""`kapelle dev` with few descriptors: more idle connections than it has descriptors keep nobody from being answered."""

import resource
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import httpx

from kapelle.client import Client
from tests.integration.ways_in import KAPELLE, environment

DESCRIPTORS = 256
CONNECTIONS = 600
LOG_BYTES_MAX = 20_000
ENOUGH_S = 60.0
FLOW = "Workflow: {id: flow, owner: ann, jobs: [{job: {id: only, type: NoOp}}]}"


def test_more_idle_connections_than_descriptors_end_nothing_and_flood_no_log(tmp_path: Path) -> None:
    log = tmp_path / "dev.log"
    ours, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert ours > CONNECTIONS + 100, "Expected this process to have descriptors for its own side of the connections"

    with log.open("wb") as said, ExitStack() as held:
        dev = subprocess.Popen(
            ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", *KAPELLE, "dev", "--port=0", "--data=data"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        )
        try:
            assert dev.stdout is not None
            url = dev.stdout.readline().strip()
            port = httpx.URL(url).port
            assert port, log.read_text()
            for number in range(CONNECTIONS):
                idle = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=ENOUGH_S))
                idle.sendall(b"GET /health HTTP/1.1\r\nHost:" if number % 2 else b"")
            health = httpx.get(f"{url}/health", timeout=ENOUGH_S).json()
            with Client(url, timeout_s=ENOUGH_S) as client:
                client.workflows.push(FLOW, is_yaml=True)
                started = client.instances.start("flow")
            has_ended = dev.poll() is not None
        finally:
            dev.terminate()
            code = dev.wait(ENOUGH_S)
            if dev.stdout is not None:
                dev.stdout.close()

    assert health["status"] == "ok"
    assert started.workflow_instance_id == 1
    assert not has_ended
    assert code in (0, 143)
    assert len(log.read_bytes()) < LOG_BYTES_MAX
    assert "Traceback" not in log.read_text()
