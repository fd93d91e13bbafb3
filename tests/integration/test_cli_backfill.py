"""`kapelle backfill` in a process of its own: Ctrl-C ends the command, and the backfill continues."""

import json
import shlex
from pathlib import Path

from tests.integration.ways_in import Running, Shell, running

FLOW = """
Workflow:
  id: etl
  owner: ann
  jobs: [{job: {id: load, type: by-hand}}]
"""
INTERRUPTED = 130


def test_ctrl_c_leaves_the_backfill_running_and_says_how_to_follow_it(tmp_path: Path) -> None:
    (tmp_path / "etl.yaml").write_text(FLOW)
    with running(["dev", "--port", "0", "--data", "data"], tmp_path) as dev:
        shell = Shell(tmp_path, dev.url())
        shell.kapelle("workflow", "push", "etl.yaml")
        words = ["backfill", "start", "etl", "--from", "2026-01-01", "--to", "2026-01-31", "--every", "1d"]
        following = Running([*words, "--url", shell.url], tmp_path)
        following.until("RUNNING 0 of 31")

        code = following.stop()

        hint = following.said.rpartition("to follow it: ")[2]
        [backfill] = json.loads(shell.kapelle("backfill", "list", "etl", "-o", "json"))["elements"]
        assert (code, backfill["status"]) == (INTERRUPTED, "RUNNING")
        assert shlex.split(hint) == ["kapelle", "backfill", "show", "etl", backfill["backfill_id"], "--watch"]
        shell.kapelle(*shlex.split(hint)[1:], "--timeout", "0.2", code=5)
