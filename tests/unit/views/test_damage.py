"""The file of a view is a cache: however it is damaged, the view is made again from the log and goes on."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kapelle.topology.journal import EmbeddedJournal
from kapelle.views import ViewDamaged, Views
from kapelle.views.database import FILE_NAME
from kapelle.views.projection.news import ANYTHING
from tests.unit.views.histories import dump, used_engine

ENGINE = used_engine(1, operations=60)
JOURNAL = EmbeddedJournal(ENGINE.runtime)
WAIT_S = 60.0


def file_of(directory: Path) -> Path:
    return directory / FILE_NAME


def overwrite(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(content)


def half(path: Path) -> int:
    return path.stat().st_size // 2


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut in half": lambda path: os.truncate(path, half(path)),
    "cut to its first page": lambda path: os.truncate(path, 4096),
    "cut in its header": lambda path: os.truncate(path, 50),
    "empty": lambda path: os.truncate(path, 0),
    "zeros in the middle": lambda path: overwrite(path, half(path) // 4096 * 4096, bytes(8192)),
    "zeros at the beginning": lambda path: overwrite(path, 0, bytes(4096)),
    "rubbish in the middle": lambda path: overwrite(path, half(path), random.Random(1).randbytes(16_384)),
    "rubbish": lambda path: path.write_bytes(random.Random(2).randbytes(100_000)),
}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directories of a view that was stopped, and of one that was killed: its last changes are beside its file."""
    directory = tmp_path_factory.mktemp("views")
    with Views(JOURNAL, directory / "running") as views:
        assert views.catch_up(WAIT_S)
    shutil.copytree(directory / "running", directory / "stopped")
    views = Views(JOURNAL, directory / "running")
    with views.database.writing() as connection:
        connection.execute("CREATE TABLE more (x)")
        connection.execute("DROP TABLE more")
    shutil.copytree(directory / "running", directory / "killed")
    views.close()
    return directory


@pytest.fixture(params=["stopped", "killed"])
def directory(request: pytest.FixtureRequest, left: Path, tmp_path: Path) -> Path:
    shutil.copytree(left / request.param, tmp_path, dirs_exist_ok=True)
    return tmp_path


@cache
def whole() -> dict[str, list[tuple[object, ...]]]:
    with Views(JOURNAL) as views:
        assert views.catch_up(WAIT_S)
        return dump(views.database)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_view_whose_file_is_damaged_is_made_again(directory: Path, damage: Callable[[Path], object]) -> None:
    damage(file_of(directory))

    with Views(JOURNAL, directory) as views:
        assert views.catch_up(WAIT_S)
        assert views.failure is None
        assert dump(views.database) == whole()


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_that_opening_does_not_show_is_mended_when_it_is_met(
    directory: Path, damage: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kapelle.views.database.CHECKED_BYTES_MAX", -1)
    damage(file_of(directory))

    with Views(JOURNAL, directory) as views:
        makes, met = views.database.makes, met_by_reading_all(views)
        assert views.wait([ANYTHING], lambda: met is None or views.database.makes > makes or None, WAIT_S)
        assert views.catch_up(WAIT_S)
        assert views.failure is None
        assert met_by_reading_all(views) is None
        assert dump(views.database) == whole()


def met_by_reading_all(views: Views) -> ViewDamaged | None:
    def all_of(connection: sqlite3.Connection) -> None:
        for table in whole():
            connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - of our own words

    try:
        views.read(all_of)
    except ViewDamaged as error:
        return error
    return None
