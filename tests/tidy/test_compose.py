"""The composed services: as the schema of compose files wants them, and their broker as the one that tests start."""

import subprocess
import sys
import tomllib
from typing import Any

import yaml

from tests.support.settings import KAFKA_VERSION, BrokerSettings, Ports, server_properties
from tests.tidy.files import REPOSITORY

FILE = REPOSITORY / "docker-compose.yml"
COMPOSE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
# Where a container differs from a broker that tests start: one listener, on the usual port, and no time-outs for haste.
COMPOSE_DIFFERS = {
    "advertised.listeners",
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "controller.quorum.voters",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
    "group.min.session.timeout.ms",
    "inter.broker.listener.name",
    "listener.security.protocol.map",
    "listeners",
    "log.dirs",
}


def test_the_file_is_what_the_schema_of_compose_files_wants() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", FILE],
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_images_are_the_broker_that_tests_run_on_and_this_version() -> None:
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]

    assert {one["image"] for one in SERVICES.values()} == {f"apache/kafka:{KAFKA_VERSION}", f"kapelle:{version}"}


def test_the_broker_is_set_up_as_the_one_that_tests_start() -> None:
    found = SERVICES["kafka"]["environment"]
    tested = server_properties(BrokerSettings(), Ports(1, 2, 3, 4), "data")

    expected = {f"KAFKA_{name.upper().replace('.', '_')}": tested[name] for name in tested.keys() - COMPOSE_DIFFERS}
    assert {name: found.get(name) for name in expected} == expected


def test_every_volume_is_declared_and_belongs_to_one_service() -> None:
    mounted = [mount.split(":")[0] for one in SERVICES.values() for mount in one.get("volumes", ())]

    assert sorted(name for name in mounted if not name.startswith(".")) == sorted(COMPOSE["volumes"])


def test_only_this_machine_reaches_the_ports() -> None:
    ports = [port for one in SERVICES.values() for port in one.get("ports", ())]

    assert all(port.startswith("127.0.0.1:") for port in ports)
