"""Every command and example of docs/replay.md runs."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kapelle.cli.all_commands import cli
from kapelle.processors.wiring import SIGNAL_INTERNAL, WORKFLOW_COMMANDS
from kapelle.schemas import contracts as c
from kapelle.testing.definitions import definition_text
from kapelle.topology.embedded import EmbeddedRuntime
from kapelle.topology.page import topology

PAGE = Path(__file__).resolve().parents[3] / "docs" / "replay.md"
COMMANDS = re.findall(r"^    kapelle (.*)$", PAGE.read_text(), re.MULTILINE)
FLOW = {"properties": {"owner": "ann"}, "workflow": {"id": "etl", "steps": [{"step": {"id": "load", "type": "shell"}}]}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the directory that the page speaks of."""
    made = tmp_path_factory.mktemp("docs")
    with EmbeddedRuntime(topology(), made / "kapelle-data" / "log") as runtime:
        runtime.publish(WORKFLOW_COMMANDS, "etl", c.PushVersion("p", "ann", definition_text(FLOW)))
        runtime.publish(WORKFLOW_COMMANDS, "etl", c.StartInstances("ann", (c.Start("s1"), c.Start("s2"))))
        runtime.publish(SIGNAL_INTERNAL, "orders", c.AnnounceSignal("orders", "o1", "{}"))
        runtime.step_until_idle()
    return made


def test_the_commands_of_the_page_run_one_after_the_other(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    for line in COMMANDS:
        if "--bootstrap-servers" not in line:  # those are run on a broker by the tests of the integration
            done = CliRunner().invoke(cli, shlex.split(line), prog_name="kapelle")
            assert done.exit_code == 0, f"kapelle {line}: {done.output}"


def test_the_example_of_the_page_holds(tmp_path: Path) -> None:
    [block] = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"__name__": "docs_replay"}

    exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page

    names["test_etl_is_decided_as_it_was"](tmp_path)
