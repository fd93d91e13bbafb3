"""The embedded runtime as a real process: killed at any moment, its files torn, flooded, and left alone.

    python -m tests.integration.test_embedded publish DIRECTORY [MOMENT PASSING]

publishes what is left of the workload and says what is acknowledged, until it is done or dies at a named moment. The
others, `flood` and `idle`, say how much memory and how much time they took.
"""

import os
import random
import resource
import shutil
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path

import pytest

from kapelle.testing.clock import VirtualClock, skip_to_next_timer
from kapelle.topology.crash import CrashPoint
from kapelle.topology.embedded import EmbeddedRuntime, EmbeddedSettings, InboxLimits, LogDamaged, Position
from kapelle.topology.log import Place
from kapelle.topology.partition_time import SYSTEM_CLOCK
from kapelle.topology.salvage import salvage
from tests.proof.checks import table_violations, violations
from tests.proof.contracts import Tick
from tests.proof.member import Doom
from tests.proof.processors import topology
from tests.proof.workload import mixed
from tests.support.processes import LeashedProcess
from tests.unit.embedded.fakes import by_place, seen, stored_shards

ALL = topology("all", partitions=2)
COUNTING = topology("counting", partitions=2)
PUBLISHED = mixed(7, 2_000)  # more than all lives together can publish
ROOT = Path(__file__).resolve().parents[2]

IN_FLIGHT_MAX = 8  # few, so that there are many small cycles to die in
KILLS = 8
LIFE_S = 60.0
NO_LIMIT = sys.maxsize
MOMENTS = [CrashPoint.AFTER_CONSUME, CrashPoint.AFTER_PRODUCE, CrashPoint.BEFORE_COMMIT, CrashPoint.AFTER_COMMIT]
CUTS = 12

FLOOD_RECORDS = 1_200
FLOOD_RECORD_BYTES = 64 * 1024
FLOOD_GROWTH_BYTES_MAX = 110 * 1024 * 1024
FLOOD_SETTINGS = EmbeddedSettings(
    memory_bytes=16 * 1024 * 1024, inbox=InboxLimits(bytes_max=8 * 1024 * 1024, take_bytes_max=4 * 1024 * 1024)
)

IDLE_S = 2.0
IDLE_CPU_MAX = 0.02


# The process --------------------------------------------------------------------------------------------------------


def publish(directory: Path, moment: str | None, passing: int) -> None:
    """Publish what is not there yet, a few at a time, and say what is acknowledged."""
    room = threading.Semaphore(IN_FLIGHT_MAX)

    def acknowledged(future: Future[Position]) -> None:
        place, offset = future.result()
        os.write(1, f"{place.topic} {place.partition} {offset}\n".encode())
        room.release()

    with EmbeddedRuntime(ALL, directory, crash=Doom(moment, passing)) as runtime:
        left = {place: messages[runtime.log.end(place) :] for place, messages in by_place(ALL, PUBLISHED).items()}
        runtime.start()
        for number in range(len(PUBLISHED)):
            for messages in left.values():
                if number < len(messages):
                    room.acquire()
                    runtime.publish(*messages[number]).add_done_callback(acknowledged)
        for _ in range(IN_FLIGHT_MAX):
            room.acquire()
    os.write(1, b"done\n")


def flood(directory: Path) -> None:
    """Publish much more than fits into the memory that is allowed, and say how much memory it took."""
    with EmbeddedRuntime(COUNTING, directory, FLOOD_SETTINGS) as runtime:
        runtime.start()
        runtime.publish("ticks", "word", Tick("first", "word", 0, 0)).result()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        text = "x" * FLOOD_RECORD_BYTES
        futures = [
            runtime.publish("ticks", f"word-{n}", Tick(f"{n}-{text}", "word", 0, 0)) for n in range(FLOOD_RECORDS)
        ]
        for future in futures:
            future.result()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    os.write(1, f"grown {(after - before) * 1024}\n".encode())


def idle(directory: Path) -> None:
    """Do something, then nothing for a while, and say how much of a core that took."""
    with EmbeddedRuntime(ALL, directory) as runtime:
        runtime.start()
        runtime.publish("ticks", "word", Tick("tick", "word", 0, 0)).result(LIFE_S)
        began = time.process_time()
        time.sleep(IDLE_S)
        used = time.process_time() - began
    os.write(1, f"used {used / IDLE_S}\n".encode())


class Life:
    """One process, from its start to its end, with what it said."""

    def __init__(self, log: Path, *arguments: str) -> None:
        self._log = log
        command = [sys.executable, "-m", "tests.integration.test_embedded", *arguments]
        self._process = LeashedProcess(["env", "--chdir", str(ROOT), *command], log=log)

    def lines(self) -> list[str]:
        # A line may be half written when the process dies: then its record counts as not acknowledged.
        return self._log.read_text().split("\n")[:-1] if self._log.exists() else []

    def run(self, lines_max: int) -> None:
        """Wait until it has said so many lines, or has ended; then kill it."""
        until = time.monotonic() + LIFE_S
        while self._process.alive() and len(self.lines()) < lines_max and time.monotonic() < until:
            time.sleep(0.002)
        self._process.kill()

    def acknowledged(self) -> dict[Place, int]:
        """For each place the end that was acknowledged."""
        found: dict[Place, int] = {}
        for line in self.lines():
            if line != "done":
                topic, partition, offset = line.split(" ")
                place = Place(topic, int(partition))
                found[place] = max(found.get(place, 0), int(offset) + 1)
        return found


# Checks -------------------------------------------------------------------------------------------------------------


def problems_on_disk(directory: Path, acknowledged: dict[Place, int]) -> list[str]:
    """What is wrong with a directory that nobody has touched since its process died."""
    with EmbeddedRuntime(ALL, directory) as runtime:
        lost = [
            f"{place}: {end} acknowledged, but only {runtime.log.end(place)} are there"
            for place, end in acknowledged.items()
            if runtime.log.end(place) < end
        ]
        return lost + table_violations(stored_shards(ALL, runtime.log), seen(runtime))


def problems_in_the_end(directory: Path) -> list[str]:
    """What is wrong when everything was published and every timer has fired."""
    clock = VirtualClock(SYSTEM_CLOCK())
    with EmbeddedRuntime(ALL, directory, clock=clock) as runtime:
        for place, messages in by_place(ALL, PUBLISHED).items():
            runtime.publish_all(messages[runtime.log.end(place) :])
        while skip_to_next_timer(runtime, clock):
            pass
        found = seen(runtime)
        return violations(PUBLISHED, found) + table_violations(stored_shards(ALL, runtime.log), found)


def test_a_process_killed_again_and_again_loses_and_doubles_nothing(tmp_path: Path) -> None:
    chance = random.Random(11)
    directory = tmp_path / "state"
    fates: list[tuple[int, list[str]]] = [(chance.randrange(1, 400), []) for _ in range(KILLS)]
    fates += [(NO_LIMIT, [moment.value, str(chance.randrange(1, 60))]) for moment in MOMENTS]
    chance.shuffle(fates)
    problems: list[str] = []
    acknowledged: dict[Place, int] = {}

    for number, (lines_max, doom) in enumerate(fates):
        life = Life(tmp_path / f"{number}.log", "publish", str(directory), *doom)
        life.run(lines_max)
        acknowledged |= life.acknowledged()
        assert "done" not in life.lines()
        problems += problems_on_disk(directory, acknowledged)

    assert sum(acknowledged.values()) > len(fates)
    assert problems + problems_in_the_end(directory) == []


def test_a_torn_file_is_refused_and_salvaged_to_what_was_before_the_last_cycles(tmp_path: Path) -> None:
    chance = random.Random(5)
    original = tmp_path / "original"
    messages = by_place(ALL, PUBLISHED[:400])
    with EmbeddedRuntime(ALL, original) as runtime:
        for number in range(200):
            for each in messages.values():
                if number < len(each):
                    runtime.publish(*each[number])
            runtime.step_until_idle()
        # Everything is synced, so a copy of the files is what a loss of power would leave.
        shutil.copytree(original, tmp_path / "image")
    newest = max((tmp_path / "image" / "rows").glob("*.log"), key=lambda path: int(path.stem))
    size = newest.stat().st_size
    kept: list[int] = []
    problems: list[str] = []

    for number in range(CUTS):
        torn = tmp_path / f"torn-{number}"
        shutil.copytree(tmp_path / "image", torn)
        os.truncate(torn / "rows" / newest.name, chance.randrange(size // 8, size))
        with pytest.raises(LogDamaged, match="writes were acknowledged"):
            EmbeddedRuntime(ALL, torn)
        assert salvage(ALL, torn) is not None
        problems += problems_on_disk(torn, {})
        with EmbeddedRuntime(ALL, torn) as runtime:
            kept.append(sum(runtime.log.end(place) for place in messages))
        problems += problems_in_the_end(torn) if number < 3 else []

    assert problems == []
    assert len(set(kept)) > CUTS // 2
    assert max(kept) < len(PUBLISHED[:400])


def test_rubbish_after_the_last_write_costs_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    original, image = tmp_path / "original", tmp_path / "image"
    with EmbeddedRuntime(COUNTING, original) as runtime:
        runtime.publish_all([("ticks", f"word-{n % 7}", Tick(f"tick-{n}", "word", 0, 0)) for n in range(500)])
        runtime.step_until_idle()
        shutil.copytree(original, image)
    newest = max((image / "rows").glob("*.log"), key=lambda path: int(path.stem))
    with newest.open("ab") as file:
        file.write(newest.read_bytes()[:100] + random.Random(3).randbytes(1_000))

    with EmbeddedRuntime(COUNTING, image) as runtime:
        found = seen(runtime)
        assert sum(map(len, found["ticks"].values())) == 500
        assert sum(map(len, found["counting.events"].values())) == 500
        assert table_violations(stored_shards(COUNTING, runtime.log), found) == []


def test_a_flood_is_held_back_within_the_memory_allowed(tmp_path: Path) -> None:
    life = Life(tmp_path / "flood.log", "flood", str(tmp_path / "state"))
    life.run(lines_max=1)

    [line] = life.lines()
    assert int(line.removeprefix("grown ")) < FLOOD_GROWTH_BYTES_MAX


def test_a_runtime_with_nothing_to_do_takes_next_to_no_time(tmp_path: Path) -> None:
    life = Life(tmp_path / "idle.log", "idle", str(tmp_path / "state"))  # alone: whatever else runs here would count
    life.run(lines_max=1)

    [line] = life.lines()
    assert float(line.removeprefix("used ")) < IDLE_CPU_MAX


if __name__ == "__main__":
    kind, where, *doom = sys.argv[1:]
    match kind:
        case "flood":
            flood(Path(where))
        case "idle":
            idle(Path(where))
        case _:
            publish(Path(where), doom[0] if doom else None, int(doom[1]) if doom else 0)
