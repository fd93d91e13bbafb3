"""Apache Kafka from its jars: fetched by Maven once, kept in the repository's cache, made quick to start.

The cache holds, each put there by one rename so that whoever sees it sees all of it:

    libs/         the jars of the server and its tools
    formatted/    an empty, formatted data directory; copying it saves a Java start of two seconds per broker
    classes.jsa   the classes of a running server, laid out for mapping (AppCDS); a start takes 2 s instead of 4

A lock lets two runs that find the cache empty fill it once, one waiting for the other.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.support.commands import ensure_java, ensure_maven, run
from tests.support.processes import LeashedProcess
from tests.support.readiness import wait_until_ready
from tests.support.settings import (
    HOST,
    KAFKA_VERSION,
    BrokerSettings,
    free_ports,
    new_cluster_id,
    server_properties,
    write_properties,
)

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache"

LOG4J_VERSION = "2.25.4"
DEPENDENCIES = (
    ("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    ("org.apache.kafka", "kafka-tools", KAFKA_VERSION),
    # Without a binding the server logs nothing, and a failed start would have no reason to show.
    ("org.apache.logging.log4j", "log4j-slf4j-impl", LOG4J_VERSION),
)
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kapelle</groupId><artifactId>test-broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


class Installation(msgspec.Struct, frozen=True):
    """Where Kafka is, and how to run its programs."""

    home: Path

    @property
    def libs(self) -> Path:
        return self.home / "libs"

    @property
    def formatted(self) -> Path:
        return self.home / "formatted"

    @property
    def archive(self) -> Path:
        return self.home / "classes.jsa"

    def server(self, properties: Path, settings: BrokerSettings) -> list[str]:
        """The command that runs a server. Java ignores an archive that another Java has made."""
        return self.java(
            "kafka.Kafka",
            str(properties),
            flags=(
                f"-Xmx{settings.heap_mb}m",
                "-Xshare:auto",
                f"-XX:SharedArchiveFile={self.archive}",
                f"-Dlog4j2.configurationFile={self.home / 'log4j2.properties'}",
                *settings.jvm_flags,
            ),
        )

    def java(self, main: str, *arguments: str, flags: tuple[str, ...] = ()) -> list[str]:
        """A command for one of Kafka's programs. The class path is spelt out, as the archive of classes asks."""
        class_path = os.pathsep.join(str(jar) for jar in sorted(self.libs.glob("*.jar")))
        return ["java", *flags, "-cp", class_path, main, *arguments]


def install() -> Installation:
    """The jars, from the cache or by Maven. Java must be there to run them."""
    ensure_java()
    found = Installation(home=CACHE / f"kafka-{KAFKA_VERSION}")
    if not found.archive.exists():
        with locked(CACHE / f"kafka-{KAFKA_VERSION}.lock"):
            found.home.mkdir(parents=True, exist_ok=True)
            steps = ((found.libs, _fetch), (found.formatted, _format), (found.archive, _archive_classes))
            for target, make in steps:
                if not target.exists():
                    with tempfile.TemporaryDirectory(dir=found.home) as scratch:
                        make(found, Path(scratch)).rename(target)
    return found


@contextmanager
def locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(installation: Installation, scratch: Path) -> Path:
    ensure_maven()
    (installation.home / "log4j2.properties").write_text(LOGGING)
    (scratch / "pom.xml").write_text(POM.format(dependencies="".join(DEPENDENCY.format(*d) for d in DEPENDENCIES)))
    run(
        ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=libs", "-DincludeScope=runtime"],
        cwd=scratch,
    )
    return scratch / "libs"


def _format(installation: Installation, scratch: Path) -> Path:
    data = scratch / "formatted"
    properties = scratch / "server.properties"
    write_properties(properties, server_properties(BrokerSettings(), free_ports(), str(data)))
    run(installation.java("kafka.tools.StorageTool", "format", "-t", new_cluster_id(), "-c", str(properties)))
    return data


def _archive_classes(installation: Installation, scratch: Path) -> Path:
    """Run a server once, to its good end: Java then writes down the classes that it had loaded."""
    ports, archive, log = free_ports(), scratch / "classes.jsa", scratch / "server.log"
    shutil.copytree(installation.formatted, scratch / "data")
    properties = scratch / "server.properties"
    write_properties(properties, server_properties(BrokerSettings(), ports, str(scratch / "data")))
    command = installation.java("kafka.Kafka", str(properties), flags=(f"-XX:ArchiveClassesAtExit={archive}",))
    server = LeashedProcess(command, log=log)
    try:
        wait_until_ready(f"{HOST}:{ports.client}", timeout_s=60, alive=server.alive, log=log.read_text)
    finally:
        server.stop(timeout_s=60)
    archive.touch()  # a Java that cannot make one starts slower; an empty one says that it was tried
    return archive
