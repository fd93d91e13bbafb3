"""The programs of docs/subscribe.md, as they stand there, against a real broker and a running engine.

Each reads all changes from the first on and announces a signal for each load, also for those that others announced
before it: that there is one report for each load shows that the engine knows them by their ids.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kapelle.schemas import contracts as c
from tests.integration.subscribers.world import ENOUGH_S, EXAMPLE, NEVER, Program, World, blocks, opened_world
from tests.support.clients import ensure_kcat, faust_python, java_libs, quix_python

pytestmark = pytest.mark.timeout(290)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with opened_world(tmp_path_factory.mktemp("world")) as made:
        yield made


def follows_loads_and_has_them_reported(world: World, program: Program) -> None:
    """Whether a program tells of a load that happens while it runs, and of the report that it has brought about."""
    instance = world.load()

    def told(line: str) -> bool:
        assert program.lives(), program.said()
        return any(said.rstrip().endswith(line) for said in program.said().splitlines())  # Faust writes a log of it

    world.until(lambda: told(f"load-orders/{instance} SUCCEEDED"), lambda: f"the load to be told of: {program.said()}")
    world.until(world.reported, lambda: f"{world.loads + world.by_hand} reports, not {len(world.ended['report'])}")
    last = max(world.ended["report"])
    world.until(lambda: told(f"report/{last} SUCCEEDED"), lambda: f"report {last} to be told of: {program.said()}")

    assert len(world.ended["report"]) == world.loads + world.by_hand
    assert str(NEVER) not in program.said()


def test_the_faust_application_subscribes_and_its_signal_starts_a_workflow(world: World, tmp_path: Path) -> None:
    (text,) = blocks("Faust", "python")
    python, variables = faust_python()
    app = world.file(tmp_path, "app.py", text)

    with Program([python, app.name, "worker"], tmp_path, variables) as program:
        follows_loads_and_has_them_reported(world, program)

    assert text == (EXAMPLE / "app.py").read_text()
    assert blocks("Faust", "sh") == ["python app.py worker\n"]


def test_the_program_for_confluent_kafka_does_the_same(world: World, tmp_path: Path) -> None:
    (text,) = blocks("Python, with confluent-kafka", "python")

    with Program([sys.executable, world.file(tmp_path, "plain.py", text).name], tmp_path, {}) as program:
        follows_loads_and_has_them_reported(world, program)


def test_the_program_for_quix_streams_does_the_same(world: World, tmp_path: Path) -> None:
    (text,) = blocks("Quix Streams", "python")
    python = quix_python()
    write_schema(tmp_path)

    with Program([python, world.file(tmp_path, "quix.py", text).name], tmp_path, {}) as program:
        follows_loads_and_has_them_reported(world, program)


def test_the_java_program_compiles_and_does_the_same(world: World, tmp_path: Path) -> None:
    (text,) = blocks("Java", "java")
    (commands,) = blocks("Java", "sh")
    write_schema(tmp_path)
    world.file(tmp_path, "Subscriber.java", text)
    (tmp_path / "libs").mkdir()
    for jar in java_libs():
        (tmp_path / "libs" / jar.name).symlink_to(jar)
    compile_it, run_it = commands.splitlines()

    shell(compile_it, tmp_path)
    with Program(["sh", "-c", f"exec {run_it}"], tmp_path, {}) as program:
        follows_loads_and_has_them_reported(world, program)


def test_kcat_reads_committed_changes_and_announces_a_signal(world: World, tmp_path: Path) -> None:
    ensure_kcat()
    (text,) = blocks("kcat", "sh")
    script = world.file(tmp_path, "kcat.sh", text)
    changes = len(world.ended["load-orders"])
    reports = len(world.ended["report"])  # of loads there may be none yet: nobody has announced them if we are first
    assert changes >= 1, "there are changes to read"

    world.by_hand += 1
    said = shell(f"sh -eu {script.name}", tmp_path)
    world.until(lambda: len(world.ended["report"]) > reports, lambda: "a report for the signal by hand")

    told = [line for line in said.splitlines() if line.startswith("load-orders ")]
    assert len(told) == 3 * changes  # created, launched, ended: none of them the one that was never committed
    assert all("ce_type=InstanceStatusChange" in line and "ce_id=" in line for line in told), told
    assert any(line.startswith(f"{c.InstanceStatusChange.FINGERPRINT:016x} ") for line in said.splitlines())


def write_schema(directory: Path) -> None:
    """By the very command of the document, with the interpreter that has the package."""
    (command,) = blocks("Guarantees", "sh")
    shell(command.replace("python ", f"{sys.executable} ", 1), directory)

    assert (directory / "InstanceStatusChange.avsc").read_text().strip() == c.InstanceStatusChange.SCHEMA


def shell(command: str, directory: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", command], cwd=directory, capture_output=True, text=True, timeout=ENOUGH_S, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
