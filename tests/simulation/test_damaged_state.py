"""Damaged local state: each seed is one history on a real directory, and one thing that happens to its files.

Somebody publishes and counts what is acknowledged; processes stop or are killed. Then a file is flipped, cut, zeroed,
deleted or older than the others, at a place of chance. The law: a start has all that was acknowledged, or it is
refused, or reading stops at the damage. What is salvaged is consistent in itself and goes on.
"""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kapelle.testing.clock import VirtualClock
from kapelle.topology.embedded import EmbeddedRuntime, LogDamaged
from kapelle.topology.log import Place
from kapelle.topology.salvage import salvage
from kapelle.topology.tables import Memory, RocksStore, StoreCorrupt
from tests.proof.checks import table_violations
from tests.proof.processors import topology
from tests.proof.workload import mixed
from tests.unit.embedded.damages import empty, flip, overwrite
from tests.unit.embedded.fakes import by_place, seen, stored_shards

ALL = topology("all", partitions=2)
MESSAGES = by_place(ALL, mixed(3, 60))
IMAGES = 3
SEEDS = 60
LIVES = 3
TURNS = 12
DIARIES = ("LOG", "LOCK", "kapelle.lock")  # nothing is read from them


class Image:
    """A directory as the last process left it, how much of it was acknowledged, and an older copy of it."""

    def __init__(self, directory: Path, seed: int) -> None:
        chance = random.Random(seed)
        self.log, self.older = directory / "log", directory / "older"
        self.acknowledged = dict.fromkeys(MESSAGES, 0)
        clock, running = VirtualClock(), directory / "running"
        for life in range(LIVES):
            with EmbeddedRuntime(ALL, running, clock=clock) as runtime:
                for _ in range(TURNS):
                    self._publish(runtime, chance)
                    clock.advance(chance.randrange(50))
                is_last = life == LIVES - 1
                if is_last or chance.random() < 0.5:  # killed: what it left is what the next one finds
                    killed = self.log if is_last else directory / f"killed-{life}"
                    shutil.copytree(running, killed)
                    running = killed
                    if life == 0:
                        shutil.copytree(killed, self.older)
        if not self.older.exists():
            shutil.copytree(directory / "running", self.older)

    def _publish(self, runtime: EmbeddedRuntime, chance: random.Random) -> None:
        for place in chance.sample(list(MESSAGES), 3):
            end = self.acknowledged[place]
            assert runtime.log.end(place) == end
            futures = [runtime.publish(*message) for message in MESSAGES[place][end : end + chance.randrange(3)]]
            runtime.step_until_idle()
            self.acknowledged[place] += len([future.result(0) for future in futures])


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    return [Image(tmp_path_factory.mktemp(f"image-{seed}"), seed) for seed in range(IMAGES)]


# What happens to files ------------------------------------------------------------------------------------------------

Happening = Callable[[Path, random.Random], None]


def _flip(file: Path, chance: random.Random) -> None:
    flip(file, chance.randrange(file.stat().st_size), 1 << chance.randrange(8))


def _cut(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.randrange(file.stat().st_size))


def _zero(file: Path, chance: random.Random) -> None:
    overwrite(file, chance.randrange(file.stat().st_size), bytes(chance.choice([16, 512, 4096])))


def _append(file: Path, chance: random.Random) -> None:
    overwrite(file, file.stat().st_size, chance.randbytes(chance.randrange(1, 2_000)))


def _delete(file: Path, _chance: random.Random) -> None:
    file.unlink()


HAPPENINGS: tuple[Happening, ...] = (_flip, _flip, _cut, _zero, _append, _delete)


def happen(image: Image, log: Path, chance: random.Random) -> str:
    """One thing that happens to a directory."""
    if chance.random() < 0.1:
        if chance.random() < 0.5:
            empty(log / "rows")
            return "no rows"
        shutil.rmtree(log / "rows")
        shutil.copytree(image.older / "rows", log / "rows")
        return "older rows"
    files = sorted(path for path in log.rglob("*") if path.is_file() and path.name not in DIARIES)
    files = [path for path in files if path.stat().st_size]
    of = chance.choice(sorted({path.suffix or path.name.split("-")[0] for path in files}))
    file = chance.choice([path for path in files if (path.suffix or path.name.split("-")[0]) == of])
    happening = chance.choice(HAPPENINGS)
    happening(file, chance)
    return f"{happening.__name__} {file.name}"


# The law --------------------------------------------------------------------------------------------------------------


def lacking(runtime: EmbeddedRuntime, acknowledged: dict[Place, int]) -> list[str]:
    return [f"{p}: {end} acknowledged" for p, end in acknowledged.items() if runtime.log.end(p) < end]


def inconsistent(runtime: EmbeddedRuntime) -> list[str]:
    return table_violations(stored_shards(ALL, runtime.log), seen(runtime))


def started(log: Path, acknowledged: dict[Place, int]) -> tuple[str, list[str]]:
    """How a start on a directory went, and what is wrong with that."""
    try:
        with EmbeddedRuntime(ALL, log, clock=VirtualClock()) as runtime:
            return "ready", lacking(runtime, acknowledged) + inconsistent(runtime)
    except LogDamaged:
        return "refused", []
    except StoreCorrupt:
        return "stopped", []


def gone_on(log: Path) -> list[str]:
    """What is wrong with a directory that was salvaged, before and after it is used again."""
    if salvage(ALL, log) is None:
        return ["nothing to salvage in a directory that was refused"]
    with EmbeddedRuntime(ALL, log, clock=VirtualClock()) as runtime:
        problems = inconsistent(runtime)
        for place, messages in MESSAGES.items():
            runtime.publish_all(messages[runtime.log.end(place) :][:5])
        runtime.step_until_idle()
        return problems + inconsistent(runtime)


def test_every_damage_is_refused_or_takes_nothing_that_was_acknowledged(images: list[Image], tmp_path: Path) -> None:
    problems: dict[str, list[str]] = {}
    outcomes: dict[str, int] = {"ready": 0, "refused": 0, "stopped": 0}
    for seed in range(SEEDS):
        chance = random.Random(seed)
        image, log = images[seed % IMAGES], tmp_path / str(seed) / "log"
        shutil.copytree(image.log, log)
        what = f"{seed}: {happen(image, log, chance)}"
        outcome, wrong = started(log, image.acknowledged)
        outcomes[outcome] += 1
        if outcome != "ready":
            wrong += gone_on(log)
        if wrong:
            problems[what] = wrong
        shutil.rmtree(log.parent)

    assert problems == {}
    assert outcomes["refused"] > SEEDS // 4
    assert outcomes["ready"] > SEEDS // 10


def test_a_start_that_does_not_look_at_what_was_acknowledged_is_caught(images: list[Image], tmp_path: Path) -> None:
    image = images[0]
    shutil.copytree(image.log, tmp_path / "log")
    for file in (tmp_path / "log" / "rows").glob("*.log"):
        os.truncate(file, file.stat().st_size // 2)
    RocksStore(tmp_path / "log", Memory()).close()

    (tmp_path / "log" / "acknowledged").unlink()
    store = RocksStore(tmp_path / "log", Memory())
    with EmbeddedRuntime(ALL, store, clock=VirtualClock()) as runtime:
        assert lacking(runtime, image.acknowledged)
