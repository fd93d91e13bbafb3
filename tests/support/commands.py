"""Runs the tools that set a broker up, and says which of them this machine lacks."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.errors import CommandFailed, NoBroker

JAVA_VERSION_MIN = 17
JAVA_PACKAGES = (
    "openjdk-21-jdk-headless",
    "openjdk-17-jdk-headless",
    "openjdk-25-jdk-headless",
    "default-jdk-headless",
)
COMMAND_TIMEOUT_S = 900


def run(command: Sequence[str], *, cwd: Path | None = None) -> str:
    """Run to the end and return what was said; a failure holds all of it."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        raise CommandFailed(command, done.returncode, done.stdout + done.stderr)
    return done.stdout + done.stderr


def answers(command: Sequence[str], *, timeout_s: float = 10.0) -> bool:
    """Whether the command exists and succeeds."""
    try:
        return subprocess.run(command, capture_output=True, timeout=timeout_s, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def ensure_java() -> None:
    """Have a Java that Kafka runs on, from the system's packages if need be."""
    if (found := java_version()) >= JAVA_VERSION_MIN:
        return
    missing = f"Expected Java {JAVA_VERSION_MIN} or newer, but found {f'Java {found}' if found else 'none'}"
    _refuse_without_apt(missing)
    run(["apt-get", "update", "-q"])
    for package in JAVA_PACKAGES:
        # Distributions carry different versions: the first that there is will do.
        if answers(["apt-get", "install", "-q", "-y", "--no-install-recommends", package], timeout_s=COMMAND_TIMEOUT_S):
            break
    if (found := java_version()) < JAVA_VERSION_MIN:
        raise NoBroker([f"{missing}, and apt has none of {', '.join(JAVA_PACKAGES)}; now there is Java {found}"])


def ensure_maven() -> None:
    """Have Maven, from the system's packages if need be. Its settings are its own."""
    if shutil.which("mvn"):
        return
    _refuse_without_apt("Expected Maven to fetch Kafka's jars with, but found no `mvn`")
    run(["apt-get", "update", "-q"])
    run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "maven"])


def java_version() -> int:
    """The major version of the `java` on the path; 0 if there is none."""
    if not shutil.which("java"):
        return 0
    found = re.search(r'version "(\d+)', run(["java", "-version"]))
    return int(found[1]) if found else 0


def docker_answers() -> bool:
    """Whether there is a Docker engine, not merely its client."""
    return answers(["docker", "version", "--format", "{{.Server.Version}}"])


def _refuse_without_apt(missing: str) -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NoBroker([f"{missing}, and we are not root on a machine with apt: install it, or start Docker"])
