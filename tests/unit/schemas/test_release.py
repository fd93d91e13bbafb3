"""Releasing keeps what was released, and refuses what would break it."""

import json
from pathlib import Path

import pytest

from kapelle.schemas import BadSchema, check, generate, release
from kapelle.schemas.released import read_released
from tests.unit.schemas.fresh import ALL, SHARED, field, record, write_sources

WORD = record("Word", field("text", "string"))
GROWN = record("Word", field("text", "string"), field("n", "int", default=0))
BROKEN = record("Word", field("text", "int"))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_sources(tmp_path / "avsc", WORD)


@pytest.fixture
def released(tmp_path: Path) -> Path:
    directory = tmp_path / "released"
    directory.mkdir()
    return directory


def run_release(source: Path, released: Path) -> int:
    return release.main([str(source), "--released", str(released)])


def run_check(source: Path, released: Path) -> int:
    return check.main([str(source), "--released", str(released)])


def test_the_first_release_has_a_schema_and_golden_bytes(
    source: Path, released: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_release(source, released) == 0

    assert sorted(file.name for file in (released / "fresh.Word").iterdir()) == ["1.avsc", "1.golden", "1.json"]
    assert capsys.readouterr().out == "fresh.Word 1\n"


def test_only_what_is_named_is_released(source: Path, released: Path) -> None:
    write_sources(source, SHARED)

    assert release.main([str(source), "--released", str(released), "--only", "fresh.Shared"]) == 0

    assert [folder.name for folder in released.iterdir()] == ["fresh.Shared"]


def test_releasing_again_changes_nothing(source: Path, released: Path) -> None:
    run_release(source, released)
    before = {file: file.read_bytes() for file in released.glob("*/*")}

    assert run_release(source, released) == 0
    assert {file: file.read_bytes() for file in released.glob("*/*")} == before


def test_a_changed_contract_becomes_the_next_version(source: Path, released: Path) -> None:
    run_release(source, released)
    write_sources(source, GROWN)

    assert run_release(source, released) == 0
    assert [version.number for version in read_released(released)["fresh.Word"]] == [1, 2]


def test_an_incompatible_change_is_not_released(
    source: Path, released: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(source, released)
    write_sources(source, BROKEN)

    assert run_release(source, released) == 1
    assert "fresh.Word against version 1: fresh.Word.text: expected int, but found string" in capsys.readouterr().out
    assert len(read_released(released)["fresh.Word"]) == 1


def test_every_kind_of_field_has_golden_bytes(tmp_path: Path, released: Path) -> None:
    source = write_sources(tmp_path / "all", ALL, SHARED)

    assert run_release(source, released) == 0
    assert len((released / "fresh.Everything" / "1.golden").read_text().splitlines()) == 2


def test_the_check_is_silent_when_all_is_well(source: Path, released: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_release(source, released)
    write_sources(source, GROWN)
    capsys.readouterr()

    assert run_check(source, released) == 0
    assert capsys.readouterr().out == ""


def test_the_check_is_against_every_version(source: Path, released: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_release(source, released)
    write_sources(source, GROWN)
    run_release(source, released)
    write_sources(source, record("Word", field("n", "int", default=0)))

    assert run_check(source, released) == 1
    out = capsys.readouterr().out
    assert "against version 1: fresh.Word.text" in out
    assert "against version 2: fresh.Word.text" in out


def test_a_released_contract_may_not_disappear(
    source: Path, released: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(source, released)
    (source / "Word.avsc").unlink()
    write_sources(source, SHARED)

    assert run_check(source, released) == 1
    assert "fresh.Word against version 1: expected the contract to stay" in capsys.readouterr().out


def test_a_contract_may_be_renamed_if_it_keeps_its_old_name_as_an_alias(source: Path, released: Path) -> None:
    run_release(source, released)
    (source / "Word.avsc").unlink()
    write_sources(source, record("Term", field("text", "string"), aliases=["Word"]))

    assert run_check(source, released) == 0
    assert "EARLIER: ClassVar[tuple[str, ...]] = (_TERM_1,)" in generate.generate(source, released)


def test_generated_code_holds_the_earlier_versions_but_not_the_current_one(source: Path, released: Path) -> None:
    run_release(source, released)
    assert "EARLIER" not in generate.generate(source, released)

    write_sources(source, GROWN)
    unreleased = generate.generate(source, released)
    run_release(source, released)

    assert "EARLIER" in unreleased
    assert generate.generate(source, released) == unreleased


def test_a_gap_in_the_versions_is_refused(source: Path, released: Path) -> None:
    run_release(source, released)
    (released / "fresh.Word" / "1.avsc").rename(released / "fresh.Word" / "2.avsc")

    with pytest.raises(BadSchema, match=r"versions 1, 2, 3 and so on, but found \[2\]"):
        read_released(released)


def test_a_version_in_the_wrong_folder_is_refused(source: Path, released: Path) -> None:
    run_release(source, released)
    (released / "fresh.Word").rename(released / "fresh.Other")

    with pytest.raises(BadSchema, match=r"a record named fresh\.Other"):
        read_released(released)


def test_the_commands_fail_without_a_directory_of_releases(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run in (run_check, run_release):
        assert run(source, tmp_path / "nowhere") == 2
        assert "a directory of released schemas" in capsys.readouterr().err


def test_released_schemas_are_written_for_people(source: Path, released: Path) -> None:
    run_release(source, released)

    text = (released / "fresh.Word" / "1.avsc").read_text()

    assert len(text.splitlines()) > 5
    assert json.loads(text)["name"] == "fresh.Word"
