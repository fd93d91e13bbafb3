"""The comparison of two checkouts: what it accepts on its command line, and what it makes of the figures."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.before_after import PROGRAM, main, parser, spread


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory with what looks like an environment."""
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    return tmp_path


def test_the_help_says_what_is_measured_and_how_to_ask_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert "python -m benchmarks.before_after /path/to/other --instructions" in text
    assert "…_noise" in text


def test_a_checkout_is_asked_by_its_own_interpreter(checkout: Path) -> None:
    options = parser().parse_args([str(checkout), "--rounds", "3"])

    assert options.other == checkout / ".venv" / "bin" / "python"
    assert (options.rounds, options.starts, options.instructions) == (3, 200, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["."], "expected a checkout with an environment, but found no"),
        ([], "the following arguments are required: CHECKOUT"),
    ],
)
def test_without_an_environment_there_is_nothing_to_compare_with(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit) as ended:
        main(arguments)

    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--rounds", "--starts"])
@pytest.mark.parametrize("number", ["0", "-1", "many"])
def test_a_number_below_one_is_refused(
    option: str, number: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([str(checkout), f"{option}={number}"])

    assert f"expected a number from 1 on, but found '{number}'" in capsys.readouterr().err


def test_instructions_are_not_counted_without_valgrind(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)

    with pytest.raises(SystemExit):
        main([str(checkout), "--instructions"])

    assert "expected valgrind to be installed" in capsys.readouterr().err


def test_the_figure_is_the_median_of_the_rounds_with_the_lowest_and_the_highest() -> None:
    assert spread("noop_throughput", [1.1, 0.9, 1.02]) == {
        "noop_throughput": 1.02,
        "noop_throughput_low": 0.9,
        "noop_throughput_high": 1.1,
    }


def test_the_program_folds_every_kind_of_work() -> None:
    asked, cpu = "noop 2\nchain 1\nbeside 1\ntagged 1\n", str(min(os.sched_getaffinity(0)))

    done = subprocess.run(
        [sys.executable, "-P", str(PROGRAM), cpu], input=asked, capture_output=True, text=True, timeout=60, check=True
    )

    assert [json.loads(line)["cpu_s"] > 0 for line in done.stdout.splitlines()] == [True] * 4
