"""What holds for files of every kind: nothing of one machine, nothing of one network, and a broker set up as tested."""

import re
import tomllib

from tests.support.settings import KAFKA_VERSION, BrokerSettings, Ports, server_properties
from tests.tidy.files import REPOSITORY, name_of, project_files, python_files

# Each is spelt in two halves, so that this file does not find itself.
MACHINE_PATHS = tuple(
    re.compile(rf"(?<![\w.])/{name}/") for name in ("ho" + "me", "ro" + "ot", "Us" + "ers", "wo" + "rk")
)
REGISTRIES = tuple(
    a + b
    for a, b in (
        ("pypi", ".org"),
        ("python", "hosted.org"),
        ("maven", ".apache.org"),
        ("maven", ".org"),
        ("docker", ".io"),
        ("ghcr", ".io"),
        ("quay", ".io"),
        ("npmjs", ".org"),
    )
)
# The address that names Maven's own format is a name, not a place to fetch from.
NAMES_NOT_PLACES = ("http://maven.apache.org/POM/4.0.0",)
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


def lines() -> list[tuple[str, str]]:
    """Every line of text in the project, with where it is."""
    found: list[tuple[str, str]] = []
    for path in project_files():
        content = path.read_bytes()
        if b"\0" not in content:
            text = content.decode(errors="replace").splitlines()
            found += [(f"{name_of(path)}:{number}", line) for number, line in enumerate(text, 1)]
    return found


def test_no_file_names_a_path_of_one_machine() -> None:
    assert [where for where, line in lines() if any(path.search(line) for path in MACHINE_PATHS)] == []


def test_no_file_names_a_package_registry() -> None:
    def stripped(line: str) -> str:
        for name in NAMES_NOT_PLACES:
            line = line.replace(name, "")
        return line

    assert [where for where, line in lines() if any(host in stripped(line) for host in REGISTRIES)] == []


def test_every_python_file_is_under_the_eye_of_the_type_checker() -> None:
    checked = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["mypy"]["files"]

    assert {name_of(p) for p in python_files()} - {name_of(p) for p in python_files(*checked)} == set()


def test_every_dependency_is_locked_with_its_hash() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    locked = (REPOSITORY / "requirements.lock").read_text()

    names = [re.split(r"[><=\[ ]", requirement)[0] for requirement in wanted]
    unlocked = [
        name for name in names if not re.search(rf"^{re.escape(name)}==\S+ (;.*)?\\\n    --hash=", locked, re.MULTILINE)
    ]
    assert unlocked == []


def test_the_composed_broker_is_the_version_that_tests_run_on() -> None:
    compose = (REPOSITORY / "docker-compose.yml").read_text()

    assert re.findall(r"^    image: (.*)$", compose, re.MULTILINE) == [f"apache/kafka:{KAFKA_VERSION}"]


def test_the_composed_broker_is_set_up_as_the_one_that_tests_start() -> None:
    compose = (REPOSITORY / "docker-compose.yml").read_text()
    found = dict(re.findall(r'^      KAFKA_(\w+): "?([^"\n]*)"?$', compose, re.MULTILINE))
    tested = server_properties(BrokerSettings(), Ports(1, 2, 3, 4), "data")

    expected = {name.upper().replace(".", "_"): tested[name] for name in tested.keys() - COMPOSE_DIFFERS}
    assert {name: found.get(name) for name in expected} == expected


def test_the_composed_broker_declares_what_it_mounts() -> None:
    compose = (REPOSITORY / "docker-compose.yml").read_text()
    sections = re.findall(r"^(\w+):$", compose, re.MULTILINE)
    mounted = re.findall(r"^      - ([\w-]+):/", compose, re.MULTILINE)
    declared = re.findall(r"^  ([\w-]+):$", compose.split("\nvolumes:\n")[1], re.MULTILINE)

    assert sections == ["services", "volumes"]
    assert mounted == declared == ["kafka-data"]
