"""Serving: on an address of one's own, until a signal, with everyone who waits let go."""

import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from kapelle.api import AddressTaken, ApiServer, create_app
from tests.integration.api.places import Place, definition, until

STOP_S = 5.0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_soon_and_in_good_order(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "tests.integration.api.server_process", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, ThreadPoolExecutor(2) as pool:
        assert process.stdout is not None, "it was asked for as a pipe"
        base = f"{process.stdout.readline().strip()}/api/v3"
        httpx.post(f"{base}/workflows", json=definition("etl"), timeout=30).raise_for_status()
        poll = {"worker": "w", "types": ["nothing"], "wait_ms": 30_000}
        waiting = [pool.submit(httpx.post, f"{base}/tasks/poll", json=poll, timeout=40) for _ in range(2)]
        until(lambda: all(one.running() for one in waiting), "the polls to be sent")
        httpx.get(f"{base}/workflows", timeout=30).raise_for_status()
        began = time.monotonic()

        process.send_signal(number)
        answers = [one.result(30).json() for one in waiting]
        code = process.wait(30)
        took_s = time.monotonic() - began
        said = process.stdout.read()

    assert answers == [{"tasks": [], "cancelled": []}] * 2
    assert (code, said) == (0, "ended\n")
    assert took_s < STOP_S


def test_what_was_pushed_before_the_end_is_there_after_the_next_start(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.api.server_process", str(tmp_path)]
    for count in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None, "it was asked for as a pipe"
            base = f"{process.stdout.readline().strip()}/api/v3"
            if count == 0:
                httpx.post(f"{base}/workflows", json=definition("etl"), timeout=30).raise_for_status()
            found = httpx.get(f"{base}/workflows/etl/versions/active", timeout=30)
            process.kill() if count == 0 else process.terminate()

        assert found.status_code == 200


def test_an_address_that_is_taken_is_told_as_such(place: Place) -> None:
    port = int(place.url.rpartition(":")[2])

    with pytest.raises(AddressTaken, match=str(port)):
        ApiServer(create_app(place.journal, place.views), "127.0.0.1", port)
