"""The composed services without their containers: each runs the very command of `docker-compose.yml`, as a process."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from kapelle.cli.errors import ExitCode
from tests.conftest import PrivateBroker
from tests.integration.ways_in import KAPELLE, Running, Shell, environment
from tests.support.broker import BrokerSettings
from tests.tidy.files import REPOSITORY

COMPOSE = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"]
STAYING = ("processors-1", "processors-2", "api", "worker")
PATIENCE = 5  # so often to ask for what is not visible in time
TOKENS = "${KAPELLE_TOKENS:-admin:local-only}"


class Composed:
    """The services, with a broker and folders of this machine in the place of their own."""

    def __init__(self, servers: str, folder: Path) -> None:
        self._folder = folder
        self._here = {
            "kafka:19092": servers,
            "/examples": str(REPOSITORY / "examples"),
            "8080": "0",
            TOKENS: "admin:local-only",
        }

    def run(self, name: str) -> Running:
        """Start a service that stays."""
        words, variables = self._command(name)
        return Running(words, self._folder / name, variables)

    def run_to_its_end(self, name: str) -> int:
        """How a service that does its work and ends has ended."""
        words, variables = self._command(name)
        return subprocess.run(
            [*KAPELLE, *words], env={**environment(), **variables}, check=False, timeout=120
        ).returncode

    def _command(self, name: str) -> tuple[list[str], dict[str, str]]:
        own = self._folder / name
        own.mkdir()
        here = {**self._here, "/var/lib/kapelle": str(own)}
        words = [_replaced(word, here) for word in COMPOSE[name]["command"]]
        return words, {key: _replaced(value, here) for key, value in COMPOSE[name]["environment"].items()}


def _replaced(text: str, here: dict[str, str]) -> str:
    for there, ours in here.items():
        text = text.replace(there, ours)
    return text


@pytest.fixture
def services(private_broker: PrivateBroker, tmp_path: Path) -> Iterator[dict[str, Running]]:
    composed = Composed(private_broker(BrokerSettings()).bootstrap_servers, tmp_path)
    assert composed.run_to_its_end("topics") == 0
    with ExitStack() as opened:
        found = {name: composed.run(name) for name in STAYING}
        for one in found.values():
            opened.callback(one.stop)
        yield found


def told(shell: Shell, *words: str, request_id: str) -> str:
    """What a command answers. Who is told that its effect is not visible yet asks again: it is the same request."""
    for _ in range(PATIENCE):
        said = shell.answer(*words, "--request-id", request_id)
        if said.exit_code != ExitCode.UNAVAILABLE:
            break
    assert said.exit_code == 0, said.output
    return said.stdout


def test_the_composed_services_run_the_example_and_go_on_without_a_member(services: dict[str, Running]) -> None:
    url = services["api"].url()
    shell = Shell(REPOSITORY, url, token="local-only")  # noqa: S106 - the one that the file says
    assert "set KAPELLE_TOKEN" in Shell(REPOSITORY, url).kapelle("workflow", "list", code=4)
    start = ("run", "start", "sales-etl", "--watch", "--timeout", "120")

    told(shell, "workflow", "push", "examples/etl/workflow.yaml", request_id="pushed")
    first = told(shell, *start, request_id="first")
    services["processors-1"].process.kill()
    second = told(shell, *start, request_id="second")

    assert "SUCCEEDED" in first
    assert "SUCCEEDED" in second
