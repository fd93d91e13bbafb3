"""A file of sources is read anew when it changes, and never used when it is bad."""

from pathlib import Path

import pytest

from kapelle.sources import BadSources, WatchedFile
from kapelle.sources.source_file import LOOK_S

ONE = "sources: [{topic: a, name: x}]"
TWO = "sources: [{topic: a, name: x}, {topic: b, name: x}]"


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "sources.yaml"
    found.write_text(ONE)
    return found


def test_a_change_is_seen_at_the_next_look(file: Path, clock: Clock) -> None:
    watched = WatchedFile(file, now_s=clock)
    file.write_text(TWO)

    early = watched.changed()
    clock.now_s += LOOK_S
    found, again = watched.changed(), watched.changed()

    assert (early, again) == (None, None)
    assert found is not None
    assert [source.topic for source in found.sources] == ["a", "b"]


def test_who_asks_is_heard_at_once(file: Path, clock: Clock) -> None:
    watched = WatchedFile(file, now_s=clock)
    file.write_text(TWO)
    watched.ask()

    assert watched.changed() is not None


@pytest.mark.parametrize("text", ["sources: 7", "sources: [{topic: own, name: x}]"])
def test_a_bad_file_changes_nothing(file: Path, clock: Clock, text: str) -> None:
    watched = WatchedFile(file, refused={"own"}, now_s=clock)
    before = watched.current
    file.write_text(text)
    clock.now_s += LOOK_S

    assert watched.changed() is None
    assert watched.current == before


def test_a_file_that_is_away_for_a_moment_changes_nothing(file: Path, clock: Clock) -> None:
    watched = WatchedFile(file, now_s=clock)
    file.unlink()
    clock.now_s += LOOK_S

    assert watched.changed() is None


def test_a_bad_file_is_not_begun_with(file: Path) -> None:
    with pytest.raises(BadSources, match="own: Expected a topic that sources do not write to"):
        WatchedFile(_written(file, "sources: [{topic: own, name: x}]"), refused={"own"})


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file
