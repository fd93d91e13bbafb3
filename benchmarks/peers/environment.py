"""What the peers need and this project does not: made on demand, kept in the repository's cache, with pinned versions.

python -m benchmarks.peers.environment        makes all of it beforehand
"""

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import progress
from tests.support.commands import ensure_java, ensure_maven, run

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
STREAMS = Path(__file__).parent / "kafka_streams"
SCHEMAS = ("Tick.avsc", "Counted.avsc")

PACKAGES = (
    "quixstreams==3.28.1",
    "faust-streaming==0.15.3",
    "aiokafka==0.14.0",
    "confluent-kafka==2.12.2",  # the newest that this Quix Streams accepts
    "fastavro==1.13.1",
    "rocksdict==0.3.29",
)
JVM_FLAGS = ("-Xmx1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")


def python() -> str:
    """The interpreter of the virtual environment that holds Quix Streams and Faust."""
    home = CACHE / "venv-peers"
    _made(home, "\n".join(PACKAGES), _make_python)
    return str(home / "bin" / "python")


def kafka_streams() -> list[str]:
    """The command that runs the Kafka Streams program, to be followed by its arguments."""
    home = CACHE / "kafka-streams"
    sources = sorted(path for path in STREAMS.rglob("*") if path.is_file())
    schemas = [ROOT / "tests" / "proof" / "avsc" / name for name in SCHEMAS]
    _made(home, "\n".join(path.read_text() for path in (*sources, *schemas)), _make_kafka_streams)
    return ["java", *JVM_FLAGS, "-cp", f"{home / 'classes'}:{home / 'dependency'}/*", "kapelle.peers.Counting"]


def _made(home: Path, recipe: str, make: Callable[[Path], None]) -> None:
    """Have what the recipe says in this directory; a stamp, written last, tells a finished one from a broken one."""
    stamp = home / "made-from.txt"
    digest = hashlib.sha256(recipe.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    progress(f"making {home.relative_to(ROOT)}, once")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    make(home)
    stamp.write_text(digest)


def _make_python(home: Path) -> None:
    run([sys.executable, "-m", "venv", str(home)])
    run([str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *PACKAGES])


def _make_kafka_streams(home: Path) -> None:
    ensure_java()
    ensure_maven()
    goals = ["compile", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    run(["mvn", "-q", "-B", "-f", str(STREAMS / "pom.xml"), f"-Dtarget={home}", *goals])


if __name__ == "__main__":
    python()
    kafka_streams()
