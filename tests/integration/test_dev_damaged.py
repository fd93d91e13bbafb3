"""`kapelle dev` on a damaged directory: refused with the way out, salvaged with what was lost, and never quietly older.

The directory is that of a process that was killed after it had acknowledged starts.
"""

import json
import os
import re
import shutil
from pathlib import Path

import httpx
import pytest

from tests.integration.ways_in import Shell, running
from tests.unit.embedded.damages import flip, wal

WORKFLOW = "Workflow: {id: flow, owner: ann, jobs: [{job: {id: a, type: NoOp}}]}"
DEV = ["dev", "--port", "0", "--data", "data"]
STARTS = 8


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    (folder / "flow.yaml").write_text(WORKFLOW)
    with running(DEV, folder) as dev:
        shell = Shell(folder, dev.url())
        shell.kapelle("workflow", "push", "flow.yaml")
        for number in range(STARTS):
            shell.kapelle("run", "start", "flow", "--request-id", f"r{number}", "--watch")
        dev.process.kill()
    return folder


@pytest.fixture
def folder(killed: Path, tmp_path: Path) -> Path:
    shutil.copytree(killed / "data", tmp_path / "data")
    return tmp_path


def ended(folder: Path, *words: str) -> tuple[int, str]:
    """How a command ended that should end by itself, in this process: that takes a tenth of the time."""
    done = Shell(folder, "http://unused").answer(*words)
    return done.exit_code, re.sub(r"\s+", " ", done.stderr)


def test_lost_starts_are_refused_by_server_and_verify_and_salvaged_with_a_report(folder: Path) -> None:
    flip(wal(folder / "data" / "log"), wal(folder / "data" / "log").stat().st_size // 2)

    for words in (DEV, ["verify", "--data", "data"]):
        code, said = ended(folder, *words)
        assert code == 4, said
        assert "are lost" in said
        assert "kapelle dev --data data --salvage" in said
        assert "defect" not in said

    with running([*DEV, "--salvage"], folder) as dev:
        shell = Shell(folder, dev.url())
        left = httpx.get(f"{shell.url}/api/v3/workflows/flow/instances").json()
        letters = json.loads(shell.kapelle("dlq", "list", "--url", shell.url, "-o", "json"))
        shell.kapelle("run", "start", "flow", "--request-id", "after", "--watch")
        assert dev.stop() == 0
        assert "the log was salvaged" in dev.said
        assert "data/log.damaged-1" in dev.said

    assert 0 < left["total_count"] < STARTS
    assert [letter["error"] for letter in letters] == ["LogDamaged"]
    assert json.loads((folder / "data" / "log.damaged-1" / "salvaged.json").read_text())["lost"]
    assert (folder / "data" / "log.damaged-1" / "views" / "views.sqlite").exists()
    assert ended(folder, "verify", "--data", "data")[0] == 0


def test_a_damaged_view_is_made_again_and_a_view_ahead_of_its_log_is_refused(folder: Path) -> None:
    shutil.copytree(folder / "data" / "log", folder / "older")
    view = folder / "data" / "views" / "views.sqlite"
    with running([*DEV, "--salvage"], folder) as dev:
        Shell(folder, dev.url()).kapelle("run", "start", "flow", "--request-id", "later", "--watch")
        assert dev.stop() == 0
        assert "nothing to salvage" in dev.said
    os.truncate(view, view.stat().st_size // 2)

    assert "is damaged; the next start rebuilds it from the log" in ended(folder, "verify", "--data", "data")[1]
    with running(DEV, folder) as dev:
        found = httpx.get(f"{dev.url()}/api/v3/workflows/flow/instances").json()
        assert dev.stop() == 0
    assert found["total_count"] == STARTS + 1

    shutil.rmtree(folder / "data" / "log")
    (folder / "older").rename(folder / "data" / "log")
    for words in (DEV, ["verify", "--data", "data"]):
        code, said = ended(folder, *words)
        assert code == 4, said
        assert "has read more than it has" in said


def test_salvage_needs_a_directory(folder: Path) -> None:
    code, said = ended(folder, "dev", "--port", "0", "--salvage")

    assert code == 2
    assert "Expected --data DIR" in said
