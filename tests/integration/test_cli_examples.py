"""The examples as their README says to run them: a server with their steps, their programs, and the commands."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.ways_in import Shell, environment, running
from tests.tidy.files import REPOSITORY

EXAMPLES = REPOSITORY / "examples"


def served(name: str, folder: Path) -> list[str]:
    return ["dev", "--port", "0", "--data", str(folder / "data"), "--worker", str(EXAMPLES / name / "steps.py")]


@pytest.fixture
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """A server with the steps of an example."""
    with running(served(request.param, tmp_path), tmp_path) as dev:
        yield Shell(EXAMPLES / request.param, dev.url())


def program(shell: Shell, *words: str) -> str:
    """What a program of the example says."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=shell.folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", ["etl"], indirect=True)
def test_the_etl_chain_loads_after_a_retry(shell: Shell, tmp_path: Path) -> None:
    shell.kapelle("workflow", "push", "workflow.yaml")

    watched = shell.kapelle("run", "start", "sales-etl", "--param", f"folder={tmp_path}", "--watch", "--timeout", "60")

    assert "USER_FAILED  the export of 2026-07-01 is not there yet" in watched
    assert (tmp_path / "sales.db").exists()


@pytest.mark.parametrize("shell", ["review"], indirect=True)
def test_the_review_loop_is_pushed_by_its_program_and_goes_round_until_it_is_good(shell: Shell) -> None:
    assert program(shell, "workflow.py", shell.url) == "review-loop version 1\n"

    watched = shell.kapelle("run", "start", "review-loop", "--watch", "--timeout", "60")

    assert "review iteration 3" in watched


@pytest.mark.parametrize("shell", ["backfill"], indirect=True)
def test_the_backfill_can_be_run_twice_and_runs_each_day_once(shell: Shell) -> None:
    shell.kapelle("workflow", "push", "workflow.yaml")

    first = program(shell, "backfill.py", "2026-01-01", "7", shell.url)
    again = program(shell, "backfill.py", "2026-01-01", "9", shell.url)

    assert (first, again) == ("7 SUCCEEDED\n0 EXISTING\n", "2 SUCCEEDED\n7 EXISTING\n")
    assert len(shell.kapelle("run", "list", "copy-day").splitlines()) == 1 + 9
