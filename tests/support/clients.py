"""Clients of others that the documents show, and this project does not need: had on demand, in the repository's cache.

    python -m tests.support.clients        has all of them beforehand

Packages of Python are in environments of their own, because they do not agree with ours on what else to install. A
stamp that is written last tells a finished one from a broken one.
"""

import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from tests.support.commands import ensure_maven, run
from tests.support.errors import NoClient
from tests.support.jars import CACHE, DEPENDENCY, POM, REPOSITORY, install, locked

UNITS = ("schemas", "processors", "topology", "sdk", "reading", "relays", "gateway")
QUIX = ("quixstreams==3.28.1", "fastavro==1.13.1")
AVRO_VERSION = "1.12.1"
COPY = ("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs", "-DincludeScope=runtime")


def faust_python() -> tuple[str, dict[str, str]]:
    """The interpreter of an environment with `kapelle[faust]`, as its lock has it, and what to add to its variables."""
    lock = REPOSITORY / "requirements-faust.lock"
    home = _made("venv-faust", lock.read_text(), lambda home: _environment(home, "sync", str(lock)))
    return str(home / "bin" / "python"), {"PYTHONPATH": os.pathsep.join(str(REPOSITORY / unit) for unit in UNITS)}


def quix_python() -> str:
    """The interpreter of an environment with Quix Streams."""
    home = _made("venv-quix", "\n".join(QUIX), lambda home: _environment(home, "install", *QUIX))
    return str(home / "bin" / "python")


def java_libs() -> list[Path]:
    """The jars of Kafka's client and of Avro."""
    kafka = install()  # first: whoever fetches it has Maven to itself, which is not safe for two
    avro = _made(f"avro-{AVRO_VERSION}", AVRO_VERSION, _fetch_avro)
    return [*sorted(kafka.libs.glob("*.jar")), *sorted((avro / "libs").glob("avro-*.jar"))]


def ensure_kcat() -> None:
    """Have kcat, from the system's packages if need be."""
    if shutil.which("kcat"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NoClient("kcat")
    run(["apt-get", "update", "-q"])
    run(["apt-get", "install", "-q", "-y", "--no-install-recommends", "kcat"])


def _made(name: str, recipe: str, make: Callable[[Path], None]) -> Path:
    """A directory of the cache that was made from this recipe."""
    home = CACHE / name
    digest = hashlib.sha256(recipe.encode()).hexdigest()
    stamp = home / "made-from.txt"
    with locked(CACHE / f"{name}.lock"):
        if not stamp.exists() or stamp.read_text() != digest:
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            make(home)
            stamp.write_text(digest)
    return home


def _environment(home: Path, *how: str) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    run([sys.executable, "-m", "venv", "--without-pip", str(home)])
    run([uv, "pip", how[0], "--quiet", "--python", str(home / "bin" / "python"), *how[1:]])


def _fetch_avro(home: Path) -> None:
    ensure_maven()
    (home / "pom.xml").write_text(POM.format(dependencies=DEPENDENCY.format("org.apache.avro", "avro", AVRO_VERSION)))
    run(COPY, cwd=home)


if __name__ == "__main__":
    faust_python()
    quix_python()
    # The others wait for Kafka to be fetched, so that nobody else asks Maven or the system's packages meanwhile.
    java_libs()
    ensure_kcat()
