"""A broker to work with: `up` leaves one running in the background, `down` stops it, `run` keeps it in the foreground.

`prepare` fetches what tests need to start one, ahead of the tests, which have a time limit each.

Where a Docker engine answers it is the one of `docker-compose.yml`; elsewhere it runs from Kafka's jars. Either way its
data outlives `down`, and it is reached at 127.0.0.1:9092 unless that port is taken.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.support.commands import answers, docker_answers, run
from tests.support.errors import SupportError
from tests.support.jar_broker import prepare
from tests.support.jars import CACHE, REPOSITORY, install
from tests.support.readiness import wait_until_ready
from tests.support.settings import ADDRESS_VARIABLE, HOST, BrokerSettings, Ports, free_ports

DIRECTORY = CACHE / "broker"
PID_FILE = DIRECTORY / "pid"
ADDRESS_FILE = DIRECTORY / "address"
LOG = DIRECTORY / "server.log"

CLIENT_PORT = 9092
STOP_TIMEOUT_S = 20.0
USAGE = "usage: python -m tests.support.broker up|down|run|prepare"


def main(arguments: list[str]) -> int:
    commands = {"up": up, "down": down, "run": run_in_foreground, "prepare": prepare_for_tests}
    if len(arguments) != 1 or arguments[0] not in commands:
        return _say(USAGE, code=2)
    try:
        return _say(commands[arguments[0]]())
    except SupportError as error:
        return _say(str(error), code=1)


def up() -> str:
    """Start it unless it runs; say where it is."""
    if _compose_answers():
        run(["docker", "compose", "up", "--detach", "--wait", "kafka"], cwd=REPOSITORY)
        return f"Kafka is at {HOST}:{CLIENT_PORT} (docker compose)"
    if _running_pid() is None:
        _start_in_background()
    return f"Kafka is at {ADDRESS_FILE.read_text()} (process {PID_FILE.read_text()}, log in {_shown(LOG)})"


def down() -> str:
    """Stop it; its data stays."""
    if _compose_answers():
        run(["docker", "compose", "down"], cwd=REPOSITORY)
        return "Kafka is stopped"
    if (pid := _running_pid()) is None:
        return "Kafka was not running"
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_TIMEOUT_S
    while _running_pid() is not None:
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    return "Kafka is stopped"


def prepare_for_tests() -> str:
    """Have Java and Kafka's jars on this machine, unless the broker will come from elsewhere."""
    if address := os.environ.get(ADDRESS_VARIABLE):
        return f"Tests will use Kafka at {address}"
    if docker_answers():
        return "Tests will use Kafka from Docker"
    return f"Tests will use Kafka from {_shown(install().home)}"


def run_in_foreground() -> str:
    """Become the server, so that Ctrl-C and every other signal is its own."""
    command, address = _command()
    _say(f"Kafka will be at {address}; Ctrl-C stops it")
    os.execvp(command[0], command)  # noqa: S606 -- a list that we wrote, without a shell


def _compose_answers() -> bool:
    return docker_answers() and answers(["docker", "compose", "version"])


def _start_in_background() -> None:
    command, address = _command()
    with LOG.open("wb") as log:
        # A session of its own keeps it running when this terminal closes.
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    PID_FILE.write_text(str(server.pid))
    ADDRESS_FILE.write_text(address)
    try:
        wait_until_ready(address, timeout_s=60, alive=lambda: server.poll() is None, log=LOG.read_text)
    except BaseException:
        server.kill()
        raise


def _command() -> tuple[list[str], str]:
    installation, settings, ports = install(), BrokerSettings(node_session_ms=9_000, jvm_flags=()), _ports()
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    return installation.server(prepare(installation, settings, ports, DIRECTORY), settings), f"{HOST}:{ports.client}"


def _ports() -> Ports:
    """The port that everyone expects, if it is free, with others beside it."""
    found = free_ports()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, CLIENT_PORT))
        except OSError:
            return found
    return Ports(client=CLIENT_PORT, controller=found.controller, proxied=found.proxied, proxy=found.proxy)


def _running_pid() -> int | None:
    """The process in the pid file, if it is still our server: numbers are given to others in time."""
    if not PID_FILE.exists():
        return None
    pid = int(PID_FILE.read_text())
    return pid if str(DIRECTORY) in _command_line(pid) else None


def _command_line(pid: int) -> str:
    """What runs under this number; nothing, if it has ended."""
    if sys.platform == "linux":  # small images have no `ps`
        try:
            return Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            return ""
    return subprocess.run(["ps", "-p", str(pid), "-o", "args="], capture_output=True, text=True, check=False).stdout


def _shown(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def _say(text: str, *, code: int = 0) -> int:
    print(text, file=sys.stderr if code else sys.stdout, flush=True)
    return code
